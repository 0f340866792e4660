"""Any command as a workload: its file, its cells, what it may write, and what a stranger is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.bundle.dangers import dangers
from iodelta.bundle.planning import checked
from iodelta.errors import RefusedError, RequestError
from iodelta.experiment import Experiment, parse
from iodelta.experiment.command import called, filled, gaps, placed
from iodelta.experiment.model import Command
from iodelta.history.points import key_of
from iodelta.lab.guard import check_commands
from iodelta.lab.plan import carry_of, make_plan
from iodelta.lab.setup import any_writes
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

FILE = """
[workload]
command = ["dd", "if={target}", "of=/dev/null", "bs={bs}", "count={count}"]
reset = [["sync"], ["touch", "{target}"]]
bs = ["4k", "64k"]
count = 100
[metric.speed]
pattern = 's, ([0-9.]+) (?P<unit>[kMG]?B/s)'
unit = "MB/s"
better = "higher"
[variant.few]
[variant.many]
"workload.count" = "1000"
"""


def _with(text: str, to: str = "") -> Experiment:
    assert not text or text in FILE
    return parse(FILE.replace(text, to) if text else FILE + to)


def test_lists_are_cells_and_a_variant_sets_a_parameter() -> None:
    experiment = _with("")
    assert [cell.name for cell in experiment.cells] == ["bs=4k", "bs=64k"]
    assert experiment.cells[0].options == (("bs", "4k"), ("count", "100"))
    assert experiment.variant("many").options == (("count", "1000"),)
    assert experiment.cells[0].command == Command(
        ("dd", "if={target}", "of=/dev/null", "bs={bs}", "count={count}"), (), (("sync",), ("touch", "{target}"))
    )
    (metric,) = make_plan(experiment).rules.metrics
    assert (metric.name, metric.better, metric.unit) == ("command.speed", "higher", "MB/s")


def test_no_shell_reads_a_value_and_doubled_braces_are_text() -> None:
    assert filled(("a{x}b", "{{x}}", "{ x }"), {"x": "; rm -rf / $(y)"}) == ("a; rm -rf / $(y)b", "{x}", "{ x }")
    assert filled(("{x}",), {"x": "{y}", "y": "no"}) == ("{y}",), "a value is not filled in again"
    assert gaps(("{a}-{{b}}", '{"json": {"c": 1}}')) == {"a"}


def test_a_cell_is_called_after_the_program_or_the_script() -> None:
    assert called(Command(("/usr/bin/pgbench", "-T", "5"))) == "pgbench"
    assert called(Command(("python3.11", "-I", "/srv/bench.py", "x"))) == "bench.py"
    assert called(Command(("env", "A={a}", "python3", "-c", "for n in range(9): str(n)"))) == "env"
    assert called(Command(("env", "-C", "/srv/data", "A={a}", "sysbench", "fileio", "run"))) == "sysbench"


def test_the_file_can_name_its_own_directory(tmp_path: Path) -> None:
    assert placed('command = ["{here}/x"]', tmp_path) == f'command = ["{tmp_path}/x"]'
    with pytest.raises(RequestError, match="special character"):
        placed("{here}", tmp_path / 'a"b')


@pytest.mark.parametrize(
    ("text", "to", "why"),
    [
        ('["dd", "if={target}", "of=/dev/null", "bs={bs}", "count={count}"]', '"dd if=x"', "list of words"),
        ('"count={count}"', '"count={coutn}"', "{coutn} has no value in cell bs=4k, variant few"),
        ("count = 100", "count = 100\nother = 1", "the parameter other does not stand in the command"),
        ("count = 100", "target = 1", "'target' cannot be the name of a parameter"),
        ("count = 100", "count = 100\ntimeout = 'soon'", "not a valid duration"),
        ("count = 100", "count = 100\nonly_reads = 3", "only_reads is true or false"),
        ("[metric.speed]", "[metric.wall]", "'wall' cannot be the name of a metric"),
        ("([0-9.]+)", "[0-9.]+", "pattern has 0 groups, and the number is one"),
        ("([0-9.]+)", "(", "not a regular expression"),
        ('better = "higher"', 'better = "more"', "better must be"),
        ('unit = "MB/s"', "", "unit is missing"),
        ("[variant.few]", "[instrument]\nperf = true\n[variant.few]", "this is of fio's trials"),
        ("[variant.few]", "[variant.few]\nkernel = '/boot/vmlinuz'", "a command is measured within one boot"),
        ("[variant.few]", "[design]\nmetrics = ['read.iops']\n[variant.few]", "unknown metric 'read.iops'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(text: str, to: str, why: str) -> None:
    with pytest.raises(RequestError) as refused:
        make_plan(_with(text, to))
    assert why in refused.value.what


def test_a_metric_without_a_command_is_refused() -> None:
    with pytest.raises(RequestError, match="is of a command"):
        parse("[workload]\nrw='read'\n[metric.x]\nlast_line=true\nunit='s'\nbetter='lower'\n[variant.a]\n[variant.b]")


def test_what_nobody_can_see_it_write_needs_a_word(tmp_path: Path) -> None:
    experiment = _with("")
    with pytest.raises(RefusedError, match="may write anywhere") as refused:
        check_commands(experiment, allowed=False)
    assert "--allow-commands" in refused.value.remedy
    check_commands(experiment, allowed=True)
    reads = _with("count = 100", "count = 100\nonly_reads = true")
    check_commands(reads, allowed=False)
    file = tmp_path / "file"
    file.touch()
    target = resolve(LocalMachine(), str(file))
    assert any_writes(experiment, target), "a target that it is given needs --destroy"
    assert not any_writes(reads, target)


def test_what_a_command_leaves_is_not_known_unless_it_is_reset() -> None:
    assert carry_of(_with("")) == "tested"
    assert carry_of(_with('reset = [["sync"], ["touch", "{target}"]]')) == "superblocks"


def test_a_stranger_is_shown_every_command_with_its_values() -> None:
    experiment = checked(_with(""), "theirs")
    shown = [one.what for one in dangers(experiment)]
    assert "dd 'if={target}' of=/dev/null bs=64k count=1000" in shown
    assert "touch '{target}'" in shown
    reads = _with("count = 100", "count = 100\nonly_reads = true")
    assert dangers(reads), "what a stranger says of a command is no consent"


def test_two_commands_are_two_series_of_a_history() -> None:
    one, other = _with(""), _with('"of=/dev/null"', '"of=/dev/zero"')
    (metric,) = make_plan(one).rules.metrics
    keys = {key_of(each, each.cells[0], each.variants[0], metric, "m", "file").number for each in (one, other)}
    assert len(keys) == 2
