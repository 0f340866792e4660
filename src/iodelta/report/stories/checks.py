"""A result as the tests of a build: one check for each statement, with the word that a gate goes by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from iodelta.errors import RequestError
from iodelta.part import kind_of, load
from iodelta.study.words import inert, interval, percent

if TYPE_CHECKING:  # a quick command loads the kind that it prints, and no other
    from iodelta.path.judge import PathAccount, Shift
    from iodelta.path.sharing import SharingShift
    from iodelta.report.stories.kinds import Result
    from iodelta.study.attribution import AttributionAccount
    from iodelta.study.cell import Compared
    from iodelta.study.comparison import Comparison
    from iodelta.study.experiment import Account
    from iodelta.study.fleet import FleetAccount, FleetRow
    from iodelta.study.search import Changed, SearchAccount
    from iodelta.trial import Finding
    from iodelta.verdict import Change, Rules, Verdict

Word = Literal[
    "regression",
    "improvement",
    "passed",
    "inconclusive",
    "unmeasured",
    "unresolved",
    "finding",
]
"""``passed``: no regression as large as the margin. ``unresolved``: the source is too coarse, which decides nothing.
``finding``: a hard finding of the audit, which is about a number and not about a change."""

NOT_MEASURED = "nothing was measured"

OF_CODE: dict[int, Word] = {0: "passed", 1: "regression", 3: "inconclusive"}
"""Exit code of a result, or of a comparison over hosts -> the word of its check."""


class Check(msgspec.Struct, frozen=True):
    """One statement. All its text is inert."""

    group: str
    """What it is about: a cell, or what was searched."""
    name: str
    """Variant and metric."""
    word: Word
    says: str


def checks_of(result: Result) -> tuple[Check, ...]:
    """Return the checks of a result, in the order of its report. Raises RequestError where it has no verdict."""
    place = kind_of(result).checks
    if not place:
        raise RequestError(
            "this result has no verdicts, which --fail-on and the formats junit, ktap and github need",
            remedy="leave --fail-on out, or choose another format",
        )
    return tuple(load(place)(result))


def code_of(checks: Iterable[Check], fail_on: frozenset[str]) -> int:
    """1 for a word in ``fail_on``, 3 where that is ``inconclusive``, which what was not measured is too; else 0."""
    words = {check.word for check in checks}
    if words & (fail_on - {"inconclusive"}):
        return 1
    if "inconclusive" in fail_on and words & {"inconclusive", "unmeasured"}:
        return 3
    return 0


def of_account(account: Account) -> Iterator[Check]:
    from iodelta.lab.account import LEFT_OUT
    from iodelta.lab.calibration import doubt
    from iodelta.report.stories.statements import all_findings

    rules = account.judgement.rules
    suspected = doubt(account.calibrations, rules.alpha) is not None
    # A changed folder is no evidence for any of its cells.
    broken = ""
    if account.broken:
        broken = (
            f"this folder is not what was measured: {account.broken[0].explanation}"
        )
    for verdict in account.judgement.verdicts:
        if verdict.cell not in account.unmeasured:
            reason = broken or account.abandoned.get(verdict.cell, "")
            yield _of_verdict(verdict, rules, inert(reason), suspected=suspected)
    unmeasured = f"{NOT_MEASURED} ({account.state})"
    for cell in account.unmeasured:
        reason = broken or account.abandoned.get(cell, unmeasured)
        yield Check(
            group=inert(cell),
            name="not measured",
            word="unmeasured",
            says=inert(reason),
        )
    others = []
    for finding in all_findings(account):
        if finding.rule != LEFT_OUT:
            others.append(finding)
            continue
        yield Check(
            group="experiment",
            name=inert(finding.place),
            word="unmeasured",
            says=inert(finding.explanation),
        )
    yield from _of_findings(others)


def _of_verdict(
    verdict: Verdict, rules: Rules, reason: str, *, suspected: bool
) -> Check:
    from iodelta.report.stories.evidence import apart, note
    from iodelta.study.experiment import open_ended
    from iodelta.study.words import metric_name, quantity

    name = f"{inert(verdict.variant)}: {metric_name(verdict.metric, with_kind=True)}"
    cell, phrase = inert(verdict.cell), inert(verdict.phrase)
    if reason:
        return Check(group=cell, name=name, word="unmeasured", says=reason)
    if not verdict.blocks:  # a percentile, say, for which the trials have too few I/Os
        return Check(group=cell, name=name, word="inconclusive", says=phrase)
    word: Word = "passed"
    if verdict.word in ("regression", "improvement"):
        word, phrase = verdict.word, note(verdict, rules)
    elif open_ended(verdict):
        word = "inconclusive"
    unit = verdict.metric.unit
    values = f"{quantity(verdict.baseline_value, unit)} -> {quantity(verdict.variant_value, unit)}"
    text = f"{'suspected ' * suspected}{verdict.word}: {values}"
    if verdict.change:
        text += f", {_changed(verdict.change)}"
    if verdict.change:
        why = apart(verdict, percent(verdict.change.value, 0.005))
        text = _joined(text, "" if why in phrase else why)
    return Check(group=cell, name=name, word=word, says=_joined(text, phrase))


def _of_findings(findings: Iterable[Finding]) -> Iterator[Check]:
    for finding in dict.fromkeys(findings):
        if finding.severity == "hard":
            yield Check(
                group="findings",
                name=f"{inert(finding.rule)}: {inert(finding.place)}",
                word="finding",
                says=inert(_joined(finding.explanation, finding.remedy)),
            )


def _joined(*parts: str) -> str:
    """Return the parts that are not empty, as one sentence."""
    return "; ".join(filter(None, parts))


def of_comparison(comparison: Comparison) -> Iterator[Check]:
    resolved = any(row.resolved for row in comparison.compared)
    for row in comparison.compared:
        yield _of_compared(row, counts=row.resolved or not resolved)
    for variant, cells in comparison.lacking.items():
        for cell in cells:
            yield Check(
                group=inert(cell),
                name=inert(variant),
                word="unmeasured",
                says="no number is present in all runs of both sides",
            )
    if not comparison.compared and not any(comparison.lacking.values()):
        yield Check(
            group="comparison",
            name="cells",
            word="unmeasured",
            says="the sides have no cell in common",
        )
    yield from _of_findings(comparison.findings)


def _of_compared(row: Compared, *, counts: bool) -> Check:
    from iodelta.report.stories.comparison import bounds_of, change_of, name_of, says_of
    from iodelta.study.words import quantity

    words: dict[str, Word] = {"equivalent": "passed", "no verdict": "inconclusive"}
    word: Word = words.get(row.word, row.word)  # type: ignore[arg-type]
    values = " -> ".join(quantity(value, row.unit) for value in row.values)
    text = f"{row.word}: {values}, {change_of(row.change)[0]}"
    bounds = bounds_of(row)
    if bounds:
        text += f" ({bounds})"
    name = f"{inert(row.variant)}: {name_of(row, several=True)}"
    return Check(
        group=inert(row.cell),
        name=name,
        word=word if counts else "unresolved",
        says=_joined(text, inert(says_of(row)), inert(row.why)),
    )


def of_fleet(account: FleetAccount) -> Iterator[Check]:
    if not any(row.averaged for row in account.rows):
        yield Check(
            group="fleet",
            name="agreement",
            word="unmeasured",
            says="no host could be judged",
        )
        return
    for row in account.rows:
        if row.variant == account.placebo:
            continue
        yield _of_row(row, alarmed=bool(account.alarms))


def _of_row(row: FleetRow, *, alarmed: bool) -> Check:
    from iodelta.study.words import metric_name

    name = f"{inert(row.variant)}: {metric_name(row.metric, with_kind=True)}"
    says: str = row.word or "no joint verdict"
    word = OF_CODE[row.exit_code]
    if word == "passed" and says.startswith("improvement"):
        word = "improvement"
    parts = [says]
    if row.together is not None:
        parts.append(f"mean {percent(row.together.mean.value, 0.005)}")
    if alarmed:
        word = "inconclusive"
        parts.append("the hosts call a comparison of the baseline with itself a change")
    parts.append(inert(row.says))
    if row.averaged:
        hosts = [f"{inert(host.host)} {host.word}" for host in row.averaged]
        parts.append(f"hosts: {', '.join(hosts)}")
    return Check(group=inert(row.cell), name=name, word=word, says=_joined(*parts))


def of_search(account: SearchAccount) -> Iterator[Check]:
    from iodelta.report.stories.search import headline

    metric = inert(account.question.metric)
    for culprit in account.culprits:
        text = f"culprit: {metric} {_changed(culprit.change)} against {inert(culprit.parent)}"
        yield Check(
            group="search", name=inert(culprit.title), word="regression", says=text
        )
    if not account.culprits:
        word: Word = "passed" if account.exit_code == 0 else "inconclusive"
        yield Check(group="search", name=metric, word=word, says=headline(account))


def of_attribution(account: AttributionAccount) -> Iterator[Check]:
    whole = f"all together {_changed(account.whole)}" if account.whole else ""
    yield Check(
        group="attribution",
        name=inert(account.question.metric),
        word=OF_CODE[account.exit_code],
        says=_joined(whole, inert(account.answer)),
    )


def _changed(change: Change | Changed | None) -> str:
    if change is None:
        return "changed"
    return f"{percent(change.value, 0.005)} ({interval(change.low, change.high)})"


def of_path(account: PathAccount) -> Iterator[Check]:
    what = "moved lines" if account.anatomy == "sharing" else "instructions"
    if account.exit_code == 4:
        reason = (
            f"the boot that was made twice is {account.self_check}"
            if account.counts or account.sharing.cells
            else NOT_MEASURED
        )
        yield Check(
            group=what, name=inert(account.target), word="unmeasured", says=reason
        )
        return
    for shift in account.shifts:
        yield _of_counted(shift, shift.kind, "instructions")
    for moved in account.sharing.shifts:
        yield _of_counted(moved, "moved lines", "lines")
    if not (account.shifts or account.sharing.shifts):
        yield Check(
            group=what,
            name=inert(account.target),
            word="inconclusive",
            says="nothing was compared",
        )


WORDS: dict[str, Word] = {
    "longer": "regression",
    "shorter": "improvement",
    "more": "regression",
    "fewer": "improvement",
    "same": "passed",
}
"""Word of a count -> the word of its check."""


def _of_counted(shift: Shift | SharingShift, what: str, unit: str) -> Check:
    change = "" if shift.change is None else f": {shift.change:+g} {unit} per I/O"
    return Check(
        group=inert(shift.cell),
        name=f"{inert(shift.variant)} against {inert(shift.against)}: {what}",
        word=WORDS.get(shift.word, "inconclusive"),
        says=_joined(f"{shift.word}{change}", inert(shift.reason)),
    )
