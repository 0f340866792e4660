"""Write the page: template, styles, scripts and data in one file, whose content security policy allows no others."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from iodelta import __version__
from iodelta.report.formats.charts import Figure
from iodelta.report.formats.charts.specs import (
    DARK,
    LIGHT,
    config,
    data_of,
    named,
    stored,
    texts_of,
)
from iodelta.report.formats.html.page import LONG, SHOWN, TABLED, Page
from iodelta.report.stories.story import Box

HERE = Path(__file__).parent


def report(page: Page) -> bytes:
    """Return the page as one HTML file in UTF-8. The same page gives the same bytes."""
    sheet = style()
    scripts = tuple(map(asset, scripts_of(page)))
    hashes = {
        "style": _hash(sheet),
        "scripts": " ".join(map(_hash, scripts)) or "'none'",
    }
    text = _template().render(
        **parts(page),
        style=_safe(sheet),
        scripts=list(map(_safe, scripts)),
        hashes=hashes,
    )
    return str(text).encode("utf-8", "backslashreplace")


def scripts_of(page: Page) -> tuple[str, ...]:
    """Return names of the scripts that a page needs."""
    charts = ("vega.js", "report.js") if _is_drawn(page) else ()
    if not any(section.commands for section in page.sections):
        return charts
    return (*charts, "copy.js")


def parts(page: Page) -> dict[str, Any]:
    """Return what ``contents.html``, ``body.html`` and ``data.html`` need, in a report of its own or inside another
    page.
    """
    return {
        "page": page,
        "version": __version__,
        "spec": _spec,
        "families": tuple(_families(page)),
        "looks": safe_json(config(named())) if _is_drawn(page) else "",
        "tabled": TABLED,
        "long": LONG,
        "shown": SHOWN,
    }


def _is_drawn(page: Page) -> bool:
    return any(chapter.figures for chapter in page.chapters)


def environment(*places: Path) -> Any:
    """Templates of ``places`` and of reports; whatever they fill in is escaped."""
    import jinja2

    loader = jinja2.FileSystemLoader([*places, HERE])
    made = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    made.undefined = jinja2.StrictUndefined
    made.filters["tied"] = _tied
    made.filters["named"] = _named
    made.filters["tint"] = _tint
    made.filters["fitting"] = _fitting
    return made


TINTS = (0.02, 0.1, 0.5)
"""Changes as shares of a box, from each of which on its colour is stronger."""

LETTER = 6.2
"""Width of a letter in a box, in the units of its picture."""


def _tint(box: Box) -> str:
    """Return the class of a box's colour."""
    strength = sum(abs(box.change) >= least for least in TINTS)
    if not strength:
        return "same"
    return f"{'more' if box.change > 0 else 'fewer'}-{strength}"


def _fitting(name: str, width: float) -> str:
    """As much of a name as a box is wide."""
    room = int((width - 4) / LETTER)
    if len(name) <= room:
        return name
    return f"{name[: max(room - 1, 1)]}…"


@lru_cache(maxsize=1)
def _template() -> Any:
    return environment().get_template("page.html")


@lru_cache(maxsize=4)
def asset(name: str) -> str:
    """Return a script or style sheet of reports."""
    return (HERE / name).read_text(encoding="utf-8")


def style() -> str:
    """Return the style sheet, with the colours of the charts as custom properties for light and dark."""
    light, dark = _properties(LIGHT), _properties(DARK)
    root = f":root{{color-scheme:light dark;{light}}}"
    night = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f"{root}{night}{asset('report.css')}"


def _properties(colors: dict[str, Any]) -> str:
    return "".join(f"--{name}:{value};" for name, value in _colors(colors))


def _colors(colors: dict[str, Any]) -> list[tuple[str, str]]:
    properties = []
    for name, value in colors.items():
        if isinstance(value, list):
            properties += [(f"{name}-{at}", color) for at, color in enumerate(value)]
        else:
            properties.append((name, value))
    return properties


def _named(rows: Iterable[Sequence[str]], heads: Sequence[str]) -> set[int]:
    """Return the columns that hold names, not numbers: those of variants, and those whose every text begins with a
    letter.
    """
    columns = enumerate(zip(*rows, strict=False))
    worded = {place for place, texts in columns if all(map(_WORDED.match, texts))}
    # Next to values of a baseline stand those of a variant.
    if "baseline" in heads:
        return worded
    return worded | {place for place, head in enumerate(heads) if head == "variant"}


_WORDED = re.compile(r"(?!x\d)[^\W\d_]|$")
"""A text that begins with a letter, or none; ``x3`` is a number."""


def _tied(text: str) -> str:
    """Return a number and its unit stay on one line."""
    return re.sub(r"(?<=\d) (?=%|[num]?s\b|[KMGT]?i?B\b|IOPS)", "\u00a0", text)


def _hash(text: str) -> str:
    """Return what a content security policy calls this script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _families(page: Page) -> Iterator[tuple[str, Any]]:
    """Yield the specification of every family that is drawn, once for all its charts: name and unfilled specification."""
    drawn = chain.from_iterable(
        (*chapter.figures, *chapter.more) for chapter in page.chapters
    )
    for name in sorted({figure.spec for figure in drawn if figure.rows}):
        yield name, safe_json(stored(name))


def _spec(figure: Figure) -> Any:
    """Return what the page's script puts into the specification of the figure's family."""
    data = {name: _columns(rows) for name, rows in data_of(figure).items()}
    return safe_json({"family": figure.spec, "texts": texts_of(figure), "data": data})


def _columns(rows: Sequence[Mapping[str, Any]]) -> Any:
    """``rows`` with their names written once, where all have the same ones."""
    names = list(rows[0]) if rows else []
    if any(list(row) != names for row in rows):
        return rows
    return {"names": names, "rows": [list(row.values()) for row in rows]}


def safe_json(value: Any) -> Any:
    """JSON that cannot end a script element or begin a comment, even if a name in it tries to."""
    text = msgspec.json.encode(value, order="deterministic").decode()
    return _safe(
        text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )


def _safe(text: str) -> Any:
    """Our own text, or JSON that ``safe_json`` made harmless, which the template must not escape."""
    from markupsafe import Markup

    return Markup(text)
