"""A shell script that restores the originals on a machine without iodelta."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.knob.base import Saved
from iodelta.knob.files import FileKnob
from iodelta.knob.registry import family, known, latest_first
from iodelta.knob.shell import Line, Shell, line_text
from iodelta.probe.sysfs import sysfs_name

HEAD = """#!/bin/sh
# iodelta was cut off while it had these settings changed. `iodelta restore` puts them back and checks them, also from
# another machine (--machine ssh:THIS); so does the next run that comes here. Without iodelta: run this as root.
boot=$(cat /proc/sys/kernel/random/boot_id)
"""


def restore_script(records: Sequence[Saved]) -> str:
    """Return the script for all ``records``, in the order of ``restore_all``. It skips what a reboot has undone."""
    lines: list[str] = []
    for record in latest_first(records):
        lines.append(f"# {record.knob}".replace("\n", " "))
        conditions = _conditions(record)
        # The record of a knob that this version does not know still says which files held what.
        kind = family(record.knob) if known(record.knob) else FileKnob
        for line in kind.undo_lines(record):
            lines.append(" && ".join([*conditions, line_text(line)]))
    return HEAD + "".join(f"{line}\n" for line in lines)


def _conditions(record: Saved) -> list[str]:
    """Tests that must succeed before the record is restored: the same boot, and the same disks by their names."""
    tests: list[Line] = []
    if record.volatile:
        tests.append((Shell('[ "$boot" ='), record.boot, Shell("]")))
    for disk, attached in record.disks:
        kind, _, number = attached.partition(" ")
        # Another disk may have this name by now.
        if kind == "attachment":
            file = f"/sys/block/{sysfs_name(disk)}/diskseq"
            present = (Shell('[ "$(cat'), file, Shell('2>/dev/null)" ='))
            tests.append((*present, number, Shell("]")))
    return [line_text(test) for test in tests]
