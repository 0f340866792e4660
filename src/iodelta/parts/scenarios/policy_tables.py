"""Tables of read policies in the shape of the benchmark of May 2025, and what each device did for each policy."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from iodelta.experiment import Experiment
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


TESTS = {"randread": "RandRead", "read": "SeqRead", "randrw": "RandRW", "rw": "SeqRW"}


def tables(experiment: Experiment, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a table of each condition, medians over the blocks; reads only, also of a mix. Then the devices."""
    by_arm: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_arm[trial.cell, trial.variant].append(trial)
    counts = sorted({len(arm) for arm in by_arm.values()})
    blocks = (
        " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        if counts
        else "no"
    )
    arms = {
        cell.name: {
            variant.name: arm
            for variant in experiment.variants
            if (arm := by_arm.get((cell.name, variant.name)))
        }
        for cell in experiment.cells
    }
    for condition in experiment.conditions:
        rows: list[tuple[str, ...]] = []
        for cell in experiment.cells:
            if cell.condition == condition.name:
                mode, size = cell.option("rw") or "read", cell.option("bs") or "4k"
                mixed = int(cell.option("rwmixread") or 50)
                mix = (
                    f" {cell.option('rwmixread')}/{100 - mixed}"
                    if mode in ("randrw", "rw")
                    else ""
                )
                test = f"{TESTS.get(mode, mode)} {size}{mix} QD{cell.option('iodepth')}"
                # The first variant's row names the test.
                for name, arm in arms[cell.name].items():
                    first = name == experiment.variants[0].name
                    rows.append(
                        (
                            test if first else "",
                            cell.option("numjobs") or "1",
                            name,
                            *_row(arm),
                        )
                    )
        yield ""
        yield f"{condition.name}, medians of {blocks} trials each"
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
    counters = {name for trial in trials for name in trial.counters}
    disks = sorted({match[1] for name in counters if (match := _DISK.fullmatch(name))})
    rows = []
    for cell_name, of_cell in arms.items():
        for number, (name, arm) in enumerate(of_cell.items()):
            spreads = []
            for disk in disks:
                reads = [
                    trial.counters.get(f"disk.{disk}.read_ios", 0.0) for trial in arm
                ]
                spreads.append(
                    f"{statistics.median(reads):,.0f} ({min(reads):,.0f}-{max(reads):,.0f})"
                )
            rows.append(("" if number else cell_name, name, *spreads))
    yield from _laid_out(("Cell", "Policy", *disks), rows)


def _row(trials: Sequence[Trial]) -> Iterator[str]:
    """Medians of a policy's trials; ``-`` for a latency where no trial completed a read."""
    reads = [read for trial in trials if (read := trial.direction("read")) is not None]
    latencies = [read.lat for read in reads if read.lat is not None]
    for values, unit, layout in (
        ([read.iops.value for read in reads], 1, ",.0f"),
        ([read.bandwidth.value for read in reads], 1024, ",.0f"),
        ([latency.mean.value for latency in latencies], 1e6, ".1f"),
        ([latency.quantile(0.99) for latency in latencies], 1e6, ".0f"),
        ([latency.quantile(0.999) for latency in latencies], 1e6, ".0f"),
    ):
        yield format(statistics.median(values) / unit, layout) if values else "-"


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
