"""The page: a story and a source of charts as what the template lays out; nothing here is markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest

import msgspec

from iodelta.report.formats.charts import Figure, Source
from iodelta.report.formats.charts.model import Charts, Effect
from iodelta.report.stories.story import GLYPHS, Flame, Section, Story, Table
from iodelta.study.words import inert, interval, quantity

CLASSES = {word: word.replace(" ", "-") for word in GLYPHS}

WIDEST = 8
"""Columns that the matrix may have before it becomes dense."""

RATE = "rate"

TABLED = 400
"""Rows of a chart's table; more are left to the files."""

LONG, SHOWN = 24, 5
"""Rows of a table of numbers from which on only the first stand open, and how many these are."""

MANY, KEPT, LINES = 8, 6, 120
"""Charts of a chapter from which on only some stand open; how many these are, and how many lines they have at most.
With twice as many lines a few charts are folded, too."""


class Mark(msgspec.Struct, frozen=True):
    """One comparison in the matrix."""

    glyph: str
    word: str
    css: str
    change: str
    detail: str
    interval: str = ""
    values: str = ""
    """Of the baseline and of the variant."""


class Line(msgspec.Struct, frozen=True):
    """One cell's marks, a group for each column; empty where nothing was compared."""

    cell: str
    marks: tuple[tuple[Mark, ...], ...]


class Matrix(msgspec.Struct, frozen=True):
    """Cells by variants. A column is a metric of a variant; or, where that would be too many (``dense``), a variant:
    then its first metric has its change, the others their marks next to it. ``counts``: how often each word occurs."""

    baseline: str
    variants: tuple[str, ...]
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    counts: tuple[tuple[Mark, int], ...]
    dense: bool


class Chapter(msgspec.Struct, frozen=True):
    """A family of charts."""

    anchor: str
    title: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]
    """How its charts are read, and what they leave out."""
    more: tuple[Figure, ...] = ()
    """Charts that are closed at first: all but a few of very many."""


class Page(msgspec.Struct, frozen=True):
    """Everything that is on the page."""

    title: str
    question: str
    answers: tuple[str, ...]
    recommendation: str
    facts: tuple[tuple[str, str], ...]
    matrix: Matrix | None
    beside: tuple[Section, ...]
    chapters: tuple[Chapter, ...]
    tables: tuple[Table, ...]
    sections: tuple[Section, ...]
    marks: bool
    """Whether any value of the tables is marked as the best."""
    lead: tuple[Section, ...] = ()
    """Sections before the tables."""
    flames: tuple[Flame, ...] = ()
    """Trees of calls as pictures."""


BESIDE = "Further observations"


def page(
    story: Story,
    source: Source | None,
    charts: Charts,
    *,
    answers: Sequence[str] = (),
    recommendation: str = "",
    facts: Sequence[tuple[str, str]] = (),
) -> Page:
    """Return the page of ``story`` with the verdicts of ``source``; ``answers`` are the answer without the
    recommendation.
    """
    said = tuple(answers) or (story.answer,)
    return Page(
        title=story.question or story.answer,
        question=story.question,
        answers=said,
        recommendation=recommendation,
        facts=tuple(facts),
        matrix=matrix(source) if source is not None and source.effects else None,
        beside=tuple(section for section in story.sections if section.title == BESIDE),
        chapters=tuple(_chapters(charts, source)),
        tables=story.tables,
        sections=tuple(
            section for section in story.sections if section.title != BESIDE
        ),
        marks=story.marks,
        lead=story.lead,
        flames=story.flames,
    )


def matrix(source: Source) -> Matrix:
    """Return every comparison as a mark."""
    metrics = _columns(source.effects)
    by_arm: dict[tuple[str, str], dict[str, Mark]] = {}
    for effect in source.effects:
        marks_of_arm = by_arm.setdefault((effect.cell, effect.variant), {})
        marks_of_arm[metrics[effect.metric.name]] = _mark(effect)
    rates = {column for metric, column in metrics.items() if _role(metric) == RATE}
    names = tuple(
        sorted(dict.fromkeys(metrics.values()), key=lambda column: column not in rates)
    )
    dense = len(source.others) > 1 and len(source.others) * len(names) > WIDEST
    lines = []
    for cell in source.cells:
        groups: list[tuple[Mark, ...]] = []
        for variant in source.others:
            marks_of_arm = by_arm.get((cell, variant), {})
            marks = [(marks_of_arm[n],) if n in marks_of_arm else () for n in names]
            groups += [tuple(chain.from_iterable(marks))] if dense else marks
        if any(groups):
            lines.append(Line(inert(cell), tuple(groups)))
    return Matrix(
        baseline=inert(source.baseline),
        variants=tuple(map(inert, source.others)),
        metrics=names,
        lines=tuple(lines),
        counts=tuple(_counts(source.effects)),
        dense=dense,
    )


def _columns(effects: Sequence[Effect]) -> dict[str, str]:
    """Return the column of each metric: its name; or its role, where cells differ in what they do and a role is one
    metric in each (``rate`` is IOPS in one and bandwidth in another)."""
    names = {effect.metric.name: effect.name for effect in effects}
    roles = {name: _role(name) for name in names}
    places = {
        (effect.cell, effect.variant, roles[effect.metric.name]) for effect in effects
    }
    if len(places) < len(effects) or len(set(roles.values())) == len(names):
        return names
    rates = {name.partition(".")[2] for name, role in roles.items() if role == RATE}
    shown = {"iops": "IOPS", "bandwidth": "bandwidth"}.get("".join(rates), RATE)
    return {name: shown if role == RATE else role for name, role in roles.items()}


def _role(metric: str) -> str:
    what = metric.partition(".")[2]
    if what in ("iops", "bandwidth"):
        return RATE
    family, _, point = what.partition(".")
    if family not in ("lat", "clat", "slat"):
        return what
    return f"{point} latency"


def _counts(effects: Sequence[Effect]) -> Iterator[tuple[Mark, int]]:
    for word, glyph in GLYPHS.items():
        count = sum(effect.word == word for effect in effects)
        if count:
            yield (
                Mark(glyph=glyph, word=word, css=CLASSES[word], change="", detail=""),
                count,
            )


def _mark(effect: Effect) -> Mark:
    values, bounds = "no value", ""
    if effect.values != (None, None):
        texts = [quantity(value, effect.metric.unit) for value in effect.values]
        values, bounds = " \u2192 ".join(texts), "no interval"
        values += f" ({effect.apart})" * bool(effect.apart)
    if effect.low is not None:
        bounds = interval(effect.low, effect.high)
    parts = (
        f"{effect.name} {values}",
        bounds,
        inert(effect.counted),
        inert(effect.says),
    )
    return Mark(
        glyph=GLYPHS[effect.word],
        word=effect.word,
        css=CLASSES[effect.word],
        change=effect.text,
        detail="; ".join(filter(None, parts)),
        interval=bounds,
        values=values,
    )


def _chapters(charts: Charts, source: Source | None) -> Iterator[Chapter]:
    for number, (title, figures) in enumerate(charts, 1):
        texts = chain.from_iterable((figure.about, figure.note) for figure in figures)
        notes = dict.fromkeys(filter(None, texts))
        kept = open_ones(figures, source)
        more = [figure for figure in figures if figure.name not in kept]
        first = [figure for figure in figures if figure.name in kept]
        yield Chapter(
            anchor=f"charts-{number}",
            title=title,
            figures=tuple(first),
            notes=tuple(notes),
            more=tuple(more),
        )


def open_ones(figures: Sequence[Figure], source: Source | None) -> set[str]:
    """Return the names of the charts that are open at first: all of a few; of many one of each kind in turn, beginning
    with the cells that changed most clearly."""
    if len(figures) <= MANY and sum(map(_lines, figures)) <= 2 * LINES:
        return {figure.name for figure in figures}
    clearness = source.clearness() if source is not None else {}
    kinds: dict[str, list[Figure]] = {}
    for figure in figures:
        kinds.setdefault(re.sub(r"\d+", "", figure.name), []).append(figure)
    ranked = [
        sorted(alike, key=lambda figure: -_clearest(figure, clearness))
        for alike in kinds.values()
    ]
    in_turn = filter(None, chain.from_iterable(zip_longest(*ranked)))
    first, *others = islice(in_turn, KEPT)
    kept, lines = {first.name}, _lines(first)
    for figure in others:
        lines += _lines(figure)
        if lines <= LINES:
            kept.add(figure.name)
    return kept


def _lines(figure: Figure) -> int:
    """Lines of a chart that has one for each comparison, or each variant of a cell; of any other only a few."""
    return len({(row.get("row"), row.get("variant")) for row in figure.rows})


def _clearest(figure: Figure, clearness: Mapping[str, float]) -> float:
    """Return the clearest change of the cells in a chart."""
    return max(
        (clearness.get(str(row.get("cell")), 0.0) for row in figure.rows), default=0.0
    )
