"""Which mirror btrfs reads from. Source: fs/btrfs/sysfs.c. The list in the file says what a kernel offers, whatever
its version.

``round-robin:BYTES`` and ``devid:ID`` have a parameter. The kernel shows and keeps it while another policy is active.
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
from iodelta.probe.sysfs import attribute, attribute_text


class ReadPolicy(FileKnob):
    """``btrfs.read_policy`` of the filesystem that holds the target."""

    names = ("btrfs.read_policy",)
    harmless = True

    def paths(self) -> tuple[str, ...]:
        for name in self.target.devices:
            filesystem = btrfs_of(self.machine, name)
            if filesystem:
                return (f"/sys/fs/btrfs/{filesystem}/read_policy",)
        return ()

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
        saved = super().save(values)
        path, present = saved.values[0]
        originals: list[tuple[str, str]] = []
        # Inactive policies keep their parameters, so these are restored too: first, and the active policy last.
        for choice in choices(text_of(self.machine, path)):
            if ":" in choice and choice != present:
                originals.append((path, choice))
        originals.append((path, present))
        return msgspec.structs.replace(saved, values=tuple(originals))

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        path, present = saved.values[-1]
        shown = choices(attribute_text(machine, path))
        texts = {text for _, text in saved.values}
        # Where no parameter was changed, it is enough to write the active policy.
        if texts.issubset(shown):
            saved = msgspec.structs.replace(saved, values=((path, present),))
        return super().restore(machine, saved)
