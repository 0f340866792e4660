"""The cache of a folder's report: the account and the charts that this code derived from these files.

A report never needs it. It is used only if the code is the same and if all files of the folder have the same sizes and
times (ctime too, which unpacking an archive cannot set); else the folder is judged from raw data.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec
import zstandard

import iodelta
from iodelta.errors import MeasureError
from iodelta.lab.folder import JOURNAL, PLAN, RAW, Folder
from iodelta.lab.opened import opened, read_member
from iodelta.study.experiment import Account

FILE = "report.cache"

KEY = 64
"""Bytes of the key before what is kept, in hexadecimal digits."""


class Kept(msgspec.Struct, frozen=True):
    """What a report says and draws."""

    account: Account
    charts: msgspec.Raw
    """``Charts``, which a terminal does not need."""


def kept(folder: Folder) -> Kept | None:
    """Return the cached report of ``folder``; None without one, or if the folder or the code has changed since."""
    if type(folder) is not Folder:
        return None
    try:
        with os.fdopen(opened(folder.path, FILE), "rb") as file:
            # The key depends on times of files here, so a stranger cannot write a cache that is unpacked.
            if file.read(KEY) != key_of(folder).encode():
                return None
            cached = msgspec.msgpack.decode(
                zstandard.ZstdDecompressor().decompress(file.read()), type=Kept
            )
    except (OSError, MeasureError, zstandard.ZstdError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(
        cached, account=msgspec.structs.replace(cached.account, folder=str(folder.path))
    )


def keep(folder: Folder, account: Account, charts: object, key: str) -> None:
    """Cache a report of the files of which ``key_of`` gave ``key``. A folder that cannot be written gets no cache."""
    if type(folder) is not Folder:
        return
    data = zstandard.ZstdCompressor(level=3).compress(
        msgspec.msgpack.encode(
            Kept(account, msgspec.Raw(msgspec.msgpack.encode(charts)))
        )
    )
    with contextlib.suppress(MeasureError):
        folder.write(FILE, key.encode() + data)


def key_of(folder: Folder) -> str:
    """Return one digest of the code, the journal, the plan, and sizes and times of everything else in the folder."""
    digest = hashlib.sha256(_code().encode())
    for name in (JOURNAL, PLAN):
        with contextlib.suppress(OSError, MeasureError):
            digest.update(read_member(folder.path, name))
    for line in sorted((*_files(folder.path), *_files(folder.path / RAW))):
        digest.update(line.encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterator[str]:
    """Name, size and times of the files in a directory, without derived files and those that are being written."""
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            is_source = entry.name.endswith((".zst", ".json", ".toml"))
            if is_source and not entry.name.startswith((".", "verdict")):
                stat = entry.stat()
                yield f"{entry.name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"


@lru_cache(maxsize=1)
def _code() -> str:
    """Return the version, and sizes and times of the package's own modules: a checkout changes without a new version."""
    root = Path(iodelta.__file__).parent
    parts = [iodelta.__version__]
    for path in root.rglob("*.py"):
        stat = path.stat()
        parts.append(f"{path} {stat.st_size} {stat.st_mtime_ns}")
    return "\n".join(sorted(parts))
