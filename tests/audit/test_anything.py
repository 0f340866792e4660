"""Whatever a file made a reader believe, the rules answer in findings, never with an exception."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import scaled

from iodelta.audit import audit
from iodelta.audit.claims import check_claims
from iodelta.audit.statements import check_statements
from iodelta.errors import RequestError
from iodelta.ingest import Disk, Run, Sampler, Workload
from iodelta.ingest.prose import rows
from iodelta.report.formats.markdown import mended
from iodelta.report.formats.render import TEXTS, rendered
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.audit import of_audit
from iodelta.report.stories.story import Detail
from iodelta.study.audited import audited
from iodelta.trial import Direction, Latency, Place, Quantity

VALUES = st.one_of(
    st.just(math.nan), st.just(math.inf), st.just(0.0), st.floats(0, 1e18), st.sampled_from([1.0, 4096.0, 1e-9, 1e308])
)
COUNTS = st.one_of(st.just(0), st.integers(0, 2**63 - 1))
KINDS = st.sampled_from(["read", "write", "trim", "mixed"])


@st.composite
def quantities(draw: st.DrawFn, unit: str = "ns") -> Quantity:
    low, value, high = sorted((draw(VALUES) for _ in range(3)), key=lambda x: (math.isnan(x), x))
    return Quantity(value, low, high, unit)


LATENCIES = st.builds(
    Latency,
    count=COUNTS,
    mean=quantities(),
    stddev=quantities(),
    min=quantities(),
    max=quantities(),
    percentiles=st.dictionaries(st.sampled_from([0.0, 50.0, 99.0, 99.9, 100.0]), quantities(), max_size=3),
)
DIRECTIONS = st.builds(
    Direction,
    kind=KINDS,
    ios=COUNTS,
    bytes=COUNTS,
    runtime_ms=st.integers(0, 10**12),
    iops=quantities("1/s"),
    bandwidth=quantities("B/s"),
    lat=st.none() | LATENCIES,
    clat=st.none() | LATENCIES,
    short=st.integers(0, 5),
)
DISKS = st.builds(
    Disk,
    name=st.sampled_from(["sda", "md0", "dm-1"]),
    read_ios=COUNTS,
    write_ios=COUNTS,
    read_sectors=st.none() | COUNTS,
    write_sectors=st.none() | COUNTS,
    member=st.booleans(),
)
TITLES = ["IOPS", "BW (KiB/s)", "Avg Lat (ms)", "99% Lat (ms)", "Policy", "section", "x" * 50]
CELLS = st.one_of(
    st.sampled_from(["", "-", "~0", "261M", "1e999", "nan", "0", "very high", "1 234 567", "9" * 400, "12.5k"]),
    st.text(max_size=8),
)
RUNS = st.builds(
    Run,
    place=st.builds(Place, st.sampled_from(["a", "b.txt"]), st.integers(0, 9)),
    format=st.sampled_from(["json", "json+", "text", "terse3", "table", "io_uring", "log"]),
    jobname=st.text(max_size=5),
    group=st.none() | st.integers(0, 2),
    jobs=st.none() | st.integers(0, 10**9),
    directions=st.lists(DIRECTIONS, max_size=3).map(tuple),
    options=st.dictionaries(st.sampled_from(["ramp_time", "fsync", "rate", "verify"]), st.text(max_size=4), max_size=2),
    workload=st.builds(
        Workload,
        rw=st.none() | st.sampled_from(["randread", "rw", "?"]),
        bs=st.none() | st.integers(1, 2**40),
        iodepth=st.none() | st.integers(0, 2**31),
        numjobs=st.none() | st.integers(0, 10**6),
        direct=st.none() | st.booleans(),
        ioengine=st.none() | st.sampled_from(["psync", "libaio"]),
        runtime=st.none() | st.floats(0, 1e12),
        size=st.none() | COUNTS,
    ),
    fio_version=st.none() | st.sampled_from(["3.33", "2.0.15", "", "x", "3", "99.9.9-dirty"]),
    error=st.integers(0, 200),
    usr_cpu=quantities("%"),
    sys_cpu=quantities("%"),
    disks=st.lists(DISKS, max_size=3).map(tuple),
    samplers=st.lists(
        st.builds(
            Sampler, KINDS, st.just("iops"), quantities("1/s"), quantities("1/s"), quantities("1/s"), quantities("1/s")
        ),
        max_size=1,
    ).map(tuple),
    series=st.dictionaries(st.just("read.iops"), st.lists(st.floats(0, 1e12), max_size=40).map(tuple), max_size=1),
    labels=st.dictionaries(st.sampled_from(TITLES), CELLS, max_size=6),
    table=st.sampled_from(["", "Defrag On", "Defrag Off"]),
)


@settings(max_examples=scaled(100))
@given(st.lists(RUNS, max_size=5))
def test_any_runs_are_judged_and_the_judgement_is_printed(runs: list[Run]) -> None:
    found = audit(runs)
    said = audited(found, (), (), ())
    assert said.exit_code in (0, 1, 4)
    assert all(0 <= index < len(runs) for hit in found.hits for index in hit.runs)
    for line in lines(of_audit(said, Detail(whole=True))):
        assert "\x1b" not in line.plain
    mended(said)
    assert all(rendered(said, format_) for format_ in TEXTS)


@settings(max_examples=scaled(100))
@given(st.lists(RUNS, max_size=4), st.text(max_size=40))
def test_any_sentence_is_checked_or_refused(runs: list[Run], words: str) -> None:
    for claim in (words, f"{words} has the highest IOPS in {words}", f"{words} is 5 % below {words}"):
        try:
            checked = check_claims(claim, audit(runs))
        except RequestError:
            continue
        assert all(one.outcome in ("holds", "false", "untestable") for one in checked)


@settings(max_examples=scaled(100))
@given(st.text(alphabet="0123456789 kMG%.,→->():=IOPSmusfrotgbadup\n>", max_size=200))
def test_any_prose_is_read(text: str) -> None:
    check_statements(text, "x")
    audit(rows(text, "x"))
