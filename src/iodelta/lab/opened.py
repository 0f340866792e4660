"""What a folder holds, which may come from a stranger: members by their own names, and regular files alone.

A name is one that iodelta gives its files, so it leads nowhere else; no link on it is followed; a pipe, socket or
device is never opened for reading, so nothing waits for it; nobody can make us read without an end.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from iodelta.errors import MeasureError

MEMBER = re.compile(
    r"(?:(?:raw|hosts|logs|stop|trials|output|runs)/|hosts/[\w.@+-]{1,200}/(?:raw/)?)?\.?[A-Za-z0-9_][\w.@+-]{0,200}",
    re.ASCII,
)
"""Names of members: a file of the folder or of one of its own directories."""

LIMITS = {
    ".toml": 4 << 20,
    ".fio": 4 << 20,
    ".json": 64 << 20,
    ".zst": 64 << 20,
    ".jsonl": 512 << 20,
}
LARGEST = 512 << 20
"""Bytes of a member by the end of its name, and of any other."""


def opened(folder: Path | str, name: str, shown: Path | None = None) -> int:
    """Return a descriptor of a member, to be closed; messages name the folder as ``shown``.

    Raises FileNotFoundError, MeasureError for what is no regular file.
    """
    place = f"{shown or folder}/{name}"
    if not MEMBER.fullmatch(name):
        raise MeasureError(
            f"{name[:80]!r} is not the name of a file of such a folder",
            place=str(shown or folder),
        )
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    *parts, last = name.split("/")
    with contextlib.ExitStack() as stack:
        try:
            directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, directory)
            for part in parts:
                directory = os.open(
                    part,
                    os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                    dir_fd=directory,
                )
                stack.callback(os.close, directory)
            # By O_PATH first: to open a device can already do something.
            found = os.open(
                last, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory
            )
            stack.callback(os.close, found)
            if not stat.S_ISREG(os.fstat(found).st_mode):
                raise MeasureError(
                    f"is {_kind(os.fstat(found).st_mode)}, where a folder has a file",
                    place=place,
                    remedy="restore a copy of the folder, if you have one",
                )
            return os.open(f"/proc/self/fd/{found}", flags & ~os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            what = (
                "a link leads elsewhere"
                if error.errno in (errno.ELOOP, errno.ENOTDIR)
                else error.strerror
            )
            raise MeasureError(f"cannot read: {what}", place=place) from error


def read_member(
    folder: Path | str, name: str, begin: int = 0, shown: Path | None = None
) -> bytes:
    """Return the bytes of a member from ``begin``. Raises FileNotFoundError, MeasureError."""
    limit = LIMITS.get(name[name.rfind(".") :], LARGEST)
    place = f"{shown or folder}/{name}"
    with os.fdopen(opened(folder, name, shown), "rb", buffering=0) as file:
        try:
            if os.fstat(file.fileno()).st_size - begin > limit:
                raise MeasureError(
                    f"has more than {limit >> 20} MiB, which iodelta never writes there",
                    place=place,
                )
            file.seek(begin)
            data = file.read(limit + 1)
            while 0 < len(data) <= limit and (more := file.read(limit + 1 - len(data))):
                data += more
            return data
        except OSError as error:
            raise MeasureError(
                f"cannot read: {error.strerror}",
                place=place,
            ) from error


def has_member(folder: Path | str, name: str) -> bool:
    """Return whether there is such a file, and it is one."""
    try:
        os.close(opened(folder, name))
    except (FileNotFoundError, MeasureError):
        return False
    return True


def _kind(mode: int) -> str:
    for is_kind, name in (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            return name
    return "a device"


P = ParamSpec("P")
R = TypeVar("R")


def believing(read: Callable[P, R]) -> Callable[P, R]:
    """``read``, of a folder or its path, with a MeasureError where its records, each sound, contradict one another."""

    @functools.wraps(read)
    def believed(*args: P.args, **more: P.kwargs) -> R:
        try:
            return read(*args, **more)
        except (
            LookupError,
            ValueError,
            ArithmeticError,
            RecursionError,
            msgspec.MsgspecError,
        ) as error:
            raise MeasureError(
                f"its records contradict one another: {type(error).__name__}: {str(error)[:200]}",
                place=str(getattr(args[0], "path", args[0])),
                remedy="restore a copy of the folder; if nobody changed it, this is a defect of iodelta to report",
            ) from error

    return believed
