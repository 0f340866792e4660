"""What goes out as a table comes back with the same numbers; what others wrote is flagged, and guessed nowhere."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from nights import filled, having, key, night, opened

from iodelta.cli.main import cli
from iodelta.errors import RequestError
from iodelta.experiment import Subject
from iodelta.history.importing import nights_of
from iodelta.history.log import Given, Log
from iodelta.history.store import Line
from iodelta.report.documents import schema

THERE = Given("stor3", 1.7e9)
BMF = {
    "randread 4k": {
        "throughput": {"value": 5000.0, "lower_value": 4900.0},
        "latency": {"value": 2e5},
        "weirdness": {"value": 3.0},
        "throughput-lost": {"value": 0.0},
    }
}


def told(source: str, **more: object) -> Given:
    return Given("stor3", 1.7e9, format=source, **more)  # type: ignore[arg-type]


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a history of ten nights, five years and a year old."""
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "iodelta-history", map(night, range(10)))
    return tmp_path


def lines(place: Path) -> list[Line]:
    """All series of the history in that directory."""
    with contextlib.closing(opened(place)) as store:
        return store.lines()


def iodelta(*words: str) -> Result:
    return CliRunner().invoke(cli, ["history", *words])


def test_bencher_says_which_way_is_better_only_of_its_own_measures(tmp_path: Path) -> None:
    path = write(tmp_path / "bmf.json", BMF)
    (found,) = nights_of(path, told("bmf"))
    by = {point.key.metric: point for point in found.points}
    assert set(by) == {"throughput", "latency"}
    assert (by["throughput"].better, by["latency"].better) == ("higher", "lower")
    assert math.exp(by["throughput"].y) == pytest.approx(5000)
    assert by["throughput"].flags == ("foreign", "no-error")  # Bencher's bounds are of no stated kind
    assert "--better weirdness=higher" in found.left_out["randread 4k, weirdness"]
    (lost,) = nights_of(path, told("bmf", better=(("throughput-lost", "higher"),)))
    assert "no logarithm" in lost.left_out["randread 4k, throughput-lost"]
    (found,) = nights_of(path, told("bmf", better=(("weirdness", "lower"),)))
    assert next(point for point in found.points if point.key.metric == "weirdness").better == "lower"


def test_replicates_of_perfherder_and_lnt_give_errors(tmp_path: Path) -> None:
    suites = [{"name": "io", "subtests": [{"name": "read", "value": 2.0, "replicates": [1.9, 2.0, 2.1], "unit": "ms"}]}]
    path = write(tmp_path / "p.json", "PERFHERDER_DATA: " + json.dumps({"framework": {"name": "x"}, "suites": suites}))
    (point,) = nights_of(path, told("perfherder"))[0].points
    assert (point.cell, point.better, point.unit, point.n) == ("io read", "lower", "ms", 3)
    assert point.se > 0.0
    report = {
        "format_version": "2",
        "machine": {"name": "lab1"},
        "run": {"start_time": "2026-01-02T03:04:05", "llvm_project_revision": "abc"},
        "tests": [{"name": "compress", "execution_time": [1.0, 1.1, 1.05], "compile_time": 4.0}],
    }
    (found,) = nights_of(write(tmp_path / "l.json", report), Given(format="lnt"))
    assert (found.machine, found.t, found.subject.describe) == ("lab1", 1767323045.0, "abc")
    assert {(point.key.metric, point.n, point.flags) for point in found.points} == {
        ("execution_time", 3, ("foreign",)),
        ("compile_time", 1, ("foreign", "no-error")),
    }


@pytest.mark.parametrize("source", ["bmf", "perfherder", "lnt", "csv", "parquet"])
@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe\x00", b"[1, 2]", b'{"a": 1}', b"a,b\n1,2\n", b'{"tests": 3}', b"null"]
)
def test_what_is_no_such_file_is_refused_with_a_reason(tmp_path: Path, source: str, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(RequestError, match=r"not |no number"):
        nights_of(path, told(source))


def test_a_table_has_a_night_for_each_time_and_nobody_guesses_one(tmp_path: Path) -> None:
    text = "time,machine,cell,metric,value,error,build\n"
    text += "2026-01-01T00:00:00Z,a,c,read.iops,100,0.01,v1\n2026-01-02,a,c,read.iops,101,,v2\n"
    path = write(tmp_path / "t.csv", text)
    first, second = nights_of(path, Given(format="csv"))
    assert (first.t, second.t) == (1767225600.0, 1767312000.0)
    assert (first.points[0].se, first.points[0].flags) == (0.01, ("foreign",))
    assert second.points[0].flags == ("foreign", "no-error")
    assert first.points[0].key == second.points[0].key
    for missing, said in (("time", "when"), ("machine", "where")):
        column = text.splitlines()[0].split(",").index(missing)
        rows = [line.split(",") for line in text.splitlines()]
        short = "\n".join(",".join(row[:column] + row[column + 1 :]) for row in rows)
        with pytest.raises(RequestError, match=f"does not say {said}"):
            nights_of(write(tmp_path / "s.csv", short), Given(format="csv"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_was_exported_is_imported_with_the_same_numbers(place: Path, kind: str) -> None:
    write(place / f"out.{kind}", "somebody else's")
    refused = iodelta("export", f"out.{kind}", "--to", kind)
    assert isinstance(refused.exception, RequestError)
    assert iodelta("export", f"out.{kind}", "--to", kind, "--force").exit_code == 0
    done = iodelta("import", f"out.{kind}", "--from", kind, "--history", "other")
    assert done.output == f"added: out.{kind}, 10 points\n"
    (before,), (after,) = (lines(place / name) for name in ("iodelta-history", "other"))
    for one, again in zip(before.points, after.points, strict=True):
        assert (again.t, again.describe, again.commit) == (round(one.t), one.describe, one.commit)
        assert again.y == pytest.approx(one.y)
        assert again.se == pytest.approx(one.se)
        assert "foreign" in again.flags
    assert iodelta("check", "--history", "other").exit_code == 0
    assert iodelta("import", f"out.{kind}", "--from", kind, "--history", "other").output.startswith("known: ")


def test_an_export_says_the_same_in_every_form(place: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(iodelta("export", "--to", "csv").output)))
    document = json.loads(iodelta("export", "--to", "json").output)
    Draft202012Validator(schema("iodelta.history-export/1")).validate(document)
    iodelta("export", "out.parquet", "--to", "parquet")
    table = pl.read_parquet(place / "out.parquet").to_dicts()
    assert len(rows) == len(document["points"]) == len(table) == 10
    for text, point, row in zip(rows, document["points"], table, strict=True):
        assert float(text["value"]) == pytest.approx(point["value"])
        assert row == point
        # Fewer IOPS than the reference is a ratio below 1.
        r = night(int(point["build"][3:])).points[0].r
        assert r is not None
        assert point["ratio"] == pytest.approx(math.exp(-r))
    newest = json.loads(iodelta("export", "--to", "bmf").output)
    ((measures,),) = [list(newest.values())]
    value = measures["read.iops"]
    assert value["lower_value"] < value["value"] < value["upper_value"]
    assert value["value"] == pytest.approx(math.exp(night(9).points[0].y))


HOSTILE = 'say "4k"\\\nnext'


def test_kernelci_gets_a_test_of_a_build_of_the_commit_for_each_series(place: Path) -> None:
    odd = having(
        night(10), key=key("read.lat"), cell=HOSTILE, variant="../ é", unit="", better="lower", r=None, r_se=None
    )
    no_commit = Subject("https://example.org/linux.git", "", "v6\0.10")
    filled(place / "iodelta-history", [replace(odd, subject=no_commit)])
    report = json.loads(iodelta("export", "--to", "kcidb", "--origin", "my_lab").output)
    assert report["version"] == {"major": 5, "minor": 3}
    by_path = {test["path"]: test for test in report["tests"]}
    assert by_path.keys() == {"iodelta.randread_4k.new.read_iops", "iodelta.say_4k_next._.read_lat"}
    test = by_path["iodelta.randread_4k.new.read_iops"]
    assert (test["status"], test["number"]["unit"]) == ("DONE", "IOPS")
    assert test["number"]["value"] == pytest.approx(math.exp(night(9).points[0].y))
    assert test["start_time"] == "2023-11-23T22:13:20Z"
    builds = {build["id"]: build["checkout_id"] for build in report["builds"]}
    checkouts = {checkout["id"]: checkout for checkout in report["checkouts"]}
    assert checkouts[builds[test["build_id"]]]["git_commit_hash"] == f"{9:040x}"
    bare = checkouts[builds[by_path["iodelta.say_4k_next._.read_lat"]["build_id"]]]
    assert (bare["git_commit_name"], bare["git_repository_url"]) == ("v6.10", "https://example.org/linux.git")
    assert "git_commit_hash" not in bare
    every = [*report["checkouts"], *report["builds"], *report["tests"]]
    assert {one["id"].partition(":")[0] for one in every} == {one["origin"] for one in every} == {"my_lab"}
    assert len({one["id"] for one in report["tests"]}) == 2
    assert isinstance(iodelta("export", "--to", "kcidb", "--origin", "My Lab").exception, RequestError)


def test_prometheus_gets_gauges_of_the_newest_night_alone(place: Path) -> None:
    odd = having(night(10), key=key("read.lat"), cell=HOSTILE, r=None, r_se=None)
    filled(place / "iodelta-history", [odd])
    text = iodelta("export", "--to", "openmetrics").output
    assert text.endswith("# EOF\n")
    samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, number = line.rpartition(" ")
            samples[name] = float(number)
    assert len(samples) == 6 + 4  # of the other series no reference was measured
    (value,) = [samples[name] for name in samples if name.startswith("iodelta_value{") and 'cell="randread 4k"' in name]
    assert value == pytest.approx(math.exp(night(9).points[0].y))
    (ratio,) = [samples[name] for name in samples if name.startswith("iodelta_against_reference_ratio{")]
    assert ratio == pytest.approx(math.exp(-(night(9).points[0].r or 0.0)))
    assert sum('cell="say \\"4k\\"\\\\\\nnext"' in name for name in samples) == 4
    assert iodelta("export", "--to", "openmetrics", "--history", "none").exit_code == 1


def test_pruning_names_what_goes_keeps_folders_and_rebuild_agrees(place: Path) -> None:
    table = "time,machine,cell,metric,value\n"
    table += "".join(f"2026-01-{day:02},a,c,read.iops,{100 + day}\n" for day in range(1, 11))
    write(place / "t.csv", table)
    iodelta("import", "t.csv", "--from", "csv", "--history", "h")
    said = iodelta("prune", "--keep", "4", "--dry-run", "--history", "h").output
    assert said.endswith("6 nights would be removed\n")
    assert iodelta("check", "--history", "h").exit_code == 0
    done = json.loads(iodelta("prune", "--keep", "4", "--history", "h", "--format", "json").output)
    Draft202012Validator(schema("iodelta.history-prune/1")).validate(done)
    assert [one["folder"] for one in done["pruned"]] == [str(place / "t.csv")] * 6
    assert (place / "t.csv").read_text() == table
    before = lines(place / "h")
    assert [math.exp(point.y) for point in before[0].points] == pytest.approx([107, 108, 109, 110])
    assert iodelta("check", "--history", "h").exit_code == 0
    assert iodelta("rebuild", "--history", "h").exit_code == 0
    assert lines(place / "h") == before
    assert len(Log(place / "h" / "decisions.jsonl").added()) == 4
    assert iodelta("import", "t.csv", "--from", "csv", "--history", "h").output == "added: t.csv, 10 points\n"


def test_nights_whose_folder_is_gone_and_old_ones_can_go_and_nothing_goes_unasked(place: Path) -> None:
    assert isinstance(iodelta("prune").exception, RequestError)
    assert "not an age" in str(iodelta("prune", "--older-than", "soon").exception)
    assert iodelta("prune", "--older-than", "100y").output == "0 nights removed; their folders are unchanged\n"
    assert iodelta("prune", "--gone").output.count("its folder is gone") == 10
    assert lines(place / "iodelta-history") == []
