"""A number of a command is in the unit that the experiment declares, wherever it is shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta import api
from iodelta.cli.main import cli

EXPERIMENT = """
[target]
path = "none"
[workload]
command = ["printf", "took {took} s, 2.5 GB/s\\n"]
only_reads = true
[metric.took]
pattern = 'took ([0-9.]+) (?P<unit>s)'
unit = "ms"
better = "lower"
[metric.rate]
pattern = '([0-9.]+) (?P<unit>GB/s)'
unit = "MB/s"
better = "higher"
[variant.a]
"workload.took" = "1.500"
[variant.b]
"workload.took" = "1.525"
[design]
blocks = 2
trial = "0.2s"
"""


def test_the_declared_unit_is_the_unit_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    (tmp_path / "x.toml").write_text(EXPERIMENT)
    shown = CliRunner().invoke(cli, ["run", "x.toml", "--folder", "x", "--fail-on", "nothing"])
    assert shown.exit_code == 0, shown.output
    assert all(text in shown.output for text in ("took (ms)", "1,500", "1,525", "rate (MB/s)", "2,500")), shown.output

    result = api.open("x")
    trials = result.trials().filter(result.trials()["variant"] == "b")
    assert trials["measured.took"].to_list() == pytest.approx([1525.0] * len(trials))
    assert trials["measured.rate"].to_list() == pytest.approx([2500.0] * len(trials))
    values = {verdict.metric.name: (verdict.metric.unit, verdict.variant_value) for verdict in result.verdicts}
    assert [unit for unit, _ in values.values()] == ["ms", "MB/s"]
    assert [value for _, value in values.values()] == pytest.approx([1525.0, 2500.0])
    rows = {row["metric.name"]: row for row in csv.DictReader(result.report("csv").splitlines())}
    took = rows["command.took"]
    assert took["metric.unit"] == "ms"
    assert float(took["variant_value"]) == pytest.approx(1525.0)
    bmf = json.dumps(json.loads(result.report("bmf")))
    assert "1525.0" in bmf
    assert "1525000" not in bmf
