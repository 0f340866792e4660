"""What Perfherder and LNT take, by their published formats: Treeherder's schemas/performance-artifact.json, and the
"LNT Report File Format" with the metrics of the suite NTS."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from nights import filled, having, night, opened

from iodelta.cli.main import cli
from iodelta.errors import RequestError
from iodelta.history.importing import nights_of
from iodelta.history.log import Given
from iodelta.history.points import Point
from iodelta.history.services import bmf, lnt, perfherder
from iodelta.history.store import Line

LONG = "x" * 300
HOSTILE = 'say "4k"\n\0<b>\x1b[31m é 中'
COLUMNS = ("time", "machine", "cell", "variant", "metric", "value", "unit", "better", "build", "commit")
ROWS: list[tuple[object, ...]] = [
    ("2026-01-01", "stor3", "randread 4k", "new", "read.iops", 1e5, "", "", "v1", "a" * 40),
    ("2026-01-02", "stor3", "randread 4k", "new", "read.iops", 1.1e5, "", "", "v2", "b" * 40),
    ("2026-01-02", "stor3", "randread 4k", "new", "read.lat.mean", 81234.5, "", "", "v2", "b" * 40),
    ("2026-01-02", "stor3", "randread 4k", "old", "read.lat.mean", 91234.5, "", "", "v2", "b" * 40),
    ("2026-01-02", "stor3", "randread 4k", "new", "instructions", 6800, "", "", "v2", "b" * 40),
    ("2026-01-02", "stor3", LONG + "a", "new", "read.iops", 1, "", "", "v2", "b" * 40),
    ("2026-01-02", "stor3", LONG + "b", "new", "read.iops", 2, "", "", "v2", "b" * 40),
    ("2026-01-02", "stor3", HOSTILE, LONG, "odd", 1e299, "u" * 40, "higher", "v2", "b" * 40),
    ("2026-01-02", "stor3", HOSTILE, "", "odd", 3.0, "u" * 40, "higher", "v2", "b" * 40),
]


def text(least: int, most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most, "pattern": r"^[^\0]*$"}


SUBTEST = {
    "required": ["name", "value"],
    "properties": {
        "name": text(0, 80),
        "value": {"type": "number", "minimum": -1e12, "maximum": 1e12},
        "unit": text(1, 20),
        "lowerIsBetter": {"type": "boolean"},
    },
    "additionalProperties": False,
}
OPTIONS = {"type": "array", "uniqueItems": True, "maxItems": 8, "items": text(0, 100)}
PERFHERDER = {
    "required": ["framework", "suites"],
    "properties": {
        "framework": {"properties": {"name": {"type": "string"}}},
        "suites": {
            "items": {
                "required": ["name", "subtests"],
                "properties": {
                    "name": text(0, 80),
                    "extraOptions": OPTIONS,
                    "subtests": {"items": SUBTEST, "minItems": 1},
                },
                "additionalProperties": False,
            }
        },
    },
    "additionalProperties": False,
}
MOMENT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$"}
NUMBER = {"type": "number"}
LNT = {
    "required": ["format_version", "machine", "run", "tests"],
    "properties": {
        "format_version": {"const": "2"},
        "machine": {"required": ["name"], "additionalProperties": text(0, 256)},
        "run": {
            "required": ["start_time", "end_time", "llvm_project_revision"],
            "properties": {"start_time": MOMENT, "end_time": MOMENT},
            "additionalProperties": text(1, 256),
        },
        "tests": {
            "items": {
                "required": ["name"],
                "properties": {"name": text(1, 256), "execution_time": NUMBER, "score": NUMBER},
                "additionalProperties": False,
            }
        },
    },
    "additionalProperties": False,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    imported(ROWS)
    return tmp_path


def imported(rows: list[tuple[object, ...]]) -> None:
    import polars as pl

    names = [dict(zip(COLUMNS, map(str, row), strict=True)) for row in rows]
    file = f"{len(list(Path().glob('*.parquet')))}.parquet"
    pl.DataFrame(names).write_parquet(file)
    assert iodelta("import", file, "--from", "parquet").exit_code == 0


def iodelta(*words: str) -> Result:
    return CliRunner().invoke(cli, ["history", *words])


def exported(kind: str, *words: str) -> tuple[Any, str]:
    """The document, and what was said of what it lacks."""
    done = iodelta("export", "--to", kind, *words)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), done.stderr


def points(document: object, kind: str, **given: Any) -> dict[tuple[str, str, str], Point]:
    """What the importer reads, by cell, variant and measure."""
    Path("again.json").write_text(json.dumps(document))
    (night,) = nights_of(Path("again.json"), Given(format=kind, **given))
    assert not night.left_out
    return {(point.cell, point.variant, point.key.metric): point for point in night.points}


def test_perfherder_gets_valid_suites_that_come_back_with_the_same_numbers(place: Path) -> None:
    document, said = exported("perfherder")
    Draft202012Validator(PERFHERDER).validate(document)
    assert said.count("left out: ") == 1
    assert "Perfherder takes values up to 1e12" in said
    assert "\x1b" not in said
    again = points(document, "perfherder", machine="stor3", at=1.0)
    assert len(again) == len(ROWS) - 2  # the older night, and the value that is too large
    reads = again["randread 4k read.iops", "foreign new stor3", "value"]
    assert math.exp(reads.y) == pytest.approx(1.1e5)
    assert (reads.better, reads.unit) == ("higher", "IOPS")
    slow = again["randread 4k read.lat.mean", "foreign old stor3", "value"]
    assert math.exp(slow.y) == pytest.approx(91234.5)
    assert (slow.better, slow.unit) == ("lower", "ns")
    long = [math.exp(point.y) for (cell, *_), point in again.items() if cell.startswith("xxx")]
    assert sorted(long) == pytest.approx([1, 2])  # two names that differ after their 80th letter stay two


def test_lnt_gets_the_newest_run_of_a_machine_in_metrics_that_its_suite_has(place: Path) -> None:
    document, said = exported("lnt")
    Draft202012Validator(LNT).validate(document)
    assert said == (
        "left out: randread 4k new foreign instructions: LNT's suite has no metric that is better when lower, "
        "in instructions\n"
    )
    assert document["run"]["start_time"] == "2026-01-02T00:00:00"
    again = points(document, "lnt")
    assert len(again) == len(ROWS) - 2
    reads = again["randread 4k new foreign read.iops", "", "score"]
    assert math.exp(reads.y) == pytest.approx(1.1e5)
    assert reads.better == "higher"
    assert math.exp(again["randread 4k old foreign read.lat.mean", "", "execution_time"].y) == pytest.approx(91234.5e-9)
    (night,) = nights_of(Path("again.json"), Given(format="lnt"))
    assert (night.machine, night.t) == ("stor3", 1767312000.0)
    assert (night.subject.describe, night.subject.commit) == ("v2", "b" * 40)


def test_a_report_is_of_one_machine_and_of_one_experiment(place: Path) -> None:
    imported([("2026-01-03", "stor4", "seq", "new", "read.iops", 7, "", "", "", "")])
    refused = iodelta("export", "--to", "lnt")
    assert isinstance(refused.exception, RequestError)
    assert refused.exception.remedy == "name one with --machine, such as stor3"
    document, _ = exported("lnt", "--machine", "stor4")
    assert [test["score"] for test in document["tests"]] == pytest.approx([7])
    # LNT refuses a run without an order.
    assert document["run"]["llvm_project_revision"] == "2026-01-03T00:00:00"
    imported([("2026-01-04", "stor3", "seq", "new", "read.iops", 8, "", "", "v3", "")])
    document, said = exported("lnt", "--machine", "stor3")
    assert len(document["tests"]) == 1
    assert said.count(": not in the newest experiment\n") == len(ROWS) - 1
    assert len(exported("perfherder", "--machine", "stor4")[0]["suites"]) == 1
    for words in (("perfherder", "--machine", "none"), ("delta", "--machine", "stor3")):
        assert isinstance(iodelta("export", "lake", "--to", *words).exception, RequestError)


@pytest.mark.parametrize("kind", ["perfherder", "lnt", "bmf"])
def test_two_series_of_one_name_stay_two_and_the_older_keeps_it(tmp_path: Path, kind: str) -> None:
    """Series of one cell's name, whose fio options differ."""

    def names() -> list[str]:
        document = made[kind](store.lines())
        return sorted(set(re.findall(r'"((?:stor3 )?randread[^"]*)"', json.dumps(document))))

    made: dict[str, Callable[[list[Line]], object]] = {"perfherder": perfherder, "lnt": lnt, "bmf": bmf}
    store = opened(tmp_path)
    store.add(night(1))
    (before,) = names()
    (point,) = night(1).points
    other = replace(point, key=replace(point.key, options=(("tool", "fio"), ("bs", "8k"), ("rw", "randread"))))
    store.add(replace(night(2), points=(replace(point, y=1.0), other)))
    after = names()
    store.close()
    assert len(after) == 2
    assert (after[0], after[1].startswith(f"{before} #")) == (before, True)


@pytest.mark.parametrize("error", ["1e6", "nan", "inf", "-0.1"])
def test_an_error_that_is_no_share_is_left_out_with_a_reason(place: Path, error: str) -> None:
    table = f"time,machine,cell,metric,value,error\n2026-01-01,m,c,read.iops,5,{error}\n2026-01-01,m,d,read.iops,5,1\n"
    Path("t.csv").write_text(f"{table}2026-01-01,m,e,read.iops,1.7e308,0.1\n")
    done = iodelta("import", "t.csv", "--from", "csv", "--history", "other")
    assert (done.exit_code, "added: t.csv, 1 point" in done.output) == (0, True)
    assert "c, read.iops: its error is not a share of the value from 0 to 1" in done.output
    assert "e, read.iops: a value above 1e+300 is not a measurement" in done.output
    assert iodelta("show", "-o", "page.html", "--history", "other").exit_code == 0


def test_a_bound_that_is_no_number_is_left_out_of_bencher(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add(having(night(1), se=1e6))
    (measures,) = bmf(store.lines()).values()
    store.close()
    assert measures["read.iops"].keys() == {"value", "lower_value"}


def test_a_placebo_is_compared_with_its_own_build_and_says_so(place: Path) -> None:
    filled(place / "iodelta-history", [having(night(1), variant="placebo")])
    lines = iodelta("show").output.splitlines()
    assert [line.rpartition(" against the ")[2] for line in lines if "placebo" in line] == ["baseline"]
