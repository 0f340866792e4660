"""``python -m benchmarks.history``: false alerts, steps found and their ranges, beside rules that others publish."""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from benchmarks.history import rules
from benchmarks.history.nights import BLOCK, SESSION, SESSIONS, Series, Session, series
from benchmarks.noise import experiments, white
from iodelta.stats import changepoints, levels
from iodelta.stats.changepoints import CANDIDATE, REPORT
from iodelta.verdict import Rules, judge_series, metric
from iodelta.verdict import Series as Arms

NIGHTS = 500
PLACEBO = 200
"""Nights of the machine's placebo series, from which the resemblance of nights is known."""

RETRIES = 3
"""Experiments for one candidate: an inconclusive one is made again the next night."""


class Confirmations:
    """Fresh randomised experiments of both builds, judged by the rules of ``iodelta run``."""

    def __init__(self, change: float, count: int, rng: np.random.Generator) -> None:
        self.words = _judged(change, count, rng)
        self._next = 0

    def word(self) -> str:
        """What the next experiment says, after up to ``RETRIES`` that say nothing."""
        for _ in range(RETRIES):
            self._next += 1
            said = self.words[self._next % len(self.words)]
            if said != "inconclusive":
                return said
        return "inconclusive"

    def confirms(self, size: float) -> bool:
        """Whether it is a change in the direction of the candidate."""
        return self.word() == ("regression" if size > 0.0 else "improvement")


def _judged(change: float, count: int, rng: np.random.Generator) -> list[str]:
    chosen = Rules(metrics=(metric("read.lat.mean"),))
    blocks = chosen.max_blocks
    old, new, first = experiments(white, blocks=blocks, series=count, change=change, sd=BLOCK / math.sqrt(2), rng=rng)
    odd = np.where(first, 0, 1) + 2 * np.arange(blocks)
    even = 4 * np.arange(blocks) + 1 - odd
    said: list[str] = []
    for row in range(count):
        arms = Arms(
            str(row),
            metric("read.lat.mean"),
            "old",
            "new",
            tuple(range(blocks)),
            tuple(old[row].tolist()),
            tuple(new[row].tolist()),
            tuple(first[row].tolist()),
            tuple(odd[row].tolist()),
            tuple(even[row].tolist()),
        )
        said.append(judge_series([arms], chosen).verdicts[0].word)
    return said


def upper(count: int, points: int) -> float:
    """One-sided 95 % upper bound of events in 1000 points."""
    return 1000.0 * float(chi2.ppf(0.95, 2 * count + 2)) / 2 / points


def generator(seed: int, *words: str) -> np.random.Generator:
    """Reproducible, and another one for every name."""
    return np.random.default_rng([seed, *(zlib.crc32(word.encode()) for word in words)])


@dataclass(frozen=True)
class Quiet:
    """Series without a step: events in 1000 points, and the bound of alerts."""

    name: str
    points: int
    candidates: float
    reports: float
    alerts: float
    bound: float
    rivals: dict[str, float]


def quiet(name: str, session: Session, arm: bool, many: int, few: int, seed: int, null: Confirmations) -> Quiet:
    """H1 on one kind of nights; ``arm``: as the ratio to a reference arm. Rivals see the level, on ``few`` series."""
    rng = generator(seed, name, str(arm))
    loose = sure = alerts = 0
    others = dict.fromkeys(rules.rivals(), 0)
    for number in range(many):
        placebo, nights = series(session, PLACEBO, rng), series(session, NIGHTS, rng)
        inflation = rules.inflation_of(*seen(placebo, arm))
        found = rules.candidates(*seen(nights, arm), inflation, CANDIDATE)
        loose += len(found)
        alerts += sum(null.confirms(size) for _, _, size in found)
        sure += len(rules.candidates(*seen(nights, arm), inflation, REPORT))
        if number < few:
            for rival, rule in rules.rivals().items():
                others[rival] += len(rule(seen(nights, arm)[0]))
    points = many * NIGHTS
    rates = {rival: 1000 * count / (few * NIGHTS) for rival, count in others.items()}
    per = 1000 / points
    return Quiet(name, points, loose * per, sure * per, alerts * per, upper(alerts, points), rates)


def seen(nights: Series, arm: bool) -> tuple[levels.Floats, levels.Floats]:
    """What is scanned: the ratio to the reference arm, or the level."""
    return (nights.r, nights.r_error) if arm else (nights.y, nights.y_error)


@dataclass(frozen=True)
class Found:
    """A step of one size: share found and confirmed within 20 nights, nights until then, and the range at its end."""

    name: str
    within: float
    median: float
    held: float
    width: float

    @property
    def nights(self) -> str:
        """The median in words: a rule that sees the whole series at once does not wait."""
        return "hindsight" if "whole" in self.name else f"{self.median:g}"


BEFORE, AFTER = 120, 40


def stepped(size: float, arm: bool, many: int, seed: int, fresh: Confirmations) -> list[Found]:
    """H2 to H4 on nights with AR(0.6) sessions: iodelta first, then the rivals."""
    session = SESSIONS["AR 0.6"]
    rng = generator(seed, f"step {size}", str(arm))
    waits: dict[str, list[float]] = {"iodelta": [], **{name: [] for name in rules.rivals()}}
    held, widths = [], []
    for _ in range(many):
        placebo = series(session, PLACEBO, rng)
        nights = series(session, BEFORE + AFTER, rng, step=size, at=BEFORE)
        y, error = seen(nights, arm)
        inflation = rules.inflation_of(*seen(placebo, arm))
        said = [one for one in rules.candidates(y, error, inflation, CANDIDATE) if fresh.confirms(one[2])]
        waits["iodelta"].append(_wait(said))
        whole = changepoints.segments(y, error, inflation=inflation).steps
        near = [step for step in whole if abs(step.at - BEFORE) <= 20]
        held += [step.low <= BEFORE <= step.high for step in near[:1]]
        widths += [step.high - step.low + 1 for step in near[:1]]
        for name, rule in rules.rivals().items():
            waits[name].append(_wait(rule(y)))
    ranges = {"iodelta": (float(np.mean(held)) if held else math.nan, float(np.median(widths)) if widths else math.nan)}
    return [
        Found(
            name,
            float(np.mean(np.asarray(nights) <= 20)),
            float(np.median(nights)),
            *ranges.get(name, (math.nan, math.nan)),
        )
        for name, nights in waits.items()
    ]


def _wait(said: rules.Said) -> float:
    """Nights with the step until it was said in its direction; infinite where it was not."""
    return min((float(now - BEFORE + 1) for now, _, size in said if now >= BEFORE and size > 0.0), default=math.inf)


def report(many: int, few: int, steps: int, seed: int) -> str:
    """Both tables as Markdown."""
    null = Confirmations(0.0, max(200, 10 * many), generator(seed, "null"))
    names = list(rules.rivals())
    lines = [
        f"Confirming experiments of equal builds: {_share(null, 'regression', 'improvement')} a change, "
        f"{_share(null, 'inconclusive')} inconclusive, of {len(null.words)}.",
        "",
        "## Without a step: events in 1000 points",
        "",
        "| nights | seen | points | candidates | reports | **alerts** | upper bound | " + " | ".join(names) + " |",
        "|---|---|---:|---:|---:|---:|---:|" + "---:|" * len(names),
    ]
    total = alerts = 0.0
    for arm in (True, False):
        for name in ["AR 0.6"] if arm else SESSIONS:
            one = quiet(name, SESSIONS[name], arm, many, few, seed, null)
            total, alerts = total + one.points, alerts + one.alerts * one.points / 1000
            rates = " | ".join(f"{rate:.2g}" for rate in one.rivals.values())
            lines.append(
                f"| {name} | {_kind(arm)} | {one.points:,} | {one.candidates:.2f} | {one.reports:.3f} | "
                f"**{one.alerts:.3f}** | {one.bound:.2f} | {rates} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    bound = upper(round(alerts), round(total))
    lines += [
        "",
        f"All: {1000 * alerts / total:.3f} alerts in 1000 of {total:,.0f} points, upper bound {bound:.2f}.",
        "",
    ]
    lines += ["## With a step, AR 0.6 sessions", ""]
    lines += ["| step | seen | rule | within 20 nights | median nights | range holds it | median width |"]
    lines += ["|---|---|---|---:|---:|---:|---:|"]
    for size in (0.02, 0.01):
        fresh = Confirmations(size, 200, generator(seed, f"fresh {size}"))
        for arm in (True, False):
            for found in stepped(size, arm, steps, seed, fresh):
                cells = [f"{100 * size:g} %", _kind(arm), found.name, f"{found.within:.3f}", found.nights]
                cells += ["" if math.isnan(found.held) else f"{found.held:.3f}"]
                cells += ["" if math.isnan(found.width) else f"{found.width:g}"]
                lines.append("| " + " | ".join(cells) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def _share(words: Confirmations, *wanted: str) -> str:
    return f"{np.mean([word in wanted for word in words.words]):.3f}"


def _kind(arm: bool) -> str:
    return "ratio to reference" if arm else "level"


def main() -> int:
    """Print both tables, and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="everything random follows from it (default 1)")
    parser.add_argument("--series", type=int, default=100, help="series of 500 nights of each kind (default 100)")
    parser.add_argument("--rivals", type=int, default=40, help="of those, how many the rivals see (default 40)")
    parser.add_argument("--steps", type=int, default=300, help="series with a step, of each size (default 300)")
    parser.add_argument("--markdown", type=Path, help="also write the tables here as Markdown")
    chosen = parser.parse_args()
    begun = time.process_time()
    text = report(chosen.series, min(chosen.rivals, chosen.series), chosen.steps, chosen.seed)
    try:
        rival = f"apache-otava {importlib.metadata.version('apache-otava')}"
    except importlib.metadata.PackageNotFoundError:
        rival = "apache-otava not installed"
    said = f"Seed {chosen.seed}, session sd {SESSION:.0%}, block sd {BLOCK:.1%}, candidate at z = {CANDIDATE:g}, "
    said += f"report at {REPORT:g}; {rival}; {time.process_time() - begun:.0f} s of CPU."
    print(text + "\n" + said)
    if chosen.markdown is not None:
        chosen.markdown.write_text(f"# Alerts of a history\n\n{said}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
