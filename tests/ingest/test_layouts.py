"""Folders that other tools made become experiments: cells, variants, conditions, replicates, run order."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tarfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fio_files import document, write

from iodelta.audit import audit
from iodelta.errors import RequestError
from iodelta.ingest.layouts import Layout, order_finding, order_of, read_layout
from iodelta.ingest.layouts.effective import differing
from iodelta.study.comparison import compare
from iodelta.study.runs import shown

FIO = Path(__file__).parent.parent / "data" / "fio-3.33"


def places(layout: Layout) -> set[tuple[str, str, str, int]]:
    return {(entry.variant, entry.cell, entry.condition, entry.replicate) for entry in layout.entries}


LAYOUTS = {
    "bench-fio of fio-plot": (
        """\
sda/4k/randread-1-2.json depth=1 jobs=2
sda/4k/randread-32-2.json depth=32 jobs=2
sdb/4k/randread-1-2.json depth=1 jobs=2
sdb/4k/randread-32-2.json depth=32 jobs=2
sda/randrw75/4k/randrw-1-1.json rw=randrw depth=1
sdb/randrw75/4k/randrw-1-1.json rw=randrw depth=1
""",
        """\
bench-fio
sda | randread 4k iodepth 1 2 jobs |  | 0
sda | randread 4k iodepth 32 2 jobs |  | 0
sda | randrw 75 % read 4k iodepth 1 |  | 0
sdb | randread 4k iodepth 1 2 jobs |  | 0
sdb | randread 4k iodepth 32 2 jobs |  | 0
sdb | randrw 75 % read 4k iodepth 1 |  | 0""",
    ),
    "runs that bench-fio keeps apart are replicates": (
        """\
sda/4k/run-1/randread-32-1.json iops=1001
sda/4k/run-2/randread-32-1.json iops=1002
sda/4k/run-3/randread-32-1.json iops=1003
""",
        """\
bench-fio
sda | randread 4k iodepth 32 |  | 1
sda | randread 4k iodepth 32 |  | 2
sda | randread 4k iodepth 32 |  | 3""",
    ),
    "hosts of kdevops, and its text run is a run of its own": (
        """\
xfs/fio-tests-results-xfs/results_mixed_75_25_bs4k_iodepth32_jobs1.json rw=randrw
xfs/fio-tests-results-xfs/results_mixed_75_25_bs4k_iodepth32_jobs1.txt rw=randrw
xfs-dev/fio-tests-results-xfs-dev/results_mixed_75_25_bs4k_iodepth32_jobs1.json rw=randrw
xfs-dev/fio-tests-results-xfs-dev/results_mixed_75_25_bs4k_iodepth32_jobs1.txt rw=randrw
""",
        """\
kdevops fio-tests
xfs | mixed_75_25 4k iodepth 32 |  | 0
xfs | mixed_75_25 4k iodepth 32 |  | 1
xfs-dev | mixed_75_25 4k iodepth 32 |  | 0
xfs-dev | mixed_75_25 4k iodepth 32 |  | 1""",
    ),
    "clients of CBT whose volumes have no number": (
        """\
00000000/RbdFio/raw_ra-00000128/op_size-00004096/randread/output.client01 iops=5000
00000000/RbdFio/raw_ra-00000128/op_size-00004096/randread/output.client02 iops=5000
""",
        """\
cbt
 | RbdFio, randread, raw_ra 128, op_size 4096 |  | 0""",
    ),
    "pbench with a job for each device": (
        """\
fio_a/1-randread-4KiB-sda/sample1/fio-result.txt
fio_a/1-randread-4KiB-sdb/sample1/fio-result.txt
""",
        """\
pbench-fio
fio_a | randread 4k sda |  | 1
fio_a | randread 4k sdb |  | 1""",
    ),
    "the newer archive of CBT": (
        """\
run/results/00000000/id-ab12cd34/json_output.0
run/results/00000000/id-ff00aa11/json_output.0
""",
        """\
cbt
run | id-ab12cd34 |  | 0
run | id-ff00aa11 |  | 0""",
    ),
    "samples of pbench are replicates": (
        """\
fio_a_2024.01.01T00.00.00/1-randread-4KiB/sample1/fio-result.txt
fio_a_2024.01.01T00.00.00/1-randread-4KiB/sample2/fio-result.txt
""",
        """\
pbench-fio
fio_a_2024.01.01T00.00.00 | randread 4k |  | 1
fio_a_2024.01.01T00.00.00 | randread 4k |  | 2""",
    ),
    "the script of the read policy gist": (
        """\
defrag_off_policy_pid_fio_randread_4k_qd32_fio.txt
defrag_off_policy_pid_fio_randread_4k_qd32_readstats.txt
defrag_off_policy_latency-rr_fio_randread_4k_qd32_fio.txt
defrag_off_policy_latency-rr_fio_randread_4k_qd32_readstats.txt
defrag_on_policy_pid_fio_randread_4k_qd32_fio.txt
defrag_on_policy_pid_fio_randread_4k_qd32_readstats.txt
defrag_on_policy_latency-rr_fio_randread_4k_qd32_fio.txt
defrag_on_policy_latency-rr_fio_randread_4k_qd32_readstats.txt
benchmark.log
""",
        """\
btrfs read policy script
latency-rr | randread 4k qd32 | defrag off | 0
latency-rr | randread 4k qd32 | defrag on | 0
pid | randread 4k qd32 | defrag off | 0
pid | randread 4k qd32 | defrag on | 0""",
    ),
    "a pattern says what names mean": (
        """\
none/rand-4k-1.json
none/rand-4k-2.json
bfq/rand-4k-1.json
bfq/rand-4k-2.json
""",
        """\
{variant}/{cell}-{replicate}.json
bfq | rand-4k |  | 1
bfq | rand-4k |  | 2
none | rand-4k |  | 1
none | rand-4k |  | 2""",
    ),
    "other folders by what the runs were asked to do": (
        """\
old_qd1_run1.json depth=1
old_qd1_run2.json depth=1
old_qd32_run1.json depth=32
old_qd32_run2.json depth=32
new_qd1_run1.json depth=1
new_qd1_run2.json depth=1
new_qd32_run1.json depth=32
new_qd32_run2.json depth=32
""",
        """\
content
new | randread 4k iodepth 1 |  | 1
new | randread 4k iodepth 1 |  | 2
new | randread 4k iodepth 32 |  | 1
new | randread 4k iodepth 32 |  | 2
old | randread 4k iodepth 1 |  | 1
old | randread 4k iodepth 1 |  | 2
old | randread 4k iodepth 32 |  | 1
old | randread 4k iodepth 32 |  | 2""",
    ),
    "a version in a name is no replicate": (
        """\
fio-2.17.json
fio-2.21.json
fio-3.1.json
""",
        """\
content
fio-2.17 | randread 4k iodepth 32 |  | 0
fio-2.21 | randread 4k iodepth 32 |  | 0
fio-3.1 | randread 4k iodepth 32 |  | 0""",
    ),
    "sizes that differ are cells": (
        """\
a_100M.json size=100M
a_1G.json size=1G
b_100M.json size=100M
b_1G.json size=1G
""",
        """\
content
a | randread 4k iodepth 32 size=100M |  | 0
a | randread 4k iodepth 32 size=1G |  | 0
b | randread 4k iodepth 32 size=100M |  | 0
b | randread 4k iodepth 32 size=1G |  | 0""",
    ),
}
"""Files with what each is of; the kind of the folder, and variant, cell, condition and replicate of its runs."""

BESIDE = {
    "readstats.txt": "--- Timestamp: 2025-05-04 10:50:33.1 ---\n",
    "benchmark.log": "2025-05-04 10:50:33 - Benchmark Started\n",
}


@pytest.mark.parametrize("what", LAYOUTS)
def test_the_names_of_a_folder_say_what_its_runs_are(what: str, tmp_path: Path) -> None:
    files, expected = LAYOUTS[what]
    for line in files.splitlines():
        name, *words = line.split()
        beside = BESIDE.get(name.rpartition("_")[2])
        if beside is not None:
            (tmp_path / name).write_text(beside)
            continue
        given: dict[str, Any] = dict(word.split("=") for word in words)
        size = given.pop("size", None)
        numbers = {key: int(value) for key, value in given.items() if value.isdigit()}
        write(tmp_path / name, **given | numbers, options={"size": size} if size else None)
    kind = expected.partition("\n")[0]
    layout = read_layout(tmp_path, pattern=kind if "{" in kind else None)
    rows = sorted(f"{one.variant} | {one.cell} | {one.condition} | {one.replicate}" for one in layout.entries)
    assert "\n".join([layout.kind, *rows]) == expected


def test_an_archive_beside_the_folder_that_it_was_unpacked_to_is_not_read_twice(tmp_path: Path) -> None:
    """kdevops fetches the archive and unpacks it in the same place."""
    host = tmp_path / "xfs"
    folder = host / "fio-tests-results-xfs"
    write(folder / "results_randread_bs4k_iodepth1_jobs1.json")
    (folder / "jobs").mkdir()
    (folder / "jobs" / "randread_bs4k_iodepth1_jobs1.ini").write_text("[global]\nrw=randread\nioengine=libaio\n")
    with tarfile.open(host / "fio-tests-results-xfs.tar.gz", "w:gz") as archive:
        archive.add(folder, ".")
    layout = read_layout(tmp_path)
    assert layout.kind == "kdevops fio-tests"
    assert places(layout) == {("xfs", "randread 4k iodepth 1", "", 0)}
    for file in folder.glob("*.json"):
        file.unlink()
    assert places(read_layout(tmp_path)) == {("xfs", "randread 4k iodepth 1", "", 0)}


def test_volumes_of_one_cbt_test_are_parts_of_one_run(tmp_path: Path) -> None:
    for iteration in ("00000000", "00000001"):
        folder = tmp_path / iteration / "LibrbdFio" / "op_size-00004096" / "concurrent_procs-002" / "iodepth-016"
        for volume in (0, 1):
            for name in (f"output.{volume}", f"json_output.{volume}"):
                write(folder / "randread" / name, 5_000, depth=16, around="" if "json" in name else "fio: hello\n")
    layout = read_layout(tmp_path)
    assert layout.kind == "cbt"
    cell = "LibrbdFio, randread, op_size 4096, concurrent_procs 2, iodepth 16"
    assert places(layout) == {("", cell, "", 0), ("", cell, "", 1)}
    for entry in layout.entries:
        (direction,) = entry.run.directions
        assert (entry.run.jobs, direction.ios, direction.iops.value) == (2, 100_000, 10_000)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("*.json", "neither {variant} nor {cell}"),
        ("{kernel}/{cell}.json", "no field {kernel}"),
        ("{cell}/{cell}.json", "twice"),
    ],
)
def test_a_pattern_that_says_nothing_is_refused(tmp_path: Path, pattern: str, says: str) -> None:
    write(tmp_path / "a.json")
    with pytest.raises(RequestError, match=says):
        read_layout(tmp_path, pattern=pattern)


def test_variants_may_lie_in_the_options_alone(tmp_path: Path) -> None:
    for number, engine in enumerate(("libaio", "io_uring")):
        write(tmp_path / "same" / f"{number}" / "result.json", engine=engine)
    variants = read_layout(tmp_path).variants()
    assert set(variants) in ({"ioengine=libaio", "ioengine=io_uring"}, {"0", "1"})


class TestOrder:
    """Whether runs were interleaved, from their time stamps."""

    def order(self, tmp_path: Path, letters: str) -> tuple[str, int, str]:
        for number, letter in enumerate(letters):
            write(tmp_path / f"{letter}-{number}.json", 1000 + number, ended=1_700_000_000 + 20 * number)
        layout = read_layout(tmp_path, pattern="{variant}-{replicate}.json")
        sides = [[e for e in layout.entries if e.variant == name] for name in ("A", "B")]
        found = order_of(*sides)
        finding = order_finding(found, "here")
        return found.order, len(found.blocks), finding.rule if finding else ""

    @pytest.mark.parametrize(
        ("letters", "order", "blocks", "rule"),
        [
            ("ABBAABBA", "interleaved", 4, ""),
            ("ABABABAB", "interleaved", 4, ""),
            ("AAAABBBB", "one after the other", 0, "order.not-interleaved"),
            ("BBAA", "one after the other", 0, "order.not-interleaved"),
            ("AABBAABB", "mixed", 0, "order.not-interleaved"),
            ("ABABA", "interleaved", 2, ""),
            ("ABBBA", "mixed", 0, "order.not-interleaved"),
        ],
    )
    def test_blocks_are_adjacent_pairs(self, tmp_path: Path, letters: str, order: str, blocks: int, rule: str) -> None:
        assert self.order(tmp_path, letters) == (order, blocks, rule)

    def test_without_times_the_order_is_unknown(self, tmp_path: Path) -> None:
        for letter in "AB":
            write(tmp_path / f"{letter}-1.json", ended=0)
        layout = read_layout(tmp_path, pattern="{variant}-{replicate}.json")
        found = order_of(*[[e for e in layout.entries if e.variant == name] for name in ("A", "B")])
        finding = order_finding(found, "here")
        assert finding is not None
        assert finding.rule == "order.unknown"


class TestFsperf:
    """Databases of fsperf."""

    def database(self, path: Path) -> Path:
        with sqlite3.connect(path) as made:
            made.execute(
                "CREATE TABLE runs (id INTEGER PRIMARY KEY, kernel, config, name, hostname, purpose, time DATETIME)"
            )
            made.execute(
                "CREATE TABLE fio_results (id INTEGER PRIMARY KEY, run_id, read_iops FLOAT, read_bw_bytes, "
                "read_io_bytes, read_lat_ns_mean, read_lat_ns_max, read_clat_ns_p50, read_clat_ns_p99, "
                "read_clat_ns_mean, write_iops FLOAT, elapsed)"
            )
            for number, purpose in enumerate(("baseline", "baseline", "mine")):
                run = (number, "6.12", "btrfs", "dio-4k", "host", purpose, f"2024-05-03 10:0{number}:00.000000")
                made.execute("INSERT INTO runs VALUES (?,?,?,?,?,?,?)", run)
                values = (number, number, 5681.2, 23270195, 1396211712, 175000, 9000000, 173056, 1286144, 174000, 0, 60)
                made.execute(f"INSERT INTO fio_results VALUES ({','.join('?' * len(values))})", values)
        return path

    def test_sessions_are_variants(self, tmp_path: Path) -> None:
        layout = read_layout(self.database(tmp_path / "fsperf-results.db"))
        assert layout.kind == "fsperf"
        assert places(layout) == {
            ("baseline", "btrfs dio-4k", "", 0),
            ("baseline", "btrfs dio-4k", "", 1),
            ("mine", "btrfs dio-4k", "", 0),
        }
        run = layout.entries[0].run
        (direction,) = run.directions
        assert (direction.kind, direction.iops.value) == ("read", 5681.2)
        assert direction.clat is not None
        assert direction.clat.percentiles[99.0].low < 1286144 < direction.clat.percentiles[99.0].high
        assert run.ended == 1714730400.0

    def test_a_damaged_database_is_refused(self, tmp_path: Path) -> None:
        path = self.database(tmp_path / "y.db")
        data = bytearray(path.read_bytes())
        data[4096:] = b"\xff" * (len(data) - 4096)
        path.write_bytes(bytes(data))
        layout = read_layout(path)
        assert not layout.entries
        assert "not a database of fsperf" in layout.refusals[0].reason

    @pytest.mark.parametrize(
        "script",
        [
            "CREATE TABLE runs (id)",
            "CREATE VIEW runs AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id FROM n;"
            "CREATE TABLE fio_results (id, run_id)",
        ],
    )
    def test_another_database_is_refused_and_a_view_in_it_is_not_run(self, script: str, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "x.db") as made:
            made.executescript(script)
        layout = read_layout(tmp_path / "x.db")
        assert not layout.entries
        assert "not fsperf" in layout.refusals[0].reason


def hosts(rates: Mapping[str, float], *, names: tuple[str, ...] = ("job",), jobs: int = 1) -> dict[str, Any]:
    """What fio's client prints of ``names`` run on several hosts, each at its own rate and with a disk of its own."""
    made = document(jobs=jobs)
    entries = []
    for name in names:
        for host, iops in rates.items():
            (entry,) = document(iops, name=name, jobs=jobs)["jobs"]
            entries.append(entry | {"hostname": host, "port": 8765})
    disks = [
        {"name": "sda", "hostname": host, "read_ios": round(10 * iops), "read_sectors": round(80 * iops), "util": 99.0}
        for host, iops in rates.items()
    ]
    return made | {"jobs": [], "client_stats": entries, "disk_util": disks}


@pytest.mark.parametrize("jobs", [1, 4])
def test_the_hosts_of_a_client_are_parts_of_one_run(tmp_path: Path, jobs: int) -> None:
    found = hosts({"left": 5_000, "right": 7_000}, names=("first", "second"), jobs=jobs)
    interleaved = [found["client_stats"][at] for at in (0, 2, 1, 3)]
    (tmp_path / "x.json").write_text(json.dumps(found | {"client_stats": interleaved}))
    runs = [entry.run for entry in read_layout(tmp_path).entries]
    assert [(run.jobname, run.host, run.jobs, run.directions[0].iops.value) for run in runs] == [
        ("first", "", 2 * jobs, 12_000),
        ("second", "", 2 * jobs, 12_000),
    ]


def test_the_disks_of_one_host_are_not_those_of_all(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(hosts({"left": 5_000, "middle": 6_000, "right": 7_000})))
    (entry,) = read_layout(tmp_path).entries
    assert entry.run.disks == ()
    assert "cache.not-from-device" not in {hit.finding.rule for hit in audit([entry.run]).hits}


def test_clones_of_one_host_keep_its_disks(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes((FIO / "nogroup.json").read_bytes())
    (entry,) = read_layout(tmp_path).entries
    assert (entry.run.jobs, [disk.name for disk in entry.run.disks]) == (2, ["vda"])


def test_clones_that_report_their_directions_as_one_did_their_io(tmp_path: Path) -> None:
    """unified_rw_reporting=1 and numjobs=2 without group_reporting."""
    alone = json.loads((FIO / "mixed.json").read_text())
    alone["jobs"] *= 2
    (tmp_path / "x.json").write_text(json.dumps(alone))
    (entry,) = read_layout(tmp_path).entries
    (direction,) = entry.run.directions
    assert (direction.kind, direction.ios) == ("mixed", 2 * 34431)
    assert "run.no-io" not in {hit.finding.rule for hit in audit([entry.run]).hits}


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert read_layout(tmp_path).entries == ()


def test_the_logs_of_a_job_are_one_run_where_there_is_no_report(tmp_path: Path) -> None:
    for side, rate in (("A", 1000), ("B", 900)):
        for job in (1, 2):
            for of, value in (("iops", rate), ("bw", 4 * rate), ("lat", 99_000), ("clat", 98_000)):
                rows = "".join(f"{at}, {value + job}, 0, 0, 0\n" for at in range(500, 5001, 500))
                folder = tmp_path / side
                folder.mkdir(exist_ok=True)
                (folder / f"x_{of}.{job}.log").write_text(rows)
    layout = read_layout(tmp_path)
    assert len(layout.entries) == 4
    first = layout.entries[0].run
    (direction,) = first.directions
    assert (direction.iops.value, direction.bandwidth.value) == pytest.approx((1001, 4001 * 1024))
    assert direction.latencies().keys() == {"lat", "clat"}
    assert set(first.series) == {"read.iops", "read.bw", "read.lat", "read.clat"}
    assert [finding.rule for finding in first.findings] == ["read.log-end", "read.unit-unknown", "read.log-averaged"]


NOTES = "sched,IOPS,lat (us)\nnone,123456,8\nbfq,99999,10\n"


def test_a_table_in_the_notes_does_not_replace_the_logs_of_a_folder(tmp_path: Path) -> None:
    """Tables counted as reports, beside which logs are left out: three lines of notes hid every log in silence."""
    (tmp_path / "a_bw.1.log").write_text("".join(f"{500 * at}, {283200 + at}, 0, 0\n" for at in range(1, 41)))
    (tmp_path / "notes.txt").write_text("sched,IOPS\nnone,70800\nbfq,43600\n")
    found = read_layout(tmp_path)
    assert [entry.run.format for entry in found.entries] == ["log"]
    (refusal,) = found.refusals
    assert refusal.place.file.endswith("notes.txt")
    assert "is ignored" in refusal.reason


def test_a_table_in_the_notes_is_not_a_side_of_a_folder_of_reports(tmp_path: Path) -> None:
    for variant in ("none", "bfq"):
        for number in range(1, 28):
            write(tmp_path / variant / f"randread-{number}.json", depth=32)
    (tmp_path / "NOTES.txt").write_text(f"What I saw last year:\n\n{NOTES}")
    layout = read_layout(tmp_path)
    assert len(layout.entries) == 54
    assert layout.variants() == ("bfq", "none")
    (refusal,) = layout.refusals
    assert refusal.place.file.endswith("NOTES.txt")
    assert "is ignored" in refusal.reason


def test_tables_are_read_where_there_is_nothing_else_and_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "result.csv").write_text(NOTES)
    assert [entry.run.format for entry in read_layout(tmp_path).entries] == ["table", "table"]
    (tmp_path / "a" / "x_iops.1.log").write_text("1000, 5000, 0, 4096, 0\n2000, 5100, 0, 4096, 0\n")
    write(tmp_path / "b.json", depth=32)
    assert [entry.run.format for entry in read_layout(tmp_path).entries] == ["json"]
    assert len(read_layout(tmp_path / "a" / "result.csv").entries) == 2


OPTIONS = [
    {"fsync": "1"},
    {"fdatasync": "4"},
    {"sync": "1"},
    {"sync": "dsync"},
    {"direct": "0"},
    {"ioengine": "io_uring"},
    {"size": "1g"},
    {"rwmixread": "70"},
    {"rate_iops": "500"},
    {"norandommap": ""},
    {"norandommap": "1"},
    {"verify": "crc32c"},
    {"zonemode": "zbd"},
    {"thinktime": "100"},
    {"bs": "4k-64k"},
    {"bssplit": "4k/50:64k/50"},
    {"filename": "/dev/sdb"},
    {"invalidate": "0"},
    {"cpus_allowed": "3"},
    {"rw": "randread:8"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("pattern", [None, "{variant}/{cell}-{replicate}.json"], ids=["by content", "by names"])
def test_runs_that_differ_in_what_they_were_asked_are_no_replicates(
    options: dict[str, str], pattern: str | None, tmp_path: Path
) -> None:
    for side in ("old", "new"):
        for number in range(1, 5):
            write(tmp_path / side / f"run-{number}.json", 1000 + number, options=options if number > 2 else None)
    layout = read_layout(tmp_path, pattern=pattern)
    counts = Counter((entry.variant, entry.cell) for entry in layout.entries)
    assert set(counts.values()) == {2}, counts
    assert len(counts) == 4
    apart = compare([read_layout(tmp_path / "old"), read_layout(tmp_path / "new")], ["old", "new"])
    assert {one.runs for one in apart.compared} == {(2, 2)}, "and sides that are given as two paths"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"fsync": "0"}, {}),
        ({"size": "1g"}, {"size": "1024m"}),
        ({"norandommap": ""}, {"norandommap": "1"}),
        ({"rwmixread": "70"}, {"rwmixwrite": "30"}),
        ({"bs": "4k,64k"}, {"bs": "4096"}),
        ({"runtime": "10", "randseed": "7"}, {"runtime": "20", "write_bw_log": "x"}),
        ({"filename": "/mnt/a"}, {"filename": "/mnt/b"}),
        ({"sync": "none"}, {"invalidate": "1"}),
    ],
)
def test_the_same_workload_in_other_words_is_a_replicate(
    one: dict[str, str], other: dict[str, str], tmp_path: Path
) -> None:
    for number, options in enumerate((one, other, one, other), 1):
        write(tmp_path / f"run-{number}.json", options=options)
    assert len({entry.cell for entry in read_layout(tmp_path).entries}) == 1


def test_a_report_that_does_not_say_an_option_differs_in_nothing(tmp_path: Path) -> None:
    """fio's normal report shows neither direct nor size."""
    for number in (1, 2):
        shutil.copy(FIO / "jp1.json", tmp_path / f"run-{number}.json")
    found = read_layout(tmp_path).entries
    shown = [msgspec.structs.replace(found[1].run, format="text", options={"rw": "randread", "bs": "4k"})]
    assert not differing([found[0].run, *shown])


def test_what_is_compared_may_differ_between_the_sides(tmp_path: Path) -> None:
    for side, engine in (("old", "libaio"), ("new", "io_uring")):
        for number in (1, 2):
            write(tmp_path / side / f"run-{number}.json", engine=engine)
    assert len({entry.cell for entry in read_layout(tmp_path).entries}) == 1


@pytest.mark.parametrize("version", ["3.33", "3.16"])
def test_the_latency_of_syncs_is_a_row(version: str) -> None:
    """Against what the JSON of the same run says, read here by itself."""
    text = (FIO.parent / "same-run" / f"fio-{version}.out").read_text()
    found = re.search(r"^\{$.*?^\}$", text, re.M | re.S)
    assert found is not None
    jobs = json.loads(found[0])["jobs"]
    layout = read_layout(FIO.parent / "same-run" / f"fio-{version}.out")
    rows = shown(layout, audit(entry.run for entry in layout.entries), each=True).rows
    syncs = [row for row in rows if row.kind == "sync"]
    expected = [job["sync"]["lat_ns"] for job in jobs if job.get("sync", {}).get("total_ios")]
    assert len(syncs) == len(expected) > 0
    for row, said in zip(syncs, expected, strict=True):
        assert row.mean is not None
        assert row.mean.value == pytest.approx(said["mean"])
        assert row.iops is None
