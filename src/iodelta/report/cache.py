"""The cache of a folder's report: what exactly this code found in exactly these files, so that it is said at once.

It is derived and never needed. It is used only where every file of the folder is the one it was made from, by size and
times that no unpacking can forge (ctime), and where the code is the same: else the folder is judged from raw data.
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
from iodelta.report.formats.charts.model import Charts
from iodelta.study.experiment import Account

FILE = "report.cache"

KEY = 64
"""Bytes of the key before what is kept, in hexadecimal digits."""


class Kept(msgspec.Struct, frozen=True):
    """What a report says and draws."""

    account: Account
    charts: Charts


def kept(folder: Folder) -> Kept | None:
    """What was kept of ``folder`` as it is now; None when there is nothing, or anything is not the same any more."""
    if type(folder) is not Folder:
        return None
    try:
        with (folder.path / FILE).open("rb") as file:
            # Only what was made from these very files, here, is unpacked: nobody else can know the key.
            if file.read(KEY) != key_of(folder).encode():
                return None
            cached = msgspec.msgpack.decode(
                zstandard.ZstdDecompressor().decompress(file.read()), type=Kept
            )
    except (OSError, zstandard.ZstdError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(
        cached, account=msgspec.structs.replace(cached.account, folder=str(folder.path))
    )


def keep(folder: Folder, account: Account, charts: Charts, key: str) -> None:
    """Keep what was found in the files of which ``key_of`` gave ``key``. A folder that cannot be written has none."""
    if type(folder) is not Folder:
        return
    data = zstandard.ZstdCompressor(level=3).compress(
        msgspec.msgpack.encode(Kept(account, charts))
    )
    with contextlib.suppress(MeasureError):
        folder.write(FILE, key.encode() + data)


def key_of(folder: Folder) -> str:
    """One digest of the code, the journal, the plan, and sizes and times of everything else in the folder."""
    digest = hashlib.sha256(_code().encode())
    for name in (JOURNAL, PLAN):
        with contextlib.suppress(OSError):
            digest.update((folder.path / name).read_bytes())
    for line in sorted((*_files(folder.path), *_files(folder.path / RAW))):
        digest.update(line.encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterator[str]:
    """Name, size and times of the files in a directory; those that are derived, or being written, left out."""
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(
                (".zst", ".json", ".toml")
            ) and not entry.name.startswith((".", "verdict")):
                stat = entry.stat()
                yield f"{entry.name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"


@lru_cache(maxsize=1)
def _code() -> str:
    """The version, and sizes and times of the package's own modules: a checkout changes without a new version."""
    root = Path(iodelta.__file__).parent
    parts = [iodelta.__version__]
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                stat = os.stat(os.path.join(folder, name))
                parts.append(f"{folder}/{name} {stat.st_size} {stat.st_mtime_ns}")
    return "\n".join(sorted(parts))
