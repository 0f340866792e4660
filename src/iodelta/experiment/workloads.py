"""``[workload]``: one workload, several by name, a job file of fio, or commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iodelta.experiment.command import is_command, parse_command
from iodelta.experiment.expand import Workload
from iodelta.experiment.model import NAME
from iodelta.experiment.source import Source, text_value
from iodelta.jobfile import read_job_file


def parse_workloads(source: Source, table: Any, base: Path) -> tuple[Workload, ...]:
    """Return the table ``[workload]``: commands, the sections of a fio job file, or fio options. Refuses with the key."""
    if not isinstance(table, dict) or not table:
        source.refuse(
            "there is no [workload]",
            "workload",
            remedy='add one, as in [workload] rw = "randread" bs = "4k"',
        )
    named = {key: value for key, value in table.items() if isinstance(value, dict)}
    common = {key: value for key, value in table.items() if key not in named}
    if is_command(common, named):
        return _of_commands(source, common, named)
    job_file = common.pop("job_file", None)
    if job_file is not None:
        # The path of the fio job file that is the workload. Refuses named workloads in addition to it.
        place = ("workload", "job_file")
        if not isinstance(job_file, str):
            source.refuse("job_file must be the path of a fio job file", *place)
        if named:
            source.refuse("give either job_file or named workloads, not both", *place)
        path = base / job_file
        return _of_job_file(path, _options(source, common, "workload"))
    if not named:
        return (Workload("", tuple(_options(source, common, "workload").items())),)
    workloads: list[Workload] = []
    for name, own_options in named.items():
        _check_workload_name(source, name)
        options = _options(source, common, "workload")
        options |= _options(source, own_options, "workload", name)
        workloads.append(Workload(name, tuple(options.items())))
    return tuple(workloads)


def _check_workload_name(source: Source, name: str) -> None:
    if not NAME.fullmatch(name):
        source.refuse(f"{name!r} cannot be the name of a workload", "workload", name)


def _of_commands(
    source: Source, common: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> tuple[Workload, ...]:
    """Return a workload for each table; keys of ``[workload]`` itself apply to all of them."""
    workloads: list[Workload] = []
    for name, table in (named or {"": {}}).items():
        path: tuple[str, ...] = ("workload",)
        if name:
            _check_workload_name(source, name)
            path = ("workload", name)
        command, parameters = parse_command({**common, **table}, path, source.refuse)
        options = _options(source, parameters, *path)
        workloads.append(Workload(name, tuple(options.items()), command=command))
    return tuple(workloads)


def _of_job_file(path: Path, more: Mapping[str, Values]) -> tuple[Workload, ...]:
    """Return a workload for each section of a job file; ``more`` is set in all of them."""
    workloads: list[Workload] = []
    for section in read_job_file(path):
        options: dict[str, Values] = {key: (value,) for key, value in section.options}
        options |= more
        workloads.append(Workload(section.name, tuple(options.items()), section.notes))
    return tuple(workloads)


Values = tuple[str | None, ...]


def _options(source: Source, table: Mapping[str, Any], *path: str) -> dict[str, Values]:
    return {key: _values(source, value, *path, key) for key, value in table.items()}


def _values(source: Source, value: Any, *path: str) -> tuple[str | None, ...]:
    """Return the values of a fio option; each makes a cell. Refuses with the key."""
    values = value if isinstance(value, list) else [value]
    if not values:
        source.refuse("an empty list makes no cell", *path)
    if not re.fullmatch(r"[A-Za-z0-9_]+", path[-1]):
        source.refuse(f"{path[-1]!r} is not the name of a fio option", *path)
    return tuple(text_value(source, one_value, *path) for one_value in values)
