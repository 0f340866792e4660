"""What mail, Markdown and HTML print adds up, read back from their text by a parser that knows nothing of iodelta."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from test_rows_add_up import CHANGE, NUMBER, UNIT, contradiction, noisy, value

from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.mail import mail
from iodelta.report.formats.markdown import markdown
from iodelta.report.stories import experiment as telling
from iodelta.report.stories.experiment import RATIOS

Rows = list[tuple[str, list[str]]]
"""The title above a row, and its cells."""

VALUE = re.compile(f"{NUMBER}(?:{UNIT})?")


def plain(cell: str) -> str:
    """Without the number of its note."""
    return re.sub(r" ?\[\d+\]$", "", cell.replace("\N{NO-BREAK SPACE}", " ").strip())


def in_markdown(page: str) -> Rows:
    rows, title = [], ""
    for line in page.splitlines():
        if line.startswith("#"):
            title = line.strip("# ")
        if line.startswith("|"):
            rows.append((title, [cell.replace("\\", "").strip() for cell in line.strip("|").split("|")]))
    return rows


def in_mail(page: str) -> Rows:
    rows, title = [], ""
    for line in page.splitlines():
        if line and not line.startswith(" "):
            title = line
        elif line.strip():
            rows.append((title, re.split(" {2,}", line.strip())))
    return rows


def in_html(page: str) -> Rows:
    rows = []
    for part in page.split("<h3>")[1:]:
        title = html.unescape(part.partition("</h3>")[0])
        for row in re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL):
            cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            rows.append((title, [html.unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in cells]))
    return rows


def triples(rows: Rows) -> Iterator[tuple[str, str, str]]:
    """Two values and a change beside each other, but for those with a note, which says why they do not add up."""
    for _, noted in rows:
        if any(re.search(r"\[\d+\]$", cell) for cell in noted):
            continue
        cells = [plain(cell) for cell in noted]
        for old, new, change in zip(cells, cells[1:], cells[2:], strict=False):
            if VALUE.fullmatch(old) and VALUE.fullmatch(new) and re.fullmatch(CHANGE, change):
                yield old, new, change


def of_other_sign(rows: Rows) -> Iterator[tuple[str, str, str]]:
    """Of tables apart: medians as measured, and a change that says the opposite of them."""
    measured: dict[tuple[str, str, str], tuple[str, str]] = {}
    heads: list[str] = []
    for title, noted in rows:
        cells = [plain(cell) for cell in noted]
        metric, _, kind = title.partition(": ")
        if "as measured" in kind and cells[0] == "cell":
            heads = cells
        elif "as measured" in kind and len(cells) == len(heads):
            medians = dict(zip(heads[1:], cells[1:], strict=True))
            baseline = cells[1]
            measured |= {(metric, cells[0], variant): (baseline, own) for variant, own in medians.items()}
        elif kind.startswith("change against") and (metric, *cells[:2]) in measured:
            old, new = measured[metric, cells[0], cells[1]]
            if against(old, new, cells[3]):
                yield old, new, cells[3]


def against(old: str, new: str, change: str) -> bool:
    share = re.fullmatch(CHANGE, change)
    before, after = value(old), value(new)
    if share is None or before is None or after is None:
        return False
    return (after - before) * float(share[1]) < 0


def matrix(page: str) -> Iterator[tuple[str, str, str]]:
    """The cells of the page's first table: both values in the title, the change in the text."""
    cell = (
        rf'title="[^"]*? ({VALUE.pattern}) → ({VALUE.pattern});[^"]*">(?:<span[^>]*>[^<]*</span>)* ?({CHANGE})</span>'
    )
    for found in re.finditer(cell, html.unescape(page).replace("\N{NO-BREAK SPACE}", " ")):
        yield found[1], found[3], found[5]


def test_the_parsers_find_rows_that_contradict_themselves() -> None:
    page = "### IOPS\n\n| cell | n | old | new | change |\n|---|--:|\n| a | 9 | 10,000 | 10,100 | -1.0 % |\n"
    assert [contradiction(*row) > 0 for row in triples(in_markdown(page))] == [True]
    page = "IOPS\n  cell  n     old     new   change\n  a     9  10,000  10,100  +1.0 %\n"
    assert [contradiction(*row) for row in triples(in_mail(page))] == [0]
    page = "<h3>IOPS</h3><tr><th>a</th><td>9</td><td>99.88 us</td><td>95 us</td><td>+0.1 %</td></tr>"
    assert [contradiction(*row) > 0 for row in triples(in_html(page))] == [True]
    tables = [
        ("IOPS: medians as measured", ["cell", "old", "new"]),
        ("IOPS: medians as measured", ["a", "10", "11"]),
        ("IOPS: change against old", ["a", "new", "9", "-2.0 %"]),
    ]
    assert list(of_other_sign(tables)) == [("10", "11", "-2.0 %")]


def test_rows_read_back_from_what_is_laid_out_add_up() -> None:
    """Sweeps of two and three variants under noise of any kind. Where medians say the opposite of a change, the page
    has a word on it."""
    seen = {"rows": 0, "cells": 0, "signs": 0}
    for seed in range(10):
        shown = noisy(seed)
        story = telling.of_account(shown)
        pages = {"mail": mail(story), "markdown": markdown(story), "html": html_of(shown, ()).decode()}
        for name, parsed in {"mail": in_mail, "markdown": in_markdown, "html": in_html}.items():
            rows = parsed(pages[name])
            own, signs = list(triples(rows)), list(of_other_sign(rows))
            assert [row for row in own if contradiction(*row)] == [], (seed, name)
            words = " ".join(re.sub("<[^>]*>", " ", pages[name]).replace("\\", "").split())
            assert RATIOS in words or not signs, (seed, name)
            seen["rows"] += len(own)
            seen["signs"] += len(signs)
        cells = list(matrix(pages["html"]))
        assert [row for row in cells if contradiction(*row)] == [], seed
        seen["cells"] += len(cells)
    assert min(seen.values()) > 3, "so that the statements above are about something"
