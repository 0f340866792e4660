"""Searches that measure the command of an experiment file: the speed stands in the sources, the noise comes from the
seed of each trial, so the truth is known and no clock is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.cli.calibrate import command as calibrate_command
from iodelta.experiment import load
from iodelta.lab.calibration import calibrations_for
from iodelta.lab.folder import Folder, Started
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve
from iodelta.workload.model import OUTPUTS

from .toy import Done, Toy, asked, attribute, bisect, run

BENCH = """
import random, sys
factors = open(sys.argv[1]).read().split()
noise = random.Random(int(sys.argv[2])).gauss(0.0, 0.001)
rate = 1000.0 * (1 + noise)
for factor in factors:
    rate *= float(factor)
print(f"\\x1b[32mops/s: {rate:.3f}\\x1b[0m")
"""

FILE = """
margin = "20%"
[workload]
command = ["python3", "-I", "-S", "{here}/bench.py", "{build}", "{seed}"]
ONLY
[metric.rate]
pattern = 'ops/s: ([0-9.]+)'
unit = "1/s"
better = "higher"
[variant.old]
"workload.build" = "/opt/old"
[variant.new]
"workload.build" = "/opt/new"
[design]
trial = "200ms"
carry-over = "tested"
stalls = "50%"
"""

BUILT = ("--build", "cp speed built", "--artifact", "built", "--set", "workload.build={built}/built")
"""The builds of the same file in which a person compares two of them."""


def _file(place: Path, only: str = "only_reads = true", more: str = "") -> Path:
    (place / "bench.py").write_text(BENCH)
    (place / "ask.toml").write_text(FILE.replace("ONLY", only) + more)
    return place / "ask.toml"


def _search(repo: Toy, good: str, bad: str, tmp_path: Path, *words: object) -> Done:
    return bisect(
        *("--repo", repo.path, "--good", good, "--bad", bad, *BUILT, "--workload", tmp_path / "ask.toml"),
        *("--exact", "1%", "--seed", "1", "--first", "--no-revert", "--folder", tmp_path / "search", *words),
    )


def test_the_commit_that_makes_a_benchmark_slower_is_found_and_a_build_that_cannot_run_is_skipped(
    repo: Toy, tmp_path: Path
) -> None:
    _file(tmp_path)
    commits = repo.commits("1", "1", "1", "rubbish", "0.9", "0.9", "0.9")
    before = repo.untouched()
    done = _search(repo, commits[0], commits[-1], tmp_path, "--format", "json")
    assert done.code == 1, done.err
    [culprit] = done.json["culprits"]
    assert culprit["suspects"][0].startswith(commits[3][:12]), "the one that cannot run may be it as well"
    assert culprit["item"] == commits[4]
    assert -0.13 < culprit["change"]["value"] < -0.07
    assert done.json["question"]["metric"] == "command.rate"
    assert repo.untouched() == before
    assert "could not convert string to float: 'rubbish'" in str(done.json["skipped"]), "what it said of itself"
    folder = Folder.open(tmp_path / "search" / "trials")
    begun = [event.trial for event in folder.events() if isinstance(event, Started)]
    assert "ops/s" in folder.read_raw(begun[0], OUTPUTS["command"]).decode()


def test_patches_of_a_benchmark_are_told_apart_by_what_each_costs(repo: Toy, tmp_path: Path) -> None:
    """The first costs 10 %, the second nothing."""
    _file(tmp_path)
    base = repo.commit("1", "base", other="1\n")
    slow = repo.commit("1\n0.9", "slower")
    none = repo.commit("1\n0.9", "nothing", other="2\n")
    done = attribute(
        *(base, "--repo", repo.path, "--patch", slow, "--patch", none, *BUILT, "--workload", tmp_path / "ask.toml"),
        *("--margin", "3%", "--seed", "1", "--blocks", "2", "--folder", tmp_path / "costs", "--format", "json"),
    )
    assert done.code == 1, done.err
    assert [one["value"] for one in done.json["shares"]] == pytest.approx([-0.10, 0.0], abs=0.01)


def test_a_setup_that_fails_skips_its_build_and_a_metric_can_be_chosen(repo: Toy, tmp_path: Path) -> None:
    _file(tmp_path, 'setup = ["grep", "-v", "no", "{build}"]')
    commits = repo.commits("1", "no", "1")
    done = _search(repo, commits[0], commits[-1], tmp_path, "--metric", "wall", "--allow-commands", "--runs", "4")
    assert done.code in (0, 3), (done.err, done.error)
    skipped = bisect("--show", tmp_path / "search", "--format", "json").json
    assert skipped["question"]["metric"] == "command.wall"
    assert commits[0] in asked(tmp_path / "search")


READS = "only_reads = true"


@pytest.mark.parametrize(
    ("only", "words", "said"),
    [
        ("timeout = '5s'", (), "--allow-commands"),
        (READS, ("--metric", "latency"), "unknown metric 'latency'"),
        (READS, ("--measure", "true", "--better", "lower"), "either --measure, or --workload or fio"),
        (READS, ("--better", "lower"), "--better is not of a command"),
        (READS, ("--set", "workload.color=red"), "color does not stand in the command"),
        (f"{READS}\nseveral = ['1', '2']", (), "a search measures one cell, and these options make 2"),
    ],
)
def test_what_a_search_cannot_measure_is_refused_before_anything_is_built(
    repo: Toy, tmp_path: Path, only: str, words: tuple[str, ...], said: str
) -> None:
    commits = repo.commits("1", "0.9")
    file = _file(tmp_path, only)
    if "several" in only:
        file.write_text(file.read_text().replace('"{seed}"]', '"{seed}", "{several}"]'))
    done = _search(repo, commits[0], commits[1], tmp_path, *words)
    assert done.code == 2, (said, done.out)
    assert said in " ".join(str(done.error).split())
    assert not (tmp_path / "search").exists()


def test_a_calibration_says_what_the_numbers_of_a_command_can_show(tmp_path: Path) -> None:
    """Its noise is known: 0.1 % a trial."""
    (tmp_path / "speed").write_text("1")
    file = _file(tmp_path)
    file.write_text(file.read_text().replace("/opt/old", "{here}/speed"))
    for budget in ("60s", "5m", "10m"):  # a busy machine needs more time for the first look of two comparisons
        how = ("--budget", budget, "--seed", "3", "--folder", tmp_path / budget, "--format", "json")
        done = run(calibrate_command, "--workload", file, *how)
        assert done.code in (0, 4), (done.err, done.error)
        if done.code == 0:
            break
    assert done.code == 0, (done.err, done.error)
    calibration = done.json["calibration"]
    assert [one["metric"]["name"] for one in calibration["metrics"]] == ["command.rate"]
    [noise] = [one["noise"] for one in calibration["metrics"]]
    assert 0.0003 < noise["within"] + noise["between"] < 0.003, noise
    assert calibration["comparisons"] >= 2
    assert "a command" in done.json["unwritten"]
    assert "a command" in done.json["throttle"]
    shown = CliRunner().invoke(calibrate_command, ["--workload", str(file), "--", "--rw=read"])
    assert "an option of fio is not of a command" in str(shown.exception)
    target = resolve(LocalMachine(), str(tmp_path))
    [quoted] = calibrations_for(LocalMachine(), target, load(file))
    assert quoted.workload == "bench.py", "the next run of this file quotes it"
