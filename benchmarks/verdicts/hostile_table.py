"""The table of the hostile benchmark, made from its results."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

from benchmarks.verdicts.lines import Line, lines_of
from benchmarks.verdicts.measures import VALUES, Tally
from benchmarks.verdicts.records import Results
from benchmarks.verdicts.rivals import AFTER, RIVALS, SAME
from benchmarks.verdicts.scenarios import Scenario

HEAD = "| scenario | commit | reps | measure | value | 95 % limits | bound | holds |\n|---|---|--:|---|--:|--:|--:|---|"

NOTES = """\
Each experiment is simulated trial by trial and judged as a real one would be: margin 2 %, looks at 9 to 80 blocks
unless said otherwise, an independent draw of the order of every block. `value` is a rate over `reps` experiments, or a
median; the limits are exact one-sided 95 % limits. `holds`: **yes** only where the limits lie inside the bound, so that
the rate itself does, at 95 %; **FAILS** where one lies beyond it; **?** where the value lies inside or outside and
chance may have put it there: too few experiments for a word, or a rate at its very bound. A bound of 0 % means never:
one case fails. Lines without a bound are shown to be judged by you.

*typical* is the pseudo-median of the block log-ratios, *total* the ratio of all work done; both truths are known from
the simulation's own formulas, or from 100,000 blocks where the variant stalls. *alarm*: any comparison of an experiment
is called a regression or an improvement where there is none. *wrong sign*: the word of the opposite change.
*equivalent in spite of the total*: the word, although the interval of the total change leaves the margin. *total
covered, a stall seen*: among the experiments in which one of the variant's trials stalled up to the look. Where none
did, no interval of what was measured can hold the stalls to come, so *total covered* has no bound where fewer than 10 %
of trials stall; the report states beside every total which share of stalls its trials do not exclude.

*stops in the projected range*: at the first look a range of blocks is said that holds as near to 60 % of the replayed
futures as the looks allow, and what share that is; it may be open ("or more than are planned"), or "at no planned
look". Every experiment that is open at its first look counts. The share is one over all changes that nine blocks leave
possible. It is checked where the truth is drawn, any change and any noise: there an experiment stops in the range in
55-65 % of cases, and as often as is said within 5 points. At one true change, over and over, it need not: the nine
blocks and the range made of them err together. Those lines are shown and have no bound."""

RIVALS_NOTES = """\
What other rules say of the same experiments. *Same trials*: the interleaved trials that were judged, all planned
blocks of them. *A then B*: half of a run of the same machine without the variant, then half with it, in the order in
which these tools run. Of several comparisons any counts; none of these rules corrects for their number. benchstat's
rule is the Mann-Whitney test at 5 %. README.md says what each simplifies."""


CHANGED_NOTES = """\
Every cell has the share of experiments with the right answer, then that with a change of the wrong sign. A variant that
stalls has changed for the worse; in superblocks so has one that leaves a debt to the trial after it."""


def markdown(results: Sequence[Results]) -> str:
    """The table with its state."""
    known = [one for one in results if one.records]
    parts = ["# Verdicts under hostile noise", NOTES, _state(known), _summary(known), _errors(known)]
    for group in dict.fromkeys(one.scenario.group for one in known):
        rows = [HEAD]
        for one in known:
            if one.scenario.group == group:
                rows += _rows(one)
        parts += [f"## {group}", "\n".join(rows)]
    parts += _rivals(known)
    return "\n\n".join(part for part in parts if part) + "\n"


def broken(results: Sequence[Results]) -> bool:
    """Whether a bound does not hold or judging raised an error."""
    return any(one.tally.errors or any(line.held == "FAILS" for line in _lines(one)) for one in results if one.records)


def _lines(one: Results) -> list[Line]:
    return lines_of(one.scenario, one.tally)


def _state(known: Sequence[Results]) -> str:
    machine = (
        f"{os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    seeds = sorted({record.seed for one in known for record in one.records})
    tallies = [one.tally for one in known]
    return (
        f"State: {len(known)} scenarios, {sum(tally.count for tally in tallies):,} experiments, "
        f"{sum(tally.seconds for tally in tallies) / 60:.0f} minutes of processor time; the table was written on "
        f"{machine}; seed {', '.join(map(str, seeds))}. Each line names the commit that its experiments were made at."
    )


def _summary(known: Sequence[Results]) -> str:
    lines = [(one.scenario, line) for one in known for line in _lines(one) if line.bound]
    counts = {held: sum(line.held == held for _, line in lines) for held in ("yes", "?", "FAILS", "no data")}
    said = ", ".join(f"{count} {held}" for held, count in counts.items())
    parts = [f"{len(lines)} lines with a bound: {said}."]
    for held, title in (
        ("FAILS", "Bounds that do not hold:"),
        ("?", "Values beyond their bound, where chance may be why:"),
    ):
        named = [
            f"- {scenario.key}: {line.measure} {_value(line)} ({_limits(line)}), bound {_bound(line)}"
            for scenario, line in lines
            if line.held == held and line.beyond
        ]
        if named:
            parts += ["", title, "", *named]
    return "\n".join(parts)


def _errors(known: Sequence[Results]) -> str:
    errors = [error for one in known for error in one.tally.errors]
    if not errors:
        return ""
    return f"Judging raised an error in {len(errors)} experiments, which are left out; the first: {errors[0]}."


def _rows(one: Results) -> list[str]:
    name, commits = one.scenario.name, " ".join(one.commits)
    rows = []
    for line in _lines(one):
        cells = (name, commits, str(line.count), line.measure, _value(line), _limits(line), _bound(line), line.held)
        rows.append("| " + " | ".join(cells) + " |")
    rows.append(f"| {name} | {commits} | {one.tally.count} | words | {_words(one.tally)} | | | |")
    return rows


def _words(tally: Tally) -> str:
    judged = max(1, sum(tally.words.values()))
    said = ", ".join(f"{word} {100 * times / judged:.3g} %" for word, times in sorted(tally.words.items()))
    blocks = sorted(tally.values.get("median blocks", []))
    return f"{said}; median {blocks[len(blocks) // 2]:.0f} blocks" if blocks else said


def _value(line: Line) -> str:
    return f"{line.value:.3g}" if line.measure in VALUES else f"{100 * line.value:.1f} %"


def _limits(line: Line) -> str:
    if line.measure in VALUES:
        return f"{line.low:.3g} to {line.high:.3g}"
    return f"{100 * line.low:.1f}-{100 * line.high:.1f} %"


def _bound(line: Line) -> str:
    if line.bound is None:
        return ""
    ends = ((">=", line.bound.least), ("<=", line.bound.most))
    return " ".join(f"{sign} {_number(line.measure, end)}" for sign, end in ends if end is not None)


def _number(measure: str, value: float) -> str:
    return f"{value:g}" if measure in VALUES else f"{100 * value:g} %"


def _rivals(known: Sequence[Results]) -> list[str]:
    """Two tables: alarms where nothing changed, and right and wrong answers where something did."""
    compared = [one for one in known if one.tally.rivals]
    quiet = [one for one in compared if one.scenario.setup.quiet]
    changed = [one for one in compared if not one.scenario.setup.quiet]
    parts = ["## Other rules", RIVALS_NOTES] if compared else []
    if quiet:
        parts += ["### Alarms where nothing changed", _rival_table(quiet)]
    if changed:
        parts += [
            "### Right answers where something did, and those of the wrong sign",
            CHANGED_NOTES,
            _rival_table(changed),
        ]
    return parts


def _rival_table(chosen: Sequence[Results]) -> str:
    names = [f"{name}, {'same' if order == SAME else 'after'}" for name, order in RIVALS]
    rows = ["| scenario | iodelta | " + " | ".join(names) + " |", "|---|--:|" + "--:|" * len(names)]
    rows += [_rival_row(one.scenario, one.tally) for one in chosen]
    return "\n".join(rows).replace(", same |", " |").replace(", after |", f", {AFTER} |")


def _rival_row(scenario: Scenario, tally: Tally) -> str:
    judged = max(1, sum(tally.words.values()))
    cells = [_own(scenario, tally, judged)]
    for name, order in RIVALS:
        worse, better, either = tally.rivals[f"{name}, {order}"]
        cells.append(_said(scenario, worse, better, either, judged))
    return f"| {scenario.key} | " + " | ".join(cells) + " |"


def _own(scenario: Scenario, tally: Tally, judged: int) -> str:
    worse, better = tally.words.get("regression", 0), tally.words.get("improvement", 0)
    alarms, known = tally.rates.get("alarm", (worse + better, judged))
    return _said(scenario, worse, better, alarms, known if scenario.setup.quiet else judged)


def _said(scenario: Scenario, worse: int, better: int, either: int, judged: int) -> str:
    if scenario.setup.quiet:
        return f"{100 * either / judged:.1f} %"
    right, wrong = (worse, better) if scenario.setup.harmful else (better, worse)
    return f"{100 * right / judged:.0f}, {100 * wrong / judged:.0f} %"
