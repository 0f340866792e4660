"""A host that is rebooted for every variant of a block: the boot is the unit, and serves each cell once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Self

import msgspec

from iodelta.errors import KnobError, MeasureError, RequestError
from iodelta.experiment import Experiment, Variant
from iodelta.knob import order
from iodelta.knob.kernel import Kernel
from iodelta.lab.bench import Bench
from iodelta.lab.boots import (
    Boots,
    NotBootedError,
    Ready,
    of_variant,
    settings_of,
    within_boot,
)
from iodelta.lab.folder import KnobSaved, Rebooted, now
from iodelta.lab.setup import Survey, check_same_target, put_back, ready, survey
from iodelta.lab.undo import REBOOT, undo_log
from iodelta.machine.ssh import SshMachine
from iodelta.probe.topology import resolve

CALM = 300.0
"""Seconds that a trial waits at most for the services of a booted host to start."""

APPEARING = 60.0
"""Seconds that a target may take to appear after its host did."""

SETTINGS = ("kernel", "kernel.cmdline")


def look_at_host(machine: SshMachine, experiment: Experiment) -> Survey:
    """``survey`` under the running kernel, and whether the other kernels can be booted and left again. Boots nothing.

    A variant whose knobs only another kernel has is surveyed in its own boot. Raises RequestError, MeasureError.
    """
    strange = [name for name in experiment.knob_names() if name.startswith("vm.")]
    if strange:
        raise RequestError(
            "a host has no such setting",
            place=strange[0],
            remedy="it is a setting of guests: --machine vm",
        )
    inner = within_boot(experiment)
    order(inner.knob_names())
    surveys: dict[str, Survey] = {}
    refused: dict[str, RequestError] = {}
    for variant in inner.variants:
        try:
            surveys[variant.name] = survey(machine, of_variant(inner, variant))
        except RequestError as error:
            refused[variant.name] = error
    if not surveys:
        raise next(iter(refused.values()))
    first = next(iter(surveys.values()))
    kernel = Kernel(machine, first.target, REBOOT)
    kernel.save()
    unavailable: dict[str, str] = {}
    for seen in surveys.values():
        unavailable |= seen.unavailable
    for variant in experiment.variants:
        try:
            releases = {
                kernel.image(*values).release for values in _values(experiment, variant)
            }
        except MeasureError as error:
            unavailable[variant.name] = error.sentence
        else:
            if variant.name in refused and releases == {kernel.read()}:
                raise refused[variant.name]
    return msgspec.structs.replace(
        first, unavailable=unavailable, reboots=kernel.way.name
    )


class Reboots(Boots):
    """The boots of one host, by the knob ``kernel``; its original is in an undo log of its own, over all of them."""

    _machine: SshMachine

    def __enter__(self) -> Self:
        self._path = self._experiment.target.path or self._machine.directory
        self._kernel = Kernel(self._machine, resolve(self._machine, self._path), REBOOT)
        self._kernel.limit = self._experiment.design.boot
        self._boot = contextlib.ExitStack()
        self._bench: Bench | None = None
        self._present: tuple[str, Mapping[str, str]] = ("", {})
        self._cells: set[str] = set()  # those that were measured in the present boot
        with contextlib.ExitStack() as stack:
            name = f"{self._inner.identifier}-{REBOOT}"
            self._log = stack.enter_context(
                undo_log(self._machine, name, self._folder.path)
            )
            (saved,) = self._log.keep(lambda: [self._kernel.save()])
            self._folder.append(KnobSaved(now(), msgspec.to_builtins(saved)))
            stack.callback(self._go_back)
            stack.callback(self._leave)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def booted(
        self, variant: Variant, condition: str = "", cell: str = ""
    ) -> Iterator[Ready]:
        wanted = (variant.name, settings_of(self._experiment, variant, condition))
        if (
            self._bench is None
            or self._found is None
            or wanted != self._present
            or cell in self._cells
        ):
            self._leave()
            self._found = self._start(variant, wanted[1])
            self._bench = self._boot.enter_context(self._ready(variant, self._found))
            self._present = wanted
        self._cells.add(cell)
        yield self._machine, self._bench, self._found

    def check_target(self) -> None:
        if self._bench is not None:
            self._bench.check_target()

    def _leave(self) -> None:
        """Put back what was set within the boot."""
        self._bench = None
        self._cells.clear()
        self._boot.close()

    def _start(self, variant: Variant, settings: Mapping[str, str]) -> Survey:
        """Boot a variant and survey it once its services have started."""
        try:
            started = self._kernel.boot(*(settings.get(name, "") for name in SETTINGS))
        except KnobError as error:
            raise NotBootedError(
                error.what, place=error.place, remedy=error.remedy
            ) from error
        # The reboot ended the process that held the lock.
        self._log.hold()
        name = self._machine.name
        self._folder.append(
            Rebooted(now(), name, variant.name, **msgspec.structs.asdict(started))
        )
        self._control.watcher.note(
            f"{name}: {started.release} was started by {started.way} in {started.seconds:.0f} s"
        )
        words = "[ ! -d /run/systemd/system ] || systemctl is-system-running --wait"
        self._machine.run(["sh", "-c", words], timeout=CALM)
        end = time.monotonic() + APPEARING
        while (
            self._machine.run(["test", "-e", self._path]).returncode
            and time.monotonic() < end
        ):
            time.sleep(0.5)
        with self._machine.together("survey"):
            looked = survey(
                self._machine,
                of_variant(self._inner.experiment, variant),
                engines=False,
            )
        if self._found is not None and not looked.scratch:
            check_same_target(self._found.target, looked.target)
        return looked

    def _ready(
        self, variant: Variant, found: Survey
    ) -> contextlib.AbstractContextManager[Bench]:
        mine = msgspec.structs.replace(
            self._inner, experiment=of_variant(self._inner.experiment, variant)
        )
        return ready(self._machine, mine, found, self._folder, self._control)

    def _go_back(self) -> None:
        for restored in put_back(self._log, self._folder, self._control.watcher):
            if restored.account:
                self._control.watcher.note(f"{self._machine.name}: {restored.account}")


def _values(experiment: Experiment, variant: Variant) -> list[tuple[str, str]]:
    """Kernels and further boot parameters of a variant, under every condition."""
    settings = [
        settings_of(experiment, variant, condition.name)
        for condition in experiment.conditions
    ]
    return [
        (setting.get("kernel", ""), setting.get("kernel.cmdline", ""))
        for setting in settings
    ]
