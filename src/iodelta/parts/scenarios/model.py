"""What a scenario is: the text of an experiment with gaps, what it needs of a machine, and what it makes there."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from iodelta.errors import RequestError
from iodelta.lab.folder import Folder

if TYPE_CHECKING:
    from iodelta.machine import Machine
    from iodelta.parts.scenarios.stage import Stage
    from iodelta.probe.topology import Target

Values = Mapping[str, str]
"""What fills the gaps ``@NAME@`` of a template, as TOML spells it."""


ORIGIN = "scenario.json"
"""In an experiment folder: which scenario it is of."""


class Origin(msgspec.Struct, frozen=True):
    """The options of a scenario."""

    name: str
    full: bool = False
    kernels: tuple[str, ...] = ()
    vm: bool = False
    target: str = ""
    machine: str = ""

    @property
    def line(self) -> str:
        """Return a line for a shell that runs it again: what it measured is gone by then."""
        flags = [
            word for word, given in (("--full", self.full), ("--vm", self.vm)) if given
        ]
        flags += [f"--kernel={kernel}" for kernel in self.kernels]
        flags += [
            f"--{key}={value}"
            for key, value in (("target", self.target), ("machine", self.machine))
            if value
        ]
        return shlex.join(["iodelta", "scenario", "run", *flags, "--", self.name])


def line_of(folder: Folder) -> str:
    """Return the command that runs the scenario of this folder again; empty for any other folder."""
    return folder.read_struct(ORIGIN, Origin).line if folder.has(ORIGIN) else ""


class Need(msgspec.Struct, frozen=True):
    """Something that a machine lacks."""

    what: str
    """What is missing: ``md``."""
    reason: str
    """How that shows."""
    remedy: str
    """How to get it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    """A question that makes and removes what it needs."""

    name: str
    title: str
    """What it asks, in one line."""
    about: str
    """Whose question it was, and what a small run of it can and cannot say."""
    makes: str
    """What it makes on the machine, and removes again."""
    template: str
    """An experiment file with gaps ``@NAME@``: those of ``small`` and ``full``, and those that ``prepare`` fills."""
    small: Values
    """The shortest run that shows whether the question can be asked here: of most two or three minutes."""
    full: Values
    """The size of the question as it was posted."""
    prepare: Callable[[Stage], Values]
    """Makes what is measured, through the stage alone, and returns the rest of the values."""
    foreseen: Callable[[Machine, bool, Target | None], Values]
    """What ``prepare`` will return, as far as it is known before anything is made, small or in full: for a plan. With
    the same variants. The target is one of the user's own, which then is measured."""
    space: tuple[int, int] = (0, 0)
    """Bytes of data that it may write where it makes things, small and in full."""
    needs: Callable[[Machine], Iterable[Need]] = lambda machine: ()
    """What this machine lacks for it, for every target."""
    building: Callable[[Machine], Iterable[Need]] = lambda machine: ()
    """What this machine lacks to make what is measured."""
    guest: str = ""
    """Of a guest that has what it needs, all but the kernel, as after ``vm:KERNEL,``; empty where none would help. It
    may have gaps, too."""
    in_guest: Values | None = None
    """What fills the gaps where kernels are the variants, each booted in such a guest; None where they cannot be."""
    of_guest: Callable[[Sequence[str]], Values] = lambda kernels: {}
    """What fills gaps of ``guest`` and template according to the requested kernels and to what this machine has."""
    small_boots: Callable[[int], Values] = lambda kernels: {}
    """What a small run of so many kernels has instead of ``small`` then: every trial is a boot."""
    counted: str = ""
    """An experiment file that counts the same question in guests, with the gap ``@VARIANTS@`` for kernels: where a guest
    is emulated, its time says nothing. Empty where counts cannot answer."""
    measures: tuple[str, ...] = ()
    """Kinds of ``--target`` that may be measured instead of what it would make: ``block``, ``file``."""
    tell: Callable[[Folder], Iterable[str]] | None = None
    """Lines to print after the report, from a finished folder."""

    def missing(self, machine: Machine, *, makes: bool = True) -> tuple[Need, ...]:
        """Return what the machine lacks, each thing once; ``makes`` where nothing that is there already is measured."""
        needs = (*self.needs(machine), *(self.building(machine) if makes else ()))
        return tuple(dict.fromkeys(needs))

    def text(self, values: Values, *, full: bool) -> str:
        """Return the experiment file; a gap that nothing fills stays."""
        return self._filled(self.template.lstrip("\n"), values, full=full)

    def in_counts(self, kernels: Sequence[str]) -> str:
        """Return the experiment file that counts instructions under these kernels, the first as the baseline."""
        known = _compared(kernels)
        text = re.sub(
            r"@([A-Z_]+)@", lambda gap: known[gap[1].lower()], self.counted.lstrip("\n")
        )
        return f'machine = "vm"\nclock = "instructions"\n{text}'

    def of_kernels(self, kernels: Sequence[str], *, full: bool) -> Values:
        """Return what fills the gaps where kernels are the variants."""
        boots = {} if full else self.small_boots(len(kernels))
        return {
            **(self.in_guest or {}),
            **self.of_guest(kernels),
            **_compared(kernels),
            **boots,
        }

    def made(self, stage: Stage, *, machine: str) -> str:
        """Return the experiment file on what it has just made; ``machine`` is a name, empty for this one. Raises
        MeasureError.

        The same text, each time that it is made in the same place; what is measured for the text is taken from
        ``stage.asked`` then.
        """
        values = dict(self.prepare(stage))
        if stage.target is None:
            values["target"] = stage.steady(values["target"])
        return f"machine = {json.dumps(machine)}\n" * bool(machine) + self.text(
            values, full=stage.full
        )

    def guest_name(self, kernels: Sequence[str] = (), *, full: bool) -> str:
        """Return what the guest is called as a machine: with its kernel, unless kernels are the variants."""
        kernel = f"{kernels[0]}," if len(kernels) == 1 else ""
        return (
            f"vm:{kernel}{self._filled(self.guest, self.of_guest(kernels), full=full)}"
        )

    def _filled(self, template: str, values: Values, *, full: bool) -> str:
        known = {**(self.full if full else self.small), **values}
        return re.sub(
            r"@([A-Z_]+)@", lambda gap: known.get(gap[1].lower(), gap[0]), template
        )

    def check_target(self, kind: str, path: str) -> None:
        """Whether a target of the user's own can be measured by it. Raises RequestError."""
        if kind not in (*self.measures, "directory"):
            allowed = " or ".join(
                [f"a {one}" for one in self.measures]
                + ["a directory, in which it makes its own"]
            )
            raise RequestError(
                f"{self.name} cannot measure a {kind}",
                place=path,
                remedy=f"--target takes {allowed}",
            )


def _compared(kernels: Sequence[str]) -> dict[str, str]:
    """Return the gaps of a comparison of kernels, the first as the baseline."""
    variants = "\n".join(
        f"[variant.{json.dumps(kernel)}]\nkernel = {json.dumps(kernel)}\n"
        for kernel in kernels
    )
    return {"variants": variants, "baseline": kernels[0], "new": kernels[-1]}
