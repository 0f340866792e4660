"""Results of other tools and counts of instructions in a history: flagged, dated, and in series of their own."""

from __future__ import annotations

import json
import math
from pathlib import Path

import counted_boots as boots
import nights
import pytest
from fio_files import document
from nights import night

from iodelta.errors import RequestError
from iodelta.history.adding import add
from iodelta.history.counts import nights_of as counted
from iodelta.history.foreign import night_of
from iodelta.history.log import Given, Log
from iodelta.history.reading import logged
from iodelta.history.scan import scan
from iodelta.history.store import Store
from iodelta.path.judge import judge

THERE = Given(machine="stor3")


def result(place: Path, **of: object) -> Path:
    """A file as fio writes it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document(**of)))  # type: ignore[arg-type]
    return place


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Store, Log]:
    """An empty history."""
    return nights.opened(tmp_path), Log(tmp_path / "decisions.jsonl")


def test_one_run_has_no_error_and_says_so(tmp_path: Path) -> None:
    found = night_of(result(tmp_path / "one.json", iops=5000.0, ended=1.7e9), THERE)
    by = {point.key.metric: point for point in found.points}
    rate = by["read.iops"]
    assert math.exp(rate.y) == pytest.approx(5000)
    assert (rate.se, rate.n) == (0.0, 1)
    assert {("rw", "randread"), ("bs", "4096"), ("iodepth", "32")} <= set(rate.key.options)
    assert rate.flags == ("foreign", "no-error")
    assert (found.machine, rate.key.role) == ("stor3", "foreign")
    assert found.t == pytest.approx(1.7e9, abs=60)
    assert "read.lat.p99" in by or "read.clat.p99" in by


def test_replicates_give_the_error_of_their_mean(tmp_path: Path) -> None:
    rates = (5000.0, 5100.0, 5050.0)
    for number, rate in enumerate(rates):
        result(tmp_path / "runs" / f"{number}.json", iops=rate)
    found = night_of(tmp_path / "runs", THERE)
    (point,) = (one for one in found.points if one.key.metric == "read.iops")
    logs = [math.log(rate) for rate in rates]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / 2)
    assert (point.n, point.flags) == (3, ("foreign",))
    assert point.y == pytest.approx(mean)
    assert point.se >= spread / math.sqrt(3) * 0.999


def test_nobody_guesses_where_or_when(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="do not name their machine"):
        night_of(result(tmp_path / "one.json"), Given())
    table = tmp_path / "table.txt"
    table.write_text("| scheduler | IOPS |\n|---|---|\n| none | 5000 |\n| bfq | 4000 |\n")
    with pytest.raises(RequestError, match="do not say when they were measured"):
        night_of(table, THERE)
    found = night_of(table, Given("stor3", 1.7e9, "v6.12"))
    assert (found.t, found.subject.describe) == (1.7e9, "v6.12")


def test_foreign_points_never_join_a_series_of_our_own(tmp_path: Path) -> None:
    foreign = night_of(result(tmp_path / "one.json"), THERE)
    assert {point.key.number for point in foreign.points}.isdisjoint(point.key.number for point in night(1).points)


def test_a_step_in_numbers_without_errors_is_found_once(tmp_path: Path, opened: tuple[Store, Log]) -> None:
    store, log = opened
    for number in range(40):
        rate = (5000.0 + 7 * (number % 3)) * (0.9 if number >= 25 else 1.0)
        add(result(tmp_path / f"{number:02}.json", iops=rate, ended=1.7e9 + 86400 * number), THERE, store, log)
    (step,) = [one for one in scan(store.lines()) if one.metric == "read.iops"]
    assert step.size == pytest.approx(-math.log(0.9), rel=0.05)
    assert "foreign" in step.first_bad.flags
    assert step.first_bad.t - step.last_good.t == pytest.approx(86400)


def test_a_file_that_changed_replaces_its_night_and_rebuild_agrees(tmp_path: Path, opened: tuple[Store, Log]) -> None:
    store, log = opened
    path = result(tmp_path / "one.json", iops=5000.0)
    assert add(path, THERE, store, log).outcome == "added"
    assert add(path, THERE, store, log).outcome == "known"
    result(path, iops=6000.0)
    add(path, THERE, store, log)
    assert len(store.experiments()) == 1
    before = store.lines()
    store.replace_all(logged(log))
    assert store.lines() == before
    assert math.exp(next(line for line in before if line.key.metric == "read.iops").points[0].y) == pytest.approx(6000)


def test_a_row_of_kernels_is_a_night_for_each_and_a_longer_path_a_step(
    tmp_path: Path, opened: tuple[Store, Log]
) -> None:
    store, log = opened
    row = tuple(f"k{number}" for number in range(1, 13))

    def says(variant: str, purpose: str, seed: int) -> bytes:
        return boots.output(7000 + 3 * (seed % 2) + 120 * (row.index(variant) >= 7))

    made = boots.folder(tmp_path / "row", says, row=row)
    nights = counted(made)
    assert [one.subject.describe for one in nights] == [f"linux-image {name}.0-1" for name in row]
    assert sorted({one.t for one in nights}) == [one.t for one in nights]
    assert add(made.path, Given(), store, log).points == 12
    (line,) = store.lines()
    assert line.variant == ""
    assert {point.flags for point in line.points} == {("counted",)}
    assert math.exp(line.points[0].y) == pytest.approx(judge(made).counts[0].median)
    (step,) = scan(store.lines())
    assert (step.last_good.describe, step.first_bad.describe) == ("linux-image k7.0-1", "linux-image k8.0-1")
    assert step.size == pytest.approx(math.log(7120 / 7000), rel=0.01)


def test_what_another_layout_of_memory_does_is_no_step(tmp_path: Path, opened: tuple[Store, Log]) -> None:
    store, log = opened
    row = tuple(f"k{number}" for number in range(1, 7))
    made = boots.folder(
        tmp_path / "row", lambda variant, *_: boots.output(7000 + 4 * (row.index(variant) % 3)), row=row
    )
    add(made.path, Given(), store, log)
    assert scan(store.lines()) == []
