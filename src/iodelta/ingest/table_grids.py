"""Split result tables into titles and rows: at bars, tabs, semicolons, commas or spaces.

A line with spaces does not show where a cell ends. So it is split in several independent ways: at two spaces and more,
at every space, and where all lines have a space in the same column; and like a table whose columns a web page or mail
has flattened to single spaces.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise, takewhile
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Workload
from iodelta.ingest.numbers import size
from iodelta.ingest.table_cells import cell, is_number, is_value, plain
from iodelta.ingest.table_titles import OTHER, Column, column, is_measure, parse
from iodelta.ingest.workload_words import facts
from iodelta.trial import Kind

Row = tuple[int, list[str], str]
"""The index of its line, its cells, and the section it stands in."""

SOME = 20
"""Rows that decide whether a table contains results."""
LONGEST = 4000
"""Most characters of a line of titles."""
UNNAMED = "row"
"""The title of a column of names without a title."""
UNIT_TITLES = ("unit", "units", "einheit")
"""Titles of a column, or the name of a row, that holds the units of the others."""
RULE = re.compile(r"[\s|:+=\u2500-\u257f-]{3,}")
_MOST_COLUMNS = 200
_SECTION_WORDS = 4
_APART = 3
"""Most lines between a table and further rows of it."""
_UNIT = re.compile(
    r"[(\[]?(?:1/s|io/s|iops|ops|[kmg]?i?b(?:/s(?:ec)?|ps)|[mnuµμ]?s(?:ec(?:ond)?s?)?|%|k|m|w|count|#)[)\]]?",
    re.I,
)
_TYPE = re.compile(
    r"<\w{1,9}>|u?int(?:eger|\d{1,3})?|i64|u64|f64|float\d{0,2}|double|varchar|str(?:ing\d{0,2})?|---",
    re.I,
)
"""A data type of a column: ``<dbl>``, ``int64``."""
_DIGIT = re.compile(r"\d")
_LATEX_RULE = re.compile(
    r"\\(?:[htmbc][a-z]{0,6}(?:line|rule)|addlinespace)\b[^&]{0,60}"
)
_LATEX_UNITS = {
    r"\micro": "u",
    r"\milli": "m",
    r"\nano": "n",
    r"\second": "s",
    r"$\mu$": "u",
    "{,}": ",",
    "\\,": "\u2009",
}
_LATEX_STYLE = re.compile(
    r"\\(?:text(?:bf|it|tt|sf|rm)|math(?:bf|it|rm)|emph|underline|num|si|unit)\{([^{}]{0,80})\}"
    r"|(?<=\|)\s*\{([^{}|]{0,80})\}\s*(?=\|)"
)
_LATEX_QUANTITY = re.compile(r"\\(?:SI|qty)\{([^{}]{1,40})\}\{([^{}]{1,20})\}")
_FRAME = str.maketrans(dict.fromkeys("│┃║", "|"))
_RST_HEAD = re.compile(r"\+(?:=+\+)+\s*")
"""The line below the titles of a reStructuredText grid."""
_BORDER = re.compile(r"\+(?:-+\+)+\s*")
"""The line between two rows of such a grid, whose cells may have several lines."""


class Grid(NamedTuple):
    """A split table. ``misfits``: indexes of lines that look like its rows but have more or fewer cells."""

    titles: list[str]
    rows: list[Row]
    first: int
    mark: str = ""
    """The mark between two cells; empty for spaces."""
    misfits: tuple[int, ...] = ()

    def below(self, at: int) -> list[str]:
        """Return the cells of a column."""
        return [cells[at] for _, cells, _ in self.rows if at < len(cells)]


def is_heading(cells: Sequence[str]) -> bool:
    """Return whether cells are titles: one names a measure, and none after the first is a number."""
    return any(map(column, cells[1:])) and not any(map(is_number, cells[1:]))


def _is_of_next(titles: Sequence[str], cells: Sequence[str]) -> bool:
    """Return whether a row below ``titles`` is the heading of the next table: ``lat (us) | none | bfq`` below that of
    IOPS.
    """
    if is_heading(cells) or len(cells) != len(titles):
        return is_heading(cells)
    variants = cells[1:]
    is_again = variants == titles[1:]
    names = bool(parse(titles[0]).measures), bool(parse(cells[0]).measures)
    if any(map(is_number, variants)):  # the same numbers twice, or the same versions
        return is_again and names == (False, True)
    return any(variants) and (
        (is_again and any(names)) or (all(names) and all(variants))
    )


def _grid(
    titles: list[str],
    rows: list[Row],
    first: int,
    mark: str = "",
    misfits: Sequence[int] = (),
) -> Grid | None:
    """Return the table of these titles and rows; None unless it has names and numbers, of whatever measure."""
    if titles[0] and not any(titles[1:]):
        return None  # a heading of the text below
    lower = rows[0][1] if rows else titles
    upper = set(filter(None, titles[1:]))
    is_named = any(map(column, titles)) or any(map(is_number, titles))
    stands_above = upper and (len(upper) < len(titles) - 1 or not lower[0])
    if rows and not is_named and is_heading(lower) and stands_above:
        # Titles of two levels: ``Read`` and ``Write`` above two of ``IOPS``.
        above, joined = "", [lower[0] or titles[0]]
        for high, low in zip(titles[1:], lower[1:], strict=True):
            above = high or above
            joined.append(low if above == low else f"{above} {low}".strip())
        titles, rows = joined, rows[1:]
    texts = [text for text in (rows[0][1] if rows else []) if text.strip("-–—")]
    units = texts[1:] if texts and texts[0].lower() in UNIT_TITLES else texts
    if units and all(map(_UNIT.fullmatch, units)):
        bare = [text.strip("()[]") for text in rows[0][1]]
        titles = [
            f"{title} ({unit})"
            if unit.strip("-") and unit.lower() not in UNIT_TITLES
            else title
            for title, unit in zip(titles, bare, strict=True)
        ]
        rows = rows[1:]
    whole: list[Row] = []
    for each in rows:
        types = list(filter(None, each[1]))
        if types and all(map(_TYPE.fullmatch, types)):
            continue
        if _is_of_next(titles, each[1]):
            misfits = [at for at in misfits if at < each[0]]
            break
        whole.append(each)
    numbers = chain.from_iterable(cells[1:] for _, cells, _ in whole[:SOME])
    if len(titles) < 2 or not any(map(is_number, numbers)):
        return None
    return Grid(titles, _in_sections(whole), first, mark, tuple(misfits))


def _in_sections(rows: list[Row]) -> list[Row]:
    """``rows`` without section headings, each with its section: a heading is the first row, or names a workload, or
    rows repeat around one."""
    named = [
        at
        for at, (_, cells, _) in enumerate(rows[:-1])
        if cells[0] and not any(cells[1:]) and not is_number(cells[0])
    ]
    names = [cells[0] for _, cells, _ in rows]
    if not any(
        not at
        or facts({}, plain(names[at])) != Workload()
        or set(names[:at]) & set(names[at + 1 :])
        for at in named
    ):
        return rows  # rows whose results are missing
    sectioned: list[Row] = []
    section = ""
    for at, (index, cells, outer) in enumerate(rows):
        if at in named:
            section = plain(cells[0]).strip(" :")
        else:
            sectioned.append((index, cells, section or outer))
    return sectioned


def _with_names(rows: Sequence[Row]) -> list[Row]:
    """Rows whose first cell was left empty to mean the one above have its name."""
    named: list[Row] = []
    for at, cells, section in rows:
        if named and not cells[0] and any(cells[1:]):
            cells = [named[-1][1][0], *cells[1:]]
        named.append((at, cells, section))
    return named


def marked(lines: Sequence[Line], index: int, mark: str, most: int) -> Grid | None:
    """Return the table with cells between ``mark``, a bar, tab, semicolon or comma; with or without a frame."""
    several = mark == "\t" and "\t\t" in lines[index].tabbed.strip()
    titles = _cells(lines[index], mark, several)
    if not 2 <= len(titles) <= _MOST_COLUMNS:
        return None
    rows: list[Row] = []
    misfits: list[int] = []
    borders: list[int] = []
    is_rst = False
    for at in range(index + 1, len(lines)):
        if len(rows) >= most:
            break
        cells = _cells(lines[at], mark, several)
        text = _framed(lines[at].text) if mark == "|" else lines[at].text
        if mark == "|":
            if _BORDER.fullmatch(text):
                borders.append(at)
            if _RST_HEAD.fullmatch(text) and len(rows) == at - index - 1:
                # The rows so far are further lines of the titles.
                titles, rows = _in_one_line([titles, *(row[1] for row in rows)]), []
                is_rst = True
                continue
            if text.strip() and (RULE.fullmatch(text) or _LATEX_RULE.fullmatch(text)):
                continue
            if text.count("|") == 1 and text.strip().startswith("|"):
                misfits.append(at)  # cut after its first cell
                continue
            if len(cells) == 1 and not _DIGIT.search(text):
                cells += [""] * (len(titles) - 1)  # the name of the rows below it
        elif not cells:
            # A line without marks may name the rows below it: ``# Write``.
            bare = text.strip("# :=*-")
            below = _cells(lines[at + 1], mark, several) if at + 1 < len(lines) else []
            is_named = 0 < len(bare.split()) <= _SECTION_WORDS
            if is_named and len(below) == len(titles) and not is_heading(below):
                cells = [bare, *[""] * (len(titles) - 1)]
        if not cells:
            break
        if len(cells) == len(titles):
            rows.append((at, cells, ""))
        elif is_heading(cells) and (mark == "|" or not _is_begun(cells, titles)):
            break
        elif mark == "|" or _is_begun(cells, titles) or _DIGIT.search(text):
            misfits.append(at)
            if mark != "|" and len(misfits) > len(rows) + 2:
                return None
        else:
            break
    if mark != "|":
        # Misfits below the last row may belong to another table or a sentence.
        last = rows[-1][0] if rows else len(lines)
        while misfits and misfits[-1] > last:
            cells = _cells(lines[misfits[-1]], mark, several)
            is_alike = abs(len(cells) - len(titles)) <= 2
            numbers = sum(map(is_number, cells))
            if _is_begun(cells, titles) or (is_alike and 2 * numbers >= len(cells)):
                break
            misfits.pop()
        return _grid(titles, rows, index, mark, misfits)
    blocks: dict[int, list[Row]] = {}
    for row in rows:
        blocks.setdefault(sum(border < row[0] for border in borders), []).append(row)
    if len(blocks) > 1 or is_rst:
        rows = []
        for block in blocks.values():
            parts = [cells for _, cells, _ in block]
            columns = list(zip(*(cells[1:] for cells in parts), strict=True))
            # Several numbers in a column are a group of rows, not a row with several lines.
            if max((sum(map(is_number, texts)) for texts in columns), default=0) > 1:
                rows += block
            else:
                rows.append((block[0][0], _in_one_line(parts), block[0][2]))
    return _grid(titles, _with_names(rows), index, mark, misfits)


def _in_one_line(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the cells of a row with several lines: ``mq-`` above ``deadline`` is ``mq-deadline``."""
    columns = (" ".join(filter(None, texts)) for texts in zip(*rows, strict=True))
    return [text.replace("- ", "-").strip() for text in columns]


def _is_begun(cells: Sequence[str], titles: Sequence[str]) -> bool:
    """Return whether a line is a cut row: the name, and none or only the first of the numbers."""
    is_named = 0 < len(cells[0].split()) <= _SECTION_WORDS
    is_short = 1 < len(cells) < len(titles)
    return is_named and is_short and all(map(is_value, cells[1:]))


def _framed(text: str) -> str:
    """Return a row of LaTeX, of Jira or of a drawn frame in the form of Markdown: ``\\textbf{43{,}600}`` is ``43,600``."""
    text = text.translate(_FRAME).strip()
    if text.startswith("||"):
        return text.replace("||", "|")
    is_latex = text.removesuffix("\\hline").rstrip().endswith("\\\\")
    if not is_latex or "&" not in text:
        return text
    text = f"|{text.rpartition(chr(92) * 2)[0].replace('&', '|')}|"
    for command, meant in _LATEX_UNITS.items():
        text = text.replace(command, meant)
    text = _LATEX_QUANTITY.sub(r"\1 \2", text)
    while (shorter := _LATEX_STYLE.sub(r"\1\2", text)) != text:
        text = shorter
    return re.sub(r"\\([%_#])", r"\1", text)


def _cells(line: Line, mark: str, several: bool) -> list[str]:
    """Return the cells of a line; empty without ``mark``. ``several``: any number of tabs separates two cells."""
    text = line.tabbed.strip(" ") if mark == "\t" else line.text
    if mark == "|":
        text = _framed(text)
        if text.count("|") < 2:
            return []
        if text.startswith("|") and text.endswith("|"):
            text = text[1:-1]  # an empty first or last cell is a cell
        return [part.strip() for part in text.split("|")][:_MOST_COLUMNS]
    if mark not in text or len(text) > 5 * LONGEST or not text.strip():
        return []
    if mark == "\t":
        parts = re.split(r"\t+", text.strip()) if several else text.split("\t")
    else:
        row = [text.replace("\0", "").strip()]
        try:
            parts = next(csv.reader(row, delimiter=mark, skipinitialspace=True))
        except (csv.Error, StopIteration):
            return []
    return list(map(str.strip, parts))


def strays(table: Grid, lines: Sequence[Line], last: int) -> list[int]:
    """Indexes of further rows of a table below other lines, without their own titles."""
    found: list[int] = []
    if not table.mark:
        counts = {_numbers_at_end(lines[at].text) for at, _, _ in table.rows} - {0}
        # The counts of rows differ if spaces separate thousands.
        alike = range(min(counts, default=1), max(counts, default=0) + 1)
        for at in range(last + 1, len(lines)):
            if _numbers_at_end(lines[at].text) in alike:
                found.append(at)
            elif lines[at].text.strip() or at > max([last, *found]) + _APART:
                break
        return found
    width = len(table.titles)
    numbered = [at for at in range(width) if _holds_numbers(table.below(at))]
    by_row = any(column(cells[0]) for _, cells, _ in table.rows)
    for at in range(last + 1, len(lines)):
        cells = _cells(lines[at], table.mark, "\t\t" in lines[at].tabbed.strip())
        is_row = len(cells) == width and _holds_numbers([cells[n] for n in numbered])
        if is_row and (by_row or not column(cells[0])):
            found.append(at)
        elif at > max([last, *found]) + _APART or _is_of_next(table.titles, cells):
            break
    return found


def _holds_numbers(texts: Sequence[str]) -> bool:
    """Return whether ``texts`` contain a number, and otherwise only numbers or gaps."""
    return any(map(is_number, texts)) and all(map(is_value, texts))


_WIDE = re.compile(r" {2,}")
_TWO_NUMBERS = re.compile(r"\d \d")
"""Groups of thousands, or cells of two columns."""
_GROUPED = re.compile(
    r"[~+-]?\d{1,3}(?: \d{3}){0,5}(?:[.,]\d{1,9})?(?: ?[a-zA-Zµμ/%]{1,8})?"
)
"""A number in a column with spaces between thousands."""
_IN_BRACKETS = re.compile(r"\s?[(\[][^()\[\]]{0,20}[)\]]")
_BRACKETED = re.compile(r"\||[(\[].*[)\]]", re.S)
_CONTINUED = re.compile(r"\s+\\$")
"""pandas marks a heading whose further columns follow below."""


def spaced(lines: Sequence[Line], index: int, most: int) -> Iterator[Grid]:
    """Yield every way to split the table with titles at ``index`` and spaces between its columns."""
    block = _block(lines, index, most)
    if not block:
        return
    head = _CONTINUED.sub("", lines[index].text.rstrip())
    ways = (
        _at_gaps(lines, head, index, block),
        _at_wide_gaps(lines, head, index, block),
        _at_every_gap(lines, index, block),
        _flattened(lines, index),
    )
    yield from (way for way in ways if way is not None and not _is_torn(way))


def _is_torn(way: Grid) -> bool:
    """Return whether a title or cell is only a part of one: ``(us)``, ``[MB/s]``, ``avg`` before ``lat (ms)``."""
    rows = [cells for _, cells, _ in way.rows]
    for cells in (way.titles, *rows):
        # A statistic and its measure, or ``IOPS`` and ``limit``.
        if parse(cells[0]).statistic and column(cells[1]):
            return True
        for first, other in pairwise(cells):
            words = parse(other).words if column(first) else []
            if len(words) == 1 and words[0] in OTHER and not parse(words[0]).measures:
                return True
        if any(map(_BRACKETED.fullmatch, cells)):
            return True
    for title in (*way.titles, *(cells[0] for cells in rows)):
        name, _, number = title.rpartition(" ")
        if is_number(number) and is_measure(name):
            return True  # ``CPU (%) 100.1``
    of_others = [
        parse(title).other or len(parse(title).measures) > 1 for title in way.titles
    ]
    for cells in rows:
        for text, of_other in zip(cells, of_others, strict=True):
            if any(map(is_number, _WIDE.split(text)[1:])):
                return True
            # A number and more: the cells of several columns.
            has_more = of_other and not is_number(text.strip("+%~≈<> "))
            if has_more and any(map(str.isdigit, text)):
                return True
    return False


def _block(lines: Sequence[Line], index: int, most: int) -> list[int]:
    """Indexes of the lines below the titles, to the next blank one; without rules."""
    block: list[int] = []
    for at in range(index + 1, len(lines)):
        text = lines[at].text
        is_end = not text.strip() or len(text) > LONGEST or len(block) >= most
        # R continues with more columns below.
        if is_end or (block and _names_measure(text)):
            break
        if not RULE.fullmatch(text.strip()):
            block.append(at)
    return block


def _names_measure(text: str) -> bool:
    """Return whether a line names a measure and has no number."""
    words = text.split()
    return not any(map(is_number, words)) and any(map(column, words))


def continued(table: Grid, lines: Sequence[Line]) -> tuple[Grid, int]:
    """Return the table with the columns that R and pandas print below it, row by row, and the index of its last line."""
    last = table.rows[-1][0]
    while table.titles[0] == UNNAMED:
        index = last + 1
        while index < min(len(lines), last + 3) and not lines[index].text.strip():
            index += 1
        if index == len(lines) or not lines[index].text.startswith(" "):
            break
        more = _at_every_gap(lines, index, _block(lines, index, len(table.rows)))
        if more is None or more.titles[0] != UNNAMED or more.below(0) != table.below(0):
            break
        if not _names_measure(lines[index].text):
            break
        rows = [
            (at, [*cells, *further[1:]], section)
            for (at, cells, section), (_, further, _) in zip(
                table.rows, more.rows, strict=True
            )
        ]
        last = more.rows[-1][0]
        table = table._replace(titles=[*table.titles, *more.titles[1:]], rows=rows)
    return table, last


def _numbers_at_end(text: str) -> int:
    # A thin space belongs to a number.
    words = re.findall(r"[^ \t]+", text[:LONGEST])
    return len(list(takewhile(is_number, reversed(words))))


def ends_in_number(text: str) -> bool:
    """Return whether the last word of a line is a number."""
    words = text.split()
    return bool(words) and is_number(words[-1])


def _at_wide_gaps(
    lines: Sequence[Line], head: str, index: int, block: Sequence[int]
) -> Grid | None:
    """Split at two spaces and more.

    ``100 940`` must certainly be one number: its title is one word, and its whole column is written so. Under two
    words, or without titles, it may be the cells of two columns that are one space apart.
    """
    titles = _WIDE.split(head.strip())
    rows = [(at, _WIDE.split(lines[at].text.strip()), "") for at in block]
    fitted = _fitting(lines, titles, rows, index, block)
    for at, title in enumerate(fitted.titles if fitted else ()):
        assert fitted is not None
        numbers = list(filter(is_number, fitted.below(at)))
        is_word = " " not in _IN_BRACKETS.sub("", title).strip()
        is_grouped = is_word and all(map(_GROUPED.fullmatch, numbers))
        is_doubtful = any(map(_TWO_NUMBERS.search, numbers)) and not is_grouped
        if is_doubtful or _TWO_NUMBERS.search(title):
            return None
    return fitted


def _at_every_gap(
    lines: Sequence[Line], index: int, block: Sequence[int]
) -> Grid | None:
    """Split at every space; fits only if titles and cells have none, and most cells are numbers."""
    titles = _CONTINUED.sub("", lines[index].text.rstrip()).split()
    rows: list[Row] = []
    for at in block:
        cells = list(filter(None, lines[at].text.split(" ")))
        if 2 * sum(map(is_value, cells)) < len(cells):
            break
        rows.append((at, cells, ""))
    fitted = _fitting(lines, titles, rows, index, block)
    left = block[len(fitted.rows) :] if fitted else []
    if any(ends_in_number(lines[at].text) for at in left):
        return None
    return fitted


def _fitting(
    lines: Sequence[Line],
    titles: list[str],
    rows: Sequence[Row],
    first: int,
    block: Sequence[int],
) -> Grid | None:
    """Return the first rows with one cell per title, or one more if the titles begin to the right of all rows: then
    the column of names has no title."""
    if not 2 <= len(titles) <= _MOST_COLUMNS:
        return None
    texts = [lines[at].text for at in (first, *block)]
    indents = [len(text) - len(text.lstrip()) for text in texts]
    is_indented = bool(block) and max(indents[1:]) < indents[0]
    if is_indented and rows and len(rows[0][1]) == len(titles) + 1:
        titles = [UNNAMED, *titles]
    fitting = takewhile(lambda row: len(row[1]) == len(titles), rows)
    return _grid(titles, list(fitting), first)


def _at_gaps(
    lines: Sequence[Line], head: str, index: int, block: Sequence[int]
) -> Grid | None:
    """Split where the titles and all rows have a space in the same column."""
    texts = [lines[at].text.rstrip() for at in block]
    columns = _spans(head, texts)
    if columns is None or not 2 <= len(columns) <= _MOST_COLUMNS:
        return None
    cut = [[text[begin:end] for begin, end in columns] for text in (head, *texts)]
    titles, *parts = ([" ".join(text.split()) for text in cells] for cells in cut[:1])
    parts = [list(map(str.strip, cells)) for cells in cut[1:]]
    indexes = list(block)
    if parts and not titles[0] and not any(parts[0][1:]):
        titles[0] = parts.pop(0)[0]  # pandas prints it on a line of its own
        indexes.pop(0)
    titles[0] = titles[0] or UNNAMED
    named: list[Row] = []
    above = ""
    for at, cells in zip(indexes, parts, strict=True):
        above = cells[0] or above
        named.append((at, [above, *cells[1:]], ""))
    joined = chain.from_iterable(cells for _, cells, _ in named)
    if all(titles) and not any(map(_TWO_NUMBERS.search, joined)):
        return _grid(titles, named, index)
    return None


def _spans(head: str, rows: Sequence[str]) -> list[tuple[int, int]] | None:
    """Begin and end of each column of a table with the titles ``head``; None if a word may belong to either of two.

    A word of a title without cells below joins its neighbour, one space away; words without a title join their name.
    """
    lines = (head, *rows)
    taken = bytearray(max(map(len, lines)))
    for text in lines:
        for word in re.finditer(r"[^ ]+", text):
            taken[word.start() : word.end()] = b"\1" * len(word[0])
    spans = [match.span() for match in re.finditer(rb"\x01+", taken)]
    below = [[text[begin:end].strip() for text in rows] for begin, end in spans]
    titled = [bool(head[begin:end].strip()) for begin, end in spans]
    whole = [
        is_titled and any(texts) for is_titled, texts in zip(titled, below, strict=True)
    ]
    near = [False, *(begin - end == 1 for (_, end), (begin, _) in pairwise(spans))]
    if spans and not titled[0]:
        # The first words of the rows are a column without a title: row numbers, or separated by a gap.
        counts_rows = all(map(str.isdigit, filter(None, below[0])))
        whole[0] = whole[0] or counts_rows or len(spans) < 2 or not near[1]
    columns: list[tuple[int, int]] = []
    pending: int | None = None  # begin of words that belong to the next column
    for at, (begin, end) in enumerate(spans):
        if whole[at]:
            columns.append((begin if pending is None else pending, end))
            pending = None
            continue
        if not titled[at] and any(map(is_number, below[at])):
            return None  # a number without a title
        is_next_left = pending is None and bool(columns) and begin - columns[-1][1] == 1
        after = at + 1
        while after < len(spans) and near[after] and not whole[after]:
            after += 1
        is_next_right = after < len(spans) and near[after]
        if is_next_left and is_next_right:
            if titled[at]:
                # The title of a right-aligned column ends where its numbers end.
                first, last = columns[-1]
                texts = [text[first:last] for text in lines]
                flush = {len(text.rstrip()) for text in texts} == {last - first}
                begins = {len(text) - len(text.lstrip()) for text in texts}
                is_next_left = not (flush and len(begins) > 1)
                if is_next_left:
                    return None
            elif not all(map(is_value, below[at + 1])):
                return None  # it is part of a name, but there is also one on the right
        if is_next_left:
            columns[-1] = (columns[-1][0], end)
        elif not is_next_right:
            return None
        elif pending is None:
            pending = begin
    return columns if pending is None else None


_MEASURE = re.compile(
    r"(?<!\S)(?:(?:read|write|trim|total|random|seq) )?(?:iops|(?:bw|bandwidth|throughput)(?: {unit})?|"
    r"(?:(?:avg|mean|average|max|min|p\d{1,2}(?:\.\d{1,4})?|\d{1,2}(?:\.\d{1,4})?\s?(?:%|th)) )?"
    r"(?:[sc]?lat(?:ency)?|percentile)(?: {unit})?|p\d{1,2}(?:\.\d{1,4})? {unit})".replace(
        "{unit}", r"\((?:[kmg]?i?b/s|[mnuµμ]?s(?:ec)?|iops)\)"
    ),
    re.I,
)
_NUMERIC = re.compile(
    r"[~≈]?\d[\d.,'_\xa0\u202f\u2009]{0,20}(?:[eE][+-]?\d{1,2})?(?:[kKMG]i?B?(?:/s)?)?$"
)
_GROUP = re.compile(r"\d{3}(?:\.\d{1,9})?$")
_BLOCK = re.compile(r"\b(\d{1,4})\s?([kKmM])(?:i?B)?\b")
_NUMBERED = ("jobs", "job", "numjobs", "threads", "qd", "depth", "iodepth")
_WORDS = 40
_CELL = re.compile(r"very \w{1,8}|\S{1,20}")
_MOST_GROUPS = 5
"""Groups of three digits in a number: a million GB/s in KiB/s has four."""
_MOST_WAYS = 500
_CLEAR = 0.5
"""Further log ratio of bandwidth to IOPS x block size that rules a grouping out: a factor of exp(0.5) = 1.6."""
_UNSURE = "?"
"""A cell with several possible groupings of its digits."""


def _flattened(lines: Sequence[Line], first: int) -> Grid | None:
    """Return the table with single spaces between its columns whose titles are at index ``first``; None without one.

    The last title before the measures names one word of each row. A row without the preceding words has those of the
    row above. A short line between rows is a section. The number of columns, and if necessary the block size
    (bandwidth is IOPS times it), shows how to group numbers with spaces between thousands ("6 793 27 171 0.146").
    """
    head = lines[first].text.strip()[:1000]
    found = list(_MEASURE.finditer(head))
    words = head[: found[0].start()].split() if found else []
    gaps = [head[match.end() : after.start()] for match, after in pairwise(found)] + [
        head[match.end() :] for match in found[-1:]
    ]
    if len(found) < 2 or not words or any(map(column, words)) or "".join(gaps).strip():
        return None
    *others, last = words
    # A title such as Jobs is one, the words before and after it are others.
    at = next((at for at, word in enumerate(others) if word.lower() in _NUMBERED), None)
    parts = [others] if at is None else [others[:at], [others[at]], others[at + 1 :]]
    names = [*(" ".join(part) for part in parts if part), last]
    measures = [match[0] for match in found]
    columns = list(map(column, measures))
    rows: list[Row] = []
    section, above, known = "", [""] * (len(names) - 1), set[str]()
    for index in range(first + 1, len(lines)):
        words = _split(lines[index].text)
        taken = _taken_apart(words, len(columns), known)
        if taken is None:
            below = _split("".join(line.text for line in lines[index + 1 : index + 2]))
            is_short = 0 < len(words) <= _SECTION_WORDS and not is_number(words[-1])
            if not is_short or _taken_apart(below, len(columns), known) is None:
                break
            section = lines[index].text.strip()
            continue
        labels, numbers = taken
        if len(names) == 1:
            labels = [" ".join(labels)]
        elif len(labels) > 1:
            above = _named(labels[:-1], names[:-1])
        known.add(labels[-1])
        block = _BLOCK.search(" ".join(above))
        per_io = size(f"{block[1]}{block[2]}") if block else None
        grouped = _grouped(numbers, columns, per_io)
        rows.append((index, [*above, labels[-1], *grouped], section))
    return _grid([*names, *measures], rows, first) if len(rows) >= 2 else None


def _split(text: str) -> list[str]:
    """Split at plain spaces; narrow and non-breaking ones belong to a number."""
    return list(filter(None, re.split(r"[ \t]+", text.strip()[:1000].strip())))


def _taken_apart(
    parts: Sequence[str], measures: int, known: set[str]
) -> tuple[list[str], list[str]] | None:
    """The words of a row and its numbers, at least as many as ``measures``; None for another line.

    If a number is missing ("~0", "very high", "-"), the numbers begin after a ``known`` last word.
    """
    if not 1 < len(parts) <= _WORDS:
        return None
    at = len(parts) - len(list(takewhile(_NUMERIC.match, reversed(parts))))
    if at > 0 and len(parts) - at >= measures:
        return list(parts[:at]), list(parts[at:])
    for place, word in enumerate(parts[:-1], 1):
        rest = " ".join(parts[place:]) if word in known else ""
        cells = _CELL.findall(rest)
        is_whole = "".join(cells).replace(" ", "") == rest.replace(" ", "")
        if len(cells) == measures and is_whole:
            return list(parts[:place]), cells
    return None


def _named(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """``words`` assigned to ``names``: a title such as Jobs gets the number, the others the words before and after."""
    numbered = next(
        (at for at, name in enumerate(names) if name.lower() in _NUMBERED), None
    )
    number = next((at for at, word in enumerate(words) if word.isdigit()), None)
    parts = [words]
    if numbered is not None and number is not None:
        parts = [words[:number]] if numbered else []
        parts += [words[number : number + 1], words[number + 1 :]]
    return (list(map(" ".join, parts)) + [""] * len(names))[: len(names)]


def _grouped(
    numbers: list[str], columns: Sequence[Column | None], block: int | None
) -> list[str]:
    """One cell per column: groups of three digits are joined to the number before them."""
    if len(numbers) == len(columns):
        return numbers
    ways = list(islice(_ways(numbers, len(columns)), _MOST_WAYS))
    if not ways:
        return [*numbers[: len(columns) - 1], " ".join(numbers[len(columns) - 1 :])]
    strains = [_strain(cells, columns, block) for cells in ways]
    most = min(strains) + _CLEAR
    likely = (way for way, strain in zip(ways, strains, strict=True) if strain <= most)
    texts = map(set, zip(*likely, strict=True))
    return [text.pop() if len(text) == 1 else _UNSURE for text in texts]


def _ways(numbers: Sequence[str], cells: int) -> Iterator[list[str]]:
    """Every way to read ``numbers`` as ``cells`` numbers."""
    if not cells and not numbers:
        yield []
    if not 0 < cells <= len(numbers) <= cells * _MOST_GROUPS:
        return
    for taken in range(1, min(len(numbers) - cells + 1, _MOST_GROUPS) + 1):
        groups = numbers[:taken]
        # The last group of digits continues the number that the others form.
        if taken > 1 and not (
            _GROUP.match(groups[-1]) and groups[-2].isdigit() and len(groups[0]) <= 3
        ):
            break
        for rest in _ways(numbers[taken:], cells - 1):
            yield [" ".join(groups), *rest]


def _strain(
    cells: Sequence[str], columns: Sequence[Column | None], block: int | None
) -> float:
    """The absolute log ratio of bandwidth to IOPS times ``block`` (bytes), summed over the directions; 0 if one of the
    three is missing."""
    iops: dict[Kind | None, list[float]] = {}
    bandwidths: list[tuple[Kind | None, float]] = []
    for meaning, text in zip(columns, cells, strict=True):
        number = cell(text)
        if meaning is None or number is None or not number[0].value:
            continue
        if meaning.stat == "iops":
            iops.setdefault(meaning.kind, []).append(number[0].value)
        if meaning.stat == "bw" and meaning.scale:
            bandwidths.append((meaning.kind, number[0].value * meaning.scale))
    return sum(
        abs(math.log(bandwidth / (rate * block)))
        for kind, bandwidth in bandwidths
        for rate in iops.get(kind, [])
        if block
    )
