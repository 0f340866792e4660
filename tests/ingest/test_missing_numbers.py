"""A number that fio could not print (nan, inf) or that was damaged is missing: it is never read as 0 or as infinite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iodelta.ingest import Run, read_bytes
from iodelta.trial import Direction, Latency, Quantity
from iodelta.workload.fio_json import merged, read_document

DATA = Path(__file__).parent.parent / "data" / "fio-3.33"
BAD = ["nan", "-nan", "inf", "-inf", "null", '"-"', '"nan"', '"inf"', "[]", "1e400"]
MARK = "here"
FLAGS = {"error", "eta", "elapsed", "groupid", "job_start", "short_ios", "drop_ios", "job_runtime"}
"""What is no measurement, or is 0 in every sound run."""
Leaf = tuple[str | int, ...]


def leaves(value: Any, path: Leaf = ()) -> Iterator[Leaf]:
    """The paths of all numbers."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))
    elif isinstance(value, int | float):
        yield path


def replaced(document: dict[str, Any], path: Leaf, text: str) -> bytes:
    copied = json.loads(json.dumps(document))
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = MARK
    return json.dumps(copied, indent=2, separators=(",", " : ")).replace(f'"{MARK}"', text).encode()


def of_latency(name: str, found: Latency | None) -> Iterator[tuple[str, Quantity]]:
    if found is None:
        return
    for part in ("mean", "stddev", "min", "max"):
        yield f"{name} {part}", getattr(found, part)
    for percent, quantity in found.percentiles.items():
        yield f"{name} p{percent}", quantity


def of_direction(direction: Direction) -> Iterator[tuple[str, Quantity]]:
    yield f"{direction.kind} iops", direction.iops
    yield f"{direction.kind} bandwidth", direction.bandwidth
    for name in ("lat", "clat", "slat"):
        yield from of_latency(f"{direction.kind} {name}", getattr(direction, name))


def quantities(run: Run) -> Iterator[tuple[str, Quantity]]:
    for direction in run.directions:
        yield from of_direction(direction)
    for sampler in run.samplers:
        for part in ("mean", "stddev", "min", "max"):
            yield f"sampled {sampler.kind} {sampler.of} {part}", getattr(sampler, part)
    yield from of_latency("sync", run.sync)
    yield "usr", run.usr_cpu
    yield "sys", run.sys_cpu
    yield from run.depths.items()


def others(run: Run) -> Iterator[tuple[str, float]]:
    for disk in run.disks:
        for name in ("read_ios", "write_ios", "read_merges", "write_merges", "read_ticks", "write_ticks", "in_queue"):
            value = getattr(disk, name)
            yield f"{disk.name} {name}", math.nan if value is None else value
        yield f"{disk.name} util", disk.util
    yield from ((f"up to {bound}", share) for bound, share in run.shares)


def is_missing(quantity: Quantity) -> bool:
    return math.isnan(quantity.value) and quantity.low == 0 and quantity.high == math.inf


@pytest.mark.parametrize(("name", "first"), [("logs-a.json", 0), ("syncramp.json", 3)])
def test_no_number_of_a_document_becomes_another_one(name: str, first: int) -> None:
    """Whichever number is damaged, in each way in turn: every number that is read is the sound one, or unknown."""
    document = json.loads((DATA / name).read_text())
    document["jobs"] = document["jobs"][:1]
    (sound,) = read_bytes(json.dumps(document).encode(), name).runs
    expected, counted = dict(quantities(sound)), dict(others(sound))
    assert len(expected) > 30
    assert any(key.endswith("util") for key in counted)
    measured = [path for path in leaves(document) if path[0] in ("jobs", "disk_util") and path[-1] not in FLAGS]
    for number, path in enumerate(measured, first):
        damaged = replaced(document, path, BAD[number % len(BAD)])
        for run in read_bytes(damaged, name).runs:
            for key, quantity in quantities(run):
                same = math.isclose(quantity.value, expected[key].value, rel_tol=0.002, abs_tol=1e-9)
                assert same or is_missing(quantity), (path, number % len(BAD), key, quantity, expected[key])
            for key, value in others(run):
                assert math.isnan(value) or value == counted[key], (path, number % len(BAD), key, value)


@pytest.mark.parametrize(("part", "bad"), [("mean", "nan"), ("stddev", "-nan"), ("min", "inf"), ("max", "null")])
def test_in_a_trial_too_a_latency_that_fio_could_not_print_is_missing(part: str, bad: str) -> None:
    """fio's own JSON of a trial, and its jobs merged: a job without the number leaves the sum without it."""
    document = json.loads((DATA / "nogroup.json").read_text())
    damaged = read_document(replaced(document, ("jobs", 0, "read", "clat_ns", part), bad))
    sound = read_document(json.dumps(document).encode())
    assert len(sound.jobs) == 2
    first, *_ = damaged.jobs
    for key, quantity in of_direction(first.directions[0]):
        if key == f"read clat {part}":
            assert is_missing(quantity), (key, quantity)
        else:
            assert quantity == dict(of_direction(sound.jobs[0].directions[0]))[key]
    for jobs in (damaged.jobs, tuple(reversed(damaged.jobs))):
        together = dict(of_direction(merged(jobs).directions[0]))
        assert is_missing(together[f"read clat {part}"])
        assert together["read lat mean"].value > 0


@pytest.mark.parametrize("name", ["total_ios", "io_bytes", "runtime"])
def test_a_trial_without_a_count_has_no_rate_of_it(name: str) -> None:
    document = json.loads((DATA / "nogroup.json").read_text())
    for job in read_document(replaced(document, ("jobs", 0, "read", name), "nan")).jobs[:1]:
        for direction in job.directions:
            rates = {"total_ios": [direction.iops], "io_bytes": [direction.bandwidth]}
            for rate in rates.get(name, [direction.iops, direction.bandwidth]):
                assert math.isnan(rate.value) or rate.value > 0
