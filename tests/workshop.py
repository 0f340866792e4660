"""Real devices for tests: loop devices, mounts and swap of their own, all gone afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import until


def loops_in(place: Path) -> list[str]:
    """Loop devices over files in this directory, without those that the kernel detaches when nobody looks any more."""
    if shutil.which("losetup") is None:
        return []
    words = ["losetup", "--list", "--noheadings", "--output", "NAME,AUTOCLEAR,BACK-FILE"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    found = (line.split(maxsplit=2) for line in lines)
    return [node for node, released, file in found if released == "0" and Path(file).is_relative_to(place)]


def backing_files() -> Iterator[tuple[str, str]]:
    """Names of the attached loop devices and their files, without those that are detached meanwhile."""
    for path in Path("/sys/block").glob("loop*"):
        with contextlib.suppress(OSError):
            yield path.name, (path / "loop/backing_file").read_text().strip()


@contextlib.contextmanager
def _loops(how: int) -> Iterator[None]:
    with open(Path(tempfile.gettempdir(), f"iodelta-tests-loops-{os.getuid()}"), "a") as file:
        fcntl.flock(file, how)
        yield


@contextlib.contextmanager
def no_other_takes_loops() -> Iterator[None]:
    """In this block a device that was detached stays free: no test beside attaches another file to it."""
    with _loops(fcntl.LOCK_EX):
        yield


@dataclass(frozen=True)
class Attached:
    """A loop device over a file of ours; the kernel counts what it attaches, so ``sequence`` is never another's."""

    node: str
    sequence: str

    @classmethod
    def to(cls, image: str | Path, *options: str) -> Attached:
        words = ["losetup", "--find", "--show", *options, os.fspath(image)]
        with _loops(fcntl.LOCK_SH):
            node = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        if "--partscan" not in options:  # the kernel keeps partitions that were added to an earlier file on this node
            remove_partitions(node)
        return cls(node, _sequence(node))

    def release(self) -> None:
        """Give the device back; the kernel detaches it when no other test looks at it or has it in its mounts."""
        if _sequence(self.node) == self.sequence:
            subprocess.run(["losetup", "--detach", self.node], capture_output=True, check=False)

    def detach(self) -> None:
        """Give the device back, and wait until it is detached."""
        self.release()
        until(lambda: _sequence(self.node) != self.sequence)


def attach(device: str, image: str | Path) -> None:
    """A file to this very device, as soon as nobody looks at what was attached there."""

    def is_attached() -> bool:
        return subprocess.run(["losetup", device, image], capture_output=True, check=False).returncode == 0

    until(is_attached)


def remove_partitions(node: str) -> None:
    """Have the kernel forget the partitions of a device, as soon as no other test looks at them."""
    disk = Path("/sys/block", Path(node).name)

    def are_gone() -> bool:
        subprocess.run(["partx", "--delete", node], capture_output=True, check=False)
        return not list(disk.glob(f"{disk.name}p*"))

    until(are_gone)


def unmount(point: str | Path) -> None:
    """Unmount, as soon as no other process looks at what is mounted."""

    def is_unmounted() -> bool:
        return subprocess.run(["umount", point], capture_output=True, check=False).returncode == 0

    until(is_unmounted)


def _sequence(node: str) -> str:
    return Path("/sys/block", Path(node).name, "diskseq").read_text()


class Workshop:
    """Makes loop devices in a directory of its own and takes back, newest first, all that was done with them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._undo: list[Callable[[], object]] = []
        self._made = 0

    def run(self, *args: str | Path, stdin: bytes = b"") -> str:
        """Output of a command that must succeed; the test is skipped with the reason when it is not installed."""
        if shutil.which(str(args[0])) is None:
            pytest.skip(f"{args[0]} is not installed: see the list of packages in .ci")
        done = subprocess.run([str(arg) for arg in args], input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, f"{args}: {done.stderr.decode()}"
        return done.stdout.decode()

    def undo(self, action: Callable[[], object]) -> None:
        """Do this in the end, before what was asked for earlier."""
        self._undo.append(action)

    def file(self, mib: int, name: str = "") -> Path:
        """A sparse file of zeros."""
        self._made += 1
        path = self.place / (name or f"image{self._made}")
        with open(path, "xb") as file:
            file.truncate(mib << 20)
        return path

    def loop(self, backing: int | str | Path) -> str:
        """A loop device over a new file of so many MiB, or over that file or device."""
        path = self.file(backing) if isinstance(backing, int) else backing
        return self.attach(path).node

    def attach(self, image: str | Path) -> Attached:
        """A loop device over this file or device, until the end or until the test detaches it."""
        attached = Attached.to(image)
        self.undo(attached.release)
        return attached

    def mount(self, node: str, *options: str) -> Path:
        """Mount a device on a new directory."""
        self._made += 1
        point = self.place / f"mount{self._made}"
        point.mkdir()
        self.run("mount", *options, node, point)
        self.undo(lambda: unmount(point))
        return point

    def swap_on(self, path: str | Path) -> None:
        """Swap on a device or file until the end."""
        self.run("swapon", path)
        self.undo(lambda: subprocess.run(["swapoff", path], check=True))

    def partition(self, node: str, table: str = "gpt", parts: int = 1, size: str = "16MiB") -> list[str]:
        """Partition a device with equal parts and show them to the kernel (which may know no tables)."""
        script = f"label: {table}\n" + f"size={size}\n" * parts
        self.run("sfdisk", "--no-reread", "--no-tell-kernel", node, stdin=script.encode())
        self.run("partx", "--add", node)
        self.undo(lambda: remove_partitions(node))
        return [f"{node}p{number}" for number in range(1, parts + 1)]

    @staticmethod
    def checksum(node: str | Path) -> str:
        """Of every byte of a device or file."""
        with open(node, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def close(self) -> None:
        """Take everything back; the first failure is raised after all was tried."""
        with contextlib.ExitStack() as stack:
            for action in self._undo:
                stack.callback(action)
