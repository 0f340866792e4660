"""One number of what a command printed, or the reason why there is none."""

from __future__ import annotations

import pytest

from iodelta.experiment.model import Measure
from iodelta.trial import Quantity
from iodelta.workload.readings import UnreadError, read


def _measure(unit: str = "1/s", **source: object) -> Measure:
    return Measure("m", unit, "higher", **source)  # type: ignore[arg-type]


RATE = _measure(pattern=r"tps = ([0-9.]+)")


def _refused(measure: Measure, stdout: str, stderr: str = "") -> str:
    with pytest.raises(UnreadError) as refused:
        read(measure, stdout.encode(), stderr.encode())
    return str(refused.value)


def test_a_number_is_known_as_finely_as_it_is_printed() -> None:
    assert read(RATE, b"start\ntps = 12.50\n", b"") == Quantity(12.5, 12.495, 12.505, "1/s")
    assert read(RATE, b"tps = 12\n", b"") == Quantity.exact(12.0, "1/s"), "a whole number may be a count"


def test_colours_and_progress_are_not_part_of_a_line() -> None:
    printed = b"\x1b]0;title\x07 10 %\r 90 %\r\x1b[1;32mtps\x1b[0m = \x1b[4m7.5\x1b[0m\r\n"
    assert read(RATE, printed, b"").value == 7.5


@pytest.mark.parametrize(
    "printed",
    [
        b"tps = 1.0\rtps = 2.0\rtps = 7.5\n",
        b"tps = 1.0\rtps = 7.5\r\r\n",
        b"tps = 1.0\b\b\b7.5\n",
        b"first\ntps = 1.0\n\x1b[1A\x1b[2Ktps = 7.5\n",
        b"tps = 1.0\nother\n\x1b[2Ftps = 7.5\nother\n",
    ],
)
def test_what_was_written_over_is_not_read(printed: bytes) -> None:
    assert read(RATE, printed, b"").value == 7.5


def test_both_outputs_are_read() -> None:
    dd = "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.000201 s, 5.2 GB/s\n"
    speed = _measure("MB/s", pattern=r"s, ([0-9.]+) (?P<unit>[kMGT]?B/s)")
    known = read(speed, b"", dd.encode())
    assert (known.value, known.low, known.high) == pytest.approx((5200, 5150, 5250))
    assert known.unit == "MB/s"


def test_the_unit_that_is_printed_counts_and_another_kind_is_refused() -> None:
    took = _measure("ms", pattern=r"took ([0-9.]+) ?(?P<unit>\w+)")
    assert read(took, b"took 1.5 s", b"").value == pytest.approx(1500)
    assert read(took, b"took 15.0us", b"").value == pytest.approx(0.015)
    assert "'MB', and the metric is in ms" in _refused(took, "took 3.0 MB")


def test_two_numbers_are_refused_with_both_lines() -> None:
    said = _refused(RATE, "tps = 10.0 (including)\ntps = 11.0 (excluding)\n")
    assert "line 1: 'tps = 10.0 (including)'" in said
    assert "line 2: 'tps = 11.0 (excluding)'" in said
    assert read(_measure(pattern=RATE.pattern, last_line=True), b"tps = 1.0\ntps = 2.0\n", b"").value == 2.0


@pytest.mark.parametrize(
    ("printed", "why"),
    [("", "printed nothing"), ("done\n", "no line matches"), ("tps = .\n", "not a number"), ("tps = 1..2", "not a")],
)
def test_what_is_missing_or_not_a_number_is_said(printed: str, why: str) -> None:
    assert why in _refused(RATE, printed)


def test_a_negative_number_has_no_ratio() -> None:
    assert "ratio" in _refused(_measure(pattern=r"x=(\S+)"), "x=-3")
    assert "ratio" in _refused(Measure("m", "ms", "lower", pattern=r"x=(\S+)"), "x=0.00")
    assert read(_measure(pattern=r"x=(\S+)"), b"x=0.00", b"").value == 0.0, "the worst rate there is"


def test_the_last_line_holds_one_number() -> None:
    last = _measure(last_line=True)
    assert read(last, b"1 2 3\n42.0 ops\n\n", b"").value == 42.0
    assert "2 numbers" in _refused(last, "4 of 5\n")
    assert "no number" in _refused(last, "done\n")


def test_a_path_into_json() -> None:
    inner = _measure(json="runs[1].tps")
    document = b'{"runs": [{"tps": 1}, {"tps": 2.50}]}'
    assert read(inner, document, b"") == Quantity(2.5, 2.495, 2.505, "1/s")
    assert read(_measure(json="tps", last_line=True), b'noise\n{"tps": 3}\n', b"").value == 3.0
    assert "there is no 'tps'" in _refused(_measure(json="tps"), "{}")
    assert "not a number" in _refused(_measure(json="tps"), '{"tps": true}')
    assert "not a number" in _refused(_measure(json="tps"), '{"tps": NaN}')
    assert "appears twice" in _refused(_measure(json="tps"), '{"tps": 1, "tps": 2}')
    assert "is not JSON" in _refused(_measure(json="tps"), "tps 1")
    assert "is not JSON" in _refused(_measure(json="tps"), "[" * 100000)
