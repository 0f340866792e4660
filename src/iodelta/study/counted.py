"""Counts of instructions with how to count them again."""

from __future__ import annotations

import shlex

import msgspec

from iodelta.lab.folder import Folder
from iodelta.path.judge import PathAccount, judge
from iodelta.path.plan import PathPlan
from iodelta.study.again import BY_FILE, condition_words, fio_words


def counted(folder: Folder) -> PathAccount:
    """Return what the boots of a folder say. Raises MeasureError."""
    # The command that counts the same; a row of kernels is named by its first and last.
    plan = folder.read_plan(PathPlan)
    if not plan.row:
        again = (BY_FILE,)
    else:
        experiment = plan.experiment
        first, last = experiment.variants[0].name, experiment.variants[-1].name
        target = ["--target", experiment.target.path] if experiment.target.path else []
        anatomy = [f"--anatomy={experiment.anatomy}"] if experiment.anatomy else []
        words = [
            "iodelta",
            "kernel",
            "sweep",
            f"{first}..{last}",
            *anatomy,
            *condition_words(experiment),
            *target,
        ]
        again = (shlex.join([*words, "--", *fio_words(experiment)]),)
    return msgspec.structs.replace(judge(folder), again=again)
