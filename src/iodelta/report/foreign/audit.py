"""An audit for a reader: how much can be believed, which rule says why, what was mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from rich.text import Text

from iodelta.audit import RULES, Repair
from iodelta.audit.model import Hit
from iodelta.ingest import Run
from iodelta.report.foreign.table import MARKS, STYLES, findings, not_read, wrapped
from iodelta.study.audited import Audited
from iodelta.study.runs import shared_folder
from iodelta.study.words import inert

EXAMPLES = 2
"""Places quoted for a rule that fired many times."""


def lines(found: Audited, *, whole: bool = False) -> Iterator[Text]:
    """All of it, 80 columns; with ``whole`` every single mark instead of examples."""
    common = shared_folder(run.place.file for run in found.runs)
    yield from _summary(found)
    for _, hits in groupby(_ordered(found.hits), key=lambda hit: (hit.finding.severity, hit.finding.rule)):
        yield from _rule(found, list(hits), common, whole)
    yield from findings(found.findings, common)
    for claim in found.claims:
        mark, style = {"holds": ("  ", "green"), "false": ("! ", "bold red"), "untestable": ("? ", "yellow")}[
            claim.outcome
        ]
        yield from wrapped(f"{mark}claim {inert(claim.sentence)!r}: {claim.outcome}: {claim.explanation}", style=style)
    yield from not_read(found.refusals, common)


def rule_lines() -> Iterator[Text]:
    """Every rule with what it needs and what to do."""
    for rule in RULES:
        yield Text(f"{rule.id} ({rule.severity})", style=STYLES[rule.severity])
        yield from wrapped(f"    {rule.says[0].upper()}{rule.says[1:]}. Needs {rule.needs}. To do: {rule.remedy}.")


def mended(found: Audited) -> str:
    """The tables in Markdown with every repair marked: what was written struck out, what was meant in bold.

    Empty when nothing can be mended exactly.
    """
    repairs = {(repair.run, repair.column): repair for repair in found.repairs}
    if not repairs:
        return ""
    reasons: dict[str, int] = {}
    parts = []
    failed = set(found.failed)
    rows = [(index, run) for index, run in enumerate(found.runs) if run.format == "table"]
    for (title, columns), group in groupby(rows, key=lambda row: (row[1].table, tuple(row[1].labels))):
        parts.append(f"### {_cell(title)}\n" if title else "")
        parts.append(f"| {' | '.join(map(_cell, columns))} | |")
        parts.append("|" + "---|" * (len(columns) + 1))
        for index, run in group:
            cells = [_mended(text, repairs.get((index, column)), reasons) for column, text in run.labels.items()]
            spoilt = index in failed and not any((index, column) in repairs for column in run.labels)
            parts.append(f"| {' | '.join(cells)} | {'not to be used' if spoilt else ''} |")
        parts.append("")
    notes = [f"[{number}] {reason}" for reason, number in reasons.items()]
    return "\n".join([*parts, *notes]) + "\n"


def _mended(text: str, repair: Repair | None, reasons: dict[str, int]) -> str:
    if repair is None:
        return _cell(text)
    number = reasons.setdefault(repair.why, len(reasons) + 1)
    return f"~~{_cell(text)}~~ **{repair.mended}** [{number}]"


def _cell(text: str) -> str:
    return inert(text).replace("|", "\\|").replace("\n", " ")


def _summary(found: Audited) -> Iterator[Text]:
    rows = sum(run.format == "table" for run in found.runs)
    counted = [f"{rows} rows"] if rows else []
    counted += [f"{len(found.runs) - rows} runs"] if len(found.runs) > rows else []
    counted += [f"{found.trials} trials"] if found.trials else []
    if not counted:
        yield Text("No run and no table to judge.", style="bold")
        return
    bad = len(found.failed) or sum(finding.severity == "hard" for finding in found.findings if found.trials)
    verdict = f"{bad} of them fail a hard rule" if bad else "none fails a hard rule"
    yield from wrapped(f"{' and '.join(counted)}: {verdict}.", style="bold red" if bad else "bold")
    tables = [run.table for run in found.runs if run.format == "table"]
    if len(set(tables)) > 1:
        width = min(60, max(map(len, tables)))
        yield Text(f"  {'table':<{width}}  rows  failing", style="dim")
        for title in dict.fromkeys(tables):
            own = [index for index, run in enumerate(found.runs) if run.format == "table" and run.table == title]
            failing = len(set(own) & set(found.failed))
            name = inert(title or "(no title)")
            yield Text(
                f"  {name if len(name) <= width else name[: width - 1] + '~':<{width}}  {len(own):>4}  {failing:>7}"
            )
    yield Text()


def _ordered(hits: Sequence[Hit]) -> list[Hit]:
    rank = ("hard", "warning", "note")
    order = {hit.finding.rule: number for number, hit in reversed(list(enumerate(hits)))}
    return sorted(hits, key=lambda hit: (rank.index(hit.finding.severity), order[hit.finding.rule]))


def _rule(found: Audited, hits: Sequence[Hit], common: str, whole: bool) -> Iterator[Text]:
    finding = hits[0].finding
    rule = next(rule for rule in RULES if rule.id == finding.rule)
    runs = sorted({run for hit in hits for run in hit.runs})
    mark = MARKS.get(finding.severity, " ")
    yield from wrapped(f"{mark} {rule.says[0].upper()}{rule.says[1:]} [{rule.id}]", style=STYLES[finding.severity])
    yield from _indented(
        f"{len(hits)} times: {_places([found.runs[run] for run in runs], common)}" if len(hits) > 1 else ""
    )
    shown = hits if whole else hits[: EXAMPLES if len(hits) > 1 else 1]
    for hit in shown:
        yield from _indented(f"{inert(hit.finding.place.removeprefix(common))}: {inert(hit.finding.explanation)}")
    mends = sum(len(hit.repairs) for hit in hits)
    tail = f" {mends} cells can be mended (--repair)." if mends else ""
    yield from _indented(f"To do: {rule.remedy}.{tail}")


def _places(runs: Sequence[Run], common: str) -> str:
    """``a.txt lines 277, 312-326``: rows by line, runs by file."""
    files: dict[str, list[int]] = {}
    for run in runs:
        files.setdefault(inert(run.place.file.removeprefix(common)), []).append(run.place.line)
    parts = []
    for file, numbers in files.items():
        parts.append(f"{file}: {_ranges(sorted(numbers))}" if len(files) == 1 or len(numbers) > 1 else file)
    return "; ".join(parts[:8]) + (f"; and {len(parts) - 8} files more" if len(parts) > 8 else "")


def _ranges(numbers: Sequence[int]) -> str:
    """``251-255, 268``."""
    groups = [[numbers[0], numbers[0]]]
    for before, now in pairwise(numbers):
        if now - before <= 1:
            groups[-1][1] = now
        else:
            groups.append([now, now])
    shown = [f"{first}" if first == last else f"{first}-{last}" for first, last in groups]
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(shown)}"


def _indented(text: str) -> Iterator[Text]:
    for line in wrapped(text, width=76):
        yield Text("    ").append(line)
