"""Any other one-line setting below /sys or /proc/sys, named by its path."""

from __future__ import annotations

from itertools import chain

from iodelta.errors import RequestError
from iodelta.knob.base import KnobInfo
from iodelta.knob.files import ROOTS, FileKnob, choices, is_setting
from iodelta.knob.shell import Line
from iodelta.knob.sysctl import EITHER, ROOT
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute_text
from iodelta.probe.topology import Target

WITH_OWN_KNOB = {
    "/queue/scheduler": "block.scheduler",
    "/queue/nr_requests": "block.nr_requests",
    "/scaling_governor": "cpu.governor",
    **{
        f"{ROOT}/{path}": f"sysctl.{path.replace('/', '.')}"
        for path in chain.from_iterable(EITHER)
    },
}
"""End of a path -> the knob for it: a write to these files changes other settings too."""


class Sysfs(FileKnob):
    """``sysfs:PATH``. The path is resolved when the knob is created: only files below /sys or /proc/sys are written."""

    names = ("sysfs:*",)

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self.path = _resolved(machine, name)

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        return (
            KnobInfo(
                "sysfs:PATH",
                "",
                "any one-line file below /sys or /proc/sys that can be read back, by its path",
            ),
        )

    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    @classmethod
    def script_files(cls, name: str) -> Line:
        path = name.removeprefix("sysfs:")
        if not is_setting(path) or not path.isprintable():
            raise _outside(name)
        return (path,)

    def disks(self) -> tuple[str, ...]:
        directories = self.path.split("/")[2:-1]
        return tuple(
            name for name in directories if self.machine.glob(f"/sys/block/{name}")
        )

    def absent(self) -> str:
        return f"there is no {self.path}"

    def available(self) -> str | None:
        text = attribute_text(self.machine, self.path)
        if len(text.splitlines()) > 1:
            return f"{self.path} has several lines: it is not one setting"
        return super().available()

    def allowed(self) -> tuple[str, ...] | str:
        text = attribute_text(self.machine, self.path)
        return choices(text) or "what the kernel accepts"


def _outside(name: str) -> RequestError:
    return RequestError(
        "is not a path below /sys or /proc/sys",
        place=name,
        remedy="as in sysfs:/sys/block/sda/queue/add_random",
    )


def _resolved(machine: Machine, name: str) -> str:
    """Return the real path of the file. Raises RequestError for one outside, also if only a link leads there."""
    path = name.removeprefix("sysfs:")
    if not is_setting(path):
        raise _outside(name)
    real = machine.run(["readlink", "-f", "--", path]).text.rstrip("\n")
    # A path with wildcards would match other files where it is used as a pattern.
    plain = real.isprintable() and set("*?[]").isdisjoint(real)
    if not plain or not real.startswith(ROOTS):
        raise _outside(name)
    for end, better in WITH_OWN_KNOB.items():
        if real.endswith(end):
            raise RequestError(
                "a write there resets other settings",
                place=name,
                remedy=f"use {better}, which restores them",
            )
    return real
