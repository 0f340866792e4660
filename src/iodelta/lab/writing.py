"""Whether a fio workload may change its target. Doubt counts as yes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from iodelta.experiment import Experiment, Option, size_bytes
from iodelta.experiment.command import only_reads, uses_target
from iodelta.jobfile import canonical
from iodelta.probe.topology import Target
from iodelta.workload.engines import ENGINES, READERS
from iodelta.workload.fio import READS

CHANGING = frozenset(
    "fill_device fill_fs profile read_iolog sprandom trim_backlog trim_backlog_batch trim_percentage trim_verify_zero "
    "unlink unlink_each_loop".split()
)
"""Options with which fio changes its target although ``rw`` reads: replayed logs, trims, deletion, growth."""

JUDGED = frozenset({"rw", "readwrite", "ioengine", *CHANGING})


def any_writes(experiment: Experiment, target: Target, size: int | None = None) -> bool:
    """Return whether its preparation, any trial or fio background of ``experiment`` may change ``target``."""
    if experiment.prepare is not None:
        return True
    loads = [
        condition.background_fio
        for condition in experiment.conditions
        if condition.background_fio
    ]
    if experiment.of_command:
        changes = uses_target(experiment) and not only_reads(experiment)
        # The guard does not cover a directory: the user is responsible for what a command does in it.
        trials_write = changes and not (
            experiment.target.path and target.kind == "directory"
        )
        return trials_write or any(writes(options, target, size) for options in loads)
    trials = (
        (*cell.options, *variant.options)
        for cell, variant in product(experiment.cells, experiment.variants)
    )
    return any(writes(options, target, size) for options in (*trials, *loads))


def writes(options: Iterable[Option], target: Target, size: int | None = None) -> bool:
    """Return whether fio with these options, as fio spells them, may change ``target``.

    ``size`` is what iodelta itself gives as fio's ``size``, in bytes. A read job destroys a regular file that is
    shorter than what it shall read: fio deletes it and lays out a new one (``extend_file`` in fio's ``filesetup.c``);
    in a directory it makes files. Commands of the user's own (``exec_prerun``) are not judged here.
    """
    given = [(canonical(name), (value or "").strip()) for name, value in options]
    return any(_changes(name, value) for name, value in given) or _makes_files(
        dict(given), target, size
    )


def _changes(name: str, value: str) -> bool:
    if name == "rw":
        return value.split(":")[0] not in READS
    if name == "ioengine":
        return value not in ENGINES | READERS
    if name in CHANGING:
        return value != "0"
    # fio accepts an unambiguous prefix of an option's name.
    return any(full.startswith(name) for full in JUDGED)


def _makes_files(given: dict[str, str], target: Target, size: int | None) -> bool:
    if target.kind != "file":
        return target.kind == "directory"
    whole = target.size_bytes
    try:
        jobs = int(given.get("numjobs", "1"))
        start = _bytes(given.get("offset", "0"), whole)
        start += (jobs - 1) * _bytes(given.get("offset_increment", "0"), whole)
        asked = [
            _bytes(given[name], whole) for name in ("size", "filesize") if name in given
        ]
    except ValueError:
        return True
    return start + max(asked, default=size or 0) > whole


def _bytes(text: str, whole: int) -> int:
    """Bytes of a size, or of a share of ``whole``. Raises ValueError."""
    share, percent, rest = text.partition("%")
    if percent and not rest.strip():
        return int(share) * whole // 100
    return size_bytes(text)
