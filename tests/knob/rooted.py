"""A machine whose /sys and /proc are a directory: for hardware and kernels that are not here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from iodelta import knob
from iodelta.errors import MachineError
from iodelta.machine import Completed, LocalMachine, Machine
from iodelta.probe.identity import Identity
from iodelta.probe.topology import Target

Kernel = Callable[[str, str], str | None]
"""What a kernel makes of a write to a path: the text it shows then, or None for the very text that was written."""


class Rooted(LocalMachine):
    """Paths below /sys and /proc lie below ``root``. ``kernel`` may change, ignore or refuse what is written."""

    name = "rooted"

    def __init__(self, root: Path, files: Mapping[str, str], kernel: Kernel = lambda path, text: None) -> None:
        self.root = root
        self.kernel = kernel
        self.writes: list[tuple[str, str]] = []
        for path, text in {"/proc/sys/kernel/random/boot_id": "boot-1", **files}.items():
            self.show(path, text)

    def show(self, path: str, text: str) -> None:
        file = Path(self._real(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def run(self, args: Sequence[str], **how: Any) -> Completed:
        if args[0] == "unshare":  # notes on settings of the whole kernel are for the one that is here
            raise MachineError("cannot start unshare: No such file or directory (ENOENT)", place=self.name)
        done = super().run([self._real(word) for word in args], **how)
        plain = done.stdout.replace(str(self.root).encode(), b"")
        return Completed(tuple(args), done.returncode, plain, done.stderr, done.seconds)

    def refuse(self, path: str, text: str, reason: str) -> NoReturn:
        raise MachineError(f"cannot write {text!r}: {reason}", place=path)

    def read(self, path: str) -> str:
        return super().read(self._real(path))

    def write(self, path: str, text: str) -> None:
        self.writes.append((path, text))
        if not Path(self._real(path)).exists():
            self.refuse(path, text, "No such file or directory (ENOENT)")
        shown = self.kernel(path, text)
        self.show(path, text if shown is None else shown)

    def glob(self, pattern: str) -> list[str]:
        return [path.removeprefix(str(self.root)) for path in super().glob(self._real(pattern))]

    def _real(self, path: str) -> str:
        return f"{self.root}{path}" if path.startswith(("/sys/", "/proc/")) else path


def target(*disks: str, fstype: str = "", mount: str = "", path: str = "/dev/target") -> Target:
    """A block device target on these disks, for machines that are not here."""
    return Target(
        path=path,
        kind="block",
        real_path=path,
        device=disks[0] if disks else None,
        devno="8:0" if disks else "",
        disk=disks[0] if disks else None,
        devices=disks,
        disks=disks,
        mount=mount,
        fstype=fstype,
        size_bytes=0,
        identity=Identity(boot="boot-1", devno="8:0", size_bytes=0),
        reason="" if disks else "tmpfs has no block device of its own",
    )


def on_sda(name: str, machine: Machine) -> knob.Knob:
    """A knob for a target on one disk."""
    return knob.knob(name, machine, target("sda"))
