"""An audit as a story: how much can be believed, which rule says why, what can be mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from iodelta.audit.claims import Checked
from iodelta.audit.model import Hit
from iodelta.ingest import Run
from iodelta.plural import plural
from iodelta.report.stories.sources import findings, not_read, systems
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Item,
    Row,
    Story,
    Table,
    section,
)
from iodelta.study.audited import Audited, AuditRule, RulesAnswer, rule_named
from iodelta.study.runs import shared_folder
from iodelta.study.words import inert

EXAMPLES = 2
"""Places quoted for a rule that fired many times."""

IMPOSSIBLE = 20
"""Rows whose arithmetic is shown where it is impossible."""

FILES = 8
"""Files that are named for a rule that fired in many."""

CLAIMS = {"holds": "", "false": "hard: ", "untestable": "warning: "}
"""How a claim begins, by what became of it."""


def of_audit(audited: Audited, detail: Detail = PLAIN) -> Story:
    """Return what the rules, the readers and the claims came to."""
    common = shared_folder(run.place.file for run in audited.runs)
    fired = [
        _fired(audited, hits, common, whole=detail.whole) for hits in audited.by_rule()
    ]
    return Story(
        question="",
        answer=_answer(audited),
        tables=tuple(_tables(audited)),
        sections=(
            *section("Rules that found something", fired),
            *section("Findings", findings(audited.findings, common)),
            *section("Claims", map(_claim, audited.claims)),
            *section("Not read", not_read(audited.refusals, common)),
            *systems(
                audited.systems,
                (run.fio_version for run in audited.runs),
                alone=not audited.runs,
            ),
            *section(
                "To do it again", (inert(audited.again),), commands=True, rest=True
            ),
        ),
    )


def of_rules(answer: RulesAnswer, detail: Detail = PLAIN) -> Story:
    """Return every rule with what it needs and what to do."""
    return Story(
        question="",
        answer=f"{len(answer.rules)} rules.",
        tables=(),
        sections=section("Rules", map(_described, answer.rules)),
    )


def _described(rule: AuditRule) -> Item:
    return Item(
        f"{rule.id} ({rule.severity})",
        (f"{_sentence(rule.says)} Needs {rule.needs}. {_to_do(rule.remedy)}",),
    )


def _answer(audited: Audited) -> str:
    counts = (
        (audited.rows, "row"),
        (len(audited.runs) - audited.rows, "run"),
        (audited.trials, "trial"),
    )
    counted = [plural(count, noun) for count, noun in counts if count]
    if not counted:
        return "No run and no table to judge."
    read = sum(finding.severity == "hard" for finding in audited.findings)
    impossible = f"{audited.bad} impossible" if audited.bad else "nothing impossible"
    if not audited.bad and read:
        impossible = f"{plural(read, 'contradiction')} in what was read"
    return f"{' and '.join(counted)} checked, {impossible}."


def _tables(audited: Audited) -> Iterator[Table]:
    """Yield how many rows of each table fail, where there are several."""
    counts = audited.by_table()
    if len(counts) < 2:
        return
    rows = tuple(
        Row(inert(title or "(no title)"), (Cell(str(count)), Cell(str(failing))))
        for title, (count, failing) in counts.items()
    )
    yield Table(
        title="Rows that fail a hard rule",
        first="table",
        heads=("rows", "failing"),
        rows=rows,
        words=False,
    )


def _fired(audited: Audited, hits: Sequence[Hit], common: str, *, whole: bool) -> Item:
    """Return one rule: the arithmetic of each impossible row, else examples; and what to do."""
    first = hits[0].finding
    rule = rule_named(first.rule)
    below = []
    runs = sorted(set(chain.from_iterable(hit.runs for hit in hits)))
    most = len(hits) if whole else IMPOSSIBLE if first.severity == "hard" else EXAMPLES
    for hit in hits[:most]:
        below.append(
            f"{inert(hit.finding.place.removeprefix(common))}: {inert(hit.finding.explanation)}"
        )
    if len(hits) > most:
        below.append(
            f"{len(hits)} times: {_places([audited.runs[run] for run in runs], common)}"
        )
    mends = sum(len(hit.repairs) for hit in hits)
    tail = f" {plural(mends, 'cell')} can be mended (--repair)." if mends else ""
    below.append(f"{_to_do(rule.remedy)}{tail}")
    return Item(
        f"{first.severity}: {_sentence(rule.says)[:-1]} [{rule.id}]", tuple(below)
    )


def _claim(claim: Checked) -> str:
    return f"{CLAIMS[claim.outcome]}claim {inert(claim.sentence)!r}: {claim.outcome}: {inert(claim.explanation)}"


def _to_do(remedy: str) -> str:
    """Return a remedy as a sentence; some end as questions."""
    end = "" if remedy.endswith("?") else "."
    return f"To do: {remedy}{end}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _places(runs: Sequence[Run], common: str) -> str:
    """``a.txt: lines 277, 312-326``: rows by line, runs by file."""
    files: dict[str, list[int]] = {}
    for run in runs:
        files.setdefault(inert(run.place.file.removeprefix(common)), []).append(
            run.place.line
        )
    parts = []
    for file, numbers in files.items():
        by_line = len(files) == 1 or len(numbers) > 1
        parts.append(f"{file}: {_ranges(sorted(numbers))}" if by_line else file)
    left = len(parts) - FILES
    if left > 0:
        parts[FILES:] = [f"and {plural(left, 'more file')}"]
    return "; ".join(parts)


def _ranges(numbers: Sequence[int]) -> str:
    """``lines 251-255, 268``."""
    groups = [[numbers[0], numbers[0]]]
    for before, now in pairwise(numbers):
        if now - before <= 1:
            groups[-1][1] = now
        else:
            groups.append([now, now])
    shown = ["-".join(map(str, dict.fromkeys(ends))) for ends in groups]
    return f"{'line' if len(numbers) == 1 else 'lines'} {', '.join(shown)}"
