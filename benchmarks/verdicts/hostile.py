"""``python -m benchmarks.verdicts --hostile``: error rates of the verdicts under noise that is meant to break them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.verdicts.measures import Line, Seen, experiment, lines_of, rivals, seed_of, truth_of
from benchmarks.verdicts.scenarios import Scenario, scenarios

ROUND = 20
"""Experiments of every scenario before the next one has its turn, so that a run that ends early has seen all."""

LEAST = 60
"""Experiments of every scenario before those that come first get more."""

Results = list[tuple[Scenario, list[Seen]]]

ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What judging may raise by mistake: counted, because it must never raise."""

MEDIANS = ("median blocks", "size said / true")
"""Measures that are not rates."""

HEAD = "| scenario | reps | measure | value | 95 % limits | bound | holds |"
RIVALS = (
    "Welch t, same trials",
    "benchstat U, same trials",
    "fixed 5 %, same trials",
    "Welch t, A then B",
    "benchstat U, A then B",
    "fixed 5 %, A then B",
    "otava split, A then B",
)

NOTES = """\
Each experiment is simulated trial by trial and judged as a real one would be: margin 2 %, looks at 9 to 80 blocks
unless said otherwise, an independent draw of the order of every block. `value` is a rate over `reps` experiments, or a
median; the limits are exact one-sided 95 % limits. `holds`: `yes`; `FAILS` where the limit lies beyond the
bound; `?` where the value does and chance may have done it. Lines without a bound are shown to be judged by you.

*typical* is the pseudo-median of the block log-ratios, *total* the ratio of all work done; both truths are known from
the simulation's own formulas, or from 100,000 blocks where the variant stalls. *alarm*: any comparison of an experiment
is called a regression or an improvement where there is none. *wrong sign*: the word of the opposite change.
*equivalent in spite of the total*: the word, although the interval of the total change leaves the margin. *total
covered, a stall seen*: among the experiments in which one of the variant's trials stalled up to the look. Where none
did, no interval of what was measured can hold the stalls to come, so *total covered* has no bound where fewer than 10 %
of trials stall; the report states beside every total which share of stalls its trials do not exclude.

*stops in the projected range*: at the first look a range of blocks is said that holds as near to 60 % of the replayed
futures as the looks allow; it may be open ("or more than are planned"), or "at no planned look". Every experiment that
is open at its first look counts. A range made from nine blocks cannot hold the same share at every true change; it is
held to 55-65 % at each all the same."""


@dataclass
class Run:
    """The experiments of every scenario, and the errors that judging raised."""

    results: Results
    errors: list[str] = field(default_factory=list)
    taken: dict[int, int] = field(default_factory=dict)

    def extend(self, place: int, *, seed: int, truth: float, target: int) -> None:
        """Simulate the scenario at ``place`` until ``target`` experiments were begun."""
        scenario, seen = self.results[place]
        for rep in range(self.taken.get(place, 0), target):
            try:
                seen.append(experiment(scenario, seed_of(scenario, seed, rep), truth))
            except ERRORS as error:
                self.errors.append(f"{scenario.group}: {scenario.name}: experiment {rep}: {error!r}")
            self.taken[place] = rep + 1


def run(chosen: Sequence[Scenario], *, seed: int, reps: int, minutes: float) -> Run:
    """Up to ``reps`` experiments of every scenario (fewer of many cells), in rounds, for at most ``minutes``."""
    started = time.monotonic()
    truths = [truth_of(scenario) for scenario in chosen]
    found = Run([(scenario, []) for scenario in chosen])
    for done in range(ROUND, reps + ROUND, ROUND):
        for place, (scenario, truth) in enumerate(zip(chosen, truths, strict=True)):
            if time.monotonic() - started > 60 * minutes:
                return found
            found.extend(place, seed=seed, truth=truth, target=wanted(scenario, min(done, reps)))
        print(f"{min(done, reps)} experiments a scenario after {time.monotonic() - started:.0f} s", file=sys.stderr)
    return found


def wanted(scenario: Scenario, reps: int) -> int:
    """Experiments of a scenario: all of those that come first; of others a tenth beyond the least. A matrix costs as
    much as its comparisons, and gets fewer."""
    own = reps if scenario.first else min(reps, LEAST + reps // 10)
    return max(1, own // max(1, scenario.setup.cells // 2))


def markdown(found: Run, *, seed: int, reps: int, command: str) -> str:
    """The table with its state."""
    results = found.results
    parts = ["# Verdicts under hostile noise", NOTES, _state(seed, reps, command), _summary(results), _errors(found)]
    for group in dict.fromkeys(scenario.group for scenario, _ in results):
        rows = [HEAD, "|---|--:|---|--:|--:|--:|---|"]
        for scenario, seen in results:
            if scenario.group == group and seen:
                rows += _rows(scenario, seen)
        parts += [f"## {group}", "\n".join(rows)]
    parts.append(_rivals(results))
    return "\n\n".join(part for part in parts if part) + "\n"


def _state(seed: int, reps: int, command: str) -> str:
    at = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    machine = (
        f"{os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    return f"State: commit {at.stdout.strip() or 'unknown'}; {machine}; seed {seed}; at most {reps} reps; `{command}`."


def _summary(results: Results) -> str:
    lines = [(scenario, line) for scenario, seen in results if seen for line in lines_of(scenario, seen) if line.bound]
    counts = {held: sum(line.held == held for _, line in lines) for held in ("yes", "?", "FAILS", "no data")}
    said = ", ".join(f"{count} {held}" for held, count in counts.items())
    broken = [
        f"- {scenario.group}: {scenario.name}: {line.measure} {_value(line)}, bound {_bound(line)}"
        for scenario, line in lines
        if line.held == "FAILS"
    ]
    return "\n".join([f"{len(lines)} lines with a bound: {said}.", *(["", *broken] if broken else [])])


def _errors(found: Run) -> str:
    if not found.errors:
        return ""
    return (
        f"Judging raised an error in {len(found.errors)} experiments, which are left out; the first: {found.errors[0]}."
    )


def _rows(scenario: Scenario, seen: Sequence[Seen]) -> list[str]:
    rows = []
    name = scenario.name
    for line in lines_of(scenario, seen):
        cells = (name, str(line.count), line.measure, _value(line), _limits(line), _bound(line), line.held)
        rows.append("| " + " | ".join(cells) + " |")
    words = [one.verdict.word for one in seen]
    said = ", ".join(f"{word} {100 * words.count(word) / len(words):.3g} %" for word in sorted(set(words)))
    blocks = sorted(one.verdict.blocks for one in seen)[len(seen) // 2]
    rows.append(f"| {name} | {len(seen)} | words | {said}; median {blocks} blocks | | | |")
    return rows


def _value(line: Line) -> str:
    if line.measure in MEDIANS:
        return f"{line.value:.3g}"
    return f"{100 * line.value:.1f} %"


def _limits(line: Line) -> str:
    if line.measure in MEDIANS:
        return f"{line.low:.3g} to {line.high:.3g}"
    return f"{100 * line.low:.1f}-{100 * line.high:.1f} %"


def _bound(line: Line) -> str:
    if line.bound is None:
        return ""
    ends = ((">=", line.bound.least), ("<=", line.bound.most))
    return " ".join(f"{sign} {_number(line.measure, end)}" for sign, end in ends if end is not None)


def _number(measure: str, value: float) -> str:
    return f"{value:g}" if measure in MEDIANS else f"{100 * value:g} %"


def _rivals(results: Results) -> str:
    head = "| noise | iodelta | " + " | ".join(RIVALS) + " |"
    rows = [head, "|---|--:|" + "--:|" * len(RIVALS)]
    for scenario, seen in results:
        single = scenario.setup.cells == 1 and scenario.setup.metrics == 1 and scenario.setup.blocks == 80
        if seen and single and scenario.group == "No change":
            rows.append(_rival_row(scenario, seen))
    for scenario, seen in results:
        if seen and scenario.group.startswith("Carry") and not scenario.setup.superblocks:
            rows.append(_rival_row(scenario, seen))
    text = (
        "Alarms where nothing changed, on the same noise. `same trials`: the interleaved trials that were judged; "
        "`A then B`: the same noise in the order that these tools run, without what one trial leaves to the next. "
        "benchstat's rule is the Mann-Whitney test at 5 %."
    )
    return "## Other rules\n\n" + text + "\n\n" + "\n".join(rows) if len(rows) > 2 else ""


def _rival_row(scenario: Scenario, seen: Sequence[Seen]) -> str:
    own = sum(one.verdict.word in ("regression", "improvement") for one in seen) / len(seen)
    found = rivals(seen)
    cells = [scenario.name, f"{100 * own:.1f} %", *(f"{100 * found[name]:.0f} %" for name in RIVALS)]
    return "| " + " | ".join(cells) + " |"


def main(*, seed: int, reps: int, minutes: float, names: Sequence[str], file: Path | None) -> int:
    """Run the scenarios whose name or group contains one of ``names`` (none: all); 1 when a bound does not hold."""
    chosen = [one for one in scenarios() if not names or any(name in f"{one.group}: {one.name}" for name in names)]
    if not chosen:
        print(f"no scenario is called {names[0]!r}", file=sys.stderr)
        return 2
    found = run(chosen, seed=seed, reps=reps, minutes=minutes)
    command = f"python -m benchmarks.verdicts --hostile --seed {seed} --reps {reps} --minutes {minutes:g}"
    text = markdown(found, seed=seed, reps=reps, command=command)
    if file is None:
        print(text, end="")
    else:
        file.write_text(text)
    lines = [line for scenario, seen in found.results if seen for line in lines_of(scenario, seen)]
    return 1 if found.errors or any(line.held == "FAILS" for line in lines) else 0
