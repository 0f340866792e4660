"""Write files for the user. A file that iodelta wrote is replaced; any other one only with ``--force``.

iodelta keeps the SHA-256 of what it wrote, so a file that somebody edited since then counts as theirs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from iodelta.errors import MeasureError, RequestError

PICTURES = (".svg", ".png")

WRITTEN = "written"
"""File of the state directory with the SHA-256 of the files that iodelta wrote, a line each."""


def check_free(path: Path, *, force: bool) -> None:
    """Check a path before any work. Raises RequestError if it cannot be written, or exists and ``force`` is not set."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink() and not force:
            raise _taken(path) from None
        if not path.parent.is_dir():
            raise RequestError(
                f"the folder {path.parent} does not exist",
                place=str(path),
                remedy="create it, or name another file",
            ) from None
        return
    except OSError as error:
        raise RequestError(
            f"cannot be written: {error.strerror}", place=str(path)
        ) from error
    if stat.S_ISDIR(mode) or stat.S_ISBLK(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a block device"
        raise RequestError(
            f"this is {what}, not a file to write",
            place=str(path),
            remedy="name a file",
        )
    if stat.S_ISREG(mode) and not force and not is_ours(path):
        raise _taken(path)


def _record() -> Path:
    from iodelta.lab.undo import state_directory  # --help does without

    return state_directory() / WRITTEN


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_ours(path: Path) -> bool:
    """Return whether iodelta wrote the file and nobody changed it since."""
    try:
        return _digest(path) in _record().read_text().split()
    except OSError:
        return False


def remember(path: Path) -> None:
    """Keep in mind that iodelta wrote the file; without a state directory it takes ``--force`` to replace it."""
    with contextlib.suppress(OSError):
        _record().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(_record(), "a") as file:
            file.write(f"{_digest(path)}\n")


def check_free_of_pictures(folder: Path, *, force: bool) -> None:
    """Raise RequestError if pictures of an earlier report would be replaced without ``force``."""
    if force or not folder.is_dir():
        return
    pictures = sorted(path for path in folder.iterdir() if path.suffix in PICTURES)
    taken = [path for path in pictures if not is_ours(path)]
    if taken:
        raise RequestError(
            f"it contains pictures that iodelta did not write, such as {taken[0].name}",
            place=str(folder),
            remedy="name a new folder, or add --force",
        )


@contextlib.contextmanager
def drafted(path: Path, what: str, *, force: bool) -> Iterator[Path]:
    """A file to be written next to ``path`` that takes its name when the block is left well, whole or not at all.

    Raises RequestError as ``check_free`` does, MeasureError when it cannot be written.
    """
    check_free(path, force=force)
    draft = path.parent / f".{os.getpid()}.{path.name}"
    try:
        yield draft
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        if force or is_ours(path):
            os.replace(draft, path)
        else:
            _name(draft, path)
        remember(path)
    except OSError as error:
        raise MeasureError(
            f"cannot write {what}: {error.strerror}",
            place=str(path),
            remedy="free some space, or name another file",
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def write(path: Path, data: bytes, what: str, *, force: bool) -> None:
    """Write ``data`` to ``path``. Raises as ``drafted`` does."""
    # A pipe or /dev/stdout: nothing is replaced.
    if path.exists() and not path.is_file():
        try:
            path.write_bytes(data)
        except OSError as error:
            raise MeasureError(
                f"cannot write {what}: {error.strerror}", place=str(path)
            ) from error
        return
    with drafted(path, what, force=force) as draft:
        draft.write_bytes(data)


def write_or_print(output: Path | None, data: bytes, what: str, *, force: bool) -> None:
    """Write ``data`` to ``output`` as ``write`` does; without one, to standard output."""
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        write(output, data, what, force=force)


def _name(draft: Path, path: Path) -> None:
    """Give the draft its name unless that exists by now. Only link(2) checks that atomically."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError:  # a filesystem without links
        check_free(path, force=False)
        os.replace(draft, path)


def _taken(path: Path) -> RequestError:
    return RequestError(
        "this file exists, and iodelta did not write it",
        place=str(path),
        remedy="name another file, or add --force",
    )


def refuse_unread(paths: Iterable[str], reasons: str) -> NoReturn:
    """Raise MeasureError: nothing could be read at ``paths``. ``reasons`` says where to find why; empty: no file."""
    raise MeasureError(
        "nothing here could be read",
        place=", ".join(paths),
        remedy=reasons or "there is no file in it",
    )
