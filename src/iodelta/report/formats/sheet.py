"""CSV for spreadsheets and scripts: exact numbers, one row per cell, variant and metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from iodelta.errors import pasted
from iodelta.report.formats.fleet_sheet import of_fleet
from iodelta.report.formats.path_sheet import of_path
from iodelta.report.formats.plan_sheet import (
    of_calibrated,
    of_disk_plan,
    of_path_plan,
    of_plan,
    of_rehearsal,
    of_search_plan,
)
from iodelta.report.formats.policy_sheet import (
    of_calibration,
    of_explanations,
    of_mirror,
    of_policies,
    of_simulation,
)
from iodelta.report.formats.round_sheet import of_preparation
from iodelta.report.formats.spreadsheet import csv_text

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result
    from iodelta.study.attribution import AttributionAccount
    from iodelta.study.audited import Audited, RulesAnswer
    from iodelta.study.comparison import Comparison
    from iodelta.study.experiment import Account
    from iodelta.study.fleet import FleetRow
    from iodelta.study.fleet_reproduction import FleetReproduced, ReproducedHost
    from iodelta.study.reproduction import Effect, Reproduced
    from iodelta.study.rows import Row, Shown
    from iodelta.study.search import Changed, SearchAccount
    from iodelta.trial import Finding
    from iodelta.verdict import Change, Verdict
    from iodelta.verdict.reproduction import Estimand


def csv_of(result: Result) -> str:
    """Any result as rows."""
    rows: str = SHEETS[type(result).__name__](result)
    return rows


VERDICTS = (
    *(
        "cell",
        "condition",
        "metric",
        "unit",
        "better",
        "baseline",
        "variant",
        "verdict",
        "phrase",
        "blocks",
    ),
    *(
        "baseline_median",
        "variant_median",
        "change",
        "low",
        "high",
        "level",
        "smallest_change",
        "total_change",
        "sd",
    ),
    *(
        "p",
        "p_looks",
        "p_family",
        "q",
        "blocks_needed",
        "best",
        "findings",
        "question",
        "margin",
        "order",
        "looks",
    ),
    *("seed", "decided_in_advance", "calibration", "state", "repeat", "schema"),
    *(
        "variant_measured",
        "basis",
        "typical_change",
        "direct_change",
        "carry_over",
        "carry_low",
        "carry_high",
    ),
    *(
        "adjusted_change",
        "stalled",
        "stalls_not_excluded",
        "flagged_blocks",
        "unflagged_change",
        "two_speeds",
    ),
    "smallest_p",
)
"""Of an experiment. Shares are fractions: a change of -0.02 is 2 % less."""


def of_account(account: Account) -> str:
    """One row per cell, variant and metric, each with what it takes to read it alone."""
    return csv_text(VERDICTS, _verdicts(account))


def _verdicts(account: Account) -> Iterator[tuple[object, ...]]:
    from iodelta.report.stories.calibration import quoted

    plan = account.plan
    conditions = {cell.name: cell.condition for cell in plan.experiment.cells}
    best = {(entry.cell, entry.metric): entry.variants for entry in account.best}
    everywhere = [
        finding.rule for finding in (*account.findings, *account.judgement.findings)
    ]
    looks = " ".join(map(str, plan.rules.looks))
    calibrated = " ".join(map(quoted, account.calibrations[:1])) or "not calibrated"
    constant = (
        *(
            plan.experiment.question,
            plan.rules.margin,
            "randomised blocks",
            looks,
            plan.seed,
        ),
        *("order, rules, looks, margin, level", calibrated, account.state),
        *(account.again.run if account.again else "", "iodelta.verdicts.csv/1"),
    )
    for v in account.judgement.verdicts:
        change = v.change
        low, high = (change.low, change.high) if change else (None, None)
        half = (high - low) / 2 if low is not None and high is not None else None
        rules = dict.fromkeys([*(finding.rule for finding in v.findings), *everywhere])
        marked = best.get((v.cell, v.metric.name), ())
        yield (
            *(
                v.cell,
                conditions.get(v.cell, ""),
                v.metric.name,
                v.metric.unit,
                v.metric.better,
                v.baseline,
                v.variant,
            ),
            *(v.word, v.phrase, v.blocks, v.baseline_value, v.variant_value),
            *(
                change.value if change else None,
                low,
                high,
                change.level if change else None,
                half,
            ),
            *(
                v.total.value if v.total else None,
                v.sd,
                v.p,
                v.p_looks,
                v.p_family,
                v.q,
            ),
            *(
                v.needed.blocks if v.needed else None,
                " ".join(marked),
                " ".join(rules),
                *constant,
            ),
            *_evidence(v),
        )


def _evidence(v: Verdict) -> tuple[object, ...]:
    """What stands behind the word, as numbers; empty where unknown."""
    carry = v.carry.change if v.carry else None
    return (
        *(
            v.variant_measured,
            v.basis,
            v.typical.value if v.typical else None,
            v.direct.value if v.direct else None,
        ),
        *((carry.value, carry.low, carry.high) if carry else (None, None, None)),
        v.carry.adjusted if v.carry else None,
        " ".join(map(str, v.stalls.variant)) if v.stalls else None,
        v.stalls.not_excluded if v.stalls else None,
        *(
            v.flagged,
            v.unflagged.value if v.unflagged else None,
            int(v.two_speeds),
            v.smallest_p,
        ),
    )


COMPARED = (
    *(
        "cell",
        "metric",
        "unit",
        "better",
        "baseline",
        "variant",
        "verdict",
        "says",
        "basis",
        "baseline_runs",
    ),
    *(
        "variant_runs",
        "baseline_median",
        "variant_median",
        "baseline_spread",
        "variant_spread",
        "change",
        "low",
    ),
    *("high", "resolved", "margin", "findings", "differs_in", "repeat", "schema"),
)
"""Of a comparison. Shares are fractions."""


def of_comparison(comparison: Comparison) -> str:
    """One row per cell, variant and metric."""
    return csv_text(COMPARED, _compared(comparison))


def _compared(comparison: Comparison) -> Iterator[tuple[object, ...]]:
    everywhere = " ".join(
        dict.fromkeys(finding.rule for finding in comparison.findings)
    )
    repeat = f"iodelta compare {' '.join(map(pasted, comparison.paths))}"
    for row in comparison.compared:
        change = row.change
        differs = ", ".join(
            dict.fromkeys(
                other.group for other in comparison.differences.get(row.variant, ())
            )
        )
        yield (
            *(
                row.cell,
                row.metric,
                row.unit,
                row.better,
                comparison.baseline,
                row.variant,
                row.word,
                row.says,
                row.basis,
            ),
            *(*row.runs, *row.values, *row.spread),
            *(
                (change.value, change.low, change.high)
                if change
                else (None, None, None)
            ),
            *(
                int(row.resolved),
                comparison.margin,
                everywhere,
                differs,
                repeat,
                "iodelta.compare.csv/1",
            ),
        )


SHOWN = (
    *(
        "group",
        "name",
        "kind",
        "runs",
        "rw",
        "bs",
        "iodepth",
        "jobs",
        "ioengine",
        "direct",
        "fio_version",
        "format",
    ),
    *(
        "iops",
        "iops_low",
        "iops_high",
        "bytes_per_s",
        "latency",
        "mean_ns",
        "p50_ns",
        "p99_ns",
        "p99.9_ns",
    ),
    *(
        "p99_low",
        "p99_high",
        "error",
        "short",
        "dropped",
        "severity",
        "rules",
        "file",
        "line",
    ),
    *("metric", "unit", "value", "value_low", "value_high"),
)
"""Of an import; the last columns are of a command that is not fio, which has a row for each of its numbers."""


def of_shown(results: Shown) -> str:
    """All rows as CSV with a heading; empty where unknown."""
    return csv_text(SHOWN, chain.from_iterable(map(_shown, results.rows)))


def _shown(row: Row) -> Iterator[tuple[object, ...]]:
    """One row; of a command, one for each of its numbers."""
    of_run = _of_run(row)
    for name, number in row.measured.items():
        yield (*of_run, name, number.unit, number.value, number.low, number.high)
    if not row.measured:
        yield (*of_run, "", "", "", "", "")


def _of_run(row: Row) -> tuple[object, ...]:
    from iodelta.study.rows import POINTS

    p50, p99, p999 = (row.point(percent) for percent in POINTS)
    return (
        *(
            row.group,
            row.name,
            row.kind,
            row.runs,
            row.rw,
            row.bs,
            row.iodepth,
            row.jobs,
            row.ioengine,
        ),
        *("" if row.direct is None else int(row.direct), row.fio_version, row.format),
        *((row.iops.value, row.iops.low, row.iops.high) if row.iops else ("", "", "")),
        row.bandwidth.value if row.bandwidth else "",
        *(row.latency, row.mean.value if row.mean else ""),
        *(point.value if point else "" for point in (p50, p99, p999)),
        *((p99.low, p99.high) if p99 else ("", "")),
        *(
            row.error,
            row.short,
            row.dropped,
            row.severity,
            " ".join(row.rules),
            row.file,
            row.line,
        ),
    )


SEARCHED = (
    *(
        "item",
        "title",
        "place",
        "runs",
        "metric",
        "unit",
        "better",
        "median",
        "change",
        "low",
        "high",
        "culprit",
    ),
    *("said_good", "said_bad", "skipped", "state", "margin", "seed", "schema"),
)
"""Of a search: one row per item that was measured, answered for, or skipped."""


def of_search(account: SearchAccount) -> str:
    """One row per item, in the order of the line; then those that were skipped."""
    return csv_text(SEARCHED, _searched(account))


def _searched(account: SearchAccount) -> Iterator[tuple[object, ...]]:
    question = account.question
    culprits = {culprit.item for culprit in account.culprits}
    constant = (
        account.state,
        question.rules.margin,
        question.rules.seed,
        "iodelta.bisect.csv/1",
    )
    named = (question.metric, question.unit, question.better)
    for level in account.levels:
        change = level.change
        bounds = (
            (change.value, change.low, change.high) if change else (None, None, None)
        )
        measured = (
            level.runs,
            *named,
            level.value,
            *bounds,
            int(level.item in culprits),
        )
        yield (
            level.item,
            level.title,
            level.place,
            *measured,
            None,
            None,
            "",
            *constant,
        )
    for answer in account.answers:
        unknown = (None, *named, None, None, None, None, int(answer.item in culprits))
        yield (
            answer.item,
            answer.title,
            answer.place,
            *unknown,
            answer.good,
            answer.bad,
            "",
            *constant,
        )
    for skipped in account.skipped:
        unknown = (None, *named, None, None, None, None, int(skipped.item in culprits))
        yield (
            skipped.item,
            skipped.title,
            None,
            *unknown,
            None,
            None,
            skipped.reason,
            *constant,
        )


ATTRIBUTED = (
    *(
        "kind",
        "patches",
        "over",
        "name",
        "metric",
        "change",
        "low",
        "high",
        "p",
        "shown",
        "runs",
        "median",
        "reason",
    ),
    *("blocks", "state", "schema"),
)
"""Of an attribution. Kind: whole, alone, on top, share, together, combination; patches are numbered from 1."""


def of_attribution(account: AttributionAccount) -> str:
    """One row per figure, then one per combination that was to be run."""
    constant = (account.blocks, account.state, "iodelta.attribution.csv/1")
    return csv_text(ATTRIBUTED, ((*row, *constant) for row in _attributed(account)))


def _attributed(account: AttributionAccount) -> Iterator[tuple[object, ...]]:
    metric, measured = account.question.metric, (None, None, "")
    everything = _numbered(range(1, len(account.patches) + 1))
    if account.whole:
        yield (
            "whole",
            everything,
            "",
            "",
            metric,
            *_ends(account.whole),
            None,
            None,
            *measured,
        )
    for kind, steps in (("alone", account.alone), ("on top", account.on_top)):
        for step in filter(None, steps):
            place = (
                kind,
                _numbered(step.patches),
                _numbered(step.over),
                step.name,
                metric,
            )
            yield (*place, *_ends(step.change), step.p, int(step.real), *measured)
    for number, share in enumerate(account.shares, 1):
        if share:
            yield (
                "share",
                number,
                "",
                account.patches[number - 1],
                metric,
                *_ends(share),
                None,
                None,
                *measured,
            )
    for part in account.parts:
        place = ("together", _numbered(part.patches), "", "", metric)
        yield (*place, *_ends(part.change), part.p, int(part.real), *measured)
    for run in account.combinations:
        unknown = (None, None, None, None, None)
        yield (
            "combination",
            run.item,
            "",
            run.title,
            metric,
            *unknown,
            run.runs,
            run.value,
            run.reason,
        )


def _numbered(patches: Iterable[int]) -> str:
    return " ".join(map(str, patches))


def _ends(change: Changed) -> tuple[float | None, ...]:
    return change.value, change.low, change.high


AUDITED = (
    "kind",
    "severity",
    "rule",
    "place",
    "explanation",
    "remedy",
    "mended",
    "repeat",
    "schema",
)
"""Of an audit. Kind: rule, reader, claim or not read; mended is how many cells have a repair."""


def of_audit(audited: Audited) -> str:
    """One row per finding, claim and file that was not read."""
    constant = (audited.again, "iodelta.audit.csv/1")
    return csv_text(AUDITED, ((*row, *constant) for row in _audited(audited)))


def _audited(audited: Audited) -> Iterator[tuple[object, ...]]:
    for hit in audited.hits:
        yield ("rule", *_finding(hit.finding), len(hit.repairs))
    for finding in audited.findings:
        yield ("reader", *_finding(finding), 0)
    for claim in audited.claims:
        wrong = claim.finding()
        yield (
            "claim",
            *(
                _finding(wrong)
                if wrong
                else ("", "claim.holds", claim.sentence, claim.explanation, "")
            ),
            0,
        )
    for refusal in audited.refusals:
        yield (
            "not read",
            "",
            "",
            f"{refusal.place.file}:{refusal.place.line}",
            refusal.reason,
            "",
            0,
        )


def _finding(finding: Finding) -> tuple[object, ...]:
    return (
        finding.severity,
        finding.rule,
        finding.place,
        finding.explanation,
        finding.remedy,
    )


REPRODUCED = (
    *(
        "cell",
        "variant",
        "metric",
        "baseline",
        "word",
        "basis",
        "there",
        "there_low",
        "there_high",
        "there_basis",
    ),
    *(
        "here",
        "here_low",
        "here_high",
        "here_basis",
        "ratio",
        "ratio_low",
        "ratio_high",
        "same_size_up_to",
        "says",
    ),
    *("margin", "repeat", "schema"),
)
"""Of a reproduction. Changes are fractions; a ratio is here over there, and the same size up to that factor."""


_UNKNOWN = (None,) * (len(REPRODUCED) - 9)
"""The columns of a row that has no numbers, behind those that say what it is about."""


def of_reproduction(reproduced: Reproduced) -> str:
    """One row per change that both sides have; then those of one side only."""
    constant = (
        reproduced.margin,
        "; ".join(reproduced.again),
        "iodelta.reproduction.csv/1",
    )
    return csv_text(
        REPRODUCED,
        (
            (*row, *constant)
            for row in _reproduced(reproduced, reproduced.there.baseline)
        ),
    )


def _reproduced(
    reproduced: Reproduced | ReproducedHost, baseline: str
) -> Iterator[tuple[object, ...]]:
    for match in reproduced.matched:
        there, here, ratio = match.there, match.here, match.found.difference
        factors = [
            math.exp(value)
            for value in (ratio.value, ratio.low, ratio.high, match.found.tolerance)
        ]
        yield (
            *(
                there.cell,
                there.variant,
                there.metric,
                baseline,
                match.word,
                match.found.basis,
            ),
            *(
                *_bounds(there, match.found.basis),
                there.basis,
                *_bounds(here, match.found.basis),
                here.basis,
            ),
            *(*factors, match.found.says),
        )
    for side, changes in (
        ("there", reproduced.only_there),
        ("here", reproduced.only_here),
    ):
        for name in changes:
            yield (name, "", "", "", f"measured {side} only", "", *_UNKNOWN)


def of_fleet_reproduction(reproduced: FleetReproduced) -> str:
    """The rows of every host; a host without any has one that says why. Then what the hosts say together."""
    constant = (
        reproduced.margin,
        "; ".join(reproduced.again),
        "iodelta.fleet-reproduction.csv/1",
    )
    rows: list[tuple[object, ...]] = []
    for host in reproduced.hosts:
        own = list(_reproduced(host, reproduced.there.baseline)) or [
            ("", "", "", "", "", "", *_UNKNOWN[:-1], host.why)
        ]
        rows += [(host.host, host.word, *row) for row in own]
    rows += map(_joint, reproduced.fleet.rows)
    return csv_text(
        ("host", "host_word", *REPRODUCED), ((*row, *constant) for row in rows)
    )


def _joint(row: FleetRow) -> tuple[object, ...]:
    """What the hosts say together of one comparison: the mean over hosts stands below ``here``."""
    mean = (None, None, None) if row.together is None else _limits(row.together.mean)
    about = (
        "",
        "",
        row.cell,
        row.variant,
        row.metric.name,
        row.baseline,
        row.word or "",
        row.basis,
    )
    return (*about, *(None,) * 4, *mean, "hosts", *(None,) * 4, row.says)


def _bounds(effect: Effect, basis: Estimand) -> tuple[float | None, ...]:
    return _limits(
        effect.total if basis == "total" and effect.total is not None else effect
    )


def _limits(change: Effect | Change) -> tuple[float | None, ...]:
    return change.value, change.low, change.high


RULES = ("rule", "severity", "says", "needs", "remedy", "schema")
"""Of the rules of the audit."""


def of_rules(answer: RulesAnswer) -> str:
    """One row per rule."""
    schema = "iodelta.audit-rules.csv/1"
    return csv_text(
        RULES,
        (
            (rule.id, rule.severity, rule.says, rule.needs, rule.remedy, schema)
            for rule in answer.rules
        ),
    )


SHEETS: dict[str, Callable[[Any], str]] = {
    "Account": of_account,
    "AttributionAccount": of_attribution,
    "Audited": of_audit,
    "Calibration": of_calibration,
    "CalibrationAnswer": of_calibrated,
    "Comparison": of_comparison,
    "DiskPlanAnswer": of_disk_plan,
    "FleetAccount": of_fleet,
    "FleetReproduced": of_fleet_reproduction,
    "ExplainAnswer": of_explanations,
    "MirrorAnswer": of_mirror,
    "PathAccount": of_path,
    "PathPlanAnswer": of_path_plan,
    "PlanAnswer": of_plan,
    "PrepareAnswer": of_preparation,
    "PolicyListAnswer": of_policies,
    "Reproduced": of_reproduction,
    "RulesAnswer": of_rules,
    "ScenarioPlanAnswer": of_rehearsal,
    "SearchAccount": of_search,
    "SearchPlanAnswer": of_search_plan,
    "Shown": of_shown,
    "SimulationAnswer": of_simulation,
}
"""Struct of a result -> its rows."""
