"""Rule, Mark, Repair and Audit: what a rule is, what it finds, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from iodelta.audit.columns import naming
from iodelta.ingest import Run
from iodelta.trial import Finding, Place, Severity


class Repair(msgspec.Struct, frozen=True):
    """One cell of a table that can be mended: what is written, and what must have been meant."""

    run: int
    column: str
    written: str
    mended: str
    why: str


class Mark(msgspec.Struct, frozen=True):
    """One thing a rule found: the runs it is about (indexes), in words, with repairs where these are exact."""

    runs: tuple[int, ...]
    explanation: str
    repairs: tuple[Repair, ...] = ()
    severity: Severity | None = None
    """Less than the rule's own where this case is milder."""


@dataclass(frozen=True)
class Evidence:
    """What rules look at.

    ``counters`` are the machine's and ``arms`` the (cell, variant) of each run; both have one entry per run, or are
    empty where that is not known. ``margin`` is the relative change that matters to the reader.
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
        """The runs that some program measured and wrote down itself, with their indexes."""
        return self._of_format(table=False)

    def rows(self) -> Iterable[tuple[int, Run]]:
        """The runs that are rows of a table somebody made, with their indexes."""
        return self._of_format(table=True)

    def _of_format(self, *, table: bool) -> Iterable[tuple[int, Run]]:
        for index, run in enumerate(self.runs):
            if (run.format == "table") == table:
                yield index, run

    def place(self, index: int) -> str:
        """Where run ``index`` is, for a reader: file, line and the name it has there."""
        run = self.runs[index]
        name = " ".join(filter(None, naming(run).values())) or run.jobname
        return " ".join(filter(None, (where(run.place), name)))


@dataclass(frozen=True)
class Rule:
    """One rule: what it ``says`` is wrong, what it ``needs`` to judge that, and what to do next."""

    id: str
    severity: Severity
    says: str
    needs: str
    remedy: str
    find: Callable[[Evidence], Iterable[Mark]]


def rule(
    id: str, severity: Severity, *, says: str, needs: str, remedy: str
) -> Callable[[Callable[[Evidence], Iterable[Mark]]], Rule]:
    """Make a rule of the function that looks for it."""
    return lambda find: Rule(id, severity, says, needs, remedy, find)


class Hit(msgspec.Struct, frozen=True):
    """A finding with the runs it is about and its repairs."""

    finding: Finding
    runs: tuple[int, ...]
    repairs: tuple[Repair, ...] = ()


class Audit(msgspec.Struct, frozen=True):
    """What the rules found in ``runs``."""

    runs: tuple[Run, ...]
    hits: tuple[Hit, ...]

    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the rules."""
        return tuple(hit.finding for hit in self.hits)

    def failed(self) -> frozenset[int]:
        """Indexes of the runs with a hard finding."""
        failed: set[int] = set()
        for hit in self.hits:
            if hit.finding.severity == "hard":
                failed.update(hit.runs)
        return frozenset(failed)

    def repairs(self) -> tuple[Repair, ...]:
        """All repairs, one per cell: what the first rule says stands."""
        repairs: dict[tuple[int, str], Repair] = {}
        for hit in self.hits:
            for repair in hit.repairs:
                repairs.setdefault((repair.run, repair.column), repair)
        return tuple(repairs[key] for key in sorted(repairs))


def where(place: Place) -> str:
    """``file:line``; the file alone for the whole of it."""
    return f"{place.file}:{place.line}" if place.line else place.file
