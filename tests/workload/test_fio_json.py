"""fio's JSON, from real runs of many versions, means here what it means to fio."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.trial import BINS, Direction, Histogram, bin_edges, bin_index
from iodelta.workload.fio_json import documents, merged, read_document
from iodelta.workload.fio_schema import RawLatency

CORPUS = Path(__file__).parents[3] / "shared" / "fio-corpus"
JSON_PLUS = [f"own-version-matrix/fio-{version}.json+.out" for version in ("3.1", "3.7", "3.16", "3.33", "3.42")]


def corpus(name: str) -> bytes:
    path = CORPUS / name
    if not path.exists():
        pytest.skip("the fio corpus is not beside this checkout (../shared/fio-corpus)")
    return path.read_bytes()


def last(name: str) -> bytes:
    return documents(corpus(name))[0][-1]


def printed_percentile(histogram: Histogram, percent: float) -> int:
    """fio's rule: the centre of the first bin at which the cumulative count reaches the share (stat.c)."""
    below = 0
    for index, count in zip(histogram.indexes, histogram.counts, strict=True):
        below += count
        if below >= percent / 100 * histogram.total:
            low, high = bin_edges(index)
            return low + (high - low) // 2
    raise AssertionError("an empty histogram has no percentiles")


@pytest.mark.parametrize("name", JSON_PLUS)
def test_histogram_percentiles_and_mean_are_those_that_fio_printed(name: str) -> None:
    latencies = [
        latency
        for job in read_document(last(name)).jobs
        for direction in job.directions
        for latency in (direction.lat, direction.clat)
        if latency is not None and latency.histogram is not None and latency.percentiles
    ]
    assert latencies
    for latency in latencies:
        assert latency.histogram is not None
        assert latency.histogram.total == latency.count
        assert latency.histogram.mean() == pytest.approx(latency.mean.value, rel=1e-3)
        for percent, quantity in latency.percentiles.items():
            assert printed_percentile(latency.histogram, percent) == quantity.value
            assert quantity.low <= latency.histogram.quantile(percent / 100) <= quantity.high


@pytest.mark.parametrize("name", [*JSON_PLUS, "own-fio-3.33/nogroup.json", "own-fio-3.33/stall.json"])
def test_rates_are_recomputed_from_counts_and_agree_with_what_fio_printed(name: str) -> None:
    raw = json.loads(last(name))
    read = read_document(last(name))
    assert [job.name for job in read.jobs] == [job["jobname"] for job in raw["jobs"]]
    for theirs, ours in zip(raw["jobs"], read.jobs, strict=True):
        assert [d.kind for d in ours.directions] == [k for k in ("read", "write", "trim") if theirs[k]["total_ios"]]
        for direction in ours.directions:
            printed = theirs[direction.kind]
            assert direction.ios == printed["total_ios"]
            assert direction.bytes == printed["io_bytes"]
            assert direction.iops.value == pytest.approx(printed["iops"], abs=1e-5)
            assert direction.bandwidth.value == pytest.approx(printed["bw"] * 1024, abs=1024)


def test_a_stall_is_part_of_the_rate_though_fios_sampler_skips_it() -> None:
    """The true rate was 2117 I/Os per second; iops_mean of the same run says 6664."""
    (job,) = read_document(last("own-fio-3.33/stall.json")).jobs
    assert round(job.directions[0].iops.value) == 2117


def test_of_several_documents_in_one_file_each_is_whole_and_the_last_is_the_final_one() -> None:
    found, around = documents(corpus("own-fio-3.33/status.json"))
    runtimes = [read_document(document).jobs[0].directions[0].runtime_ms for document in found]
    assert runtimes == sorted(runtimes)
    assert len(runtimes) == 4
    assert around == ""


def test_text_around_a_document_is_kept_apart() -> None:
    found, around = documents(corpus("own-fio-3.33/int.json"))
    assert len(found) == 1
    assert "terminating on signal 2" in around


@pytest.mark.parametrize("name", ["own-version-matrix/fio-2.21.json.out", "own-version-matrix/fio-2.0.15.json.out"])
def test_json_before_3_0_is_refused_because_its_units_differ(name: str) -> None:
    with pytest.raises(ValueError, match=r"not of fio 3\.0 or later"):
        read_document(last(name))


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"{\n", b'{"jobs": 3}', b'{"fio version": "x", "jobs": []}'])
def test_what_is_no_fio_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="fio"):
        read_document(text)


def test_bare_nan_and_infinity_do_not_spoil_a_document() -> None:
    text = b'{"fio version": "fio-3.33", "jobs": [{"usr_cpu" : -nan, "sys_cpu": inf, "read": {"total_ios": 0}}]}'
    assert read_document(text).jobs[0].directions == ()


def direction_of(kind: str, **printed: object) -> Direction:
    """Of a run that printed only this."""
    text = json.dumps({"fio version": "fio-3.33", "jobs": [{kind: printed}]}).encode()
    (found,) = read_document(text).jobs[0].directions
    return found


def test_zeros_that_mean_not_measured_are_no_latency() -> None:
    """gtod_reduce, disable_clat, and slat of synchronous engines print N = 0."""
    found = direction_of("read", total_ios=5, runtime=10, io_bytes=5, lat_ns={"N": 0, "mean": 0.0}, clat_ns={"max": 0})
    assert (found.lat, found.clat, found.slat) == (None, None, None)


def test_a_rate_is_known_to_the_millisecond_of_its_runtime() -> None:
    found = direction_of("write", total_ios=1000, runtime=100, io_bytes=4096000)
    assert found.iops.value == 10000
    assert found.iops.low == pytest.approx(1000 / 0.101)
    assert found.iops.high == pytest.approx(1000 / 0.099)


def test_a_percentile_may_be_anything_inside_its_bin() -> None:
    latency = {"N": 5, "min": 1, "max": 2300000, "mean": 1.0, "stddev": 0.0, "percentile": {"50.000000": 2277376}}
    clat = direction_of("read", total_ios=5, runtime=10, clat_ns=latency).clat
    assert clat is not None
    quantity = clat.percentiles[50.0]
    assert quantity.low <= quantity.value < quantity.high
    assert (quantity.high - quantity.low) / quantity.value == pytest.approx(0.0144, abs=0.0002)


def document(samples_by_job: list[list[int]], runtimes: list[int]) -> bytes:
    jobs = []
    for samples, runtime in zip(samples_by_job, runtimes, strict=True):
        mean = sum(samples) / len(samples)
        spread = math.sqrt(sum((s - mean) ** 2 for s in samples) / (len(samples) - 1)) if len(samples) > 1 else 0.0
        bins: dict[str, int] = {}
        for sample in samples:
            low, high = bin_edges(bin_index(sample))
            key = str(low + (high - low) // 2)
            bins[key] = bins.get(key, 0) + 1
        latency: dict[str, Any] = {"min": min(samples), "max": max(samples), "mean": mean, "stddev": spread}
        latency |= {"N": len(samples), "bins": bins}
        direction = {"total_ios": len(samples), "io_bytes": 4096 * len(samples), "runtime": runtime, "lat_ns": latency}
        jobs.append({"jobname": "j", "read": direction, "usr_cpu": 10.0, "ctx": 3, "job_runtime": runtime})
    return json.dumps({"fio version": "fio-3.33", "jobs": jobs}).encode()


samples = st.lists(st.integers(1, 10**9), min_size=1, max_size=30)


@given(st.lists(st.tuples(samples, st.integers(100, 5000)), min_size=1, max_size=5))
def test_merging_jobs_is_the_same_as_measuring_all_their_ios_as_one(parts: list[tuple[list[int], int]]) -> None:
    every = [sample for part, _ in parts for sample in part]
    longest = max(runtime for _, runtime in parts)
    several = merged(read_document(document([p for p, _ in parts], [r for _, r in parts])).jobs).directions[0]
    one = merged(read_document(document([every], [longest])).jobs).directions[0]
    assert (several.ios, several.bytes, several.runtime_ms) == (one.ios, one.bytes, one.runtime_ms)
    assert several.iops.value == pytest.approx(one.iops.value)
    assert several.lat is not None
    assert one.lat is not None
    assert several.lat.histogram == one.lat.histogram
    assert several.lat.mean.value == pytest.approx(one.lat.mean.value)
    assert several.lat.stddev.value == pytest.approx(one.lat.stddev.value, rel=1e-6, abs=1e-3)
    assert (several.lat.min, several.lat.max) == (one.lat.min, one.lat.max)


@given(
    st.dictionaries(st.integers(0, 2**40).map(str), st.integers(0, 2**70)),
    st.dictionaries(st.integers(0, BINS - 1).map(bin_edges).map(lambda edges: str(sum(edges) // 2)), st.integers(0)),
)
def test_bins_in_any_order_and_off_the_centres_are_those_of_the_dictionary(
    odd: dict[str, int], centred: dict[str, int]
) -> None:
    for bins in (odd, centred, odd | centred):
        for text in (json.dumps(bins), json.dumps(bins, indent=200)):
            assert RawLatency(bins=msgspec.Raw(text.encode())).histogram == Histogram.from_fio(bins)


@pytest.mark.parametrize("bins", ['{"5": -1}', '{"-5": 1}', '{"five": 1}', '{"": 1}', '{"5": 1, "5 6": 2}'])
def test_bins_that_fio_cannot_have_written_are_refused(bins: str) -> None:
    with pytest.raises(ValueError, match=r"^(?!Expected)"):
        RawLatency(bins=msgspec.Raw(bins.encode())).histogram  # noqa: B018 - it is read when asked for


@pytest.mark.parametrize("bins", ['{"5": 1.5}', '{"5": null}', '{"5": "1"}', '{"5": {"6": 1}}', "[1]", "7"])
def test_bins_that_are_no_integers_cannot_be_decoded(bins: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        RawLatency(bins=msgspec.Raw(bins.encode())).histogram  # noqa: B018 - it is read when asked for


def test_cpu_of_a_group_is_counted_in_cpus_not_in_shares_of_its_members() -> None:
    """Four jobs of one second, each at 50 % of a CPU, use two CPUs."""
    direction = {"total_ios": 4, "runtime": 1000}
    job = {"read": direction, "usr_cpu": 50.0, "sys_cpu": 25.0, "job_runtime": 4000}
    text = json.dumps({"fio version": "fio-3.33", "jobs": [job]}).encode()
    (found,) = read_document(text).jobs
    assert (found.usr_cpu, found.sys_cpu) == (200.0, 100.0)


def test_documents_are_what_stands_between_braces_alone_in_the_first_column() -> None:
    """Against the regular expression that says so, which is slow: on thousands of texts of braces, notes and blanks."""
    alone = re.compile(rb"^\{\s*$.*?^\}\s*$", re.MULTILINE | re.DOTALL)
    parts = [b"{\n", b"}\n", b"{", b"}", b"\n", b" a\n", b"note: x\n", b"{ \r\n", b"} \n", b"{x\n", b"}y\n", b"  {\n"]
    chosen = random.Random(1)
    for _ in range(5000):
        output = b"".join(chosen.choice(parts) for _ in range(chosen.randrange(14)))
        found, around = documents(output)
        assert [one.split() for one in found] == [one.split() for one in alone.findall(output)]
        assert around.split() == alone.sub(b"", output).decode().split()


DATA = Path(__file__).parents[1] / "data" / "fio-3.33"


@pytest.mark.parametrize("name", ["syncramp.json", "stall.json", "clones.out"])
def test_the_latency_of_syncs_is_what_fio_printed_over_all_of_its_jobs(name: str) -> None:
    document = documents((DATA / name).read_bytes())[0][-1]
    raw = [job["sync"]["lat_ns"] for job in json.loads(document)["jobs"] if job["sync"]["lat_ns"]["N"]]
    sync = merged(read_document(document).jobs).sync
    assert (sync is None) == (not raw)
    if sync is not None:
        count = sum(one["N"] for one in raw)
        assert sync.count == count
        assert sync.mean.value == pytest.approx(sum(one["N"] * one["mean"] for one in raw) / count)
        assert (sync.min.value, sync.max.value) == (min(one["min"] for one in raw), max(one["max"] for one in raw))
