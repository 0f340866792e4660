"""The side-by-side on a terminal, 80 columns; and what a reproduction would do, before anybody accepts it."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from iodelta.bundle.planning import Prepared
from iodelta.lab.bench import request_for
from iodelta.report.formats.columns import columns
from iodelta.study.confounders import said
from iodelta.study.reproduction import Effect, Matched, Reproduced, Side, counted
from iodelta.study.words import digits, inert, metric_name, percent
from iodelta.verdict import metric
from iodelta.verdict.reproduction import WORK, Estimand
from iodelta.workload.fio import command_of

WIDTH = 80
STYLES = {"reproduced": "green", "inconclusive": "yellow", "same direction, size inconclusive": "yellow"}
COMMANDS = 6
"""fio command lines that are shown in full."""
ONE_SIDED = 6


def lines(found: Reproduced) -> Iterator[Text]:
    """All of it."""
    yield from _wrapped(headline(found), "bold")
    yield Text()
    yield from _wrapped(f"There: {_side(found.there)}")
    yield from _wrapped(f"Here:  {_side(found.here)}")
    yield Text()
    told = [_cells(one) for one in found.matched]
    made = iter(columns([("", "there", "here"), *told], "<<<", WIDTH, indent=2))
    yield Text(next(made), style="dim")
    for (cell, variant), rows in groupby(found.matched, key=lambda one: (one.there.cell, one.there.variant)):
        name = "all cells together" if cell == "*" else cell
        yield from _wrapped(f"{inert(name)}: {inert(variant)} against {inert(found.there.baseline)}")
        for one in rows:
            yield Text(next(made))
            yield from _row(one)
    for name, missing in (("there", found.only_there), ("here", found.only_here)):
        if missing:
            more = f" and {len(missing) - ONE_SIDED} more" if len(missing) > ONE_SIDED else ""
            yield from _wrapped(f"Measured {name} only: {'; '.join(map(inert, missing[:ONE_SIDED]))}{more}.")
    yield Text()
    yield from _method(found)
    for note in found.notes:
        yield from _wrapped(f"Not as it was there: {inert(note)}")
    yield from _differences(found)


def headline(found: Reproduced) -> str:
    """The answer in a sentence, no stronger than the rows below it."""
    words = counted(found.matched)
    if not found.matched:
        return "Nothing was measured on both sides."
    if not words:
        return "Nothing was shown there, so there is nothing to reproduce."
    total = sum(words.values())
    if len(words) == 1:
        word = next(iter(words))
        return f"{word.capitalize()}{f', in all {total} comparisons' if total > 1 else ''}."
    return f"{'; '.join(f'{word} in {count}' for word, count in words.items())}, of {total} comparisons.".capitalize()


def _side(side: Side) -> str:
    digest = f", SHA-256 {inert(side.digest[:16])}.." if side.digest else ""
    question = f": {inert(side.question)}" if side.question else ""
    return f"{inert(side.name)}{digest}{question}"


def _cells(one: Matched) -> tuple[str, str, str]:
    name = metric_name(metric(one.there.metric.replace("mixed.", "read.", 1)), with_kind=False)
    return inert(name), _change(one.there, one.found.basis), _change(one.here, one.found.basis)


def _row(one: Matched) -> Iterator[Text]:
    text = Text(f"  {'':<16}")
    yield text.append(one.word, style=STYLES.get(one.found.word, "bold red"))
    for line in textwrap.wrap(_detail(one), WIDTH - 18):
        yield Text(f"  {'':<16}{line}", style="dim")


def _change(effect: Effect, basis: Estimand) -> str:
    """The change of the estimand that the row's word is about."""
    total = effect.total if basis == "total" else None
    value, low, high = (total or effect).value, (total or effect).low, (total or effect).high
    if low is None or high is None:
        return f"{percent(value)} (no interval)"
    half = (high - low) / 2
    places = digits(half)
    return f"{percent(value, half)} ({100 * low:+.{places}f} .. {100 * high:+.{places}f})"


def _detail(one: Matched) -> str:
    found = one.found
    there, here = one.there.of(found.basis), one.here.of(found.basis)
    text = f"{WORK['total']}: {found.says}" if found.basis == "total" and found.held is not False else found.says
    if found.asked and there.value:
        text += f"; {100 * here.value / there.value:.0f} % of it, as logarithms"
    ratio = found.difference
    if math.isfinite(ratio.low) and math.isfinite(ratio.high):
        text += (
            f"; here/there x{math.exp(ratio.value):.3g} (x{math.exp(ratio.low):.3g} .. x{math.exp(ratio.high):.3g}), "
            f"the same size is x{math.exp(-found.tolerance):.3g} .. x{math.exp(found.tolerance):.3g}"
        )
    if not one.scatter_known:
        text += "; one side is a single run, of unknown spread"
    return text


def _method(found: Reproduced) -> Iterator[Text]:
    count = sum(one.found.asked for one in found.matched)
    yield from _wrapped(
        "here/there is the ratio of both relative changes, with the interval (95 %) of the difference of their "
        "logarithms. The same size: more than half of the change seen there, and less than half as much again."
        + (f" Of {count} comparisons one in twenty may be called not reproduced by chance." if count > 1 else "")
    )


def _differences(found: Reproduced) -> Iterator[Text]:
    if not (found.there.environment and found.here.environment):
        yield from _wrapped("What else differs is not known: one side has no record of its environment.")
        return
    likely = [one for one in found.differing if one.likely]
    if not likely:
        yield from _wrapped("No likely confounder is known to differ between the two environments.")
        return
    failed = any(one.found.held is False for one in found.matched)
    what = "What could explain it" if failed else "What differs all the same"
    yield from _wrapped(f"{what}, the likely first (there | here):", "bold" if failed else "")
    for group, why, own in said(likely):
        yield from _wrapped(f"{group}: {why}", indent=2)
        for line in own:
            yield from _wrapped(line, indent=4)


def plan_lines(prepared: Prepared, there: Side, made_by: str) -> Iterator[str]:
    """What stands above and below the plan: whose it is, what is not as it was, commands, and what is dangerous."""
    yield from _plain(f"Bundle    {inert(there.name)}, SHA-256 {there.digest}, made by iodelta {inert(made_by)}")
    if there.question:
        yield from _plain(f"Question  {inert(there.question)}")
    if not any(effect.shown for effect in there.effects):
        yield from _plain(
            "Note      nothing was shown there (every interval holds zero): there is nothing to reproduce"
        )
    for note in prepared.notes:
        yield from _plain(f"Changed   {inert(note)}")
    for one in prepared.dangers:
        yield from _plain(f"DANGER    {inert(one.place)}: {inert(one.what)}: {inert(one.why)}")


def command_lines(prepared: Prepared) -> Iterator[str]:
    """fio's command lines as they would be, directories of the run aside."""
    experiment, found = prepared.experiment, prepared.found
    told: dict[str, None] = {}
    for cell, variant in ((cell, variant) for cell in experiment.cells for variant in experiment.variants):
        request = request_for(
            experiment, cell, variant, found.target, seed=1, size=found.size, version=found.fio, workdir="WORKDIR"
        )
        told[inert(shlex.join(command_of(request)))] = None
    for text in list(told)[:COMMANDS]:
        yield from _plain(f"Runs      {text}")
    if len(told) > COMMANDS:
        yield f"          and {len(told) - COMMANDS} more that differ from these by their cell's options"


def _plain(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, subsequent_indent=" " * 10, break_on_hyphens=False)


def _wrapped(text: str, style: str = "", indent: int = 0) -> Iterator[Text]:
    head = " " * indent
    for line in textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=head + "  ", break_on_hyphens=False):
        yield Text(line, style=style)
