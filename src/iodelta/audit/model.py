"""Rule, Mark, Repair and Audit: a rule, what it finds, and the result for all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from iodelta.audit.columns import naming
from iodelta.ingest import Run
from iodelta.trial import Finding, Severity


class Repair(msgspec.Struct, frozen=True):
    """A correction of one table cell: the text as written, and the only number that fits the rest of the row."""

    run: int
    column: str
    written: str
    mended: str
    why: str


class Mark(msgspec.Struct, frozen=True):
    """One thing that a rule found: the indexes of the runs, the words, and repairs where these are exact."""

    runs: tuple[int, ...]
    explanation: str
    repairs: tuple[Repair, ...] = ()
    severity: Severity | None = None
    """The severity of this case, if it is milder than the rule's own."""


@dataclass(frozen=True)
class Evidence:
    """What rules examine.

    ``counters`` are those of the machine, ``arms`` the (cell, variant) of each run; both have one entry per run, or are
    empty where they are unknown. ``margin`` is the smallest relative change that matters to the reader.
    """

    runs: tuple[Run, ...]
    counters: tuple[Mapping[str, float], ...] = ()
    arms: tuple[tuple[str, str], ...] = ()
    margin: float = 0.01

    def of_arm(self) -> dict[tuple[str, str], list[int]]:
        """The runs of each (cell, variant), in order."""
        places: dict[tuple[str, str], list[int]] = {}
        for index, arm in enumerate(self.arms):
            places.setdefault(arm, []).append(index)
        return places

    def measured(self) -> Iterable[tuple[int, Run]]:
        """The runs that a program measured and recorded itself, with their indexes."""
        return self._of_format(table=False)

    def rows(self) -> Iterable[tuple[int, Run]]:
        """Return the runs that are rows of a hand-made table, with their indexes."""
        return self._of_format(table=True)

    def _of_format(self, *, table: bool) -> Iterable[tuple[int, Run]]:
        for index, run in enumerate(self.runs):
            if (run.format == "table") == table:
                yield index, run

    def place(self, index: int) -> str:
        """Where run ``index`` was read, for a reader: file, line and its name there."""
        run = self.runs[index]
        name = " ".join(filter(None, naming(run).values())) or run.jobname
        return " ".join(filter(None, (str(run.place), name)))


@dataclass(frozen=True)
class Rule:
    """One rule: what it ``says`` is wrong, which data it ``needs``, and what to do next."""

    id: str
    severity: Severity
    says: str
    needs: str
    remedy: str
    find: Callable[[Evidence], Iterable[Mark]]


def rule(
    id: str, severity: Severity, *, says: str, needs: str, remedy: str
) -> Callable[[Callable[[Evidence], Iterable[Mark]]], Rule]:
    """Decorate a function that yields marks, to make a rule of it."""
    return lambda find: Rule(id, severity, says, needs, remedy, find)


class Hit(msgspec.Struct, frozen=True):
    """A finding, the indexes of its runs, and its repairs."""

    finding: Finding
    runs: tuple[int, ...]
    repairs: tuple[Repair, ...] = ()


class Audit(msgspec.Struct, frozen=True):
    """What the rules found in ``runs``."""

    runs: tuple[Run, ...]
    hits: tuple[Hit, ...]

    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, in the order of the rules."""
        return tuple(hit.finding for hit in self.hits)

    def failed(self) -> frozenset[int]:
        """Indexes of the runs with a hard finding."""
        failed: set[int] = set()
        for hit in self.hits:
            if hit.finding.severity == "hard":
                failed.update(hit.runs)
        return frozenset(failed)

    def repairs(self) -> tuple[Repair, ...]:
        """Return all repairs, one per cell: the first rule wins."""
        repairs: dict[tuple[int, str], Repair] = {}
        for hit in self.hits:
            for repair in hit.repairs:
                repairs.setdefault((repair.run, repair.column), repair)
        return tuple(repairs[key] for key in sorted(repairs))
