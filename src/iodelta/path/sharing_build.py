"""The plugin that follows cache lines, the guest's program that does I/O on two CPUs in turn, and the self-test of both
with the installed qemu."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from iodelta.errors import MeasureError
from iodelta.path.functions import APIS, BARE, SOURCES, compiled, kept
from iodelta.vm.boot import DETERMINISTIC, QEMU

NAMES = ("moved.c", "alternate.c", "selftest.S")

PROGRAM = (
    *BARE,
    *("-Wl,-Ttext-segment=0x7d000000", "-Wl,--section-start=.marks=0x7e000000"),
    "-Wl,--build-id=none",
)
FIRMWARE = (
    *("-m32", "-nostdlib", "-static", "-no-pie"),
    "-Wl,-Ttext=0,--oformat=binary,--build-id=none",
)

SECONDS = 120
"""Maximum wall time of a firmware: it takes less than a second on an idle machine."""

MARKS = "f8000"
"""Where the firmware of the self-test has its marks (selftest.S)."""

EXPECTED = {
    "self 0 0": "CPU 0 under another number",
    "self 1 1": "CPU 1 under another number",
    "phase 1 200": "another number of rounds than the 200 that two CPUs make",
    "ios 1 199": "not one line that moves in each round",
    "line 2080 2080 199 199 0 199 0": "not the line that both CPUs write to",
}
"""Lines that the plugin must write in the self-test -> what qemu showed it otherwise. At the first write no cache has
the line, so it does not move."""


class Built(msgspec.Struct, frozen=True):
    """The plugin, and the guest's program."""

    plugin: str
    program: str


@functools.cache
def build() -> Built:
    """Compile all, once per version of the sources and of qemu's interface, and test them. Raises MeasureError."""
    if shutil.which("gcc") is None:
        raise MeasureError(
            "moved lines are counted by a plugin of qemu that is compiled here, and there is no gcc",
            place="anatomy",
            remedy="Debian: apt-get install gcc",
        )
    sources = [SOURCES / name for name in NAMES]
    place = kept("moved-", *sources, SOURCES / "qemu.h")
    program, firmware = place / "alternate", place / "selftest.bin"
    compiled(program, sources[1], *PROGRAM)
    compiled(firmware, sources[2], *FIRMWARE)
    why = ""
    for api in APIS:
        plugin = place / f"moved-{api}.so"
        compiled(plugin, sources[0], "-shared", "-fPIC", f"-DAPI={api}")
        why = broken(plugin, firmware)
        if not why:
            return Built(str(plugin), str(program))
    raise MeasureError(
        f"the self-test of the plugin failed: {why}",
        place=QEMU,
        remedy="use another version of qemu: 7.2 passes (10.0 numbers CPUs wrongly under thread=single)",
    )


def broken(plugin: Path, firmware: Path) -> str:
    """Return what is wrong with the plugin under this qemu; empty if it counts what the firmware does on two CPUs."""
    words = f"{plugin},out=counts,marks={MARKS}"
    (counts,), said = emulated(firmware, 2, words, ["counts"])
    if not counts:
        return said
    lines = counts.splitlines()
    missing = [what for line, what in EXPECTED.items() if line not in lines]
    return f"qemu shows it {missing[0]}" if missing else ""


def emulated(
    firmware: Path, cpus: int, plugin: str, names: Sequence[str]
) -> tuple[list[str], str]:
    """Run a firmware in qemu with a plugin. Returns the plugin's files, empty if they do not exist, and why."""
    with tempfile.TemporaryDirectory() as place:
        words = f"{QEMU} -machine q35 -cpu qemu64 -m 16 -smp {cpus} -display none -nodefaults -no-user-config".split()
        words += [
            *DETERMINISTIC,
            "-bios",
            str(firmware),
            "-device",
            "isa-debug-exit,iobase=0xf4",
            "-plugin",
            plugin,
        ]
        try:
            done = subprocess.run(
                words,
                cwd=place,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            why = f"the test did not come to an end within {SECONDS} s"
            return [""] * len(names), why
        files = [Path(place, name) for name in names]
        texts = [file.read_text() if file.is_file() else "" for file in files]
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return texts, f"qemu did not run it: {said[-1] if said else 'no message'}"
