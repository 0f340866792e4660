"""The command line as a user meets it: help, wrong words, exit codes, plans that touch nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fio_files import write
from waiting import LIMIT

from iodelta.cli.main import cli
from iodelta.knob.memory import COUNTERS
from iodelta.part import commands

IODELTA = Path(sys.executable).with_name("iodelta")
ENGINES = ("--variant", "a:fio.ioengine=libaio", "--variant", "b:fio.ioengine=io_uring")
READS = ("--", "--rw=randread", "--bs=4k", "--ioengine=libaio", "--iodepth=1,2")


def iodelta(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([IODELTA, *words], cwd=cwd, capture_output=True, text=True, timeout=LIMIT)


def modules_of(*words: str, cwd: Path) -> set[str]:
    """What the command imports on a machine without calibrations: a plan quotes them, which takes scipy."""
    code = "from iodelta.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *words],
        cwd=cwd,
        env={**os.environ, "IODELTA_STATE": str(cwd / "state")},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert "import time:" in ran.stderr, ran
    lines = [line for line in ran.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def subcommands() -> Iterator[tuple[str, ...]]:
    """Every command line that has a ``--help``."""
    yield ()
    for name in commands():
        yield (name,)
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            yield from ((name, inner) for inner in command.commands)


@pytest.mark.parametrize("words", [*subcommands()], ids=" ".join)
def test_help_imports_nothing_heavy(words: tuple[str, ...], tmp_path: Path) -> None:
    modules = modules_of(*words, "--help", cwd=tmp_path)
    assert "iodelta.cli.main" in modules
    heavy = {"numpy", "scipy", "polars", "altair", "vl_convert", "jinja2", "iodelta.lab.plan", "iodelta.knob.registry"}
    assert not modules & heavy
    assert words or not modules & {"rich", "msgspec", "asyncio"}


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--dry-run", *ENGINES, *READS],
        ["run", "--dry-run", "--format", "json", *ENGINES, *READS],
        ["run", *ENGINES, "--", "rw=read"],
        ["run", "--variant", "a:block.schedular=none", "--variant", "b", *READS],
        ["run", *ENGINES, "--target", "/nonexistent", *READS],
        ["run", "nosuch.toml"],
        ["run", "--targte", "/dev/sdb"],
        ["rnu"],
    ],
    ids=" ".join,
)
def test_a_dry_run_and_a_typo_do_not_wait_for_scipy(words: list[str], tmp_path: Path) -> None:
    assert not modules_of(*words, cwd=tmp_path) & {"scipy", "polars", "altair", "vl_convert"}


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_with_examples(name: str, tmp_path: Path) -> None:
    said = iodelta(name, "--help", cwd=tmp_path)
    assert said.returncode == 0
    assert f"iodelta {name}" in said.stdout.partition("Examples:")[2]


def test_a_variant_whose_knob_cannot_be_set_is_left_out_when_that_is_asked_for(tmp_path: Path) -> None:
    variants = ("--variant", "a:cpus=0", "--variant", "b:cpus=99999", "--target", str(tmp_path), "--size", "1m")
    said = iodelta("run", "--dry-run", *variants, *READS, cwd=tmp_path)
    assert (said.returncode, "'99999' cannot be set" in said.stderr) == (2, True), said
    said = iodelta("run", "--dry-run", "--leave-out", *variants, *READS, cwd=tmp_path)
    assert said.returncode == 0, said
    assert "left out: b: cpus: '99999' cannot be set" in said.stderr
    assert "a (baseline), a-again" in said.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rnu"], "run"),
        (["policy", "simulat"], "Did you mean 'simulate'?"),
        (["run", "nosuch.toml"], "nosuch.toml"),
        (["run"], "fio options after --"),
        (["run", *ENGINES, "--", "rw=read"], "'rw=read' is not a fio option"),
        (["run", "--variant", "a:block.schedular=none", "--variant", "b", *READS], "block.scheduler"),
        (["run", *ENGINES, "--target", "/nonexistent", *READS], "/nonexistent"),
        (["run", *ENGINES, "--target", "/dev/null", *READS], "/dev/null"),
        (["run", *ENGINES, *READS, "--exec_prerun=reboot"], "exec_prerun"),
        (["run", *ENGINES, *READS, "--mem=mmap:x"], "mem=mmap:x makes that file"),
        (
            ["run", "--variant", "a:fio.ioengine=rbd", "--variant", "b", *READS],
            "ioengine=rbd is not known to keep to the target",
        ),
        (["run", "--variant", "a:fio.ioengin=external:/x", "--variant", "b", *READS], "write the name in full"),
        (["report", "."], "not an experiment folder"),
        (["env", "."], "not an experiment folder"),
    ],
)
def test_a_wrong_request_is_one_message_and_exit_code_2(words: list[str], expected: str, tmp_path: Path) -> None:
    said = iodelta(*words, cwd=tmp_path)
    assert said.returncode == 2
    assert expected in said.stderr
    assert "Traceback" not in said.stderr
    assert not list(tmp_path.iterdir())  # nothing was begun


def test_an_error_that_quotes_a_stranger_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    said = iodelta("report", "./\x1b]0;gone\x07\x9b2J", cwd=tmp_path)
    assert said.returncode == 2
    assert "\\x1b]0;gone\\x07\\x9b2J: " in said.stderr
    assert "\x1b" not in said.stderr
    assert len(said.stderr.splitlines()) == 2  # what it is, and what to do


QUESTION = """[workload]
rw = "randread"
[variant.a]
"fio.ioengine" = "psync"
[variant.b]
"fio.ioengine" = "sync"
[condition.busy]
background = {rw = "randread", bs = "1m"%s}
"""


@pytest.mark.fio
@pytest.mark.parametrize("format_", ["console", "json"])
def test_a_dry_run_of_a_write_says_what_the_guard_would_say_to_the_run(format_: str, tmp_path: Path) -> None:
    """It said "refused unless --destroy" with --destroy too, and ended with 0 either way."""
    data, other, folder = tmp_path / "db.img", tmp_path / "other.img", tmp_path / "folder"
    for path in (data, other):
        path.write_bytes(b"records " * 4096)
    given = (
        "--target",
        str(data),
        "--variant",
        "a",
        "--variant",
        "b:fio.nice=1",
        "--folder",
        str(folder),
        "--format",
        format_,
    )
    load = ("--", "--rw=randwrite", "--bs=4k", "--direct=0", "--ioengine=psync")
    for consent in ((), ("--destroy", str(other))):
        planned = iodelta("run", *given, *consent, "--dry-run", *load, cwd=tmp_path)
        done = iodelta("run", *given, *consent, *load, cwd=tmp_path)
        assert (planned.returncode, done.returncode) == (2, 2), planned
        assert planned.stderr == done.stderr
        assert "--destroy" in done.stderr
        assert "overwritten" not in planned.stdout.split("Holds")[0] + done.stdout
        if format_ == "json":
            assert json.loads(planned.stdout)["refused"] in " ".join(done.stderr.split())
        else:
            assert f"Writes refused: {data}: was not made by iodelta" in " ".join(planned.stdout.split())
    planned = iodelta("run", *given, "--destroy", str(data), "--dry-run", *load, cwd=tmp_path)
    assert planned.returncode == 0, planned
    if format_ == "json":
        assert json.loads(planned.stdout)["refused"] == ""
    else:
        assert f"Writes YES: {data} will be overwritten" in " ".join(planned.stdout.split())
        assert "refused" not in planned.stdout
    assert data.read_bytes() == b"records " * 4096
    assert not folder.exists()


def test_a_fio_load_is_among_the_commands_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(QUESTION % "")
    said = iodelta("run", "--dry-run", "x.toml", "--size", "64m", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "Command   fio --rw=randread --bs=1m" in said.stdout


def test_a_knob_of_commands_is_planned_as_command_lines_and_once(tmp_path: Path) -> None:
    off = '{ apply = ["sh", "-c", "echo 0 > limit"], restore = ["rm", "-f", "limit"] }'
    (tmp_path / "x.toml").write_text(f'[workload]\nrw = "randread"\n[variant.a]\n[variant.b]\ncommand = {off}\n')
    said = iodelta("run", "--dry-run", "x.toml", "--size", "64m", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    words = " ".join(said.stdout.split())
    assert words.count("apply: sh -c 'echo 0 > limit', restore: rm -f limit") == 1
    assert '"apply"' not in words


@pytest.mark.fio
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*ENGINES, "--", "--rw=randraed"), ("cell", "failed parsing rw=randraed", "randread")),
        ((*ENGINES, "--", "--rw=randread", "--iodepth=1,x2"), ("cell iodepth=x2", "failed parsing iodepth=x2")),
        (
            ("--variant", "a", "--variant", "b:fio.rwmixread=150", "--", "--rw=randread"),
            ("variant b", "max value out of range: 150 (100 max)"),
        ),
    ],
)
def test_options_that_fio_refuses_are_refused_in_the_plan_with_its_own_words(
    words: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    """A cell that fio cannot run failed four times, and "1 of 1 cells decided" was said of it."""
    for dry in (["--dry-run"], []):
        said = iodelta("run", *dry, "--size", "64m", "--budget", "60s", *words, cwd=tmp_path)
        assert said.returncode == 2, said
        assert "fio does not accept these options" in said.stderr
        assert all(part in said.stderr for part in expected), said.stderr
        assert "Writes" not in said.stdout
        assert not list(tmp_path.iterdir())


@pytest.mark.fio
def test_a_load_that_fio_refuses_is_refused_in_the_plan(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(QUESTION % ', iodepth = "many"')
    said = iodelta("run", "--dry-run", "x.toml", "--size", "64m", cwd=tmp_path)
    assert said.returncode == 2
    assert "condition busy" in said.stderr
    assert "failed parsing iodepth=many" in said.stderr


def test_a_fio_load_of_another_disk_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"precious")
    (tmp_path / "x.toml").write_text(QUESTION % f', filename = "{tmp_path}/data", size = "1m"')
    for dry in (["--dry-run"], []):
        said = iodelta("run", *dry, "x.toml", "--size", "64m", cwd=tmp_path)
        assert said.returncode == 2
        assert "condition busy: fio option filename" in said.stderr
        assert "make the load a command" in said.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "x.toml"]
    assert (tmp_path / "data").read_bytes() == b"precious"


def test_the_same_seed_plans_the_same_order(tmp_path: Path) -> None:
    words = ("run", "--dry-run", "--size", "64m", "--seed", "7", *ENGINES, *READS)
    assert iodelta(*words, cwd=tmp_path).stdout == iodelta(*words, cwd=tmp_path).stdout


def test_knobs_says_of_each_what_it_may_be_or_why_it_cannot_be_set(tmp_path: Path) -> None:
    listed = json.loads(iodelta("knobs", "--format", "json", cwd=tmp_path).stdout)
    by_name = {knob["name"]: knob for knob in listed["knobs"]}
    for name in ("block.scheduler", "btrfs.read_policy", "cpu.governor", "cgroup.io_max", "cpus"):
        assert by_name[name]["reason"] or by_name[name]["allowed"]


@pytest.mark.fio
def test_a_run_ends_with_a_verdict_a_folder_and_an_exit_code(tmp_path: Path) -> None:
    options = ("--size", "16m", "--trial", "300ms", "--ramp", "0", "--blocks", "6", "--budget", "10m", "--folder", "x")
    said = iodelta("run", *options, *ENGINES, "--", "--rw=read", "--bs=64k", cwd=tmp_path)
    assert said.returncode in (0, 1, 3), said.stderr
    assert "b " in said.stdout
    wide = [line for line in said.stdout.splitlines() if len(line) > 80]
    assert all(len(line.split()) == 1 for line in wide), "a path alone may be longer"
    verdict = json.loads((tmp_path / "x/verdict.json").read_text())
    assert verdict["schema"] == "iodelta.verdict/1"
    assert {v["word"] for v in verdict["account"]["judgement"]["verdicts"]} <= {
        "regression",
        "improvement",
        "equivalent",
        "inconclusive",
    }
    again = iodelta("report", "x", "--format", "json", cwd=tmp_path)
    assert json.loads(again.stdout)["headline"] == verdict["headline"]
    assert again.returncode == 0
    assert iodelta("report", "x", "--exit-code", cwd=tmp_path).returncode == said.returncode
    assert not (tmp_path / "iodelta-scratch").exists()


def completed(line: str, cwd: Path) -> list[str]:
    """What bash offers for the last word of ``line``, with colons and equals signs left whole."""
    words = {"_IODELTA_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    ran = subprocess.run([IODELTA], cwd=cwd, env={**os.environ, **words}, capture_output=True, text=True, timeout=LIMIT)
    assert ran.stderr == ""
    return [offered.partition(",")[2] for offered in ran.stdout.splitlines() if offered]


def test_a_shell_completes_scenarios_knobs_and_their_values(tmp_path: Path) -> None:
    assert completed("iodelta scenario show queue-d", tmp_path) == ["queue-depth-sweep"]
    listed = iodelta("knobs", "--format", "json", cwd=tmp_path)
    settable = [info["name"] for info in json.loads(listed.stdout)["knobs"] if not info["reason"]]
    assert settable
    name = next(name for name in settable if name.islower())
    assert "a:sysctl." in completed("iodelta run --variant a:sys", tmp_path)
    assert f"a:x=1,{name}=" in completed(f"iodelta run --variant a:x=1,{name[:3]}", tmp_path)
    assert completed("iodelta run --variant a", tmp_path) == []
    assert completed("iodelta run --target /nonexistent --variant a:b", tmp_path) == []
    assert completed("iodelta run --variant a:no.such=", tmp_path) == []
    assert completed("iodelta run iodelta-2", tmp_path) == ["iodelta-2"], "the shell lists files itself"


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"COMP_WORDS": "iodelta run"},
        {"COMP_WORDS": "iodelta run", "COMP_CWORD": "x"},
        {"_IODELTA_COMPLETE": "what"},
    ],
)
def test_a_completion_that_goes_wrong_prints_nothing(words: dict[str, str], tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMP_")}
    environment |= {"_IODELTA_COMPLETE": "bash_complete", **words}
    ran = subprocess.run([IODELTA], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert (ran.stdout, ran.stderr) == ("", "")


def test_a_shell_completes_the_values_that_a_knob_takes_here(tmp_path: Path) -> None:
    assert completed("iodelta run --variant a:memory.drop_caches=", tmp_path) == [
        f"a:memory.drop_caches={value}" for value in COUNTERS
    ]


def each_option() -> Iterator[tuple[str, click.Option]]:
    """Every option of every command that has a declaration, with the words that call the command."""
    for words in subcommands():
        command: click.Command | None = cli
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None
        yield from ((" ".join(words), one) for one in command.params if isinstance(one, click.Option))


@pytest.mark.parametrize("name", ["--force", "--folder", "--exit-code", "--wait", "--leave-out", "--name-pattern"])
def test_an_option_means_the_same_in_every_command(name: str) -> None:
    """`--force` was to overwrite a file, and to search in spite of noise; `--exit-code` had two sets of words."""
    helps = {option.help for _, option in each_option() if name in option.opts}
    assert len(helps) == 1


@pytest.mark.parametrize("name", ["--plan", "--each", "--all"])
def test_more_and_change_nothing_have_one_name_each(name: str) -> None:
    assert [where for where, option in each_option() if name in option.opts] == []


def test_no_form_of_an_option_is_only_text() -> None:
    free = {"--describe", "--why", "--question", "--only", "--remove"}
    assert {
        name for _, option in each_option() for name in option.opts if option.metavar == "TEXT" and not option.hidden
    } <= free


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (("show", "x.json", "--each"), "--each is now --verbose"),
        (("show", "x.json", "--exit-code"), "--exit-code is now --fail-on finding"),
        (("audit", "x.json", "--all"), "--all is now --verbose"),
        (
            ("bisect", "--plan", "--item", "1", "--item", "2", "--measure", "echo 1", "--better", "higher"),
            "--plan is now --dry-run",
        ),
    ],
    ids=lambda words: words[-1] if isinstance(words, tuple) else None,
)
def test_an_old_name_goes_on_working_and_says_the_new_one(words: tuple[str, ...], now: str, tmp_path: Path) -> None:
    write(tmp_path / "x.json")
    said = iodelta(*words, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert said.stderr.startswith(f"{now}; the old name goes with the next version\n")
