"""Counts in messages: one block is never "1 blocks"."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import iodelta
from iodelta.plural import plural

SOURCE = Path(iodelta.__file__).parent

NOUNS = (
    "trials blocks looks experiments cells comparisons variants hosts boots regressions improvements findings nights"
    " rows files metrics runs pairs samples builds devices errors warnings commits patches replays batches statements"
    " visits items kernels lines sessions things places"
).split()
COUNTED = re.compile(rf" (?:more |fresh )?({'|'.join(NOUNS)})\b")

NO_COUNTS = {
    "jobfile.py: name",
    "knob/kernel.py: _uname(machine)[0]",
    "knob/kernel.py: build",
    "knob/kernel.py: original.release",
    "knob/kernel.py: release",
    "knob/kernel.py: self.way.name",
    "lab/guests.py: release",
    "report/stories/experiment.py: inert(name)",
    "verdict/modes.py: name",
}
"""Names before a verb: "6.12 runs", "grub boots an entry"."""

NEVER_ONE = {
    "audit/rules/groups.py: len(rows)",
    "audit/rules/steady.py: share",  # "3 of 4"
    "bisect/counted.py: attempt",
    "probe/devices.py: len(names)",
    "probe/topology.py: len(devices)",
    "report/formats/charts/fleet.py: len(row.hosts)",
    "report/stories/advice.py: len(called)",
    "report/stories/evidence.py: open_",
    "report/stories/fleet.py: total",
    "report/stories/reproduction.py: count",
    "report/stories/reproduction.py: total",
    "report/stories/search.py: culprit.runs",
    "scenarios/policy_tables.py: _blocks(by_arm.values())",  # "9 to 12"
    "scenarios/policy_tables.py: len(rates)",
    "vm/builds.py: done",
    "workload/readings.py: len(matches)",
}
"""Counts that are two or more where they are printed, or ranges."""


def bare_counts(path: Path) -> Iterator[str]:
    """Values of f-strings that a plural noun follows, but for constants and numbers with a format of their own."""
    name = path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else path.name
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        values = node.values if isinstance(node, ast.JoinedStr) else []
        for value, after in itertools.pairwise(values):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            constant = isinstance(value.value, ast.Name) and value.value.id.isupper()
            if COUNTED.match(str(after.value)) and value.format_spec is None and not constant:
                yield f"{name}: {ast.unparse(value.value)}"


def test_every_count_with_a_noun_agrees_with_it() -> None:
    found = {place for path in SOURCE.rglob("*.py") for place in bare_counts(path)}
    assert found - NO_COUNTS - NEVER_ONE == set(), "write plural(count, noun)"


def test_the_check_sees_a_bare_count(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text("f'{len(found)} blocks, {FEW} trials, {share:.2f} runs, {n} more cells'", "utf-8")
    assert [place.split(": ")[1] for place in bare_counts(sample)] == ["len(found)", "n"]


def test_one_has_no_s_and_every_other_count_has() -> None:
    assert [plural(count, "more block") for count in (0, 1, 2)] == ["0 more blocks", "1 more block", "2 more blocks"]
