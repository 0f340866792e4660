"""``[prepare]``: how to bring a disk to a known state before it is measured.

The steps are those of SNIA's Solid State Storage Performance Test Specification 2.0.2: purge, workload independent
preconditioning, then workload dependent preconditioning until the disk is steady. The names of keys are iodelta's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import Experiment, Option, Prepare, Target
from iodelta.experiment.source import Refuse, check_keys
from iodelta.experiment.values import fraction, seconds
from iodelta.jobfile import canonical, owned, runs_command

PURGES = ("none", "discard", "nvme-format")

LIMITS: dict[str, tuple[float, float]] = {
    "fill": (0, 10),
    "round": (0.2, 86400),
    "limit": (5, 10000),
}
"""Key -> its least and its greatest value."""

WRITES = ("write", "randwrite", "rw", "readwrite", "randrw")
"""Values of ``rw`` that write: rounds without writes leave a disk as it is."""

DEFAULT: tuple[Option, ...] = (
    ("rw", "randwrite"),
    ("bs", "4k"),
    ("ioengine", "libaio"),
    ("iodepth", "32"),
    ("direct", "1"),
)
"""fio options of the rounds if neither the preparation nor a cell has any."""


class DiskQuestion(msgspec.Struct, frozen=True):
    """A disk that is to be prepared, and how."""

    target: Target
    prepare: Prepare
    workload: tuple[Option, ...]
    """fio options of the rounds."""
    machine: str = ""
    """The machine that has it, as in ``ssh:HOST``; empty: this one."""


def parse_prepare(data: Mapping[str, Any], refuse: Refuse) -> Prepare | None:
    """Return the table of an experiment file; None where there is none. Refuses with the key."""
    if "prepare" not in data:
        return None
    table = data["prepare"]
    if not isinstance(table, dict):
        refuse('prepare is a table: [prepare] purge = "discard"', "prepare")
    check_keys(refuse, table, ("prepare",), Prepare.__struct_fields__)
    value = table.get("purge", "none")
    if value not in PURGES:
        refuse(
            f"{value!r} is not a way to purge",
            "prepare",
            "purge",
            remedy=f"one of {', '.join(PURGES)}",
        )
    purge = value
    values = {key: _amount(key, table, refuse) for key in LIMITS}
    limit = int(values["limit"])
    if limit != values["limit"]:
        refuse("limit is a whole number of rounds", "prepare", "limit")
    spare = _spare(table.get("spare", Prepare().spare), refuse)
    workload = _workload(table.get("workload", {}), refuse)
    return Prepare(purge, values["fill"], workload, values["round"], limit, spare)


def _amount(key: str, table: Mapping[str, Any], refuse: Refuse) -> float:
    value = table.get(key, getattr(Prepare(), key))
    least, most = LIMITS[key]
    try:
        number = seconds(value) if key == "round" else float(value)
    except (ValueError, TypeError) as error:
        refuse(f"{key}: {error}", "prepare", key)
    # In Python true is the number 1.
    if isinstance(value, bool) or not least <= number <= most:
        refuse(f"{key} must lie between {least:g} and {most:g}", "prepare", key)
    return number


def _spare(value: Any, refuse: Refuse) -> float:
    try:
        return fraction(value)
    except (ValueError, TypeError) as error:
        refuse(f"spare: {error}", "prepare", "spare")


def _workload(table: Any, refuse: Refuse) -> tuple[Option, ...]:
    """Return the fio options of the rounds, each with one value; none for those of the experiment."""
    if not isinstance(table, dict):
        refuse(
            'workload is a table of fio options: [prepare.workload] rw = "randwrite"',
            "prepare",
            "workload",
        )
    for name, value in table.items():
        place = ("prepare", "workload", name)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            what = f"{name} needs a single value, not {value!r}: rounds are all alike"
            refuse(what, *place)
        ours = owned(name)
        if ours is not None and not ours.harmless:
            refuse(f"fio option {name}: {ours.why}", *place, remedy=f"remove {name}")
        danger = runs_command(name, str(value))
        if danger:
            refuse(danger, *place, remedy=f"remove {name}")
    # Options that iodelta sets itself to the same effect are left out.
    options = tuple(
        (name, str(value)) for name, value in table.items() if owned(name) is None
    )
    if table and not round_writes(options):
        refuse(
            "the rounds must write: reads leave a disk as it is",
            *("prepare", "workload", "rw"),
            remedy=f"rw is one of {', '.join(WRITES)}",
        )
    return options


def round_writes(options: tuple[Option, ...]) -> bool:
    """Return whether fio with these options writes."""
    # fio reads unless a mode is given; of several the last one counts.
    mode = "read"
    for name, value in options:
        if canonical(name) == "rw":
            mode = value or ""
    return mode.split(":")[0].strip() in WRITES


def workload_of(experiment: Experiment) -> tuple[Option, ...]:
    """Return the fio options of the rounds: those given, else those of the first cell that writes, else random writes."""
    prepare = experiment.prepare or Prepare()
    if prepare.workload:
        return prepare.workload
    baseline = dict(experiment.variant(experiment.baseline).options)
    for cell in experiment.cells:
        # The variant's options take precedence over the cell's, and come last.
        of_cell = [option for option in cell.options if option[0] not in baseline]
        options = (*of_cell, *baseline.items())
        if round_writes(options) and not cell.option(TOOL):
            return options
    return DEFAULT
