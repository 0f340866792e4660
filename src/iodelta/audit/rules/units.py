"""Bandwidth = IOPS x block size; and numbers that are none, or not in their column's unit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap

from iodelta.audit.model import Evidence, Mark, Repair, rule
from iodelta.audit.numbers import blank, count, known, number, parts
from iodelta.ingest import Run
from iodelta.ingest.table_headings import Column, column
from iodelta.trial import Direction

OFF = 0.015
"""Bandwidth and IOPS x block size may differ by this, rounding aside."""

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
        for direction in parts(run):
            size, iops, bandwidth = run.workload.bs, direction.iops, direction.bandwidth
            if (
                not size
                or not known(iops)
                or not known(bandwidth)
                or not iops.value > 0
            ):
                continue
            if any(starmap(_suffixed, run.labels.items())):
                continue
            if bandwidth.high < iops.low * size * (
                1 - OFF
            ) or bandwidth.low > iops.high * size * (1 + OFF):
                ratio = bandwidth.value / (iops.value * size)
                text = f"the bandwidth is {ratio:.4g} times {count(iops.value)} IOPS of {size} bytes"
                yield Mark(
                    (index,), text + _cause(ratio), _mended(index, run, direction)
                )


def _cause(ratio: float) -> str:
    """The usual mistake that makes such a ratio, as the end of a sentence; empty for none."""
    return next(
        (
            f": {text}"
            for factor, text in KNOWN_FACTORS
            if abs(ratio / factor - 1) < 0.005
        ),
        "",
    )


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
                direction = parts(run)[0] if len(parts(run)) == 1 else None
                repairs = _mended(index, run, direction) if direction else ()
                yield Mark(
                    (index,), f"{written!r} under the heading {title!r}", repairs
                )


def _suffixed(title: str, written: str) -> bool:
    """Whether a bandwidth cell carries a unit where its heading names one already."""
    holds, parsed = column(title), number(written)
    if holds is None or parsed is None or holds.stat != "bw" or holds.scale is None:
        return False
    return parsed[1][:1].casefold() in ("k", "m", "g")


def _mended(index: int, run: Run, direction: Direction) -> tuple[Repair, ...]:
    """Bandwidth from IOPS and block size, in the unit of its heading."""
    if not run.workload.bs or not known(direction.iops) or not direction.iops.value > 0:
        return ()
    for title, written in run.labels.items():
        holds = column(title)
        if (
            holds is not None
            and holds.scale
            and _is_bandwidth_of(holds, direction, run)
        ):
            mended = direction.iops.value * run.workload.bs / holds.scale
            why = "bandwidth is IOPS x block size"
            return (
                Repair(
                    index,
                    title,
                    written,
                    f"{mended:.0f}" if mended >= 1000 else f"{mended:.4g}",
                    why,
                ),
            )
    return ()


def _is_bandwidth_of(holds: Column, direction: Direction, run: Run) -> bool:
    return holds.stat == "bw" and (holds.kind == direction.kind or len(parts(run)) == 1)


@rule(
    "number.missing",
    "hard",
    says="a cell holds words or a placeholder where a number belongs",
    needs="a table",
    remedy="repeat the run; leave the row out until then",
)
def missing(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.rows():
        bad = [
            f"{written!r} under {title!r}"
            for title, written in run.labels.items()
            if (holds := column(title)) is not None
            and holds.stat in ("iops", "bw", "mean")
            and not blank(written)
            and number(written) is None
        ]
        if bad:
            yield Mark((index,), ", ".join(bad))


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
            if run.workload.bs and direction.ios and direction.bytes:
                size = direction.bytes / direction.ios
                if abs(size / run.workload.bs - 1) > OFF:
                    yield Mark(
                        (index,),
                        f"{direction.kind}: {size:.0f} bytes per I/O, not {run.workload.bs}",
                    )


RULES = (mismatch, suffix, missing, not_block_size)
