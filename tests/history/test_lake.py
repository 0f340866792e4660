"""A lake holds what the history holds, in a directory and on a real S3 server, and workers that die change nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from daskers import dask_cluster
from nights import night, on, opened
from waiting import LIMIT, until

from iodelta.cli.main import cli
from iodelta.errors import MeasureError, RequestError
from iodelta.history.alerts import history
from iodelta.history.lake import export, lines_of, machines, scan_lake
from iodelta.history.scan import scan
from iodelta.history.store import Store

deltalake = pytest.importorskip("deltalake", reason="iodelta[lake] is not installed")

MACHINES, NIGHTS, STEP = 4, 30, 20


def fill(store: Store, nights: int = NIGHTS) -> None:
    """Machines that run every night; half of them get 3 % slower at ``STEP``."""
    for number in range(nights):
        for machine in range(MACHINES):
            one = night(1000 * machine + number, r=0.03 * (number >= STEP and machine % 2))
            store.add(on(f"stor{machine}", one, t=1.7e9 + 86400.0 * number + machine))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A history of some machines."""
    made = opened(tmp_path)
    fill(made)
    yield made
    made.close()


def test_a_lake_in_a_directory_has_every_point_once_and_the_same_steps(store: Store, tmp_path: Path) -> None:
    target = str(tmp_path / "lake")
    done = export(store, target, batch=50)
    assert (done.appended, done.deleted, done.commits) == (MACHINES * NIGHTS, 0, 3)
    assert export(store, target).appended == 0
    there = [line for machine in machines(target) for line in lines_of(target, machine)]
    assert sorted(there, key=lambda line: line.key.machine) == sorted(store.lines(), key=lambda line: line.key.machine)
    found = scan_lake(target).candidates
    assert list(found) == scan(store.lines())
    assert {one.machine for one in found} == {"stor1", "stor3"}
    partitions = {(Path(file).parts[-3], Path(file).parts[-2]) for file in deltalake.DeltaTable(target).file_uris()}
    assert {machine for _, machine in partitions} == {f"machine=stor{number}" for number in range(MACHINES)}


def test_what_was_replaced_or_taken_out_is_so_in_the_lake_too(store: Store, tmp_path: Path) -> None:
    target = str(tmp_path / "lake")
    export(store, target)
    store.add(on("stor0", night(0, r=0.5, grown=True)))
    store.remove(["experiment-1"])
    done = export(store, target)
    assert (done.appended, done.deleted) == (1, 2)
    (line,) = lines_of(target, "stor0")
    assert len(line.points) == NIGHTS - 1
    assert line.points == next(one for one in store.lines() if one.key.machine == "stor0").points


def test_the_command_lists_candidates_of_a_lake_and_writes_one(store: Store, tmp_path: Path) -> None:
    place, target = tmp_path / "history", str(tmp_path / "lake")
    place.mkdir()
    store.close()
    (tmp_path / "history.db").rename(place / "history.db")
    done = CliRunner().invoke(cli, ["history", "export", target, "--to", "delta", "--history", str(place)])
    assert done.output == f"{target}: {MACHINES * NIGHTS} experiments appended, 0 deleted\n"
    done = CliRunner().invoke(cli, ["history", "scan", "--lake", target])
    assert done.exit_code == 3
    assert sorted(re.findall(r"^  (stor\d)", done.output, re.M)) == ["stor1", "stor3"]
    assert isinstance(CliRunner().invoke(cli, ["history", "scan", "--engine", "dask://h:1"]).exception, RequestError)


def test_wrong_places_and_engines_say_so(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no lake"):
        scan_lake(str(tmp_path / "nothing"))
    export(store, str(tmp_path / "lake"))
    with pytest.raises(RequestError, match="not an engine"):
        scan_lake(str(tmp_path / "lake"), "spark://host:1")
    (tmp_path / "file").write_text("no lake")
    with pytest.raises(MeasureError, match="cannot use the lake"):
        export(store, str(tmp_path / "file"))


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket on an S3-compatible server of its own."""
    pytest.importorskip("moto.server", reason="moto is not installed")
    log = tmp_path / "moto.log"
    with open(log, "wb") as said:  # it takes a free port itself, and says which
        words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        server = subprocess.Popen(words, stdout=said, stderr=said)
    try:
        until(lambda: _listening(log, server))
        address = _listening(log, server)
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        made = urllib.request.Request(f"{address}/bucket", method="PUT")
        until(lambda: _answers(made, server))
        yield "s3://bucket/history"
    finally:
        server.terminate()
        server.wait(LIMIT)


def _listening(log: Path, server: subprocess.Popen[bytes]) -> str:
    """Where the server says that it listens; empty until it does."""
    assert server.poll() is None, log.read_text()
    found = re.search(r"Running on (http://127\.0\.0\.1:\d+)\s", log.read_text())
    return found[1] if found else ""


def _answers(request: urllib.request.Request, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None
    try:
        urllib.request.urlopen(request, timeout=LIMIT).close()
    except OSError:
        return False
    return True


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and three workers, each a process of its own."""
    pytest.importorskip("distributed", reason="iodelta[lake] is not installed")
    with dask_cluster(tmp_path, 3) as (address, workers):
        yield address.replace("tcp://", "dask://"), workers


@pytest.mark.night
def test_workers_on_a_real_server_that_are_killed_find_the_same_steps(
    store: Store, bucket: str, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    engine, workers = cluster
    expected = history(store.lines(), []).alerts
    assert export(store, bucket).appended == MACHINES * NIGHTS
    assert scan_lake(bucket).alerts == expected
    assert scan_lake(bucket, engine).alerts == expected
    os.kill(workers[0].pid, signal.SIGKILL)
    assert scan_lake(bucket, engine).alerts == expected
    # A worker that hangs in the middle of its part and then dies.
    os.kill(workers[1].pid, signal.SIGSTOP)
    killer = subprocess.Popen(["sh", "-c", f"sleep 2; kill -9 {workers[1].pid}"])
    assert scan_lake(bucket, engine).alerts == expected
    assert killer.wait(LIMIT) == 0
