"""Tables of read policies in the shape of the benchmark of May 2025, and what each device did for each policy."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from iodelta.experiment import Cell, Experiment, Variant
from iodelta.trial import Trial

HEAD = (
    "Test Scenario",
    "Jobs",
    "Policy",
    "IOPS",
    "BW (KiB/s)",
    "Avg Lat (ms)",
    "99% Lat (ms)",
    "99.9% Lat (ms)",
)
_DISK = re.compile(r"disk\.(loop\d+)\.read_ios")
"""Of the scenario's disks, which are loop devices."""


Arm = tuple[str, str]
"""Cell and variant."""


def tables(experiment: Experiment, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a table of each condition, medians over the blocks; reads only, also of a mix. Then the devices."""
    by_arm: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_arm[trial.cell, trial.variant].append(trial)
    for condition in experiment.conditions:
        rows: list[tuple[str, ...]] = []
        for cell in experiment.cells:
            if cell.condition == condition.name:
                rows += _rows(cell, experiment.variants, by_arm)
        yield ""
        yield f"{condition.name}, medians of {_blocks(by_arm.values())} trials each"
        yield from _laid_out(HEAD, rows)
    rates = [
        trial.background.rate
        for trial in trials
        if trial.background is not None and trial.background.rate
    ]
    if rates:
        low, middle, high = (
            value / 2**20
            for value in (min(rates), statistics.median(rates), max(rates))
        )
        yield f"The background load moved {middle:.1f} MiB/s ({low:.1f} to {high:.1f}) over {len(rates)} trials."
    yield ""
    yield "Reads that each device served in a trial, its counter after less before: median (least-most)"
    yield from _devices(experiment, by_arm)


def _rows(
    cell: Cell, variants: Sequence[Variant], by_arm: Mapping[Arm, Sequence[Trial]]
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each variant that was measured; the first variant's names the test."""
    for number, variant in enumerate(variants):
        trials = by_arm[cell.name, variant.name]
        if trials:
            name = "" if number else _test(cell)
            yield (name, cell.option("numjobs") or "1", variant.name, *_row(trials))


def _test(cell: Cell) -> str:
    names = {
        "randread": "RandRead",
        "read": "SeqRead",
        "randrw": "RandRW",
        "rw": "SeqRW",
    }
    mode, size = cell.option("rw") or "read", cell.option("bs") or "4k"
    mix = (
        f" {cell.option('rwmixread')}/{100 - int(cell.option('rwmixread') or 50)}"
        if mode in ("randrw", "rw")
        else ""
    )
    return f"{names.get(mode, mode)} {size}{mix} QD{cell.option('iodepth')}"


def _row(trials: Sequence[Trial]) -> Iterator[str]:
    """Medians of a policy's trials; ``-`` for a latency where no trial completed a read."""
    reads = [read for trial in trials if (read := trial.direction("read")) is not None]
    latencies = [read.lat for read in reads if read.lat is not None]
    yield _median([read.iops.value for read in reads], 1, ",.0f")
    yield _median([read.bandwidth.value for read in reads], 1024, ",.0f")
    yield _median([latency.mean.value for latency in latencies], 1e6, ".1f")
    for p in (0.99, 0.999):
        yield _median([latency.quantile(p) for latency in latencies], 1e6, ".0f")


def _median(values: Sequence[float], unit: float, layout: str) -> str:
    if not values:
        return "-"
    return format(statistics.median(values) / unit, layout)


def _blocks(arms: Iterable[Sequence[Trial]]) -> str:
    counts = sorted({len(trials) for trials in arms if trials})
    if not counts:
        return "no"
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def _devices(
    experiment: Experiment, by_arm: dict[tuple[str, str], list[Trial]]
) -> Iterator[str]:
    names = set(
        chain.from_iterable(
            trial.counters for trial in chain.from_iterable(by_arm.values())
        )
    )
    disks = sorted({match[1] for name in names if (match := _DISK.fullmatch(name))})
    rows = []
    for cell in experiment.cells:
        arms = {
            variant.name: arm
            for variant in experiment.variants
            if (arm := by_arm[cell.name, variant.name])
        }
        for number, (name, arm) in enumerate(arms.items()):
            rows.append(
                (
                    cell.name if not number else "",
                    name,
                    *(_spread(_reads(arm, disk)) for disk in disks),
                )
            )
    yield from _laid_out(("Cell", "Policy", *disks), rows)


def _reads(trials: Sequence[Trial], disk: str) -> list[float]:
    return [trial.counters.get(f"disk.{disk}.read_ios", 0.0) for trial in trials]


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def _laid_out(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need be; the first texts to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    texts = next((at for at, name in enumerate(head) if name == "Policy"), 0)
    for row in (head, *rows):
        cells = (
            text.ljust(width) if at <= texts else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
