"""The account of an experiment, the same for every format: the plan, what was measured, verdicts and findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import msgspec

from iodelta.lab.account import LEFT_OUT
from iodelta.lab.calibration import Calibration, doubt
from iodelta.lab.instrument import Instruments
from iodelta.lab.integrity import Sealed
from iodelta.lab.plan import Plan
from iodelta.plural import plural
from iodelta.study.again import Again
from iodelta.study.best import Best
from iodelta.study.changed import breaks
from iodelta.study.confounders import Differing
from iodelta.study.preparation import DiskAccount
from iodelta.study.views import Views
from iodelta.study.words import inert, interval, measured, metric_name
from iodelta.trial import Finding
from iodelta.verdict import Judgement, Verdict


class Account(msgspec.Struct, frozen=True):
    """Everything that a report says, before its layout."""

    folder: str
    plan: Plan
    judgement: Judgement
    state: str
    """``complete``, ``budget``, ``interrupted``, ``failed: ...``, or ``running`` when the journal has no end."""
    trials: int
    repeated: int
    """Trials whose block was repeated."""
    abandoned: dict[str, str]
    """Why a cell was given up, by the cell's name; empty when none was."""
    spent: float
    """Seconds."""
    findings: tuple[Finding, ...]
    views: Views
    """Beyond the primary verdicts."""
    calibrations: tuple[Calibration, ...] = ()
    """What was known of this machine, disk and workloads when the run began."""
    best: tuple[Best, ...] = ()
    """Values that may be marked as the best."""
    system: tuple[tuple[str, str], ...] = ()
    """What the machine was, in a few lines: name and value."""
    changed: tuple[Differing, ...] = ()
    """What became another in the machine between the first session and later ones."""
    again: Again | None = None
    """How to do it again."""
    instruments: Instruments | None = None
    """What instruments measured, in runs apart from the trials; null when none was asked for."""
    prepared: tuple[DiskAccount, ...] = ()
    """How the disks were prepared before the first trial; empty when none was."""
    measured_by: str = ""
    """Version of iodelta that planned and measured it."""
    seal: Sealed | None = None
    """The seal of the journal; null for a folder that is not sealed."""

    @property
    def broken(self) -> tuple[Finding, ...]:
        """Return the findings that say that this folder was changed after the measurement."""
        return breaks(self.findings)

    @property
    def kept(self) -> list[str]:
        """Return the cells that were not given up."""
        return [
            cell.name
            for cell in self.plan.experiment.cells
            if cell.name not in self.abandoned
        ]

    @property
    def blocks(self) -> dict[str, int]:
        """Return how many blocks of every planned cell were finished."""
        counts = dict.fromkeys((cell.name for cell in self.plan.experiment.cells), 0)
        # A percentile may have fewer than its cell.
        for verdict in self.judgement.verdicts:
            counts[verdict.cell] = max(verdict.blocks, counts.get(verdict.cell, 0))
        return counts

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Return the planned cells of which no block was finished, those given up among them."""
        return tuple(cell for cell, blocks in self.blocks.items() if not blocks)

    @property
    def block_seconds(self) -> float:
        """Seconds of one block of one cell: as measured, with boots, repeats and all, once a trial was."""
        each = self.spent / self.trials if self.trials else self.plan.trial_seconds
        return self.plan.per_block * each

    @property
    def exit_code(self) -> int:
        """0 nothing worse, 1 regression, 3 inconclusive, 4 nothing could be measured, or the folder was changed."""
        verdicts = self.judgement.verdicts
        words = {verdict.word for verdict in verdicts}
        if self.broken:
            return 4
        if "regression" in words:
            return 1
        if not any(verdict.blocks for verdict in verdicts):
            return 4
        left_out = any(finding.rule == LEFT_OUT for finding in self.findings)
        incomplete = left_out or bool(self.unmeasured)
        return 3 if incomplete or any(map(open_ended, verdicts)) else 0


def open_ended(verdict: Verdict) -> bool:
    """Return whether a regression can still not be ruled out."""
    return verdict.word == "inconclusive" and not verdict.phrase.startswith(
        "not regressed"
    )


def headline(account: Account) -> str:
    """Return the answer in a sentence for each variant, no stronger than the verdicts."""
    experiment = account.plan.experiment
    sentences = [_not_as_measured(account.broken)] if account.broken else []
    for variant in experiment.variants:
        if variant.name != experiment.baseline:
            sentences.append(f"{_answer(account, variant.name)}.")
    return " ".join(sentences)


def _answer(account: Account, variant: str) -> str:
    """Return the answer for one variant: ``new is slower than old in 1 of 2 cells; no answer yet in 1 of 2 cells``."""
    experiment, judgement = account.plan.experiment, account.judgement
    name, baseline = inert(variant), inert(experiment.baseline)
    unmeasured = account.unmeasured
    verdicts = [
        verdict
        for verdict in judgement.verdicts
        if verdict.variant == variant and verdict.cell not in unmeasured
    ]
    if not any(verdict.blocks for verdict in verdicts):
        return f"{name} was not measured"
    doubted = "perhaps " if doubt(account.calibrations, judgement.rules.alpha) else ""
    speeds = all(
        verdict.metric.kind in ("read", "write", "trim", "sync") for verdict in verdicts
    )
    planned = {cell.name for cell in experiment.cells}
    worse, better = _cells(verdicts, "regression"), _cells(verdicts, "improvement")
    unlike = [verdict for verdict in verdicts if verdict.word != "equivalent"]
    cells = {verdict.cell for verdict in verdicts}
    same = cells - {verdict.cell for verdict in unlike}
    unsure = cells - worse - better - same
    partly = _cells(verdicts, "equivalent") & unsure
    open_metrics = {
        metric_name(v.metric, with_kind=False) for v in unlike if v.cell in partly
    }
    within = f"equals {baseline} within {100 * experiment.margin:g} %"
    total = len(planned)
    parts = []
    for word, there in (
        ("slower" if speeds else "worse", worse),
        ("faster" if speeds else "better", better),
    ):
        if there:
            found = "regression" if there is worse else "improvement"
            size = _size(verdicts, found) if total == 1 else ""
            parts.append(
                f"is {doubted}{word} than {baseline}{_where(there, total)}{size}"
            )
    if same:
        parts.append(within + _where(same, total))
    if partly:
        parts.append(
            f"{within} except for {' and '.join(sorted(open_metrics))}{_where(partly, total)}"
        )
    said = f"{name} {', '.join(parts)}" if parts else ""
    others = []
    if unsure - partly:
        about = "" if said else f" for {name} against {baseline}"
        others.append(f"no answer yet{about}{_where(unsure - partly, total)}")
    if planned - cells:
        others.append(f"not measured{_where(planned - cells, total)}")
    whole = "; ".join(filter(None, (said, *others)))
    return whole if said else whole[:1].upper() + whole[1:]


def _size(verdicts: Iterable[Verdict], word: str) -> str:
    """`` : IOPS -2.8 % (-9.9 .. -1.4 %)`` of the first metric with this word."""
    verdict = next(verdict for verdict in verdicts if verdict.word == word)
    change = verdict.change
    if change is None:
        return ""
    size = measured(change.value, change.low, change.high)
    return f": {metric_name(verdict.metric, with_kind=False)} {size} ({interval(change.low, change.high)})"


def _not_as_measured(broken: Sequence[Finding]) -> str:
    first = broken[0]
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return (
        f"No answer: this folder is not what was measured. {inert(first.place)}: {inert(first.explanation)}{more}. "
        "What is left of it says:"
    )


def _cells(verdicts: Iterable[Verdict], word: str) -> set[str]:
    return {verdict.cell for verdict in verdicts if verdict.word == word}


def _where(cells: Set[str], total: int) -> str:
    """`` in 1 of 2 cells``; empty where there is one cell only."""
    if total == 1:
        return ""
    if len(cells) < total:
        return f" in {len(cells)} of {plural(total, 'cell')}"
    return " in both cells" if total == 2 else f" in all {plural(total, 'cell')}"
