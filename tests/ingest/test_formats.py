"""What is peculiar to a format, shown on real output of fio 3.33 and its t/io_uring."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import fio_files
import pytest
from told import runs_of

from iodelta.audit.rules.depth import slots as audit_slots
from iodelta.ingest import Refusal, Run, read, read_bytes
from iodelta.ingest.report import read_text

DATA = Path(__file__).parent.parent / "data" / "fio-3.33"


def one(name: str) -> Run:
    found = read([DATA / name])
    assert not found.refusals
    (run,) = found.runs
    return run


def rules(run: Run) -> set[str]:
    return {finding.rule for finding in run.findings}


FILES = {
    # of cumulative reports the last is the result
    "status.json": (
        "json 3.33 t1(0) | x1 randread 4096B psync 3s | "
        "read 36346 in 3001 ms, 12111.2962/s of 0 lat clat | vda 35152 | bw | iops | read.status-interval"
    ),
    "status.txt": (
        "text 3.33 t1(0) | x1 randread 4096B qd1 psync | "
        "read 38252 in 3001 ms, 12746.4179/s of 0 lat clat | vda 36740 | bw | iops | read.status-interval"
    ),
    # without a final report the last interim one is what there is
    "kill9.txt": (
        "text 3.33 t1(0) | x1 randread 4096B qd1 psync | "
        "read 16740 in 1879 ms, 8908.99415/s of 0 lat clat | vda 16738 | bw | iops | read.status-interval"
    ),
    # clones shown in three formats are two runs and no third
    "clones.out": (
        "json+terse3+text 3.33 a b: c/d(0) | x1 randread 4096B qd4 libaio 1s | "
        "read 17469 in 1002 ms, 17434.1317/s of 0 lat clat slat | vda 43820 | bw | iops\n"
        "json+terse3+text 3.33 a b: c/d(0) | x1 randread 4096B qd4 libaio 1s | "
        "read 15062 in 1001 ms, 15046.953/s of 0 lat clat slat | vda 43820 | bw | iops\n"
        "json+terse3+text 3.33 (1) | x1 randrw 4096B qd4 libaio 1s | "
        "read 13175 in 1001 ms, 13161.8382/s of 0 lat clat slat | "
        "write 5686 in 1001 ms, 5680.31968/s of 0 lat clat slat | vda 43820 | bw | iops"
    ),
    # what fio's clients report is not counted twice
    "client.txt": (
        "text 3.33 a b: c/d(0) | x1 randread 4096B qd4 libaio | "
        "read 19954 in 1001 ms, 19934.0659/s of 0 lat clat slat | vda 56031 | bw | iops\n"
        "text 3.33 a b: c/d(0) | x1 randread 4096B qd4 libaio | "
        "read 20023 in 1001 ms, 20002.997/s of 0 lat clat slat | vda 56031 | bw | iops\n"
        "text 3.33 (1) | x1 randrw 4096B qd4 libaio | "
        "read 15663 in 1001 ms, 15647.3526/s of 0 lat clat slat | "
        "write 6796 in 1001 ms, 6789.21079/s of 0 lat clat slat | vda 56031 | bw | iops"
    ),
    # zeros for the sum are no direction beside them
    "both.json": (
        "json 3.33 t1(0) | x1 randrw 4096B psync 3s | "
        "read 16614 in 3001 ms, 5536.15462/s of 0 lat clat | "
        "write 16612 in 3001 ms, 5535.48817/s of 0 lat clat | vda 16390 | bw | iops"
    ),
    "both.txt": (
        "text 3.33 t1(0) | x1 randrw 4096B qd1 psync | "
        "read 15945 in 3001 ms, 5313.22892/s of 0 lat clat | "
        "write 15903 in 3001 ms, 5299.23359/s of 0 lat clat | vda 15579 | bw | iops"
    ),
    "both.terse": (
        "terse3 3.33 t1(0) | xNone | "
        "read 0 in 3001 ms, 5763/s of 0 lat clat | write 0 in 3001 ms, 5762/s of 0 lat clat | vda 16683 | bw"
    ),
    # where only the sum is printed, it is mixed
    "mixed.json": (
        "json 3.33 t1(0) | x1 randrw 4096B psync 3s | "
        "mixed 34431 in 3001 ms, 11473.1756/s of 0 lat clat | vda 16653 | bw | iops"
    ),
    # clones that were not grouped are runs of one job each
    "nogroup.json": (
        "json 3.33 t1(0) | x1 randrw 4096B psync 3s | "
        "read 12250 in 3001 ms, 4081.97268/s of 0 lat clat | "
        "write 12207 in 3001 ms, 4067.64412/s of 0 lat clat | vda 23600 | bw | iops\n"
        "json 3.33 t1(0) | x1 randrw 4096B psync 3s | "
        "read 12192 in 3001 ms, 4062.64578/s of 0 lat clat | "
        "write 12382 in 3001 ms, 4125.95801/s of 0 lat clat | vda 23600 | bw | iops"
    ),
    # the text says how many jobs a group has
    "uneq.out": (
        "json+text 3.33 a(0) | x2 randread 4096B qd1 psync 4s | "
        "read 5521 in 4001 ms, 1379.90502/s of 0 lat clat | vda 5562 | bw | iops"
    ),
    # a signal before the document cut the run short
    "int.json": (
        "json 3.33 t1(0) | x1 randread 4096B psync 20s | "
        "read 22818 in 1589 ms, 14359.9748/s of 0 lat clat | vda 19857 | bw | iops | fio.signal"
    ),
    # a job that failed, with kb_base=1000
    "kb.out": (
        "json+terse3+text 3.33 x(0) | x1 randrw 4000B qd8 io_uring 1s | "
        "read 5 in 0 ms, nan/s of 0 slat | write 3 in 0 ms, nan/s of 0 slat | vda 0 | error 22 | iops | fio.error"
    ),
    # terse of each version
    "terse2.txt": "terse2 None t1(0) | xNone | read 0 in 1001 ms, 14469/s of 0 lat clat | bw",
    "terse3.txt": "terse3 3.33 t1(0) | xNone | read 0 in 1001 ms, 12968/s of 0 lat clat | vda 11831 | bw",
    "terse4.txt": "terse4 3.33 t1(0) | xNone | read 0 in 1001 ms, 12330/s of 0 lat clat | vda 11094 | bw",
    "terse5.txt": ("terse5 3.33 t1(0) | xNone | read 0 in 1001 ms, 12643/s of 0 lat clat | vda 11942 | bw | iops"),
    # t/io_uring is averaged without its first line
    "uring_512.txt": (
        "io_uring None t/io_uring(None) | x1 randread 512B qd8 io_uring | read 0 in 4000 ms, 43040/s of 3"
    ),
    "uring_aio.txt": ("io_uring None t/io_uring(None) | x1 randread 4096B qd128 aio | read 0 in 3000 ms, 77824/s of 2"),
    "uring_n2.txt": (
        "io_uring None t/io_uring(None) | x2 randread 4096B qd32 io_uring | read 0 in 4000 ms, 69040/s of 3"
    ),
    "uring_nop.txt": (
        "io_uring None t/io_uring(None) | x1 randread qd128 io_uring | read 0 in 4000 ms, 13455000/s of 3"
    ),
    "uring_sync.txt": (
        "io_uring None t/io_uring(None) | x1 randread 4096B qd1 preadv2 | read 0 in 3000 ms, 14290/s of 2"
    ),
    # ticks of an unknown clock are no latency
    "uring_stats_notsc.txt": (
        "io_uring None t/io_uring(None) | x1 randread 4096B qd8 io_uring | "
        "read 0 in 4000 ms, 826810/s of 3 | uring.ticks"
    ),
    "uring_polled.txt": "t/io_uring printed no rate: io: unexpected ret=-95",
}


def shape(run: Run) -> str:
    """Formats, name, group and jobs of a run; what was asked; each direction; disks, error, samplers, rules."""
    w = run.workload
    asked = [w.rw, w.bs and f"{w.bs}B", w.iodepth and f"qd{w.iodepth}", w.ioengine, w.runtime and f"{w.runtime:g}s"]
    parts = [" ".join(["+".join((run.format, *sorted(run.also))), f"{run.fio_version} {run.jobname}({run.group})"])]
    parts += [" ".join([f"x{run.jobs}", *(word for word in asked if word)])]
    for d in run.directions:
        seconds = len(run.series.get(f"{d.kind}.iops", ()))
        did = f"{d.kind} {d.ios} in {d.runtime_ms} ms, {d.iops.value:.9g}/s of {seconds}"
        parts.append(" ".join([did, *d.latencies()]))
    words = [f"{disk.name} {disk.read_ios}" for disk in run.disks] + [f"error {run.error}"] * bool(run.error)
    words += sorted({sampler.of for sampler in run.samplers}) + sorted({finding.rule for finding in run.findings})
    return " | ".join([*parts, *words])


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_of_fio_holds(name: str) -> None:
    found = read([DATA / name])
    assert "\n".join([*map(shape, found.runs), *(refusal.reason for refusal in found.refusals)]) == FILES[name]


@pytest.mark.parametrize("indent", [2, None])
def test_clones_in_cumulative_reports_are_told_apart(indent: int | None) -> None:
    """numjobs without group_reporting: two entries of one name in each of status-interval's documents."""
    document = json.loads((DATA / "nogroup.json").read_text())
    later = json.dumps(document, indent=indent)
    for job in document["jobs"]:
        job["elapsed"] -= 1
        for kind in ("read", "write"):
            job[kind]["total_ios"] //= 2
            job[kind]["io_bytes"] //= 2
            job[kind]["runtime"] //= 2
    document["timestamp_ms"] -= 1000
    runs = runs_of(json.dumps(document, indent=indent) + "\n" + later)
    assert [run.directions[0].runtime_ms for run in runs] == [3001, 3001]
    assert all("read.status-interval" in rules(run) for run in runs)


def stonewalled(*reports: tuple[int, int]) -> str:
    """A job that ended after 2 s, then another, as fio < 3.30 reports both: the run time of each in ms."""
    ended = 1_700_000_000
    text = ""
    for number, (first, second) in enumerate(reports):
        at = number - len(reports) + 1
        made = fio_files.document(ended=ended + at, version="fio-3.16")
        rates = {"one": 1000, "two": 500 + 10 * number}
        (one,), (two,) = (fio_files.document(rate, name=name)["jobs"] for name, rate in rates.items())
        one["read"]["runtime"], two["read"]["runtime"] = first, second
        (begun,) = fio_files.document(500, name="two")["jobs"]  # extremes that a run had stay
        two["read"] |= {name: value for name, value in begun["read"].items() if name.endswith("lat_ns")}
        made["jobs"] = [job | {"groupid": group, "elapsed": 11 + at} for group, job in enumerate((one, two))]
        text += json.dumps(made, indent=1) + "\n"
    return text


def test_the_time_of_a_job_that_had_ended_runs_on_in_interim_reports() -> None:
    runs = runs_of(stonewalled((5000, 1000), (6000, 2000), (2000, 2100)))
    assert [(run.jobname, run.directions[0].runtime_ms) for run in runs] == [("one", 2000), ("two", 2100)]
    assert all("read.status-interval" in rules(run) for run in runs)


def test_a_shorter_run_with_other_latencies_is_another_run() -> None:
    """Runs of one size, started in the same second, have the same counts."""
    made = fio_files.document(iops=1000)
    again = fio_files.document(iops=1000, depth=31)
    again["jobs"][0]["read"]["runtime"] -= 10
    assert len(runs_of(json.dumps(made, indent=1) + "\n" + json.dumps(again, indent=1))) == 2


def test_clones_in_cumulative_terse_records_are_told_apart() -> None:
    whole = (DATA / "terse3.txt").read_text().splitlines()[-1].split(";")

    def record(runtime: int, more: int) -> str:
        kib = runtime * 50 + more
        return ";".join(
            [*whole[:5], str(kib), str(kib * 1000 // runtime), str(kib * 250 // runtime), str(runtime), *whole[9:]]
        )

    text = "\n".join([record(1000, 0), record(1001, 40), record(2001, 0), record(2000, 90)])
    assert [run.directions[0].runtime_ms for run in runs_of(text)] == [2001, 2000]


@pytest.mark.parametrize(
    ("ending", "says"), [('"jobname" : "t1"', "jobs after this one"), ('"disk_util"', "follows the jobs")]
)
def test_a_document_that_ends_between_its_jobs_says_so(ending: str, says: str) -> None:
    text = (DATA / "nogroup.json").read_text()
    runs = runs_of(text[: text.rindex(ending)])
    (found,) = [finding for run in runs for finding in run.findings if finding.rule == "read.cut"]
    assert says in found.explanation


@pytest.mark.parametrize(("until", "severity"), [("  write:", "warning"), ("  cpu  ", "note")])
def test_a_report_that_was_cut_says_so(until: str, severity: str) -> None:
    text = (DATA / "both.txt").read_text()
    (run,) = runs_of(text[: text.index(until)])
    assert [finding.severity for finding in run.findings if finding.rule == "read.cut"] == [severity]


def test_percentiles_of_total_latency_in_a_terse_record_are_no_contradiction() -> None:
    """With lat_percentiles=1 a terse record has those of lat where those of clat stand otherwise."""
    text = (DATA / "multi.out").read_text()
    start, end = text.index("{"), text.rindex("}") + 1
    document = json.loads(text[start:end])
    for kind in ("read", "write"):
        part = document["jobs"][0][kind]
        part["lat_ns"]["percentile"] = part["clat_ns"].get("percentile", {})
        part["clat_ns"]["percentile"] = {key: 2 * value for key, value in part["lat_ns"]["percentile"].items()}
        part["clat_ns"].pop("bins", None)
    runs = runs_of(text[:start] + json.dumps(document, indent=1) + "\n")
    assert {form for run in runs for form in (run.format, *run.also)} >= {"terse3"}
    assert not [f for run in runs for f in run.findings if f.rule == "read.disagree"]


def group(members: float, *, numjobs: int = 1) -> Run:
    """A group of jobs of several sections, whose run times add up to ``members`` times the longest."""
    text = (DATA / "uneq.out").read_text()
    start = text.index("{")
    document, _ = json.JSONDecoder().raw_decode(text, start)
    document["jobs"][0]["job_runtime"] = round(members * 4001)
    document["jobs"][0]["job options"]["numjobs"] = str(numjobs)
    (run,) = runs_of(json.dumps(document))
    return run


def test_run_times_say_how_many_jobs_a_group_has_whatever_its_last_section_asked_for() -> None:
    six = group(6)
    assert (six.jobs, six.concurrency) == (6, 6)
    assert "read.group" in rules(six)
    four = group(4, numjobs=4)
    assert (four.jobs, "read.group" in rules(four)) == (4, False)


def test_jobs_that_ran_one_after_the_other_are_not_taken_for_parallel_ones() -> None:
    run = group(1.6)
    assert run.jobs == 1
    assert run.concurrency == pytest.approx(1.6, abs=0.001)
    assert audit_slots(run) == pytest.approx(1.6, abs=0.001), "so many I/Os of depth 1 can have been in flight"


@pytest.mark.parametrize("members", [1, 2])
def test_a_job_that_verifies_what_it_wrote_is_one_job(members: int) -> None:
    text = (DATA / "v.out").read_text()
    document, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    document["jobs"][0]["job_runtime"] *= members
    document["jobs"][0]["job options"]["numjobs"] = str(members)
    (run,) = runs_of(json.dumps(document))
    assert run.jobs == members
    assert run.concurrency == pytest.approx(members, rel=0.1), "reads and writes were no two jobs"
    assert "read.group" not in rules(run)


def test_a_complaint_of_fio_is_passed_on() -> None:
    (refusal,) = read_text(b"fio: unrecognized option '--cmdprio=30'\nDid you mean trim_percentage?\n", "x")
    assert isinstance(refusal, Refusal)
    assert "unrecognized option" in refusal.reason


def test_a_latency_target_is_told_from_the_report() -> None:
    text = (DATA / "eta.txt").read_text()
    (plain,) = runs_of(text)
    assert "latency_target" not in plain.options
    (searched,) = runs_of(text.replace("target=0,", "target=10000000,"))
    assert searched.options["latency_target"] == "10000000"


def test_ten_runs_appended_to_one_file_are_ten_runs() -> None:
    text = (DATA / "jp1.json").read_text()
    document = json.loads(text)
    appended = ""
    for number in range(10):
        document["timestamp"] += 7
        document["timestamp_ms"] = document["timestamp"] * 1000
        document["jobs"][0]["read"]["total_ios"] += number
        appended += json.dumps(document, indent=2) + "\n"
    assert len(runs_of(appended)) == 10


def test_repeats_of_a_report_without_any_time_in_it_are_repeats() -> None:
    record = (DATA / "terse3.txt").read_text()
    more = re.sub(r"^(3;fio-3.33;t1;0;0);(\d+)", lambda m: f"{m[1]};{int(m[2]) + 4}", record)
    assert len(runs_of(record + more)) == 2


def test_a_text_report_below_the_json_of_another_run_is_another_run() -> None:
    """Same job, same run time to the millisecond, a thousandth more I/Os: nobody printed one run twice."""
    text = (DATA / "v.out").read_text()
    assert len(runs_of(text)) == 1
    other = text.replace("total=1024,1024,", "total=1025,1024,")
    assert other != text
    assert len(runs_of(other)) == 2


def test_the_sampler_is_kept_apart_from_the_run() -> None:
    run = one("stall.json")
    assert run.directions[0].iops.value == pytest.approx(20000 / 9.449)
    sampler = run.sampler("read", "iops")
    assert sampler is not None
    assert sampler.mean.value == pytest.approx(6664, abs=1)
    assert sampler.min.value == 1720


def test_a_terse_record_in_the_middle_of_a_line_is_found() -> None:
    record = (DATA / "terse3.txt").read_text().strip()
    captured = f"Jobs: 1 (f=1): [R(1)][33.3%][r=49.5MiB/s][eta 04{record}\n"
    assert runs_of(captured)[0].directions == runs_of(record)[0].directions


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_terse_record_is_read_or_told_wherever_it_was_cut(version: int) -> None:
    """Two records, the first of them cut: no run of it is lost without a word."""
    record = (DATA / f"terse{version}.txt").read_text().strip()
    fields = record.split(";")
    for kept in range(5, len(fields), 7):
        cut = ";".join(fields[:kept])
        found = read_bytes(f"{cut}\n{record}\n".encode(), "x.txt")
        assert len(found.runs) + len(found.refusals) == 2, kept


def test_a_job_name_with_semicolons_does_not_shift_a_terse_record() -> None:
    text = (DATA / "terse3.txt").read_text()
    (plain,), (named,) = runs_of(text), runs_of(text.replace(";t1;", ";one; two;;three;"))
    assert named.jobname == "one; two;;three"
    assert named.directions == plain.directions
    assert named.depths == plain.depths


def test_the_sum_over_all_clients_is_no_run_in_terse_either() -> None:
    text = (DATA / "terse3.txt").read_text()
    (run,) = runs_of(text + text.replace(";t1;", ";All clients;"))
    assert run.jobname == "t1"


def test_a_terse_percentile_with_few_ios_beyond_it_can_be_told() -> None:
    (run,) = runs_of((DATA / "terse3.txt").read_text())
    direction = run.directions[0]
    assert direction.clat is not None
    assert direction.clat.count == int(direction.iops.value * direction.runtime_ms / 1000)


def test_a_cut_terse_record_is_refused_and_not_half_read() -> None:
    record = (DATA / "terse3.txt").read_text().strip()
    (found,) = read_text(record[: len(record) // 2].encode(), "x")
    assert isinstance(found, Refusal)
    assert "cut or damaged" in found.reason


def test_what_stands_around_and_between_documents_is_not_in_the_way() -> None:
    text = (DATA / "jp1.json").read_text()
    noise = "hostname=a, be=0, 64-bit, os=Linux\n{not json\n\nDisk stats (read/write):\n\n"
    assert len(runs_of(noise + text + "\n}\nharness: { ok }\n")) == 1


def test_latencies_by_priority_of_both_spellings() -> None:
    document = json.loads((DATA / "jp1.json").read_text())
    lat = {"min": 1, "max": 9, "mean": 5.0, "stddev": 1.0, "N": 7}
    read_ = document["jobs"][0]["read"]
    read_["prios"] = [
        {"prioclass": 1, "prio": 0, "priohint": 3, "clat_ns": lat},
        {"prioclass": 2, "prio": 4, "clat_ns": lat | {"N": 0}},
    ]
    (run,) = runs_of(json.dumps(document))
    assert [(p.kind, p.name, p.latency.count) for p in run.priorities] == [("read", "1/0/3", 7)]
    del read_["prios"]
    read_["clat_high_prio"] = lat
    (run,) = runs_of(json.dumps(document))
    assert [p.name for p in run.priorities] == ["high"]


def test_of_keys_written_twice_the_last_holds() -> None:
    """A client's "global options" repeat once per host; fio < 3.4 pads its percentiles with the key "0.00"."""
    text = (DATA / "jp1.json").read_text()
    twice = text.replace('"global options" : {', '"global options" : {\n    "bs" : "1k",\n    "bs" : "2k",', 1)
    twice = twice.replace('"1.000000" :', '"0.00" : 0, "0.00" : 0, "1.000000" :', 1)
    (run,), (plain,) = runs_of(twice), runs_of(text)
    assert run.directions == plain.directions
    assert run.options["bs"] == plain.options.get("bs", "2k")


def test_damaged_values_are_left_out_and_counted() -> None:
    document = json.loads((DATA / "jp1.json").read_text())
    document["jobs"][0]["ctx"] = "many"
    document["jobs"][0]["read"]["short_ios"] = -1
    document["jobs"][0]["write"] = [1, 2]
    (run,) = runs_of(json.dumps(document))
    assert run.context_switches is None
    assert run.directions[0].short == 0
    assert any("3 values" in finding.explanation for finding in run.findings)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.95])
def test_a_cut_document_gives_what_was_written_whole(share: float) -> None:
    text = (DATA / "jf.json").read_text()
    whole = {run.jobname: run for run in runs_of(text)}
    for item in read_text(text[: int(len(text) * share)].encode(), "x"):
        if isinstance(item, Run):
            full = whole[item.jobname]
            for direction in item.directions:
                assert direction in full.directions
            assert len(item.directions) == len(full.directions) or "read.cut" in rules(item)
        else:
            assert isinstance(item, Refusal)
            assert "ends" in item.reason


def test_t_io_uring_s_percentiles_are_per_thread_and_lie_between_the_threads() -> None:
    lat = one("uring_stats_tsc.txt").directions[0].lat
    assert lat is not None
    assert len(lat.percentiles) == 17
    p95 = lat.percentiles[95.0]
    assert p95.low <= 12_000 <= p95.high, "one thread says 12 us, rounded up"
    assert p95.low <= 12_500 <= p95.high, "the other 13 us"


def test_both_fields_of_a_t_io_uring_line_together_are_finer_than_either() -> None:
    text = (
        "submitter=0, tid=1, file=/dev/ng0n1, node=-1\npolled=0, fixedbufs=0/0, register_files=1, buffered=1, QD=128\n"
        "Engine=io_uring, sq_ring=128, cq_ring=128\n"
        "IOPS=1.85M, BW=904MiB/s, IOS/call=32/31\n"
        "IOPS=1.85M, BW=903MiB/s, IOS/call=32/32\n"
        "IOPS=1.85M, BW=901MiB/s, IOS/call=32/32\n"
    )
    (run,) = runs_of(text)
    first, second, third = run.series["read.iops"]
    assert first > second > third, "BW shows a drift that IOPS hides"
    interval = run.directions[0].iops
    assert interval.high - interval.low < 2100, "and not 10,000"


def test_t_io_uring_s_own_time_limit_is_what_it_ran() -> None:
    command = "# taskset -c 0 t/io_uring -b4096 -d1 -r4 -p0 /dev/nvme0n1\n"
    (run,) = runs_of(command + (DATA / "uring_qd1.txt").read_text())
    assert run.workload.runtime == 4
    assert run.directions[0].runtime_ms == 4000, "three lines, and the last second that it does not print"


def test_an_excerpt_of_t_io_uring_does_not_say_how_long_it_ran() -> None:
    command = "# t/io_uring -b4096 -d1 -r30 -p0 /dev/nvme0n1\n"
    output = (DATA / "uring_qd1.txt").read_text()
    (cut,) = runs_of(command + output.partition("Exiting")[0] + "[...]\n")
    assert cut.directions[0].runtime_ms == 0, "its end was left out"
    (shortened,) = runs_of(command + output.replace("Exiting", "[...]\nExiting"))
    assert shortened.directions[0].runtime_ms == 30_000, "it says itself that it ended by its time limit"
    (stopped,) = runs_of(command + output.replace("on timeout", "on signal 2"))
    assert stopped.directions[0].runtime_ms == 3000


def test_passthrough_has_no_page_cache() -> None:
    text = (DATA / "uring_qd1.txt").read_text().replace("buffered=0", "buffered=1")
    assert runs_of(text)[0].workload.direct is False
    assert runs_of(f"$ t/io_uring -d1 -u1 -O0 /dev/ng0n1\n{text}")[0].workload.direct is True


def test_two_t_io_uring_runs_in_one_paste_are_two_runs() -> None:
    text = (DATA / "uring_n2.txt").read_text()
    assert len(runs_of(text + text)) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "blank"),
        ("[global]\nioengine=libaio\nrw=randread\n[x]\nfilename=/dev/x\n", "job file"),
        ("x: (g=0): rw=read, bs=4K-4K/4K-4K, ioengine=sync, iodepth=1\nfio-3.33\nStarting 1 process\n", "no report"),
        ("hello, IOPS are fine\n", "no fio report"),
        ('{"a": 1}', "no fio report"),
        ('{"fio version" : "fio-3.33", "jobs" : []}', "without any job"),
    ],
)
def test_what_holds_no_result_is_refused_with_the_reason(text: str, reason: str) -> None:
    (found,) = read_text(text.encode(), "x")
    assert isinstance(found, Refusal)
    assert reason in found.reason


REWRITTEN = {
    "keys sorted": lambda document: "said before\n" + json.dumps(document, indent=2, sort_keys=True) + "\nand after",
    "inside another document, sorted": lambda document: json.dumps({"z": 1, "a": [{"b": document}]}, sort_keys=True),
    "a list of them": lambda document: json.dumps([document]),
    "without indents": lambda document: json.dumps(document, indent=0),
    "indented": lambda document: json.dumps(document, indent=4),
    "a line each": lambda document: json.dumps(document) + "\n\n",
    "an assignment": lambda document: f"var data = {json.dumps(document)};",
}


@pytest.mark.parametrize("way", REWRITTEN)
def test_json_is_found_wherever_another_program_has_put_it(way: str) -> None:
    text = (DATA / "jf.json").read_text()
    again = runs_of(REWRITTEN[way](json.loads(text)))
    assert [(run.directions, run.fio_version, run.disks) for run in again] == [
        (run.directions, run.fio_version, run.disks) for run in runs_of(text)
    ]


def test_jobs_whose_document_lost_its_beginning_are_read_with_a_warning() -> None:
    text = (DATA / "jf.json").read_text()
    whole = runs_of(text)
    left = runs_of(text[text.index('"jobs"') + 10 :])
    assert [run.directions for run in left] == [run.directions for run in whole]
    assert all("read.cut" in {finding.rule for finding in run.findings} for run in left)
    assert all(run.fio_version is None for run in left)


def test_the_banner_of_one_job_is_not_taken_for_another_s() -> None:
    """With --output behind the jobs of a command line only the last one's banner is in the file."""
    text = """big: (g=0): rw=read, bs=(R) 256KiB-256KiB, (W) 256KiB-256KiB, (T) 256KiB-256KiB, ioengine=psync, iodepth=1
fio-3.33
Starting 2 processes

small: (groupid=0, jobs=1): err= 0: pid=1: Sun Nov 22 05:41:46 2026
  read: IOPS=34.1k, BW=133MiB/s (140MB/s)(133MiB/1001msec)
     issued rwts: total=34152,0,0,0 short=0,0,0,0 dropped=0,0,0,0
big: (groupid=0, jobs=1): err= 0: pid=2: Sun Nov 22 05:41:46 2026
  read: IOPS=4587, BW=1147MiB/s (1203MB/s)(1148MiB/1001msec)
     issued rwts: total=4592,0,0,0 short=0,0,0,0 dropped=0,0,0,0
"""
    assert [run.workload.bs for run in runs_of(text)] == [None, 256 << 10]


def test_a_log_that_fio_compressed_is_refused_with_the_way_to_read_it() -> None:
    found = read_bytes(zlib.compress(b"1, 2, 0, 4096, 0\n" * 100), "x_lat.1.log.fz")
    assert [("--inflate-log" in refusal.reason) for refusal in found.refusals] == [True]


def test_files_are_read_in_the_order_that_people_count_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["run1.json", "run2.json", "run10.json", "run10b.json", "run.json"]
    for name in reversed(names):
        (tmp_path / name).write_text("nothing")
    monkeypatch.chdir(tmp_path)
    assert [refusal.place.file for refusal in read(["."]).refusals] == names


@pytest.mark.parametrize("longest", [0, 44])
def test_percentiles_that_are_all_zero_were_not_measured(longest: int) -> None:
    document = json.loads((DATA / "jp1.json").read_text())
    for job in document["jobs"]:
        for kind in ("read", "write"):
            clat = job[kind]["clat_ns"]
            clat.pop("bins", None)
            clat.pop("N", None)
            clat |= {"max": longest, "percentile": dict.fromkeys(clat.get("percentile", {}), 0)}
    found = read_bytes(json.dumps(document).encode(), "x.json")
    for direction in found.runs[0].directions:
        assert direction.clat is None or not direction.clat.percentiles


def test_that_fio_did_nothing_is_said() -> None:
    said = "No I/O performed by libaio, perhaps try --debug=io option for details?\n"
    document = json.loads((DATA / "jp1.json").read_text())
    for job in document["jobs"]:
        for kind in ("read", "write", "trim"):
            job[kind] |= {"io_bytes": 0, "io_kbytes": 0, "total_ios": 0, "iops": 0, "runtime": 0}
    found = read_bytes((said + json.dumps(document, indent=1)).encode(), "x.json")
    assert {finding.rule for run in found.runs for finding in run.findings} == {"fio.no-io"}
