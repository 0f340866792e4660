"""Bad cells, background loads, noise, budgets: each with real fio, each visible in the account."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from iodelta.lab.folder import Folder

from .stand import GOOD, Stand, finished, kinds, side_by_side, verdict

pytestmark = [pytest.mark.root, pytest.mark.beside]

SAME = ("--variant", "a:fio.nice=0", "--variant", "b:fio.nice=1")


PLACEBO = """
margin = "0.01%"
[target]
path = "{node}"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
thinktime = "1ms"
[variant.a]
"fio.nice" = 0
[variant.b]
"fio.nice" = 1
[design]
trial = "200ms"
ramp = "0s"
budget = "11s"
level = "99.9%"  # or one placebo of twenty has an answer
"""


def test_one_bad_cell_never_ends_the_experiment(stand: Stand) -> None:
    """No huge page is reserved, which only fio finds out."""
    node = stand.loop()
    fio = ("--rw=randread", "--bs=4k", "--iomem=malloc", "--iomem=mmaphuge", "--direct=1", "--ioengine=libaio")
    words = ("--folder", "folder", "--trial", "200ms", "--ramp", "0", "--blocks", "3", "--seed", "1")
    done = stand.run("run", "--target", node, *words, *SAME, "--", *fio, "--rate_iops=500")
    assert done.code in GOOD, done
    (given_up,) = kinds(stand.place / "folder", "abandoned")
    assert given_up["cell"] == "iomem=mmaphuge"
    assert "fio ended with exit code 1" in given_up["reason"]
    assert "Cell iomem=mmaphuge could not be measured" in done.out
    spoilt = [event for event in kinds(stand.place / "folder", "repeated") if event["why"] == "spoilt"]
    assert {event["cell"] for event in spoilt} == {"iomem=mmaphuge"}
    assert _measured(stand.place / "folder") == 6, "the other cell has all its blocks"


def test_background_loads_that_run_that_end_and_that_cannot_run(stand: Stand) -> None:
    node = stand.loop()
    conditions = ("--condition", "steady:sleep 600", "--condition", "broken:sh -c 'exit 7'")
    done = stand.run(*stand.quick(node, *SAME, *conditions, blocks=2))
    assert done.code in GOOD, done
    folder = stand.place / "folder"
    (given_up,) = kinds(folder, "abandoned")
    assert given_up["cell"].startswith("broken")
    assert "exit 7" in given_up["reason"]
    alive = {record["background"]["alive"] for record in _records(folder)}
    assert alive == {1.0}, "and of the other it is recorded that it ran"
    assert stand.processes() == []


@pytest.mark.night
def test_a_load_that_dies_during_the_trials_spoils_them_and_is_named(stand: Stand) -> None:
    """It lives long enough to begin with, and never again: trials without it are not trials under its condition."""
    load, seen = stand.place / "load", stand.place / "seen"
    load.write_text(f"#!/bin/sh\n[ -e {seen} ] && exit 9\ntouch {seen}\nsleep 1.3\n")
    load.chmod(0o755)
    done = stand.run(*stand.quick(stand.loop(), *SAME, "--condition", f"dying:{load}", blocks=3))
    assert done.code in (*GOOD, 4), done
    folder = stand.place / "folder"
    assert "background" in kinds(folder, "repeated")[0]["reason"]
    (given_up,) = kinds(folder, "abandoned")
    assert "9" in given_up["reason"]
    assert stand.processes() == []


def test_other_io_on_the_device_flags_trials_and_removes_none(stand: Stand) -> None:
    """Somebody reads the same disk all the time: every trial counts, and the report says what disturbed it."""
    node = stand.loop()
    reader = ["fio", "--name=other", f"--filename={node}", "--rw=read", "--bs=64k", "--direct=1", "--rate=20m"]
    with subprocess.Popen([*reader, "--time_based", "--runtime=120", "--output=/dev/null"]) as other:
        done = stand.run(*stand.quick(node, *SAME, blocks=5))
        other.terminate()
    assert done.code in GOOD, done
    folder = stand.place / "folder"
    assert kinds(folder, "repeated") == []
    assert kinds(folder, "ended")[-1]["reason"] == "complete"
    assert "noise.other-io" in stand.run("report", "folder", "--format", "json").out


@pytest.mark.night
def test_when_the_budget_ends_it_says_what_an_answer_needs_and_one_extension_goes_on(tmp_path: Path) -> None:
    def extend(stand: Stand, kill: bool) -> None:
        node, folder = stand.loop(), stand.place / "folder"
        (stand.place / "placebo.toml").write_text(PLACEBO.format(node=node))
        done = stand.run("run", "placebo.toml", "--folder", "folder", "--seed", "1")
        assert done.code in GOOD, done
        assert "more blocks" in " ".join(done.out.split()), done
        again = stand.run("run", "folder")
        assert again.out == stand.run("report", "folder").out, "without --budget there is nothing more to do"
        assert len(kinds(folder, "session")) == 1
        before, first = finished(folder), (folder / "verdict.json").read_bytes()
        if kill:
            running = stand.start("run", "folder", "--budget", "12s")
            until(lambda: len(finished(folder)) > len(before))
            running.signal(signal.SIGKILL)
            running.wait()
        done = stand.run("run", "folder", "--budget", "12s")
        assert done.code in GOOD, done
        assert len(kinds(folder, "extended")) == 1
        after = finished(folder)
        assert before.items() < after.items()
        assert (folder / "verdict.json").read_bytes() != first
        refused = stand.run("run", "folder", "--budget", "5s")
        assert refused.code == 2
        assert "extended once" in refused.err
        rules = verdict(folder)["account"]["judgement"]["rules"]
        assert rules["extension"], "the extension is judged from the alpha in reserve"

    side_by_side(tmp_path, extend, [False, True])


def test_a_folder_judged_again_gives_the_same_bytes_wherever_it_lies(stand: Stand) -> None:
    assert stand.run(*stand.quick(stand.loop(), *SAME)).code in GOOD
    folder = stand.place / "folder"
    first = (folder / "verdict.json").read_bytes(), (folder / "trials.parquet").read_bytes()
    for path in ("folder", str(folder)):
        assert stand.run("rebuild", path).code == 0
        assert ((folder / "verdict.json").read_bytes(), (folder / "trials.parquet").read_bytes()) == first
    (folder / "verdict.json").unlink()
    assert stand.run("rebuild", "folder").code == 0
    assert (folder / "verdict.json").read_bytes() == first[0]
    assert stand.run("run", "folder").code in GOOD
    assert (folder / "verdict.json").read_bytes() == first[0]


def _records(folder: Path) -> list[dict[str, Any]]:
    """What is kept of each trial beside fio's output."""
    opened = Folder.open(folder)
    return [json.loads(opened.read_raw(number, "record")) for number in finished(folder)]


def _measured(folder: Path) -> int:
    """How many trials are wanted and there: a block that noise of the host had made again counts once."""
    started = {event["trial"]: event for event in kinds(folder, "started")}
    return len({(started[n]["cell"], started[n]["block"], started[n]["variant"]) for n in finished(folder)})
