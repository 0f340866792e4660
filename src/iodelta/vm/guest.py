"""The guest: an initramfs with static busybox, programs of this machine with their libraries, and a kernel's modules.

The same inputs give the same bytes. What a boot is to do follows as a second archive (``job``), so that the base is
made once per kernel.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from iodelta.errors import MeasureError
from iodelta.tools.cache import cache
from iodelta.vm.cpio import Entry, archive, link, node, program
from iodelta.vm.modules import unpacked

JOB = "job/run"
"""The script that a job's archive must have. Its output goes to the second serial port, its errors to the console;
its end is power-off, after the end marker if it ended well."""

_INIT = b"""#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
while read -r module parameters; do
    insmod /modules/$module $parameters 2>/dev/console || echo "iodelta: cannot load $module" >/dev/console
done </modules/order
mount -t configfs configfs /sys/kernel/config 2>/dev/null
stty -F /dev/ttyS1 raw -echo
sh /job/run >/dev/ttyS1 2>/dev/console && echo iodelta-end >/dev/ttyS1
poweroff -f
"""


class Base(msgspec.Struct, frozen=True):
    """An initramfs on disk."""

    path: str
    sha256: str


def base(
    *,
    modules: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    programs: Sequence[str] = (),
    files: Mapping[str, Entry] | None = None,
) -> Base:
    """The base initramfs, kept in the cache by its content.

    ``modules`` are files in the order of loading (``Modules.needed``), ``parameters`` what a module is loaded with by
    its name, ``programs`` names or paths of this machine's programs (their shared libraries come along), ``files``
    anything else by its path in the guest. Raises MeasureError naming a program that is missing and how to get it.
    """
    entries: dict[str, Entry] = {"init": program(_INIT), "dev/console": node(5, 1), "dev/null": node(1, 3)}
    for folder in ("proc", "sys", "tmp", "mnt", "run"):
        entries[folder] = Entry(b"", 0o040755)
    busybox = find_program("busybox")
    entries.update(_with_libraries(busybox, "bin/busybox"))
    for applet in _applets(busybox):
        entries.setdefault(f"bin/{applet}", link("busybox"))
    for name in programs:
        path = find_program(name)
        entries.update(_with_libraries(path, f"bin/{os.path.basename(path)}"))
    order = []
    for number, module in enumerate(modules):
        name = re.sub(r"[.]ko.*", "", os.path.basename(module))
        file = f"{number:02d}-{name}.ko"
        order.append(f"{file} {(parameters or {}).get(name, '')}\n")
        entries[f"modules/{file}"] = Entry(unpacked(Path(module)))
    entries["modules/order"] = Entry("".join(order).encode())
    entries.update(files or {})
    return _kept(archive(entries))


def job(entries: Mapping[str, Entry]) -> bytes:
    """What one boot does, to follow a base in the same initramfs; it has ``job/run``."""
    return archive(entries)


def find_program(name: str) -> str:
    """A program of this machine by name or path; iodelta's own static fio before the system's. Raises MeasureError."""
    if name == "fio":
        built = sorted(path for path in cache("fio").glob("*/fio") if not path.parent.name.startswith("."))
        if built:
            return str(built[-1])
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")
    if found is None:
        package = _PACKAGES.get(os.path.basename(name), "")
        raise MeasureError(
            f"{name} is not on this machine; the guest needs it",
            place="virtual machine",
            remedy=f"install it ({package})" if package else "install it, or give its path",
        )
    return found


_PACKAGES = {
    **{
        program: f"Debian: apt-get install {package}"
        for program, package in (
            *(("busybox", "busybox-static"), ("fio", "fio"), ("mdadm", "mdadm"), ("dmsetup", "dmsetup")),
            *(("mkfs.btrfs", "btrfs-progs"), ("btrfs", "btrfs-progs"), ("mkfs.ext4", "e2fsprogs")),
            *(("mkfs.xfs", "xfsprogs"),),
        )
    },
    "rublk": "cargo install rublk",
}
"""Program -> how to get it, for remedies."""


def _applets(busybox: str) -> list[str]:
    done = subprocess.run([busybox, "--list"], capture_output=True, text=True, timeout=30, check=False)
    applets = done.stdout.split()
    if not {"sh", "mount", "insmod", "poweroff"} <= set(applets):
        raise MeasureError(
            "this busybox lacks sh, mount, insmod or poweroff", place=busybox, remedy="apt-get install busybox-static"
        )
    return [applet for applet in applets if applet != "busybox"]


def _with_libraries(path: str, name: str) -> dict[str, Entry]:
    """A program under ``name`` in the guest, and the shared libraries it starts with under their own names."""
    try:
        entries = {name: program(Path(path).read_bytes())}
        done = subprocess.run(
            ["ldd", path], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "LC_ALL": "C"}
        )
        for library in re.findall(r"(/\S+) \(0x[0-9a-f]+\)", done.stdout):
            entries[library] = program(Path(library).read_bytes())
    except OSError as error:
        raise MeasureError(f"cannot be packed for the guest: {error.strerror}", place=path) from error
    return entries


def _kept(data: bytes) -> Base:
    digest = hashlib.sha256(data).hexdigest()
    place = cache("guests", f"{digest[:32]}.cpio")
    if not place.is_file() or place.stat().st_size != len(data):
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(place)
    return Base(str(place), digest)
