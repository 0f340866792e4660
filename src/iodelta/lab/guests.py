"""Boots of throw-away guests: every trial has one of its own, which is gone after it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Self

import msgspec

from iodelta.errors import LostError, MeasureError
from iodelta.experiment import Experiment, Variant
from iodelta.experiment.io_uring import TOOL
from iodelta.lab.boots import Boots, Ready, of_variant, settings_of, within_boot
from iodelta.lab.folder import Started
from iodelta.lab.setup import Survey, ready, survey
from iodelta.lab.turns import alone, given
from iodelta.machine.vm import VmMachine, check_guests
from iodelta.trial import Finding, Trial
from iodelta.vm.spec import Spec, changed


def look_at_guests(machine: VmMachine, experiment: Experiment) -> Survey:
    """``survey``, of a guest of every variant.

    A variant whose guest does not start, lacks a module or ends cannot run here; its reason has the last lines of the
    console. Raises RequestError, MeasureError when no variant can run.
    """
    check_here(machine.spec, experiment)
    unavailable, unmeasurable = dict[str, str](), dict[str, str]()
    surveys = list[Survey]()
    for variant in experiment.variants:
        try:
            with _booted(machine, experiment, variant) as guest:
                surveys.append(_survey(guest, experiment, variant))
                unavailable |= surveys[-1].unavailable
                unmeasurable |= surveys[-1].unmeasurable
        except MeasureError as error:
            unavailable[variant.name] = error.sentence
    if not surveys:
        raise MeasureError(
            "no variant can run here", remedy="\n  ".join(unavailable.values())
        )
    return msgspec.structs.replace(
        surveys[0], unavailable=unavailable, unmeasurable=unmeasurable
    )


def check_here(spec: Spec, experiment: Experiment) -> None:
    """Raises MeasureError that names all that this machine lacks to boot a guest of every variant."""
    specs = [
        changed(spec, settings_of(experiment, variant))
        for variant in experiment.variants
    ]
    check_guests(specs, tool=experiment.cells[0].option(TOOL) or "")


def _survey(guest: VmMachine, experiment: Experiment, variant: Variant) -> Survey:
    """Return what a variant's own guest offers it."""
    with guest.together("survey"):
        return survey(guest, of_variant(within_boot(experiment), variant))


@contextlib.contextmanager
def _booted(
    machine: VmMachine, experiment: Experiment, variant: Variant, condition: str = ""
) -> Iterator[VmMachine]:
    """A new guest for one variant, its kernel verified. Raises RequestError, MeasureError, LostError."""
    spec: Spec = changed(machine.spec, settings_of(experiment, variant, condition))
    spec = msgspec.structs.replace(spec, budget=experiment.design.budget)
    with machine.other(spec) as guest:
        release = guest.run(["uname", "-r"]).text.strip()
        if release != guest.release:
            raise MeasureError(
                f"kernel {guest.release} was booted, but {release} is running",
                place=f"variant {variant.name}",
            )
        yield guest


class Guests(Boots):
    """A guest for every trial."""

    _machine: VmMachine

    def __enter__(self) -> Self:
        """Lock the devices of this machine that guests are given, from the first guest to the last."""
        pairs = itertools.product(
            self._experiment.variants,
            [condition.name for condition in self._experiment.conditions],
        )
        specs = [
            changed(self._machine.spec, settings_of(self._experiment, *pair))
            for pair in pairs
        ]
        here, targets = given(
            list(itertools.chain.from_iterable(spec.disks for spec in specs))
        )
        self._turn = contextlib.ExitStack()
        self._turn.enter_context(alone(here, targets, self._folder.path))
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left of a guest."""
        self._turn.close()

    @contextlib.contextmanager
    def booted(
        self, variant: Variant, condition: str = "", cell: str = ""
    ) -> Iterator[Ready]:
        """A new guest. Only the first one is surveyed: the others have the same devices."""
        with _booted(self._machine, self._experiment, variant, condition) as guest:
            for panic in guest.told:
                self._control.watcher.note(f"variant {variant.name}: {panic}")
            looked = self._found = self._found or _survey(
                guest, self._experiment, variant
            )
            making = ready(guest, self._inner, looked, self._folder, self._control)
            with making as bench:
                yield guest, bench, looked

    def check_target(self) -> None:
        """A guest's target is made with it."""

    def lost(self, identity: Started, error: LostError) -> Trial:
        """Return a guest that panics, hangs or floods its console is a spoilt trial that keeps its last lines."""
        # Its console's last lines, each behind a bar.
        lines = " ".join(error.what.split())
        finding = Finding("vm.guest", "hard", error.place, lines, error.remedy)
        return Trial(
            number=identity.trial,
            cell=identity.cell,
            variant=identity.variant,
            block=identity.block,
            position=identity.position,
            seed=identity.seed,
            started=identity.at,
            seconds=0.0,
            directions=(),
            attempt=identity.attempt,
            findings=(finding,),
        )
