"""A plan is told in every form, as every other result: what it says on a terminal it says in each."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.part import documents, kinds
from iodelta.report.stories.plan import holding

RUN = (
    "run",
    "--dry-run",
    "--size",
    "1m",
    "--variant",
    "one",
    "--variant",
    "two:fio.nice=1",
    "--seed",
    "7",
    "--question",
    "Is it?",
)
SEARCH = ("bisect", "--dry-run", "--item", "first", "--item", "middle", "--item", "last", "--better", "higher")
PREPARE = ("prepare", "disk.img", "--destroy", "disk.img", "--dry-run", "--round", "1s")
FIO = ("--", "--rw=randread", "--ioengine=libaio", "--iodepth=1,2", "--direct=0")

PLANS = {
    "run": (RUN, FIO, ("Is it?", "iodepth=1, iodepth=2", "one (baseline), two", "the scratch file", "--rw=randread")),
    "search": (SEARCH, ("--measure", "echo 1"), ("first", "middle", "last")),
    "scenario": (("scenario", "run", "queue-depth-sweep", "--dry-run"), (), ("Makes", "Space", "Variants", "Order")),
    "prepare": (PREPARE, (), ("disk.img", "2 MiB in sequence", "at most 25 s", "everything on it will be overwri")),
}
ROWS = {"run": 4, "search": 3, "scenario": 2, "prepare": 1}
"""Rows of data that the CSV has at least: the trials of a round, the candidates, the steps."""


def test_every_plan_has_a_story() -> None:
    plans = {document.struct for document in documents().values() if document.struct.endswith("PlanAnswer")}
    assert plans <= set(kinds()), "a plan that only its own command can print"


@pytest.mark.parametrize(
    "holds", ["all zero in 64 sampled places", "an empty file", "signature: qcow2", "it cannot be read: I/O error"]
)
def test_what_a_target_contains_is_said_without_a_conclusion_from_the_places_that_were_read(holds: str) -> None:
    """Zeros are not "lost", and what could not be read is not known to be: another line says what is overwritten."""
    assert holding(holds, "/dev/x", "") == holds
    assert holding(holds, "/dev/x", "refused") == f"{holds}; only --destroy /dev/x lets it be overwritten"


@pytest.mark.fio
@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_says_the_same_in_every_format(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, fio, expected = PLANS[kind]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk.img").write_bytes(b"records " * (1 << 17))
    before = sorted(os.listdir())
    told = {}
    for format_ in ("console", "mail", "markdown", "html", "csv", "json"):
        done = CliRunner().invoke(cli, [*words, "--format", format_, *fio])
        assert done.exit_code in (0, 4), done.output  # 4: something that a scenario needs is missing here
        told[format_] = done.stdout
    for format_ in ("console", "mail", "markdown", "html"):
        text = " ".join(html.unescape(re.sub(r"<[^>]+>|\\(?=\W)", "", told[format_])).replace("\u00a0", " ").split())
        assert [part for part in expected if part not in text] == [], format_
    rows = list(csv.DictReader(io.StringIO(told["csv"])))
    assert len(rows) >= ROWS[kind]
    assert {row["schema"] for row in rows} == {json.loads(told["json"])["schema"].replace("/", ".csv/")}
    assert sorted(os.listdir()) == before, "a plan changes nothing"


@pytest.mark.fio
def test_the_rows_of_a_plan_are_the_order_of_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(CliRunner().invoke(cli, [*RUN, "--format", "json", *FIO]).stdout)
    rows = csv.DictReader(io.StringIO(CliRunner().invoke(cli, [*RUN, "--format", "csv", *FIO]).stdout))
    planned = [
        (str(number), slot["cell"], " ".join(slot["order"]))
        for number, round_ in enumerate(document["plan"]["schedule"]["rounds"], 1)
        for slot in round_
    ]
    assert [(row["number"], row["cell"], row["order"]) for row in rows] == planned
