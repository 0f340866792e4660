"""``--workload FILE``: the command of an experiment file in place of fio, for searches and calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from iodelta.errors import RequestError
from iodelta.experiment import Experiment, overridden, parse
from iodelta.experiment.command import check_parameters, placed
from iodelta.experiment.source import text_of


def of_file(
    path: Path,
    *,
    top: Mapping[str, Any],
    target: Mapping[str, Any],
    design: Mapping[str, Any],
    allowed: bool,
) -> tuple[str, Experiment]:
    """Return the text of an experiment file with options of the command line put into it, and what it says.

    Raises RequestError unless its workload is a command, RefusedError unless that may run.
    """
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

    def refuse(what: str, *path: str, remedy: str = "") -> NoReturn:
        raise RequestError(what, place=f"--set {'.'.join(path)}", remedy=remedy)

    check_parameters(with_knobs(experiment, settings, {}), refuse)
