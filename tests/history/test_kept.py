"""What scans found is kept: work follows from what changed, and every path has one order of commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from nights import night, on, opened
from test_alerts import line
from test_commits import hashes, repository

from iodelta.cli.main import cli
from iodelta.history.commits import Order
from iodelta.history.kept import kept_of, refresh
from iodelta.history.lake import export, scan_lake
from iodelta.history.log import Annotated, Decided, Entry, Log, LoggedCommit, Ordered
from iodelta.history.points import Night
from iodelta.history.scan import looked, scanned
from iodelta.history.store import Store

STEP, NIGHTS = 20, 40


def of(machine: str, number: int, **other: object) -> Night:
    """A night of another machine."""
    name = f"{machine}-{number}"
    return on(machine, night(number, r=0.02 * (number >= STEP)), identifier=name, sha=name, **other)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two machines, both slower from ``STEP`` on."""
    made = opened(tmp_path)
    made.add_all([of(machine, number) for number in range(NIGHTS) for machine in ("stor1", "stor2")])
    yield made
    made.close()


def test_a_night_costs_its_own_series_and_a_word_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    whole = looked

    def counted(own: object, *rest: object) -> object:
        seen.append(own.key.machine)  # type: ignore[attr-defined]
        return whole(own, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("iodelta.history.kept.looked", counted)
    found, failed = refresh(store, [])
    assert (sorted(seen), failed, [len(one.found) for one in found]) == (["stor1", "stor2"], None, [1, 1])
    seen.clear()
    words: list[Entry] = [Annotated(1.0, "new firmware", t=1.7e9), Decided(2.0, "3f2a91c4", "noise")]
    assert refresh(store, words) == (found, None)
    assert seen == []
    store.add(of("stor2", NIGHTS))
    assert kept_of(store) == (found, 1)
    refresh(store, words)
    assert seen == ["stor2"]
    store.remove([f"stor1-{NIGHTS - 1}"])
    refresh(store, words)
    assert seen == ["stor2", "stor1"]


def test_an_order_of_commits_that_is_read_later_is_followed_by_history_and_lake(store: Store, tmp_path: Path) -> None:
    """Night 5 was made last: by time there is no clear step, by commits there is one at commit 20."""
    pytest.importorskip("deltalake", reason="iodelta[lake] is not installed")
    late = [of(machine, 5, t=1.7e9 + 86400.0 * 99) for machine in ("stor1", "stor2")]
    store.add_all([msgspec.structs.replace(one, sha="again") for one in late])
    by_time, _ = refresh(store, [])
    assert {one.candidate.order for series in by_time for one in series.found} <= {"time"}
    commits = tuple(LoggedCommit(f"{number:040x}", 0.0, "A", f"change {number}") for number in range(NIGHTS))
    entries: list[Entry] = [Ordered(1.0, "linux", "", commits), Annotated(2.0, "merge window", commit=f"{20:040x}")]
    found, _ = refresh(store, entries)
    assert {one.candidate.order for series in found for one in series.found} == {"commits"}
    export(store, str(tmp_path / "lake"), entries=entries)
    past = scan_lake(str(tmp_path / "lake"))
    assert [one.order for one in past.candidates] == ["commits", "commits"]
    (alert,) = past.alerts
    assert [note.text for note in alert.notes] == ["merge window"]
    # More commits after the last that was measured change nothing that is kept.
    longer = [*entries, Ordered(3.0, "linux", commits[-1].sha, (LoggedCommit("f" * 40, 0.0, "A", "next"),))]
    assert all(Order(longer).has(series.marks) for series in found)


def test_a_table_is_ordered_by_the_commits_that_it_carries(tmp_path: Path) -> None:
    place = repository(tmp_path / "linux")
    commits, rng = hashes(place), np.random.default_rng(1)
    rows = ["cell,metric,value,error,time,machine,commit"]
    for number, day in enumerate(rng.permutation(NIGHTS)):
        value = 50_000 * np.exp(0.003 * rng.standard_normal() - 0.03 * (number >= STEP))
        rows.append(f"a,read.iops,{value:.1f},0.003,{1.7e9 + 86400 * day:.0f},stor1,{commits[number]}")
    (tmp_path / "table.csv").write_text("\n".join(rows))
    history = ["--history", str(tmp_path / "history")]
    added = [str(tmp_path / "table.csv"), "--from", "csv", "--repo", str(place)]
    assert CliRunner().invoke(cli, ["history", "import", *added, *history]).exit_code == 0
    done = CliRunner().invoke(cli, ["history", "scan", *history])
    assert done.exit_code == 3, done.output
    assert "change 20 (A. Author)" in done.output
    assert len(Log(tmp_path / "history" / "decisions.jsonl").entries()[0]) > NIGHTS


def test_alerts_of_two_machines_need_the_same_builds() -> None:
    """Both stepped in the same nights, but measured other builds: two changes."""
    nights = [0.02 * (number >= STEP) for number in range(NIGHTS)]
    one, other = line("one", nights), line("other", nights)
    points = tuple(msgspec.structs.replace(point, commit=f"{n + 100:040x}") for n, point in enumerate(other.points))
    far = msgspec.structs.replace(other, key=msgspec.structs.replace(other.key, machine="stor9"), points=points)
    from iodelta.history.alerts import history

    assert [len(alert.steps) for alert in history([one, far], []).alerts] == [1, 1]
    same = msgspec.structs.replace(far, points=other.points)
    assert [len(alert.steps) for alert in history([one, same], []).alerts] == [2]


@pytest.mark.parametrize(
    ("shape", "said"),
    [("drift", "the nights drift"), ("slow", "slow season"), ("step", ""), ("young", "the epoch has")],
)
def test_a_step_says_what_else_may_have_made_it(shape: str, said: str) -> None:
    at, rng = np.arange(30 if shape == "young" else 300), np.random.default_rng(4)
    cost = {
        "drift": 0.00015 * at,
        "slow": 0.015 * np.sin(2 * np.pi * at / 200),
        "step": 0.015 * (at >= 150),
        "young": 0.05 * (at >= 15),
    }[shape] + 0.004 * rng.standard_normal(len(at))
    (found,) = scanned([line("one", cost.tolist())], Order())
    assert found.found
    doubts = {word for one in found.found for word in one.candidate.doubts}
    assert any(said in word for word in doubts) if said else not doubts
