"""The originals as a script for sh: whoever stands before a machine without iodelta can put them back."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from iodelta.knob.base import Saved
from iodelta.knob.files import ROOTS
from iodelta.knob.registry import latest_first
from iodelta.probe.sysfs import sysfs_name

HEAD = """#!/bin/sh
# iodelta was cut off while it had these settings changed. `iodelta restore` puts them back and checks them, also from
# another machine (--machine ssh:THIS); so does the next run that comes here. Without iodelta: run this as root.
boot=$(cat /proc/sys/kernel/random/boot_id)
"""


def restore_script(records: Sequence[Saved]) -> str:
    """The script for all ``records`` as they were saved, in the order of ``restore_all``. What a reboot has undone it
    leaves alone."""
    return HEAD + "".join(f"{line}\n" for record in latest_first(records) for line in _lines(record))


def _lines(record: Saved) -> Iterator[str]:
    tests = [f'[ "$boot" = {shlex.quote(record.boot)} ]'] if record.volatile else []
    for disk, attached in record.disks:
        kind, _, number = attached.partition(" ")
        if kind == "attachment":  # by now another disk may have its name
            file = shlex.quote(f"/sys/block/{sysfs_name(disk)}/diskseq")
            tests.append(f'[ "$(cat {file} 2>/dev/null)" = {shlex.quote(number)} ]')
    guard = " && ".join((*tests, ""))
    yield f"# {record.knob}".replace("\n", " ")
    values = dict(record.values)
    for key, text in record.values:
        if key.startswith(ROOTS):
            yield f"{guard}printf %s {shlex.quote(text)} > {shlex.quote(key)}"
        elif key == "group":
            yield f"[ ! -d {shlex.quote(text)} ] || rmdir -- {shlex.quote(text)}"
        elif key == "enabled io in":
            groups = f"{shlex.quote(posixpath.dirname(text))}/iodelta-*"
            yield f"{guard}! ls -d {groups} >/dev/null 2>&1 && printf %s -io > {shlex.quote(text)}"
    for text in reversed([text for key, text in record.values if key == "restore"]):
        yield f"{guard}{shlex.join(msgspec.json.decode(text, type=list[str]))}"
    if "point" in values and "options" in values:
        yield f"{guard}mount -o {shlex.quote('remount,' + values['options'])} -- {shlex.quote(values['point'])}"
