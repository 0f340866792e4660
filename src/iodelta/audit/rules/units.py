"""Bandwidth = IOPS x block size; and cells that are not numbers, or not in the unit of their column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap

from iodelta.audit.columns import measured
from iodelta.audit.model import Evidence, Mark, Repair, rule
from iodelta.audit.numbers import all_known, blank, count, known, number, parts
from iodelta.ingest import Run
from iodelta.ingest.table_titles import Column, column
from iodelta.trial import Direction

OFF = 0.015
"""Relative difference allowed between bandwidth and IOPS x block size, after rounding."""

KNOWN_FACTORS = (
    (1024.0**2 / 1000.0**2, "MB (1000 x 1000) multiplied by 1024 and called KiB"),
    (1024.0 / 1000.0, "KB of 1000 bytes called KiB, or the reverse"),
    (1000.0 / 1024.0, "KiB called KB of 1000 bytes"),
    (1000.0**2 / 1024.0**2, "MiB called MB"),
    (1024.0, "its unit is a step smaller"),
    (1000.0, "its unit is a step smaller"),
    (1 / 1024.0, "its unit is a step larger"),
    (1 / 1000.0, "its unit is a step larger"),
    (8.0, "bits called bytes"),
)


@rule(
    "bandwidth.mismatch",
    "hard",
    says="bandwidth is not IOPS x block size",
    needs="a table with IOPS, bandwidth and one block size",
    remedy="check the unit in the heading: KiB is 1024 bytes, kB 1000",
)
def mismatch(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.rows():
        size = run.workload.bs
        # A cell with its own unit is a finding of ``suffix``.
        if not size or any(starmap(_suffixed, run.labels.items())):
            continue
        for direction in parts(run):
            iops, bandwidth = direction.iops, direction.bandwidth
            if not all_known(iops, bandwidth) or not iops.value > 0:
                continue
            is_below = bandwidth.high < iops.low * size * (1 - OFF)
            is_above = bandwidth.low > iops.high * size * (1 + OFF)
            if is_below or is_above:
                ratio = bandwidth.value / (iops.value * size)
                text = f"the bandwidth is {ratio:.4g} times {count(iops.value)} IOPS of {size} bytes"
                repairs = _mended(index, run, direction)
                yield Mark((index,), text + _cause(ratio), repairs)


def _cause(ratio: float) -> str:
    """Return the usual mistake that explains a ratio, as the end of a sentence; empty without one."""
    for factor, text in KNOWN_FACTORS:
        if abs(ratio / factor - 1) < 0.005:
            return f": {text}"
    return ""


@rule(
    "bandwidth.suffix",
    "hard",
    says="a cell has a unit of its own under a heading that names another",
    needs="a table whose heading names the unit",
    remedy="write every cell of a column in the unit of its heading",
)
def suffix(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.rows():
        for title, written in run.labels.items():
            if _suffixed(title, written):
                directions = parts(run)
                is_one = len(directions) == 1
                repairs = _mended(index, run, directions[0]) if is_one else ()
                text = f"{written!r} under the heading {title!r}"
                yield Mark((index,), text, repairs)


def _suffixed(title: str, written: str) -> bool:
    """Return whether a bandwidth cell has a unit although its heading names one."""
    meaning, parsed = column(title), number(written)
    if meaning is None or parsed is None:
        return False
    has_unit = meaning.stat == "bw" and meaning.scale is not None
    return has_unit and parsed[1][:1].casefold() in ("k", "m", "g")


def _mended(index: int, run: Run, direction: Direction) -> tuple[Repair, ...]:
    """Return a repair: bandwidth from IOPS and block size, in the unit of its heading."""
    size, iops = run.workload.bs, direction.iops
    if not size or not known(iops) or not iops.value > 0:
        return ()
    why = "bandwidth is IOPS x block size"
    for title, written, meaning in measured(run):
        if meaning.scale and _is_bandwidth_of(meaning, direction, run):
            mended = iops.value * size / meaning.scale
            text = f"{mended:.0f}" if mended >= 1000 else f"{mended:.4g}"
            return (Repair(index, title, written, text, why),)
    return ()


def _is_bandwidth_of(meaning: Column, direction: Direction, run: Run) -> bool:
    is_only_one = len(parts(run)) == 1
    is_of_direction = is_only_one or meaning.kind == direction.kind
    return meaning.stat == "bw" and is_of_direction


@rule(
    "number.missing",
    "hard",
    says="a cell holds words or a placeholder where a number belongs",
    needs="a table",
    remedy="repeat the run; leave the row out until then",
)
def missing(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.rows():
        words: list[str] = []
        for title, written, meaning in measured(run):
            is_worded = number(written) is None and not blank(written)
            if is_worded and meaning.stat in ("iops", "bw", "mean"):
                words.append(f"{written!r} under {title!r}")
        if words:
            yield Mark((index,), ", ".join(words))


@rule(
    "bytes.not-block-size",
    "warning",
    says="bytes moved are not I/Os x block size",
    needs="a run of fio with I/O count, bytes and one block size",
    remedy="look for short I/Os, several block sizes or a merged group of unlike jobs; IOPS of mixed sizes say little",
)
def not_block_size(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        for direction in parts(run):
            asked = run.workload.bs
            if not asked or not direction.ios or not direction.bytes:
                continue
            size = direction.bytes / direction.ios
            if abs(size / asked - 1) > OFF:
                text = f"{direction.kind}: {size:.0f} bytes per I/O, not {asked}"
                yield Mark((index,), text)


RULES = (mismatch, suffix, missing, not_block_size)
