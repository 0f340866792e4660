"""Which mirror btrfs reads from. Source: fs/btrfs/sysfs.c; the list in the file decides, never the version.

``round-robin:BYTES`` and ``devid:ID`` carry a parameter that is shown, and kept, also while another policy is active.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from iodelta.errors import RequestError
from iodelta.knob.base import EMPTY, Saved, check_text
from iodelta.knob.files import FileKnob, choices, text_of
from iodelta.knob.shell import Line, Shell
from iodelta.machine import Machine
from iodelta.probe.devices import btrfs_of
from iodelta.probe.sysfs import attribute


class ReadPolicy(FileKnob):
    """``btrfs.read_policy`` of the filesystem that holds the target."""

    names = ("btrfs.read_policy",)
    harmless = True

    def paths(self) -> tuple[str, ...]:
        fsid = next(
            (
                found
                for name in self.target.devices
                if (found := btrfs_of(self.machine, name))
            ),
            None,
        )
        if not fsid:
            return ()
        return (f"/sys/fs/btrfs/{fsid}/read_policy",)

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (Shell('"/sys/fs/btrfs/$fsid/read_policy"'),)

    def absent(self) -> str:
        if self.paths():
            return "this kernel's btrfs has no read_policy (Linux 5.12 or later has)"
        return f"needs a mounted btrfs: {self.target.path} is on {self.target.fstype or 'no filesystem'}"

    def allowed(self) -> tuple[str, ...]:
        text = "".join(text_of(self.machine, path) for path in self.paths())
        return tuple(policy.partition(":")[0] for policy in choices(text))

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        check_text(self.name, value)
        policy, colon, parameter = value.partition(":")
        if policy not in self.allowed() or (colon and not parameter):
            release = attribute(self.machine, "/proc/sys/kernel/osrelease")
            raise RequestError(
                f"{value!r} cannot be set: Linux {release} here offers {', '.join(self.allowed())}",
                place=self.name,
                remedy="others need a btrfs built with CONFIG_BTRFS_EXPERIMENTAL=y (6.13 or later), or a patched one",
            )

    def same(self, path: str, wanted: str, present: str) -> bool:
        if ":" in wanted:
            return present == wanted
        return present.partition(":")[0] == wanted

    def save(self, values: Sequence[str] = ()) -> Saved:
        # Parameters of the policies that are not active would stay changed: they are written first, the active last.
        saved = super().save(values)
        path, present = saved.values[0]
        others = [
            choice
            for choice in choices(text_of(self.machine, path))
            if ":" in choice and choice != present
        ]
        return msgspec.structs.replace(
            saved, values=(*((path, choice) for choice in others), (path, present))
        )

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        path, present = saved.values[-1]
        shown = choices(attribute(machine, path) or "")
        if all(text in shown for _, text in saved.values):
            saved = msgspec.structs.replace(saved, values=((path, present),))
        return super().restore(machine, saved)
