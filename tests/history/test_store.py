"""A history says the same in a file and on a server: once each, whole or not at all, never one of a newer iodelta."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import nights
import pytest
import sqlalchemy as sa
from nights import NOBODY, key, night
from tiers import scaled
from waiting import LIMIT, until

from iodelta.errors import MeasureError, RequestError
from iodelta.history.alerts import history
from iodelta.history.schema import VERSION
from iodelta.history.store import Store

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from nights import night
from iodelta.history.alerts import history
from iodelta.history.store import Store
store = Store(sys.argv[2])
store.prepare()
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    store.add(night(number))
    print(number, flush=True)
"""


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """URL of a PostgreSQL of its own, run by nobody: it refuses root."""
    places = os.pathsep.join(["/usr/local/bin", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))])
    programs = [shutil.which(name) or shutil.which(name, path=places) for name in ("initdb", "postgres")]
    if None in programs:
        pytest.skip("PostgreSQL is not installed")
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="iodelta-pg-", dir="/tmp") as place:
        if user:
            os.chown(place, NOBODY, NOBODY)
        words = [programs[0], "-D", f"{place}/data", "-A", "trust", "-U", "iodelta", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(words, capture_output=True, text=True, cwd=place, **user)  # type: ignore[call-overload]
        if made.returncode:
            pytest.fail(f"initdb failed: {made.stderr[-300:]}")
        words = [programs[1], "-D", f"{place}/data", "-k", place, "-c", "listen_addresses=", "-c", "fsync=off"]
        with open(f"{place}/log", "wb") as said:
            running = subprocess.Popen(words, stdout=said, stderr=said, cwd=place, **user)  # type: ignore[call-overload]
        try:
            url = f"postgresql+psycopg://iodelta@/postgres?host={place}"
            until(lambda: _answers(url, running))
            yield url
        finally:
            running.terminate()
            running.wait(LIMIT)


def _answers(url: str, running: subprocess.Popen[bytes]) -> bool:
    assert running.poll() is None
    engine = sa.create_engine(url)
    try:
        with engine.connect():
            return True
    except sa.exc.OperationalError:
        return False
    finally:
        engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'history.db'}"
        return
    where = request.getfixturevalue("server")
    engine = sa.create_engine(where)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    yield where


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty history."""
    made = Store(url)
    made.prepare()
    yield made
    made.close()


def writer(url: str, first: int, last: int) -> subprocess.Popen[str]:
    """Another process that adds these nights, and prints each when it is in."""
    words = [sys.executable, "-c", WRITER, str(Path(nights.__file__).parent), url, str(first), str(last)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_adding_twice_changes_nothing(store: Store) -> None:
    assert store.add(night(1)) == "added"
    before = store.lines(), store.experiments()
    assert store.add(night(1)) == "known"
    assert (store.lines(), store.experiments()) == before


def test_an_extended_folder_replaces_its_rows_and_a_moved_one_its_place(store: Store) -> None:
    store.add(night(1))
    assert store.add(night(1, r=0.5, grown=True)) == "replaced"
    ((point,),) = [line.points for line in store.lines()]
    assert point.r == pytest.approx(0.5, abs=0.02)
    assert store.add(night(1, r=0.5, grown=True, folder="/elsewhere")) == "moved"
    (row,) = store.experiments()
    assert row["folder"] == "/elsewhere"


def test_points_come_back_as_they_were_in_order_of_time(store: Store) -> None:
    for number in (3, 1, 2):
        store.add(night(number))
    (line,) = store.lines()
    assert line.key == key()
    assert [point.describe for point in line.points] == ["v6.1", "v6.2", "v6.3"]
    assert [point.y for point in line.points] == [night(number).points[0].y for number in (1, 2, 3)]
    assert [point.r_se for point in line.points] == [0.004] * 3


@pytest.mark.parametrize("together", [False, True])
def test_a_series_keeps_its_unit_when_nights_come_in_another(store: Store, together: bool) -> None:
    told = []
    for number, (unit, value) in enumerate([("ns", 2e6), ("ms", 2.0), ("s", 0.002)]):
        one = night(number)
        points = tuple(msgspec.structs.replace(point, unit=unit, y=math.log(value)) for point in one.points)
        told.append(msgspec.structs.replace(one, points=points))
    for part in [told] if together else [[one] for one in told]:
        store.add_all(part)
    [line] = store.lines()
    assert line.unit == "ns"
    assert [point.y for point in line.points] == pytest.approx([math.log(2e6)] * 3)


def test_series_stand_in_the_one_order_of_cells(store: Store) -> None:
    cells = ["iodepth=1", "iodepth=2", "iodepth=16", "iodepth=128"]
    point = night(1).points[0]
    points = [msgspec.structs.replace(point, cell=cell, key=key(twin=cell)) for cell in reversed(cells)]
    store.add(msgspec.structs.replace(night(1), points=tuple(points)))
    assert [line.cell for line in store.lines()] == cells


def test_a_night_is_in_whole_or_not_at_all(store: Store) -> None:
    point = night(1).points[0]
    doubled = msgspec.structs.replace(night(1), points=(point, point))
    with pytest.raises(MeasureError, match="cannot use the history"):
        store.add(doubled)
    assert store.experiments() == []
    assert store.lines() == []


def test_a_history_of_a_newer_iodelta_is_refused(store: Store, url: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE iodelta_history SET version = 99"))
    engine.dispose()
    for ask in (store.prepare, store.lines, store.experiments):
        with pytest.raises(RequestError, match=f"has version 99; this iodelta knows {VERSION}"):
            ask()


def test_alerts_are_exactly_those_of_the_last_scan(store: Store, url: str) -> None:
    for number in range(40):
        store.add(night(number, r=0.02 * (number >= 20)))
    found = history(store.lines(), []).alerts
    for alerts in (found, found, ()):
        store.keep_alerts(alerts)
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT alert.id, step.z FROM alert JOIN step ON alert.id = step.alert"))
            assert [tuple(row) for row in rows] == [(one.id, one.steps[0].z) for one in alerts]
        engine.dispose()
    assert len(found) == 1


def test_writers_take_turns_and_all_is_there(store: Store, url: str) -> None:
    others = [writer(url, 100 * number, 100 * number + 15) for number in range(3)]
    assert [other.wait(LIMIT) for other in others] == [0, 0, 0]
    for other in others:
        assert other.stdout is not None
        other.stdout.close()
    assert len(store.experiments()) == 45
    assert len(store.lines()[0].points) == 45


def test_a_killed_writer_leaves_whole_nights(url: str) -> None:
    for kill in range(scaled(5, 2)):
        first = 1000 * kill
        other = writer(url, first, first + 900)
        assert other.stdout is not None
        seen = [int(other.stdout.readline()) for _ in range(3)]
        time.sleep(0.02 * kill)
        os.kill(other.pid, signal.SIGKILL)
        seen += [int(line) for line in other.stdout]
        other.wait(LIMIT)
        other.stdout.close()
        store = Store(url)
        assert store.damage() == ""
        assert {f"experiment-{number}" for number in seen} <= {row["id"] for row in store.experiments()}
        # A server may still be at what the writer asked for last, and has it between two questions.
        until(partial(_has_whole_nights, store))
        store.close()


def _has_whole_nights(store: Store) -> bool:
    return len(store.lines()[0].points) == len(store.experiments())


def test_a_damaged_or_foreign_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"this is not a database" * 400)
    with pytest.raises(MeasureError, match="history rebuild"):
        Store(f"sqlite:///{path}").prepare()
    path.unlink()
    sa.create_engine(f"sqlite:///{path}").connect().close()
    with pytest.raises(RequestError, match="not a history of iodelta"):
        Store(f"sqlite:///{path}").lines()


def test_a_server_that_goes_away_is_said_and_the_command_can_be_repeated(server: str) -> None:
    """Every connection is ended by the server between two commands, as by its restart."""
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # an earlier test may have left its history there
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    store = Store(server)
    store.prepare()
    store.add(night(1))
    others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    end = sa.text(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE {others}")
    for ask in (store.experiments, lambda: store.add(night(2)), store.lines):
        with engine.connect() as connection:
            connection.execute(end)
        with pytest.raises(MeasureError, match="cannot use the history") as lost:
            ask()
        assert "whole or not at all" in lost.value.remedy
        ask()
    assert {"experiment-1", "experiment-2"} <= {row["id"] for row in store.experiments()}
    store.close()
    engine.dispose()


@pytest.mark.parametrize(
    "wrong", ["postgresql://x:many/y", "postgresql://[x/y", "postgresql://nobody@127.0.0.1:1/none"]
)
def test_a_wrong_url_is_said(wrong: str) -> None:
    with pytest.raises((RequestError, MeasureError)) as refused:
        Store(wrong.replace("postgresql", "postgresql+psycopg")).prepare()
    assert "USER@HOST" in refused.value.remedy or "check the server and its URL" in refused.value.remedy


def test_nothing_is_made_by_asking(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no history"):
        Store(f"sqlite:///{tmp_path / 'history.db'}").lines()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said(unprivileged: Path) -> None:
    nights.opened(unprivileged).close()
    (unprivileged / "history.db").chmod(0o444)
    with pytest.raises(MeasureError, match="readonly"):
        Store(f"sqlite:///{unprivileged / 'history.db'}").add(night(1))


def test_a_file_that_cannot_be_made_is_said(unprivileged: Path) -> None:
    """As by a rebuild on a file system that is mounted read-only."""
    unprivileged.chmod(0o555)
    with pytest.raises(MeasureError) as refused:
        Store(f"sqlite:///{unprivileged / 'history.db'}").prepare()
    assert "make the file and its directory writable" in refused.value.remedy


def test_a_replaced_night_leaves_no_series_without_a_point(tmp_path: Path) -> None:
    """As where the machine of a bundle was named later: a rebuild would not have that series."""
    store, first = nights.opened(tmp_path), night(1)
    other = tuple(msgspec.structs.replace(point, key=key(twin="other")) for point in first.points)
    store.add(first)
    store.add(night(2))
    store.add(msgspec.structs.replace(first, sha="later", points=other))
    assert sorted(len(one.points) for one in store.lines()) == [1, 1]
    store.add(msgspec.structs.replace(night(2), sha="later", points=other))
    assert [len(one.points) for one in store.lines()] == [2]
