"""The question of ``iodelta prepare``: a file of its own, or a table in an experiment file."""

from __future__ import annotations

from pathlib import Path

from iodelta.experiment.file import parse, parse_machines, parse_target
from iodelta.experiment.model import Prepare
from iodelta.experiment.prepare import DEFAULT, DiskQuestion, parse_prepare, workload_of
from iodelta.experiment.source import Source, check_keys, toml_data


def parse_disk(
    text: str,
    name: str = "experiment.toml",
    *,
    base: Path = Path(),
    numbered: bool = True,
) -> DiskQuestion:
    """Return the disk to prepare, from a TOML text: an experiment file, or one with machine, target and preparation
    only.

    Raises RequestError.
    """
    data = toml_data(text, name)
    source = Source(text, name, numbered=numbered)
    if "workload" in data:
        experiment = parse(text, name, base=base, numbered=numbered, strict=True)
        machines, target = experiment.machines, experiment.target
        prepare = experiment.prepare or Prepare()
        workload = workload_of(experiment)
    else:
        check_keys(source.refuse, data, (), ("machine", "target", "prepare"))
        machines = parse_machines(source, data.get("machine", []))
        target = parse_target(source, data.get("target", {}))
        prepare = parse_prepare(data, source.refuse) or Prepare()
        workload = prepare.workload or DEFAULT
    if len(machines) > 1:
        source.refuse(
            "a preparation is of one machine",
            "machine",
            remedy="prepare the disks one after the other",
        )
    return DiskQuestion(target, prepare, workload, "".join(machines))
