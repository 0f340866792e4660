"""The guest: an initramfs with static busybox, programs of this machine with their libraries, and a kernel's modules.

The same inputs give the same bytes. The task of a boot follows as a second archive (``job``), so that the base is made
once per kernel.
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
from iodelta.experiment.io_uring import IO_URING
from iodelta.tools.cache import cache
from iodelta.tools.fio import built_fio
from iodelta.vm import kernels
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
    """Return the base initramfs, cached by its content.

    ``modules`` are files in the order of loading (``Modules.needed``), ``parameters`` the parameters of a module by its
    name, ``programs`` names or paths of programs on this machine (copied with their shared libraries), ``files``
    further files by their path in the guest. Raises MeasureError with a missing program and how to get it.
    """
    entries: dict[str, Entry] = {
        "init": program(_INIT),
        "dev/console": node(5, 1),
        "dev/null": node(1, 3),
    }
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
    """Return the archive with the task of one boot (``job/run``); it follows the base in the same initramfs."""
    return archive(entries)


def find_program(name: str) -> str:
    """Return a program of this machine by name or path; iodelta's own static fio and rublk first. Raises MeasureError."""
    found = _found(name)
    if found is None:
        raise MeasureError(
            f"{name} is not on this machine; the guest needs it",
            place="virtual machine",
            remedy=_remedy([name]),
        )
    return found


def has_program(name: str) -> bool:
    """Return whether this machine has a program that a guest can take."""
    return _found(name) is not None


def check_present(programs: Sequence[str], named: Sequence[str] = ()) -> None:
    """Raises one MeasureError with everything that this machine lacks to boot guests with these programs and the
    ``named`` kernels, where an empty name means any. Raises RequestError for a path without a kernel."""
    missing = [name for name in (*QEMU, "busybox", *programs) if _found(name) is None]
    lacking = [
        f"{name} ({PACKAGES[name]})" if name in PACKAGES else name
        for name in dict.fromkeys(missing)
    ]
    remedies = [_remedy(missing)] if missing else []
    absent = [name for name in dict.fromkeys(named) if kernels.is_absent(name)]
    lacking += [f"kernel {name}" if name else "a readable kernel" for name in absent]
    if absent:
        remedies.append(kernels.how_to_get([name or "6.12" for name in absent]))
    if lacking:
        raise MeasureError(
            f"a guest needs programs or files that are missing on this machine: {', '.join(lacking)}",
            place='machine = "vm"',
            remedy="; ".join(remedies),
        )


def check_first(programs: Sequence[str], named: Sequence[str]) -> None:
    """``check_present``, unless all programs and one of the ``named`` kernels are here: the variants of the missing
    kernels then get a reason each. Raises MeasureError, RequestError."""
    whole = all(map(has_program, (*QEMU, "busybox", *programs)))
    if not whole or all(map(kernels.is_absent, named)):
        check_present(programs, named)


QEMU = ("qemu-system-x86_64", "setpriv")

PACKAGES = {
    **{
        "qemu-system-x86_64": "qemu-system-x86",
        "setpriv": "util-linux",
        "busybox": "busybox-static",
        "fio": "fio",
        "gcc": "gcc",
    },
    **{
        "mdadm": "mdadm",
        "dmsetup": "dmsetup",
        "mkfs.btrfs": "btrfs-progs",
        "btrfs": "btrfs-progs",
    },
    **{"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "flock": "util-linux"},
}
"""Program -> Debian's package of it, for remedies."""

RUBLK = (
    "LIBCLANG_PATH=$(echo /usr/lib/llvm-*/lib) cargo install rublk --version 0.2.15 --locked, "
    "which needs Rust and Debian's libclang1-14 and libclang-common-14-dev (in a checkout: scripts/setup ublk)"
)
"""How to get rublk, which no distribution packages."""


def _found(name: str) -> str | None:
    if name == "fio":
        built = sorted(
            path
            for path in cache("fio").glob("*/fio")
            if not path.parent.name.startswith(".")
        )
        if built:
            return str(built[-1])
    if name == IO_URING:
        whole = built_fio()
        return str(whole.io_uring) if whole else None
    places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
    if name == "rublk":
        places = [
            str(cache("rublk", "bin")),
            *places,
            os.path.expanduser("~/.cargo/bin"),
        ]
    return shutil.which(name, path=":".join([os.environ.get("PATH", ""), *places]))


def _remedy(missing: Sequence[str]) -> str:
    """Return one line that installs all of it, as far as packages have it."""
    known = list(dict.fromkeys(PACKAGES[name] for name in missing if name in PACKAGES))
    remedies = [f"Debian: apt-get install {' '.join(known)}"] if known else []
    if IO_URING in missing:
        remedies.append(
            "`iodelta fio build` (gcc make dpkg-dev libaio-dev) makes t/io_uring and a static fio"
        )
    elif "fio" in missing:
        remedies.append(
            "better than the package of fio: `iodelta fio build` (gcc make dpkg-dev libaio-dev), static"
        )
    if "rublk" in missing:
        remedies.append(RUBLK)
    explained = {*PACKAGES, "rublk", IO_URING}
    strange = [name for name in missing if name not in explained]
    if strange:
        remedies.append(
            f"install {', '.join(dict.fromkeys(strange))}, or give the path"
        )
    return "; ".join(remedies)


def _applets(busybox: str) -> list[str]:
    done = subprocess.run(
        [busybox, "--list"], capture_output=True, text=True, timeout=30, check=False
    )
    applets = done.stdout.split()
    if not {"sh", "mount", "insmod", "poweroff"} <= set(applets):
        raise MeasureError(
            "this busybox lacks sh, mount, insmod or poweroff",
            place=busybox,
            remedy="apt-get install busybox-static",
        )
    return [applet for applet in applets if applet != "busybox"]


def _with_libraries(path: str, name: str) -> dict[str, Entry]:
    """Return a program under ``name`` in the guest, and the shared libraries it starts with under their own names."""
    try:
        entries = {name: program(Path(path).read_bytes())}
        done = subprocess.run(
            ["ldd", path],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        for library in re.findall(r"(/\S+) \(0x[0-9a-f]+\)", done.stdout):
            entries[library] = program(Path(library).read_bytes())
    except OSError as error:
        raise MeasureError(
            f"cannot be packed for the guest: {error.strerror}", place=path
        ) from error
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
