"""Effects that a text states in percent: each sentence once."""

from __future__ import annotations

import pytest

from iodelta.ingest import read_bytes

BODY = """Comparing with kernel 2.6.32, fio mmap randread 64k has more than 40% regression with
2.6.33-rc1. It introduces about 20% regression on another machine.
"""


@pytest.mark.parametrize("head", ["Subject", "Subject: "])
def test_a_headline_is_no_word_of_the_text_and_what_it_says_counts_once(head: str) -> None:
    """An archive printed the subject without a colon: "Subjectfio" was a word, and its effect a second one."""
    text = f"{head}fio mmap randread 64k more than 40% regression with 2.6.33-rc1\n{BODY}"
    runs = read_bytes(text.encode(), "mail.txt").runs
    assert [run.labels["stated"] for run in runs] == ["more than 40% regression", "about 20% regression"]
    assert runs[0].labels["sentence"].startswith("Comparing with kernel 2.6.32")
    assert not any("Subject" in value for run in runs for value in run.labels.values())


def test_what_only_the_headline_says_is_read_from_it() -> None:
    runs = read_bytes(b"Subject: randread 4k 12% slower on 6.12\nWe saw this on two machines.\n", "mail.txt").runs
    assert [run.labels["sentence"] for run in runs] == ["randread 4k 12% slower"]


def numbers(text: str) -> list[tuple[str, str, float]]:
    """Direction, measure and value of everything that was read of ``text``."""
    found: list[tuple[str, str, float]] = []
    for direction in (d for run in read_bytes(text.encode(), "mail.txt").runs for d in run.directions):
        if direction.iops.value == direction.iops.value:
            found.append((direction.kind, "IOPS", direction.iops.value))
        if direction.lat is not None and direction.lat.mean.value == direction.lat.mean.value:
            found.append((direction.kind, "mean", direction.lat.mean.value))
        if direction.lat is not None:
            found += [(direction.kind, f"p{rank:g}", time.value) for rank, time in direction.lat.percentiles.items()]
    return found


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("the p99 latency went from 1.2ms to 3.4 ms", "p99"),
        ("the 99th percentile latency went from 1.2ms to 3.4 ms", "p99"),
        ("latency went from 1.2ms to 3.4 ms at p99.9", "p99.9"),
        ("99.9% latency went from 1.2ms to 3.4 ms", "p99.9"),
        ("the median rose from 1.2ms to 3.4 ms", "p50"),
        ("average latency rose from 1.2ms to 3.4 ms", "mean"),
    ],
)
def test_a_time_in_a_sentence_is_of_the_percentile_that_it_names(text: str, measure: str) -> None:
    assert numbers(f"{text}.\n") == [("mixed", measure, 1.2e6), ("mixed", measure, 3.4e6)]


@pytest.mark.parametrize("of", ["max latency", "tail latency", "the runtime", "latency stddev", "p50/p99", "the boot"])
def test_a_time_in_a_sentence_that_is_no_mean_of_io_is_not_read(of: str) -> None:
    assert not numbers(f"{of} went from 1.2ms to 3.4 ms.\n")


def test_two_changes_of_one_depth_are_both_read_each_of_its_direction() -> None:
    text = "At QD32 reads went from 36k IOPS to 13k IOPS and writes from 20k IOPS to 18k IOPS.\n"
    assert sorted(numbers(text)) == sorted(
        [("read", "IOPS", 36e3), ("read", "IOPS", 13e3), ("write", "IOPS", 20e3), ("write", "IOPS", 18e3)]
    )


def test_a_change_right_after_its_measure_is_read() -> None:
    assert numbers("IOPS: 708 -> 436 (-38%)\n") == [("mixed", "IOPS", 708), ("mixed", "IOPS", 436)]


def test_rates_in_sentences_that_are_not_understood_are_said_beside_those_that_are() -> None:
    text = b"Latency rose from 1.2 ms to 3.4 ms.\n\nOn the other machine it is 100k IOPS and then 90k IOPS.\n"
    found = read_bytes(text, "mail.txt")
    assert len(found.runs) == 2
    (refusal,) = found.refusals
    assert refusal.place.line == 3


@pytest.mark.parametrize("ruler", ["", "------\n"])
@pytest.mark.parametrize("gap", ["", "\n", "======\n"])
def test_every_line_of_rates_below_a_heading_is_read(ruler: str, gap: str) -> None:
    """The writes below the reads were lost without a word."""
    first = f"Sequential:\n{ruler}Read: 2786 MB/s\nWrite: 2,301.45 MB/s\n{gap}"
    runs = read_bytes(f"{first}4K:\n{ruler}Read: 51.7 MB/s\nWrite: 131 MB/s\n".encode(), "x.txt").runs
    found = [(run.labels["setting"], d.kind, d.bandwidth.value / 1e6) for run in runs for d in run.directions]
    assert found == [
        ("Sequential", "read", 2786),
        ("Sequential", "write", pytest.approx(2301.45)),
        ("4K", "read", pytest.approx(51.7)),
        ("4K", "write", 131),
    ]


@pytest.mark.parametrize(
    "line", ["Read: 2786 MB/s, 12.5k IOPS", "Read: 12.5k IOPS / 2786 MB/s", "Read: 2786 MB/s (12.5k IOPS)"]
)
def test_the_iops_beside_a_bandwidth_are_read(line: str) -> None:
    """They were dropped without a word."""
    (run,) = read_bytes(f"Sequential:\n{line}\n".encode(), "x.txt").runs
    (read,) = run.directions
    assert (read.bandwidth.value, read.iops.value) == (2786e6, 12_500)


def test_a_line_of_rates_after_one_that_is_read_is_not_lost_in_silence() -> None:
    found = read_bytes(b"Sequential:\nRead: 2786 MB/s\nthe writes reached 2301 MB/s\n", "x.txt")
    assert [d.bandwidth.value for run in found.runs for d in run.directions] == [2786e6]
    assert [refusal.place.line for refusal in found.refusals] == [3]


def pairs(text: str) -> list[float]:
    """Both sides of the changes in ``text``, in 1/s, B/s or ns."""
    found: list[float] = []
    for direction in (d for run in read_bytes(f"{text}\n".encode(), "mail.txt").runs for d in run.directions):
        quantities = [direction.iops, direction.bandwidth]
        if direction.lat is not None:
            quantities += [direction.lat.mean, *direction.lat.percentiles.values()]
        found += [quantity.value for quantity in quantities if quantity.value == quantity.value]
    return found


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("randread latency: 210 -> 180 us", 210e3, 180e3),
        ("512 -> 600 MB/s", 512e6, 600e6),
        ("latency went from 210 to 180 us", 210e3, 180e3),
        ("clat 2 -> 3 ms", 2e6, 3e6),
        ("randwrite: 210µs → 180µs", 210e3, 180e3),
        ("from 210us to 180", 210e3, 180e3),
        ("clat (us): 210 -> 180", 210e3, 180e3),
        ("latency from 1,2 ms to 0,9 ms", 1.2e6, 0.9e6),
        ("1,234 -> 2,345 IOPS", 1234, 2345),
        ("IOPS 100 -> 120k", 100e3, 120e3),
        ("900 -> 1.2k IOPS", 900, 1200),
        ("from 100 to 120 kIOPS", 100e3, 120e3),
        ("throughput improved 512 to 600 MB/s", 512e6, 600e6),
        ("512 vs 600 MiB/s", 512 * 2.0**20, 600 * 2.0**20),
        ("before: 512 MB/s, after: 600 MB/s", 512e6, 600e6),
        ("kernel 6.8 -> 6.9: 210 -> 180 us", 210e3, 180e3),
    ],
)
def test_a_unit_that_a_pair_writes_once_belongs_to_both_numbers(text: str, before: float, after: float) -> None:
    assert pairs(text) == [pytest.approx(before), pytest.approx(after)]


@pytest.mark.parametrize(
    "text",
    ["210 -> 1.8 ms", "30 -> 1.2k IOPS", "900 -> 1.2 GB/s", "100 -> 120 Mbps", "ping 2 -> 3 ms", "512..600 MB/s"],
)
def test_a_pair_whose_unit_is_not_clear_or_not_of_storage_is_refused(text: str) -> None:
    read = read_bytes(f"{text}\n".encode(), "mail.txt")
    assert (read.runs, len(read.refusals)) == ((), 1)
