"""Tables made from numbers that are known: every separator, orientation, spelling of a unit and style of numbers.

What was drawn is the oracle. A reader may refuse a table, but a number that it reads must be the one that was drawn,
for that variant and measure.
"""

from __future__ import annotations

import csv
import io
from typing import Literal, NamedTuple

from hypothesis import strategies as st

Measure = Literal["iops", "bw", "mean", "p99", "p99.9", "other"]

TITLES: dict[Measure, dict[str, float]] = {
    "iops": {"IOPS": 1, "iops": 1, "Read IOPS": 1, "read_iops": 1, "kIOPS": 1e3, "IOPS (k)": 1e3, "IO/s": 1},
    "bw": {
        "BW (MiB/s)": 2.0**20,
        "bw_mib": 2.0**20,
        "Bandwidth [MB/s]": 1e6,
        "throughput (KiB/s)": 1024,
        "MB/s": 1e6,
        "BW_MBps": 1e6,
    },
    "mean": {"lat (us)": 1e3, "avg lat (ms)": 1e6, "lat_us": 1e3, "mean latency [us]": 1e3, "lat_ns_mean": 1},
    "p99": {"p99 (us)": 1e3, "p99_us": 1e3, "99% lat (ms)": 1e6, "p99 lat (us)": 1e3, "lat p99 (ms)": 1e6},
    "p99.9": {"p99,9 (us)": 1e3, "p99_9_us": 1e3, "lat_p99_9_us": 1e3, "99,9% lat (ms)": 1e6, "p99.9 (us)": 1e3},
    "other": {
        "CPU (%)": 0,
        "stddev": 0,
        "IOPS stddev": 0,
        "iops_max": 0,
        "errors": 0,
        "runtime (s)": 0,
        "power (W)": 0,
        "IOPS/W": 0,
        "bw_min": 0,
        "lat stddev (us)": 0,
        "IOPS limit": 0,
        "cpu_per_io (us)": 0,
        "rate_iops": 0,
        "lat range (us)": 0,
    },
}
IOPS: Measure = "iops"
OTHERS: tuple[Measure, ...] = ("bw", "mean", "p99", "p99.9", "other")
ORIENTATIONS = ("variants in rows", "measures in rows", "melted", "measures in rows, no titles")
LAYOUTS = (
    *("bars", "comma", "semicolon", "tab", "wide spaces", "aligned right", "pandas", "R", "single spaces"),
    *("LaTeX", "box", "HTML"),
)
MARKED = ("bars", "comma", "semicolon", "tab", "LaTeX", "box", "HTML")
KINDS = ("Read", "Write")
STYLES = ("plain", "comma thousands", "decimal comma", "apostrophes", "thin spaces", "exponents")
EXTRAS = ("", "", "summary rows", "changes", "blank line", "doubled", "sections", "two levels")
"""What people add to a table: rows and columns that are no results, and words above and between."""
VARIANTS = ("none", "bfq", "mq-deadline", "kyber", "patched", "v6.12", "old")


class Drawn(NamedTuple):
    """A table: its text, and the number in basic units of each variant and measure."""

    text: str
    numbers: dict[tuple[str, Measure], float]
    layout: str
    style: str
    orientation: str
    extra: str = ""


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """A table of two to four variants and two to six measures."""
    variants = draw(st.lists(st.sampled_from(VARIANTS), min_size=2, max_size=4, unique=True))
    others: list[Measure] = draw(st.permutations(OTHERS))
    kinds = draw(st.permutations([IOPS, *others[: draw(st.integers(1, 5))]]))
    titles = [draw(st.sampled_from(sorted(TITLES[kind]))) for kind in kinds]
    style, layout = draw(st.sampled_from(STYLES)), draw(st.sampled_from(LAYOUTS))
    orientation = draw(st.sampled_from(ORIENTATIONS))
    if style in ("comma thousands", "decimal comma") and layout == "comma":
        style = "plain"  # those need quotes, which the csv module adds; see quoted below
    if layout in ("pandas", "R"):
        style, orientation = draw(st.sampled_from(("plain", "exponents"))), "variants in rows"
    if style == "thin spaces" and layout in ("single spaces", "aligned right"):
        style = "apostrophes"
    numbers: dict[tuple[str, Measure], float] = {}
    cells: dict[tuple[str, str], str] = {}
    for kind, title in zip(kinds, titles, strict=True):
        for variant in variants:
            value = draw(st.integers(1000, 9_999_999)) / 10 ** draw(st.integers(1, 3))
            text, value = _written(value, style)
            cells[variant, title] = text
            if kind != "other":
                numbers[variant, kind] = value * TITLES[kind][title]
    if orientation == "measures in rows, no titles":
        names = {variant: f"column {number}" for number, variant in enumerate(variants, 1)}
        numbers = {(names[variant], kind): value for (variant, kind), value in numbers.items()}
    rows = _rows(orientation, variants, titles, cells)
    extra = draw(st.sampled_from(EXTRAS))
    if extra == "doubled":
        rows, numbers = _doubled(rows, orientation, numbers)
    elif extra in ("sections", "two levels"):
        rows, numbers, extra = _of_directions(rows, orientation, numbers, extra, layout, titles)
    else:
        rows = _with_extra(rows, orientation, extra, titles)
    return Drawn(_laid_out(rows, layout), numbers, layout, style, orientation, extra)


Numbers = dict[tuple[str, Measure], float]


def _doubled(rows: list[list[str]], orientation: str, numbers: Numbers) -> tuple[list[list[str]], Numbers]:
    """The first measure named once more, with other numbers: neither is anything's."""
    if orientation == "variants in rows":
        kind = _kind_of(rows[0][1])
        rows = [[*row, text] for row, text in zip(rows, (rows[0][1], *("77" for _ in rows[1:])), strict=True)]
    else:
        name = 1 if orientation == "melted" else 0
        first = rows[0] if orientation.endswith("no titles") else rows[1]
        kind = _kind_of(first[name])
        again = [*first[: name + 1], *("77" for _ in first[name + 1 :])]
        rows = [*rows, again]
    whose = {first[0]} if orientation == "melted" else {variant for variant, _ in numbers}
    return rows, {key: value for key, value in numbers.items() if key[1] != kind or key[0] not in whose}


def _kind_of(title: str) -> Measure:
    return next(kind for kind, titles in TITLES.items() if title in titles)


def _of_directions(
    rows: list[list[str]], orientation: str, numbers: Numbers, extra: str, layout: str, titles: list[str]
) -> tuple[list[list[str]], Numbers, str]:
    """The table twice, of reads and of writes; where nothing else names a direction, and lines can be empty."""
    if orientation != "variants in rows" or layout not in MARKED or any("ead" in title for title in titles):
        return rows, numbers, ""
    twice = {(f"{variant}/{kind}", measure): value for (variant, measure), value in numbers.items() for kind in KINDS}
    width = len(rows[0])
    if extra == "two levels":
        above = ["", *(word for kind in KINDS for word in (kind, *[""] * (width - 2)))]
        return [above, *([row[0], *row[1:], *row[1:]] for row in rows)], twice, extra
    parts = [[[kind, *[""] * (width - 1)], *rows[1:]] for kind in KINDS]
    return [rows[0], *parts[0], *parts[1]], twice, extra


def _with_extra(rows: list[list[str]], orientation: str, extra: str, titles: list[str]) -> list[list[str]]:
    width = len(rows[0])
    if extra == "blank line" and len(rows) > 2:
        return [*rows[:-1], [""] * width, rows[-1]]
    if extra == "summary rows" and orientation == "variants in rows":
        names = ("avg", "Max", "stddev", "geomean", f"{rows[1][0]}/{rows[2][0]}", f"{rows[1][0]} vs {rows[2][0]}")
        return [*rows, *([name.replace(" ", "_"), *("0.77" for _ in rows[0][1:])] for name in names)]
    if extra == "changes" and orientation.startswith("measures in rows"):
        head = [] if orientation.endswith("no titles") else [[*rows[0], "change"]]
        return [*head, *([*row, "-7.7%"] for row in rows[len(head) :])]
    return rows


def _written(value: float, style: str) -> tuple[str, float]:
    """A number in a style, and what it then says."""
    value = round(value, 3)
    if style == "comma thousands":
        return f"{value:,.1f}", float(f"{value:.1f}")
    if style == "decimal comma":
        return f"{value:.2f}".replace(".", ","), float(f"{value:.2f}")
    if style == "apostrophes":
        return f"{value:,.0f}".replace(",", "'"), float(f"{value:.0f}")
    if style == "thin spaces":
        return f"{value:,.0f}".replace(",", "\u202f"), float(f"{value:.0f}")
    if style == "exponents":
        return f"{value:.4e}", float(f"{value:.4e}")
    return f"{value:g}" if value < 1e5 else f"{value:.1f}", float(f"{value:g}") if value < 1e5 else float(
        f"{value:.1f}"
    )


def _rows(
    orientation: str, variants: list[str], titles: list[str], cells: dict[tuple[str, str], str]
) -> list[list[str]]:
    if orientation == "variants in rows":
        body = [[variant, *(cells[variant, title] for title in titles)] for variant in variants]
        return [["sched", *titles], *body]
    if orientation == "melted":
        body = [[variant, title, cells[variant, title]] for variant in variants for title in titles]
        return [["sched", "metric", "value"], *body]
    body = [[title, *(cells[variant, title] for variant in variants)] for title in titles]
    return body if orientation.endswith("no titles") else [["metric", *variants], *body]


def _laid_out(rows: list[list[str]], layout: str) -> str:
    if layout == "bars":
        rule = "|" + "---|" * len(rows[0])
        first, *rest = ("| " + " | ".join(row) + " |" for row in rows)
        return "\n".join([first, rule, *rest]) + "\n"
    if layout == "LaTeX":
        body = "".join(" & ".join(row).replace("%", "\\%").replace("_", "\\_") + " \\\\\n" for row in rows)
        return f"\\begin{{tabular}}{{{'l' * len(rows[0])}}}\n{body}\\end{{tabular}}\n"
    if layout == "box":
        frame = "┼".join("─" * 8 for _ in rows[0])
        return f"┌{frame}┐\n" + "".join(f"│ {' │ '.join(row)} │\n├{frame}┤\n" for row in rows)
    if layout == "HTML":
        html_rows = ("".join(f"<td>{text}</td>" for text in row) for row in rows)
        return "<table>\n" + "".join(f"<tr>{row}</tr>\n" for row in html_rows) + "</table>\n"
    if layout in ("comma", "semicolon", "tab"):
        text = io.StringIO()
        csv.writer(text, delimiter={"comma": ",", "semicolon": ";", "tab": "\t"}[layout]).writerows(rows)
        return text.getvalue()
    if layout == "single spaces":
        return "".join(" ".join(row) + "\n" for row in rows)
    if layout in ("pandas", "R"):
        begin = 0 if layout == "pandas" else 1
        rows = [["", *rows[0]], *([str(begin + at), *row] for at, row in enumerate(rows[1:]))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    gap = "   " if layout == "wide spaces" else "  " if layout == "pandas" else " "
    justify = str.ljust if layout == "wide spaces" else str.rjust
    lines = [gap.join(justify(text, width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"
