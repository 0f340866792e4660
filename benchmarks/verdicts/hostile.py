"""``python -m benchmarks.verdicts --hostile``: error rates of the verdicts under noise that is meant to break them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

import numpy as np

from benchmarks.verdicts.hostile_table import broken, markdown
from benchmarks.verdicts.measures import Seen, Tally, experiment, seed_of, tally_of, truth_of
from benchmarks.verdicts.records import Record, Results, append, commit, drop_cut, engine, newest, read, trials_of
from benchmarks.verdicts.rivals import rivals
from benchmarks.verdicts.scenarios import Scenario, scenarios

BATCH = 50
"""Experiments of a batch, of one comparison each; of a matrix as many fewer as it has comparisons."""

LEAST = 2
"""Batches of every scenario before any gets more: a run that ends early has seen all."""

OTHERS = 3
"""Scenarios in which something changed get one experiment in so many of those that are asked for: their bounds need
fewer than the alarms do."""

ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What judging may raise by mistake: counted, because it must never raise."""


@dataclass(frozen=True)
class Batch:
    """Experiments ``first`` to ``first`` + ``count`` - 1 of the scenario called ``key``."""

    key: str
    seed: int
    first: int
    count: int


@dataclass(frozen=True)
class Order:
    """What a run is asked for."""

    seed: int
    reps: int
    minutes: float
    workers: int
    file: Path
    """Where results are added."""


def size_of(scenario: Scenario) -> int:
    """Experiments of one of its batches."""
    return max(1, BATCH // (scenario.setup.cells * scenario.setup.metrics))


def batches_of(scenario: Scenario, seed: int, reps: int) -> list[Batch]:
    """The batches that hold ``reps`` experiments of a scenario, or its share of them."""
    own = reps if scenario.first else max(min(reps, LEAST * size_of(scenario)), -(-reps // OTHERS))
    size = size_of(scenario)
    return [Batch(scenario.key, seed, first, size) for first in range(0, own, size)]


@lru_cache(maxsize=1)
def _by_key() -> dict[str, Scenario]:
    return {one.key: one for one in scenarios()}


@lru_cache(maxsize=1024)
def _truth(key: str) -> float:
    return truth_of(_by_key()[key])


def simulate_batch(batch: Batch) -> Tally:
    """Simulate, judge and count one batch."""
    scenario, began = _by_key()[batch.key], time.process_time()
    truth = _truth(batch.key)
    seen: list[Seen] = []
    errors = []
    for rep in range(batch.first, batch.first + batch.count):
        try:
            seen.append(experiment(scenario, seed_of(scenario, batch.seed, rep), truth))
        except ERRORS as error:
            errors.append(f"{batch.key}: experiment {rep}: {error!r}")
    tally = tally_of(seen, count=batch.count, errors=errors)
    if seen:
        tally.rivals = rivals(seen, np.random.default_rng(seed_of(scenario, batch.seed, batch.first)))
    tally.seconds = round(time.process_time() - began, 3)
    return tally


def simulated(batches: Iterable[Batch], workers: int, deadline: float) -> Iterator[tuple[Batch, Tally]]:
    """The tallies of ``batches``, as they are finished, by so many processes; none is begun after ``deadline``."""
    if workers < 2:
        for batch in batches:
            if time.monotonic() > deadline:
                return
            yield batch, simulate_batch(batch)
        return
    left, running = iter(batches), dict[Future[Tally], Batch]()
    with ProcessPoolExecutor(workers) as pool:
        while True:
            if time.monotonic() < deadline:
                for batch in islice(left, 2 * workers - len(running)):
                    running[pool.submit(simulate_batch, batch)] = batch
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()


def run(chosen: Sequence[Scenario], order: Order) -> list[Results]:
    """Add what is missing to the results: of every scenario a little, then the cheapest first."""
    book = _Book(chosen, order)
    began = time.monotonic()
    deadline = began + 60 * order.minutes
    for done in book.taken([*chain.from_iterable(book.missing(LEAST))], deadline):
        _progress(done, began)
    cost = _seconds_each(book.records)
    by_cost = sorted(book.missing(), key=lambda one: sum(cost.get(batch.key, 0.0) * batch.count for batch in one))
    for batches in by_cost:
        for done in book.taken(batches, deadline):
            _progress(done, began)
    return newest(scenarios(), book.records)


class _Book:
    """The results so far, and what is missing of them."""

    def __init__(self, chosen: Sequence[Scenario], order: Order) -> None:
        self._chosen, self._order = chosen, order
        self._commit, self._engine = commit(), engine()
        self._trials = {one.key: trials_of(one, seed_of(one, order.seed, 0)) for one in chosen}
        drop_cut(order.file)
        self.records = read(order.file)

    def missing(self, most: int | None = None) -> list[list[Batch]]:
        """Of every scenario the batches without a result, among its first ``most``."""
        known = {
            (record.scenario, record.seed, record.first)
            for record in self.records
            if record.engine == self._engine and record.trials == self._trials.get(record.scenario)
        }
        return [
            [
                batch
                for batch in batches_of(one, self._order.seed, self._order.reps)[:most]
                if (batch.key, batch.seed, batch.first) not in known
            ]
            for one in self._chosen
        ]

    def taken(self, batches: Sequence[Batch], deadline: float) -> Iterator[Batch]:
        """Simulate and write down ``batches``."""
        for batch, tally in simulated(batches, self._order.workers, deadline):
            place = (batch.key, self._trials[batch.key], self._engine, self._commit)
            record = Record(*place, batch.seed, batch.first, tally)
            append(self._order.file, record)
            self.records.append(record)
            yield batch


def _seconds_each(records: Sequence[Record]) -> dict[str, float]:
    """By scenario the processor time of one experiment."""
    spent: dict[str, tuple[float, int]] = {}
    for record in records:
        seconds, count = spent.get(record.scenario, (0.0, 0))
        spent[record.scenario] = (seconds + record.tally.seconds, count + record.tally.count)
    return {key: seconds / max(count, 1) for key, (seconds, count) in spent.items()}


def _progress(batch: Batch, began: float) -> None:
    print(f"{time.monotonic() - began:6.0f} s  {batch.key}: {batch.first + batch.count} experiments", file=sys.stderr)


def main(order: Order, *, names: Sequence[str], groups: Sequence[str], go_on: bool, table: Path | None) -> int:
    """Simulate the scenarios of ``groups`` whose name contains one of ``names`` (none: all), and write the table of all
    results; 1 when a bound does not hold, 2 for a wrong choice."""
    chosen = [
        one
        for one in scenarios()
        if (not groups or one.group in groups) and (not names or any(name in one.key for name in names))
    ]
    if not chosen:
        known = ", ".join(dict.fromkeys(repr(one.group) for one in scenarios()))
        print(f"no scenario is called so; the groups are {known}", file=sys.stderr)
        return 2
    if order.file.exists() and not go_on:
        print(f"{order.file} holds results: add to them with --continue, or move the file away", file=sys.stderr)
        return 2
    try:
        results = run(chosen, order)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    text = markdown(results)
    if table is None:
        print(text, end="")
    else:
        table.write_text(text)
    return 1 if broken(results) else 0
