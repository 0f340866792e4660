"""Real loop devices that no one else has: made anew, so their queue is as the kernel makes it, and removed again."""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import until
from workshop import unmount

_ADD, _REMOVE = 0x4C80, 0x4C81  # LOOP_CTL_ADD, LOOP_CTL_REMOVE of linux/loop.h
_numbers = itertools.count(2000 + os.getpid() % 40000)


class Loop:
    """One loop device; ``path`` is its node, ``queue`` its sysfs directory."""

    def __init__(self, number: int) -> None:
        self.name = f"loop{number}"
        self.path = f"/dev/{self.name}"
        self.queue = Path(f"/sys/block/{self.name}/queue")
        self.number = number

    def attach(self, image: Path, size: int = 64 << 20) -> None:
        with image.open("ab") as file:
            file.truncate(size)
        run("losetup", "--partscan", self.path, str(image))

    def detach(self) -> None:
        run("losetup", "--detach", self.path)
        until(lambda: not Path(f"/sys/block/{self.name}/loop").exists())

    def remove(self) -> None:
        if Path(f"/sys/block/{self.name}/loop").exists():
            self.detach()
        if Path(f"/sys/block/{self.name}").exists():
            until(lambda: _control(_REMOVE, self.number))

    def __getitem__(self, name: str) -> str:
        return (self.queue / name).read_text().strip()

    def __setitem__(self, name: str, value: str) -> None:
        (self.queue / name).write_text(value)


@contextmanager
def loop_device(image: Path) -> Iterator[Loop]:
    loop = Loop(next(number for number in _numbers if _control(_ADD, number)))
    try:
        loop.attach(image)
        yield loop
    finally:
        loop.remove()


@contextmanager
def mounted(device: str, point: Path, options: str = "defaults") -> Iterator[Path]:
    point.mkdir()
    run("mount", "-o", options, device, str(point))
    try:
        yield point
    finally:
        unmount(point)


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _control(request: int, number: int) -> bool:
    descriptor = os.open("/dev/loop-control", os.O_RDWR)
    try:
        fcntl.ioctl(descriptor, request, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
