"""Pages of experiments, comparisons and imports: which words stand where."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.report.cache import Charts
from iodelta.report.formats.charts import Source
from iodelta.report.formats.html.page import Page, page
from iodelta.report.stories import comparison, experiment
from iodelta.report.stories.statements import recommendation
from iodelta.study.comparison import Comparison
from iodelta.study.experiment import Account, headline
from iodelta.study.words import duration, inert

STATES = {"complete": "complete", "budget": "ended by its budget", "interrupted": "interrupted", "running": "running"}


def of_account(account: Account, source: Source, charts: Charts) -> Page:
    """An experiment."""
    advice = recommendation(account)
    return page(
        experiment.of_account(account),
        source,
        charts,
        answers=_shared(_sentences(headline(account)), account.plan.experiment.baseline),
        recommendation=advice,
        facts=tuple(_facts(account)),
    )


def of_comparison(found: Comparison, source: Source, charts: Charts) -> Page:
    """Results from anywhere, compared."""
    answers = [
        comparison.headline(found, variant, [one for one in found.compared if one.variant == variant])
        for variant in found.variants
    ]
    words = sorted({one.basis for one in found.compared})
    sides = {(one.cell, ""): one.runs[0] for one in found.compared}
    sides |= {(one.cell, one.variant): one.runs[1] for one in found.compared}
    facts = (
        ("cells", str(len({one.cell for one in found.compared}))),
        ("runs", str(sum(sides.values()))),
        ("margin", f"{100 * found.margin:g} %"),
        ("based on", ", ".join(words) or "no number in common"),
    )
    return page(comparison.of_comparison(found), source, charts, answers=_shared(answers, found.baseline), facts=facts)


def _shared(answers: Sequence[str], baseline: str) -> tuple[str, ...]:
    """Variants of which the same is said, in one sentence."""
    groups: dict[str, list[str]] = {}
    middle = f" against {inert(baseline)}: "
    for answer in answers:
        name, found, rest = answer.partition(middle)
        groups.setdefault(rest if found else answer, []).append(name if found else "")
    between = "; " if any("," in name for names in groups.values() for name in names) else ", "
    return tuple(f"{between.join(names)}{middle}{rest}" if all(names) else rest for rest, names in groups.items())


def _sentences(text: str) -> tuple[str, ...]:
    """One line per variant."""
    parts = text.split(". ")
    return tuple(part if part.endswith(".") else f"{part}." for part in parts if part)


def _facts(account: Account) -> list[tuple[str, str]]:
    rules, experiment = account.plan.rules, account.plan.experiment
    most: dict[str, int] = {}
    for verdict in account.judgement.verdicts:
        most[verdict.cell] = max(most.get(verdict.cell, 0), verdict.blocks)
    blocks = sorted(most.values()) or [0]
    changes = [verdict.change for verdict in account.judgement.verdicts if verdict.change]
    seen = sorted((c.high - c.low) / 2 for c in changes if c.low is not None and c.high is not None)
    found = [
        ("trials", f"{account.trials:,}"),
        ("blocks of a cell", f"{blocks[0]}" if blocks[0] == blocks[-1] else f"{blocks[0]} to {blocks[-1]}"),
        ("time", duration(account.spent)),
        ("margin", f"{100 * experiment.margin:g} %"),
        ("level", f"{100 * (1 - rules.alpha):g} %"),
    ]
    if seen:
        found.append(("smallest change it could see", f"{100 * seen[0]:.1f} to {100 * seen[-1]:.1f} %"))
    state = STATES.get(account.state, "ended early")
    return [*found, ("state", state)]
