"""``python -m benchmarks.path.anatomy repeated|patched KERNEL...``: does an anatomy keep its promises on real boots?

``repeated``: three boots with the plugin must give the same bytes, although another process keeps a CPU busy during the
third; a boot without the plugin must give the same output. ``patched``: without ``noreplace-smp`` Linux patches its
LOCK prefixes away, and with ``mitigations=auto`` it makes no indirect call. Each prints rows for results.md. Kernels:
``iodelta kernel fetch``.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import msgspec

from benchmarks.path.__main__ import load
from benchmarks.path.targets import READ, planned
from iodelta.path import footprint
from iodelta.path.anatomy import ios_of
from iodelta.path.output import read
from iodelta.path.run import LOCKS, prepared
from iodelta.vm import boot

WORKLOAD = {**READ, "number_ios": 1000}
FILES = ("out", "console", "counts", "tree", "epochs")
ASKED = ("instructions", "locked", "fence", "indirect")
BUSY = 1


def booted(kernel: str, place: Path, *, plugin: bool = True, drop: str = "", add: str = "") -> dict[str, bytes]:
    """What a boot wrote, by file; ``drop`` and ``add`` change its parameters. Raises SystemExit for one that failed."""
    plan, boot_plan = planned(kernel, "", WORKLOAD)
    place.mkdir(parents=True)
    asked, limits = prepared(plan, boot_plan, place)
    words = [word for word in asked.cmdline.split() if word != drop]
    asked = msgspec.structs.replace(asked, cmdline=" ".join([*words, *add.split()]))
    if not plugin:
        asked = msgspec.structs.replace(asked, devices=())
    with boot.Guest(asked, str(place), limits) as guest:
        ended = guest.wait(1.0)
    if ended.problem:
        raise SystemExit(f"{kernel}: {ended.problem}")
    return {name: (place / name).read_bytes() for name in FILES if (place / name).is_file()}


def digests(files: dict[str, bytes]) -> dict[str, str]:
    """Of each file the beginning of its sha256."""
    return {name: hashlib.sha256(data).hexdigest()[:8] for name, data in files.items()}


def medians(files: dict[str, bytes]) -> str:
    """What an I/O executes in the kernel."""
    ios = ios_of(read(files["out"], "guest"), "guest")
    (epochs,) = footprint.read(files["epochs"], ios).values()
    values = epochs.medians["kernel"]
    return ", ".join(f"{name} {values[name]:g}" for name in ASKED)


def repeated(kernel: str, where: Path) -> None:
    """Compare three boots with the plugin, the third under load, and one without it."""
    boots = []
    for number, busy in enumerate((0, 0, BUSY)):
        with load(busy) if busy else nullcontext():
            boots.append(booted(kernel, where / f"{kernel}-{number}"))
            said = digests(boots[-1])
            print(f"| {kernel} | boot {number + 1}, load {os.getloadavg()[0]:.0f} | {said} |", flush=True)
    same = [name for name in FILES if len({files[name] for files in boots}) == 1]
    print(f"| {kernel} | the same bytes in 3 boots | {', '.join(same)} |")
    bare = booted(kernel, where / f"{kernel}-bare", plugin=False)
    equal = [name for name in ("out", "console") if bare[name] == boots[0][name]]
    print(f"| {kernel} | the same bytes without the plugin | {', '.join(equal)} |")
    print(f"| {kernel} | {LOCKS} | {medians(boots[0])} |", flush=True)


def patched(kernel: str, where: Path) -> None:
    """What Linux patches for the machine that it boots on."""
    print(f"| {kernel} | without {LOCKS} | {medians(booted(kernel, where / f'{kernel}-up', drop=LOCKS))} |", flush=True)
    auto = booted(kernel, where / f"{kernel}-auto", drop="mitigations=off", add="mitigations=auto")
    print(f"| {kernel} | mitigations=auto | {medians(auto)} |", flush=True)


def main() -> int:
    """One of them, kernel after kernel."""
    what, *chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="iodelta-anatomy-") as place:
        for kernel in chosen:
            {"repeated": repeated, "patched": patched}[what](kernel, Path(place))
    return 0


if __name__ == "__main__":
    sys.exit(main())
