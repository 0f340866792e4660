"""``--workload FILE``: the command of an experiment file in place of fio, for searches and calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.experiment import Experiment

workload = click.option(
    "--workload",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Experiment file whose [workload] command is measured, as its baseline sets it (default: run fio).",
)

allow_commands = click.option(
    "--allow-commands",
    is_flag=True,
    help="Allow your own commands as the workload; iodelta cannot see what they write outside the target.",
)

Given = Mapping[str, str | int | bool | list[str] | None]


def of_file(
    path: Path, *, top: Given, target: Given, design: Given, allowed: bool
) -> tuple[str, Experiment]:
    """Return the text of an experiment file with options of the command line put into it, and what it says.

    Raises RequestError unless its workload is a command, RefusedError unless that may run.
    """
    from iodelta.experiment import overridden, parse
    from iodelta.experiment.command import placed
    from iodelta.experiment.source import text_of
    from iodelta.lab.guard import check_commands

    # A placebo, as the file of a search needs no variants.
    changed = overridden(
        placed(text_of(path), path.parent),
        top=top,
        target=target,
        design={**design, "placebo": True},
    )
    assert changed is not None
    experiment = parse(
        changed, str(path), base=path.parent, numbered=False, strict=True
    )
    if not experiment.of_command:
        raise RequestError(
            "its [workload] has no command",
            place=str(path),
            remedy="leave --workload out, and give fio's options after --",
        )
    check_commands(experiment, allowed)
    return changed, experiment


def check_settings(experiment: Experiment, settings: Mapping[str, str]) -> None:
    """Raises RequestError for a parameter of --set that the command does not have."""
    from iodelta.bisect.measure import with_knobs
    from iodelta.experiment.command import check_parameters

    def refuse(what: str, *path: str, remedy: str = "") -> NoReturn:
        raise RequestError(what, place=f"--set {'.'.join(path)}", remedy=remedy)

    check_parameters(with_knobs(experiment, settings, {}), refuse)
