"""A disk in a known state, as a user meets it: on loop devices whose speed falls after so many bytes."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from iodelta.lab.folder import Folder
from iodelta.study.preparation import DiskAccount, prepared

from .stand import GOOD, Done, Stand, kinds, shell
from .test_safety import digest

pytestmark = [pytest.mark.root, pytest.mark.beside]

MIB = 1 << 20
ROUND = ("--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=4")
SLOW = (*ROUND, "--rate_iops=200")


def said(done: Done) -> str:
    return " ".join((done.out + done.err).split())


def disk(folder: Path) -> DiskAccount:
    return prepared(Folder.open(folder)).disk


def written(node: str) -> int:
    """Bytes written to a device so far."""
    fields = Path(f"/sys/block/{node.removeprefix('/dev/')}/stat").read_text().split()
    return int(fields[6]) * 512


def limited(group: Path, number: str, iops: int) -> None:
    """Let the processes in a control group make so many writes a second."""
    new = group / "io.max"
    if new.exists():
        new.write_text(f"{number} wiops={iops}")
    else:
        (group / "blkio.throttle.write_iops_device").write_text(f"{number} {iops}")


@contextmanager
def falling(node: str, group: Path, number: str, *, fast: int, slow: int, after: int) -> Iterator[None]:
    """A disk that makes ``fast`` writes a second until ``after`` bytes were written to it, then ``slow``."""
    limited(group, number, fast)
    start, over = written(node), threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if written(node) - start >= after:
                limited(group, number, slow)
                return

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


@pytest.mark.night
def test_a_disk_is_steady_after_its_transition_and_not_before(stand: Stand) -> None:
    node = stand.loop(64)
    group, number = stand.group(node)
    after = 64 * MIB + 26 * MIB  # in the seventh round: five rounds before that look steady
    words = ("--fill", "1", "--round", "1s", "--limit", "60", "--spare", "50%", "--folder", "one")
    with falling(node, group, number, fast=1000, slow=300, after=after):
        done = stand.run_in(group, "prepare", node, "--destroy", node, *words, "--", *ROUND)
    assert done.code == 0, done
    found = disk(stand.place / "one")
    window = found.window
    assert found.state == "steady"
    assert window is not None
    assert f"Steady after {len(found.rounds)} rounds: rounds {window.first + 1} to {window.last + 1}" in said(done)
    before = found.filled + sum(one.written for one in found.rounds[: window.first + 1])
    assert before >= after, "no round of the window is wholly from before the transition"
    assert 200 < window.average < 400
    fast = [one.iops for one in found.rounds if one.iops > 600]
    assert len(fast) >= 5, "the five rounds before the transition were made, and did not pass for steady"


def test_after_a_kill_at_any_moment_no_finished_step_is_made_again(stand: Stand) -> None:
    node = stand.loop(32)
    folder = stand.place / "one"
    words = ("--round", "500ms", "--limit", "8", "--spare", "99%", "--purge", "discard", "--folder", "one")
    moments: tuple[Callable[[], object], ...] = (
        lambda: kinds(folder, "step-begun"),
        lambda: [one for one in kinds(folder, "step-done") if one["step"] == "fill"],
        lambda: [one for one in kinds(folder, "step-begun") if one["step"] == "round"],
        lambda: len([one for one in kinds(folder, "step-done") if one["step"] == "round"]) >= 3,
    )
    arguments: tuple[str, ...] = ("prepare", node, "--destroy", node, *words, "--", *SLOW)
    kept: list[dict[str, Any]] = []
    for moment in moments:
        running = stand.start(*arguments)
        until(moment)
        running.signal(signal.SIGKILL)
        running.wait()
        lines = kinds(folder, "step-done")
        assert lines[: len(kept)] == kept, "what was finished before stays as it was"
        kept = lines
        arguments = ("prepare", "one", "--destroy", node)
    done = stand.run(*arguments)
    assert done.code == 3, done
    steps = kinds(folder, "step-done")
    assert steps[: len(kept)] == kept
    assert [one["number"] for one in steps] == list(range(1, len(steps) + 1))
    assert [one["step"] for one in steps].count("purge") == 1
    begun = Counter(one["step"] for one in kinds(folder, "step-begun"))
    assert disk(folder).unfinished == dict(begun - Counter(one["step"] for one in steps))
    assert sum(one["written"] for one in steps if one["step"] == "fill") == 2 * 32 * MIB
    assert len(disk(folder).rounds) == 8, "the limit counts rounds of all sessions"
    assert not stand.pending()
    until(lambda: not stand.processes())


@pytest.mark.night
def test_a_disk_that_is_not_steady_within_the_limit_says_so_and_loses_nothing(stand: Stand) -> None:
    node = stand.loop(64)
    words = ("--fill", "0", "--round", "300ms", "--limit", "5", "--folder", "one")
    done = stand.run("prepare", node, "--destroy", node, *words, "--", *SLOW)
    assert done.code == 3, done
    assert "Not steady after 5 rounds" in said(done)
    assert f"iodelta prepare one --destroy {node}" in done.out
    again = stand.run("prepare", "one", "--destroy", node)
    assert again.code == 3, again
    assert "Not steady after 10 rounds" in said(again)
    for format_ in ("markdown", "csv", "html"):
        report = stand.run("report", "one", "--format", format_)
        assert report.code == 0, report
        assert node in report.out
    assert stand.run("report", "one", "--exit-code").code == 3


def test_nothing_is_written_to_a_disk_that_is_not_named(stand: Stand) -> None:
    node, other = stand.loop(16), stand.loop(16)
    Path(node).write_bytes(b"a record\n" * 100_000)
    before = digest(node)
    for more in ((), ("--destroy", other), ("--dry-run",), ("--dry-run", "--destroy", other)):
        done = stand.run("prepare", node, "--purge", "discard", "--folder", "one", *more)
        assert done.code == 2, done
        assert f"say --destroy {node}" in said(done)
    planned = stand.run("prepare", node, "--purge", "discard", "--destroy", node, "--dry-run", "--folder", "one")
    assert planned.code == 0, planned
    assert "32 MiB in sequence" in said(planned)
    assert "purge by discard" in said(planned)
    assert "at most 25 min" in said(planned)
    assert digest(node) == before
    assert not (stand.place / "one").exists()
    point = stand.filesystem(16)
    mounted = shell("findmnt", "-no", "SOURCE", str(point)).strip()
    refused = stand.run("prepare", mounted, "--destroy", mounted, "--folder", "one")
    assert refused.code == 2, refused
    assert "is mounted" in said(refused)


@pytest.mark.night
def test_a_discard_gives_up_what_was_on_the_disk(stand: Stand) -> None:
    node = stand.loop(16)
    Path(node).write_bytes(b"a record\n" * (14 * MIB // 9))
    words = ("--purge", "discard", "--fill", "0", "--round", "300ms", "--limit", "5", "--folder", "one")
    done = stand.run("prepare", node, "--destroy", node, *words, "--", *SLOW)
    assert done.code == 3, done
    data = Path(node).read_bytes()
    assert b"a record" not in data
    assert disk(stand.place / "one").purged


def experiment(node: str, prepare: str, *, design: str = "") -> str:
    return f"""
[target]
path = "{node}"
[workload]
rw = "randwrite"
bs = "4k"
direct = 1
ioengine = "libaio"
rate_iops = 400
[variant.a]
"fio.nice" = 0
[variant.b]
"fio.nice" = 1
[design]
trial = "300ms"
ramp = "0s"
blocks = 5
carry-over = "none"
{design}
{prepare}
"""


PREPARE = """
[prepare]
purge = "discard"
fill = 1
round = "500ms"
limit = 40
spare = "10%"
"""


def test_an_experiment_prepares_its_disk_and_keeps_its_state_with_every_trial(stand: Stand) -> None:
    node = stand.loop(8)
    (stand.place / "one.toml").write_text(experiment(node, PREPARE))
    planned = stand.run("run", "one.toml", "--destroy", node, "--dry-run")
    assert planned.code == 0, planned
    assert "Prepare purge by discard; 1 x its size in sequence" in said(planned)
    done = stand.run("run", "one.toml", "--destroy", node, "--folder", "one")
    assert done.code in GOOD, done
    (session,) = kinds(stand.place / "one", "session")
    assert session["disk"]["prepared"]["steady"] is True
    since = trials_since(stand.place / "one")
    assert len(since) == 10
    assert since == sorted(since)
    assert since[0] < MIB < 8 * MIB
    assert since[-1] >= 9 * 100 * 4096, "some 120 writes in each of nine trials"
    report = stand.run("report", "one", "--format", "mail")
    assert "Steady after" in report.out
    assert "Round by round" in report.out
    assert "disk.unknown" not in report.out
    assert not (stand.place / "one" / "report.html").exists(), "a page is made when it is asked for"
    # The next experiment finds the disk as this one left it.
    (stand.place / "two.toml").write_text(experiment(node, ""))
    other = stand.run("run", "two.toml", "--destroy", node, "--folder", "two")
    assert other.code in GOOD, other
    (session,) = kinds(stand.place / "two", "session")
    assert session["disk"]["since"] >= since[-1]
    later = " ".join(stand.run("report", "two", "--format", "mail").out.split())
    assert f"disk prepared: {node}, " in later
    assert "purge by discard; 1 x its size in sequence" in later


def trials_since(folder: Path) -> list[float]:
    """Bytes written to the disk between its preparation and each trial, in the order of the trials."""
    import polars

    table = polars.read_parquet(folder / "trials.parquet").sort("trial")
    return table["counter.prepared.written_since_bytes"].to_list()


def test_writes_to_a_disk_in_an_unknown_state_are_a_finding(stand: Stand) -> None:
    node = stand.loop(8)
    rotational = Path(f"/sys/block/{node.removeprefix('/dev/')}/queue/rotational")
    rotational.write_text("0")
    (stand.place / "one.toml").write_text(experiment(node, ""))
    planned = stand.run("run", "one.toml", "--destroy", node, "--dry-run")
    assert "Warning how fast it writes depends on what was written to it before" in said(planned)
    assert f"`iodelta prepare {node} --destroy {node}`" in said(planned)
    done = stand.run("run", "one.toml", "--destroy", node, "--folder", "one")
    assert done.code in GOOD, done
    account = json.loads((stand.place / "one" / "verdict.json").read_text())["account"]
    (found,) = [one for one in account["findings"] if one["rule"] == "disk.unknown"]
    assert found["severity"] == "warning"
    reads = experiment(node, "").replace("randwrite", "randread")
    (stand.place / "two.toml").write_text(reads)
    assert "those writes are unknown" not in said(stand.run("run", "two.toml", "--dry-run"))


@pytest.mark.night
def test_an_experiment_on_a_disk_that_does_not_become_steady_measures_nothing(stand: Stand) -> None:
    node = stand.loop(64)
    prepare = PREPARE.replace("limit = 40", "limit = 5").replace("10%", "90%").replace("500ms", "300ms")
    (stand.place / "one.toml").write_text(experiment(node, prepare))
    done = stand.run("run", "one.toml", "--destroy", node, "--folder", "one")
    assert done.code == 3, done
    assert "did not become steady within 5 rounds; nothing was measured" in said(done)
    folder = stand.place / "one"
    assert len([one for one in kinds(folder, "step-done") if one["step"] == "round"]) == 5
    assert not kinds(folder, "started")
    again = stand.run("run", "one", "--destroy", node)
    assert again.code == 3, again
    rounds = [one for one in kinds(folder, "step-done") if one["step"] == "round"]
    assert len(rounds) == 10, "five more, and the first five are kept"
    assert "Not steady after 10 rounds" in said(stand.run("report", "one", "--format", "mail"))
