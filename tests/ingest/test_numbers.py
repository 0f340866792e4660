"""Whatever fio rounded, the number it rounded lies in the interval that is read back."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iodelta.ingest.numbers import Version, num2str, percentile, whole
from iodelta.trial import bin_edges, bin_index

COUNTS = st.one_of(st.integers(0, 10**6), st.integers(0, 10**12), st.integers(0, 2**60))


def printed(number: int, length: int, step: int, version: Version) -> str:
    """What fio's number printing does with a count: it divides until the digits fit, and spells what was left over.

    Up to 2.19 the left-over is shortened digit by digit without regard to its place, to 3.25 a carry out of its
    rounding is lost, later it is kept.
    """
    prefixes: tuple[str, ...] = (
        ("", "k", "M", "G", "T", "P", "E") if step == 1000 else ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
    )
    if version < (2, 17):
        prefixes = ("", "K", "M", "G", "P", "E")
    power, left, carry = 0, -1, False
    while len(str(number)) > length:
        number, left = divmod(number, step)
        carry, power = left >= step // 2, power + 1
    room = length - len(str(number))
    if left < 0:
        return f"{number}{prefixes[power]}"
    if room <= 1:
        return f"{number + carry}{prefixes[power]}"
    if version < (2, 20):
        while len(str(left)) > room - 1:
            left = (left + 9) // 10
        return f"{number}.{left}{prefixes[power]}"
    text = f"{left / step:.{room - 1}f}"
    if text[0] == "1" and version >= (3, 26):
        number += 1
    return f"{number}.{text[2:]}{prefixes[power]}"


@pytest.mark.parametrize("version", [(2, 0), (2, 19), (2, 20), (3, 25), (3, 26), (3, 42)])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("step", [1000, 1024])
@given(number=COUNTS, length=st.sampled_from([4, 5, 6, 10]))
@example(number=10_970, length=4)
@example(number=99_960, length=4)
@example(number=12_960_000, length=4)
@example(number=1023 + 1024 * 100_000, length=6)
def test_the_interval_holds_what_fio_was_given(
    version: Version, known: bool, step: int, number: int, length: int
) -> None:
    if version < (2, 17) and number >= 10**15:
        return  # its prefixes ran out there
    text = printed(number, length, step, version)
    old = version < (2, 17)
    if not known and old and ("P" in text or "E" in text):
        return  # without a T in the list P was 10^12: only the version tells
    read = num2str(text, version if known else None, kilo=step if old else 1000)
    assert read is not None
    assert read.low <= number <= read.high
    assert read.low <= read.value <= read.high


@pytest.mark.parametrize(
    ("text", "version", "low", "high"),
    [
        ("10.0k", (3, 16), 9_950, 11_001),  # 10,970 prints so
        ("10.0k", (3, 33), 9_950, 10_051),
        ("10.5k", (3, 16), 10_450, 10_551),
        ("165k", (3, 1), 164_500, 165_501),
        ("5.10M", (3, 33), 5_095_000, 5_106_000),
        ("4542", (3, 1), 4542, 4543),
        ("8055.1K", (2, 0), 8055 * 1000, 8056 * 1000),  # the digit says nothing
    ],
)
def test_an_interval_is_as_narrow_as_the_rounding(text: str, version: Version, low: float, high: float) -> None:
    read = num2str(text, version)
    assert read is not None
    assert [read.low, read.high] == pytest.approx([low, high])


@pytest.mark.parametrize("text", ["", "k", "1.2.3", "12mb?", "-5", "1e5", "9" * 2000, "12 parsecs", "½"])
def test_what_is_no_number_of_fio_is_not_read_as_one(text: str) -> None:
    assert num2str(text, None) is None


@pytest.mark.parametrize("step", [1, 1000, 1_000_000])
@pytest.mark.parametrize("up", [True, False])
@given(latency=st.integers(0, 17_000_000_000))
def test_a_percentile_printed_in_coarser_units_holds_the_latency(step: int, up: bool, latency: int) -> None:
    index = bin_index(latency)
    low, high = bin_edges(index)
    centre = low if high - low == 1 else low + (high - low) // 2
    shown = -(-centre // step) if up else centre // step
    read = percentile(shown, step, True, up=up)
    assert read.low <= latency <= read.high
    either = percentile(shown, step, None, up=up)
    assert either.low <= read.low
    assert read.high <= either.high


@given(latency=st.integers(0, 16_000_000))
def test_before_2_99_a_percentile_is_a_bin_of_microseconds(latency: int) -> None:
    low, high = bin_edges(bin_index(latency))
    centre = low if high - low == 1 else low + (high - low) // 2
    read = percentile(centre, 1000, False)
    assert read.low <= latency * 1000 <= read.high
    coarse = percentile(-(-centre // 1000), 1_000_000, False)
    assert coarse.low <= latency * 1000 <= coarse.high


@pytest.mark.parametrize(("value", "step", "nanoseconds"), [(17113, 1_000_000, True), (16711680, 1000, False)])
def test_the_last_bin_takes_all_that_is_longer(value: int, step: int, nanoseconds: bool) -> None:
    read = percentile(value, step, nanoseconds)
    assert read.low <= 17_112_760_320 < read.high == math.inf


@pytest.mark.parametrize("text", ["", "-1", "1.5", "٣", "9" * 20, str(2**63)])
def test_a_count_beyond_what_fio_counts_is_none(text: str) -> None:
    assert whole(text) is None


@given(value=st.integers(0, 10**30))
def test_a_percentile_of_any_size_is_bounded_work(value: int) -> None:
    read = percentile(value, 1_000_000, None)
    assert not math.isnan(read.value)
