"""What fio or a command is asked for in each trial of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from iodelta.experiment.command import filled, measured_by
from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import Cell, Command, Experiment, Variant
from iodelta.probe.topology import Target
from iodelta.workload import command
from iodelta.workload.model import FioRequest


@dataclass(frozen=True)
class Requests:
    """What the fio requests of all trials have in common. Sizes in bytes."""

    experiment: Experiment
    target: Target
    size: int | None
    """None for the whole of a device or file."""
    version: tuple[int, int]
    """fio's."""
    workdir: str = "/"
    io_uring: str = ""
    """The path there of ``t/io_uring``, for cells that are measured by it."""
    python: str = "python3"
    """What runs the supervisor of commands there."""
    opened: str = ""
    """The path by which loads open the target; empty for its own."""

    def of(
        self,
        cell: Cell,
        variant: Variant,
        *,
        seed: int = 1,
        launcher: tuple[str, ...] = (),
    ) -> FioRequest:
        """Return the request for one trial; a variant's own fio options replace the cell's."""
        if cell.command is not None:
            return request_of(
                *(self.experiment, self.target, cell, cell.command, variant),
                seed=seed,
                launcher=launcher,
                workdir=self.workdir,
                python=self.python,
            )
        variant_options = dict(variant.options)
        tool = cell.option(TOOL)
        return FioRequest(
            options=(
                *(
                    (k, v)
                    for k, v in cell.options
                    if k not in variant_options and k != TOOL
                ),
                *variant.options,
            ),
            tool="t/io_uring" if tool else "fio",
            fio=(self.io_uring or tool) if tool else "fio",
            target=self.target.real_path,
            target_kind="device" if self.target.kind == "block" else self.target.kind,
            runtime=self.experiment.design.trial,
            ramp=self.experiment.design.ramp,
            seed=seed,
            workdir=self.workdir,
            size=self.size,
            files=self.experiment.target.files,
            launcher=launcher,
            version=self.version,
        )


def request_of(
    experiment: Experiment,
    target: Target,
    cell: Cell,
    given: Command,
    variant: Variant,
    *,
    seed: int,
    launcher: tuple[str, ...],
    workdir: str,
    python: str,
) -> FioRequest:
    """Return the request of a command for one trial: its words with every name in braces replaced."""
    values = command.values_of(
        cell, variant, target=target.real_path, trial=experiment.design.trial, seed=seed
    )
    # What differs between variants is what the arms are made of.
    differing = {name for one in experiment.variants for name, _ in one.options}
    arms = (values[name] for name in sorted(differing) if name in values)
    fresh = experiment.design.placement == "fresh"
    return FioRequest(
        copied=tuple(path for path in arms if fresh and path.startswith("/")),
        options=tuple({**dict(cell.options), **dict(variant.options)}.items()),
        tool="command",
        fio=python,
        target=target.real_path,
        target_kind="device" if target.kind == "block" else target.kind,
        runtime=given.timeout,
        ramp=0.0,
        seed=seed,
        workdir=workdir,
        launcher=launcher,
        words=filled(given.words, values),
        reset=tuple(filled(words, values) for words in given.reset),
        only_reads=given.only_reads,
        measures=measured_by(experiment),
    )
