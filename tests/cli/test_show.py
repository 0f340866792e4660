"""iodelta show: the thing to type at any fio output."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from fio_files import document, write
from foreign import iodelta, narrow, shared

from iodelta.report.formats.terminal import lines
from iodelta.report.stories.shown import of_shown
from iodelta.study.rows import Row, Shown

GOLDEN = Path(__file__).parent / "golden"

SAMPLES = {
    "bensonjohnson/fio.json": "interrupted-group",
    "chaitanya-xarray": "replicates",
    "brahiam": "cells-and-variants",
    "own-fio-3.33/stall.json": "stalls",
    "own-fio-3.33/multi.out": "three-formats-in-one",
    "own-version-matrix/fio-2.0.15.normal.out": "old-text",
    "hikalium/result_2408X01456JF.txt": "terminal-capture",
    "uring-mail/3.37-plus-quoted.txt": "t-io_uring-in-mail",
    "pr-tables/fsperf-compare-table.txt": "fsperf-table",
    "virtualclient/TestFioJsonWithError.txt": "failed-run",
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_ten_public_results_look_as_reviewed(sample: str) -> None:
    shown = iodelta("show", sample, cwd=shared("fio-corpus"))
    text = shown.stdout.decode()
    assert shown.returncode == 0
    assert text == (GOLDEN / f"{SAMPLES[sample]}.txt").read_text(encoding="utf-8")
    assert narrow(text)


def test_one_line_for_each_direction_of_each_run(tmp_path: Path) -> None:
    write(tmp_path / "a.json", 10_000)
    write(tmp_path / "b.json", 20_000, rw="randrw")
    text = iodelta("show", ".", cwd=tmp_path).stdout.decode()
    lines = [line.split() for line in text.splitlines() if ".json" in line]
    assert [line[:4] for line in lines] == [
        ["a.json", "read", "10,000", "39.06"],
        ["b.json", "read", "20,000", "78.12"],
        ["b.json", "write", "20,000", "78.12"],
    ]
    assert "randread 4k iodepth 32, libaio, direct, fio 3.33" in text


def test_standard_input_and_archives_are_read_too(tmp_path: Path) -> None:
    piped = iodelta("show", "-", cwd=tmp_path, stdin=json.dumps(document(10_000)).encode())
    assert b"10,000" in piped.stdout
    write(tmp_path / "in" / "a.json", 12_345)
    with tarfile.open(tmp_path / "old.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "in", "results")
    packed = iodelta("show", "old.tar.gz", cwd=tmp_path)
    assert b"12,345" in packed.stdout


def test_percentiles_show_only_the_digits_that_are_known(tmp_path: Path) -> None:
    write(tmp_path / "few.json", 100, depth=1, p99_ns=10_027_008)
    text = iodelta("show", "few.json", cwd=tmp_path).stdout.decode()
    assert "(10.0ms)" in text
    assert "( ) fewer than 100 I/Os beyond" in text


def test_a_percentile_in_fios_last_bin_is_known_up_to_the_maximum(tmp_path: Path) -> None:
    slow = document(1, depth=32, p99_ns=17_112_760_320)
    for name in ("lat_ns", "clat_ns"):
        slow["jobs"][0]["read"][name]["max"] = 30_000_000_000
    (tmp_path / "slow.json").write_text(json.dumps(slow))
    found = json.loads(iodelta("show", "slow.json", "--format", "json", cwd=tmp_path).stdout)
    p99 = next(point for point in found["rows"][0]["points"] if point["percent"] == 99)
    assert (p99["low"], p99["high"]) == (17_045_651_456, 30_000_000_000)
    assert "~17s" in iodelta("show", "slow.json", cwd=tmp_path).stdout.decode()


def test_many_runs_become_medians_unless_each_is_asked_for(tmp_path: Path) -> None:
    for variant in ("old", "new"):
        for number in range(1, 31):
            write(tmp_path / variant / f"{number}.json", 10_000 + number + 50 * (variant == "new"))
    few = iodelta("show", ".", cwd=tmp_path).stdout.decode()
    assert "old x30" in few
    assert "±" in few
    assert len(few.splitlines()) <= 13
    every = iodelta("show", ".", "--verbose", cwd=tmp_path).stdout.decode()
    assert len([line for line in every.splitlines() if line.split()[1:2] == ["read"]]) == 60


@pytest.mark.parametrize("name", ["\x1b[2J\x1b[31mred", "a\nb\rc\x07", "\u202egnp.exe", "'; rm -rf /", "=cmd|' /C'!A0"])
def test_hostile_names_reach_the_screen_as_plain_text(tmp_path: Path, name: str) -> None:
    write(tmp_path / "x.json", name=name)
    write(tmp_path / "y.json", name=name)
    for more in ((), ("--format", "json"), ("--format", "csv"), ("--verbose",)):
        said = iodelta("show", ".", *more, cwd=tmp_path)
        assert said.returncode == 0
        assert not set(said.stdout) & set(b"\x1b\x07\r\x08\x7f")
        assert "\u202e" not in said.stdout.decode()


def test_json_holds_every_number_with_its_interval(tmp_path: Path) -> None:
    write(tmp_path / "x.json", 10_000)
    found = json.loads(iodelta("show", "x.json", "--format", "json", cwd=tmp_path).stdout)
    assert found["schema"] == "iodelta.show/1"
    (row,) = found["rows"]
    assert row["iops"]["low"] < row["iops"]["value"] == 10_000 < row["iops"]["high"]
    p99 = next(point for point in row["points"] if point["percent"] == 99)
    assert p99["low"] < 7_045_120 < p99["high"]


def test_a_missing_path_is_a_wrong_request(tmp_path: Path) -> None:
    said = iodelta("show", "nowhere.json", cwd=tmp_path)
    assert said.returncode == 2
    assert b"nowhere.json" in said.stderr


def test_an_empty_folder_and_an_empty_file_say_so(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.json").touch()
    for name, says in (("folder", b"there is no file in it"), ("empty.json", b"reasons are above")):
        said = iodelta("show", name, cwd=tmp_path)
        assert said.returncode == 4
        assert says in said.stderr
    assert b"empty" in iodelta("show", "empty.json", cwd=tmp_path).stdout


def test_one_bad_file_among_many_is_named_and_the_others_shown(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / f"{number}.json", 10_000 + number)
    (tmp_path / "bad.json").write_bytes(b'{"fio version" : "fio-3.33", "jobs" : [')
    said = iodelta("show", ".", cwd=tmp_path)
    text = said.stdout.decode()
    assert said.returncode == 0
    assert "Not read\n  bad.json: " in text
    assert "10,004" in text


@pytest.mark.fio
def test_an_experiment_of_our_own_shows_its_variants_and_is_audited(tmp_path: Path) -> None:
    variants = ("--variant", "a:fio.ioengine=libaio", "--variant", "b:fio.ioengine=io_uring,fio.direct=0")
    how = ("--size", "16m", "--trial", "1s", "--ramp", "0s", "--blocks", "1", "--seed", "2", "--folder", "one")
    iodelta("run", *how, *variants, "--", "--rw=randread", "--bs=4k", "--iodepth=4", cwd=tmp_path)
    shown = iodelta("show", "one", cwd=tmp_path).stdout.decode()
    assert "System: kernel " in shown
    assert shown.index(" a ") < shown.index(" b "), "as in the experiment, whichever was drawn to run first"
    assert "randread 4k iodepth 4, libaio" in shown
    assert "randread 4k iodepth 4, io_uring, buffered" in shown
    found = json.loads(iodelta("audit", "one", "--format", "json", cwd=tmp_path).stdout)
    assert found["trials"] in (2, 4), "noise of the host may have had the block made again"
    assert ("cache.page-cache", "b") in {(one["rule"], one["place"][-1]) for one in found["findings"]}
    refused = iodelta("compare", "one", cwd=tmp_path)
    assert refused.returncode == 2
    assert b"iodelta report one" in refused.stderr


FORMATS = ("console", "mail", "markdown", "html", "csv", "json")


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_holds_every_row_and_names_what_was_not_read(tmp_path: Path, format_: str) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.json", 10_001 + number)
    (tmp_path / "bad.json").write_bytes(b'{"fio version" : "fio-3.33", "jobs" : [')
    said = iodelta("show", ".", "--format", format_, cwd=tmp_path)
    text = said.stdout.decode().replace(",", "")
    assert said.returncode == 0
    assert all(f"{10_001 + number}" in text for number in range(3))
    assert "bad.json" in text or format_ == "csv"
    if format_ in ("console", "mail", "markdown", "html"):
        assert "System" in text
        assert "iodelta show ." in text


def test_the_command_to_show_it_again_has_the_options_that_were_given(tmp_path: Path) -> None:
    write(tmp_path / "a b.json", 10_000)
    text = iodelta("show", "a b.json", "--verbose", "--name-pattern", "{variant}.json", cwd=tmp_path).stdout.decode()
    assert "iodelta show 'a b.json' --name-pattern '{variant}.json' --verbose\n" in text


def test_a_name_of_megabytes_is_shown_by_its_ends(tmp_path: Path) -> None:
    """Cutting it letter by letter took minutes, and whole it filled a thousand screens."""
    for end in ("one", "two"):
        wide = "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 3_000_000
        row = Row(group="g" * 3_000_000, name=f"begin{wide}{end}", kind="read")
        story = of_shown(Shown("iodelta.show/1", (row, row), (), (), 2, 1))
        text = "\n".join(line.plain for line in lines(story))
        assert len(text) < 2000
        assert "begin" in text
        assert end in text


def test_a_row_of_a_table_that_is_not_read_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sched,IOPS,p99 (us)\nnone,12,5,8\nbfq,7,9\nkyber,8,9\n")
    shown = iodelta("show", "t.csv", cwd=tmp_path)
    assert shown.returncode == 0
    assert "t.csv:2: a row of a table" in " ".join(shown.stdout.decode().split())


def test_only_a_gate_exits_with_1_for_a_number_that_cannot_be_believed(tmp_path: Path) -> None:
    write(tmp_path / "sound.json", 10_000)
    write(tmp_path / "wrong.json", 10_000)
    found = json.loads((tmp_path / "wrong.json").read_text())
    found["jobs"][0]["read"]["clat_ns"]["mean"] = 1e15  # a mean far above the maximum
    (tmp_path / "wrong.json").write_text(json.dumps(found))
    codes = {
        (name, gate): iodelta("show", name, *gate, cwd=tmp_path).returncode
        for name in ("sound.json", "wrong.json")
        for gate in ((), ("--exit-code",))
    }
    assert list(codes.values()) == [0, 0, 0, 1]


def test_a_folder_of_fio_plots_runner_becomes_a_page_with_charts_by_one_command(tmp_path: Path) -> None:
    for depth in (1, 2, 4):
        for jobs in (1, 2):
            write(tmp_path / "r" / "sda" / "4k" / f"randread-{depth}-{jobs}.json", 1000 * depth, depth=depth, jobs=jobs)
    done = iodelta("show", "r", "-o", "page.html", "--charts", "pictures", cwd=tmp_path)
    assert done.returncode == 0
    page = (tmp_path / "page.html").read_text()
    for title in ("Values", "Latency: percentiles", "Depth and jobs", "Depth by jobs", "Latency against IOPS"):
        assert f">{title}</h2>" in page
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert {"values-read-iops.svg", "values-read-iops.png", "grid-1-read-iops-1.svg", "knee-1-read-mean.png"} <= names
