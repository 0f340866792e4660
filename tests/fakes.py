"""A machine made of texts: for hardware and kernels that tests cannot have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from iodelta.errors import MachineError
from iodelta.machine import Completed, LocalMachine


class PaperMachine:
    """Reads only the files it was given (a directory entry is a file without text); of commands it has none."""

    def __init__(self, files: Mapping[str, str], commands: Mapping[str, str] | None = None) -> None:
        self.name = "paper"
        self.files = dict(files)
        self.commands = dict(commands or {})
        """Command line -> output."""
        self.start, self.write = LocalMachine().start, LocalMachine().write
        self.put, self.get = LocalMachine().put, LocalMachine().get
        self.append, self.lock = LocalMachine().append, LocalMachine().lock
        self.time, self.together = LocalMachine().time, LocalMachine().together
        self.directory, self.state, self.patience = "/", "/var/lib/iodelta", 0.0

    def run(
        self,
        args: Sequence[str],
        *,
        timeout: float | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        line = " ".join(args)
        if line not in self.commands:
            return Completed(tuple(args), 1, b"", f"{args[0]}: not on this machine".encode(), 0.0)
        return Completed(tuple(args), 0, self.commands[line].encode(), b"", 0.0)

    def read(self, path: str) -> str:
        if path not in self.files:
            raise MachineError("cannot read: No such file or directory (ENOENT)", place=path)
        return self.files[path]

    def read_bytes(self, path: str) -> bytes:
        return self.read(path).encode()

    def glob(self, pattern: str) -> list[str]:
        words = re.split(r"(\*|\[0-9\])", pattern)
        translated = "".join({"*": "[^/]*", "[0-9]": "[0-9]"}.get(word, re.escape(word)) for word in words)
        return sorted(path for path in self.files if re.fullmatch(translated, path))


def block_device(name: str, devno: str, *, size: int = 1 << 30, **entries: str) -> dict[str, str]:
    """sysfs files of a whole disk; ``entries`` are more of them, ``holders__md0`` for ``holders/md0``."""
    base = f"/sys/class/block/{name}"
    return {
        f"{base}/dev": f"{devno}\n",
        f"{base}/size": f"{size // 512}\n",
        f"{base}/uevent": f"DEVNAME={name}\nDEVTYPE=disk\n",
        f"/sys/dev/block/{devno}/uevent": f"DEVNAME={name}\nDEVTYPE=disk\n",
        **{f"{base}/{key.replace('__', '/')}": text for key, text in entries.items()},
    }


def partition(disk: str, number: int, devno: str, *, size: int = 1 << 29, **entries: str) -> dict[str, str]:
    """sysfs files of a partition of ``disk``."""
    name = f"{disk}{number}"
    return {
        **block_device(name, devno, size=size, **entries),
        f"/sys/class/block/{name}/partition": f"{number}\n",
        f"/sys/class/block/{name}/../uevent": f"DEVNAME={disk}\nDEVTYPE=disk\n",
        f"/sys/class/block/{disk}/{name}/partition": f"{number}\n",
    }
