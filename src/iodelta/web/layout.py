"""The frame around every page: templates, addresses, and files that browsers keep."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from iodelta import __version__
from iodelta.report.formats.html.page import CLASSES, Page
from iodelta.report.formats.html.write import (
    asset,
    environment,
    parts,
    scripts_of,
    style,
)
from iodelta.report.stories.story import GLYPHS
from iodelta.study.words import duration, inert, interval, percent, quantity

Row = TypeVar("Row")

HERE = Path(__file__).parent

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
DATE = re.compile(r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\b")

SHARED = ("vega.js", "report.js", "copy.js")
"""Scripts of the HTML report."""


@lru_cache(maxsize=1)
def templates() -> Any:
    """Return names and texts of others are made inert and escaped wherever they are filled in."""
    made = environment(HERE / "templates")
    made.finalize = lambda value: inert(value) if type(value) is str else value
    made.globals |= {
        "version": __version__,
        "static": static_path,
        "glyphs": GLYPHS,
        "css": CLASSES,
        "when": lambda moment: dated(when(moment)),
        "percent": percent,
        "interval": interval,
    }
    tied = made.filters["tied"]
    made.filters |= {
        "percent": percent,
        "duration": duration,
        "quantity": quantity,
        "lined": lined,
    }
    made.filters["tied"] = lambda text: dated(tied(text))
    return made


def dated(text: str) -> Markup:
    """Return the text with its dates on one line each: a browser may break them at their hyphens."""
    safe = str(escape(inert(text)))
    return Markup(DATE.sub(r'<span class="when">\g<0></span>', safe))


def lined(text: str) -> Markup:
    """Return a text of several lines, for where a page keeps them: each is made inert and escaped by itself."""
    return Markup("\n").join(inert(line) for line in text.splitlines())


def when(moment: float) -> str:
    """Return a time in UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment))


def shown(
    request: Request, template: str, status: int = 200, **context: Any
) -> Response:
    """Return a page of this site."""
    site = request.app.state.site
    user = request.scope.get("user")
    text = (
        templates()
        .get_template(template)
        .render(
            base=site.rules.prefix,
            site=site,
            user=user,
            here=request.url.path,
            **context,
        )
    )
    return HTMLResponse(
        text.encode("utf-8", "backslashreplace"), status, headers={"Vary": "Accept"}
    )


def paged(
    request: Request, rows: Sequence[Row], each: int
) -> tuple[Sequence[Row], int, int]:
    """Return the rows of the page that is asked for, its number from 1, and how many pages there are. What is not a
    number asks for the first page."""
    pages = max(1, -(-len(rows) // each))
    asked = request.query_params.get("page", "1")
    is_number = asked.isdecimal() and len(asked) < 9
    number = min(max(int(asked), 1), pages) if is_number else 1
    return rows[(number - 1) * each : number * each], number, pages


def shown_report(
    request: Request, template: str, page: Page, **context: Any
) -> Response:
    """Return a report as a page of this site: its parts are those of the HTML report, its scripts are files."""
    return shown(request, template, **parts(page), scripts=scripts_of(page), **context)


@lru_cache(maxsize=64)
def static(name: str) -> bytes | None:
    """Return a file that pages need; none where there is no such file."""
    if name == "report.css":
        return style().encode()
    if name in SHARED:
        return asset(name).encode()
    path = HERE / "static" / name
    return path.read_bytes() if name in _files() else None


@lru_cache(maxsize=1)
def _files() -> frozenset[str]:
    place = HERE / "static"
    return frozenset(
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.suffix in TYPES
    )


@lru_cache(maxsize=64)
def static_path(name: str) -> str:
    """Return the path of a file with a part of its digest: a browser may keep it for ever."""
    data = static(name)
    assert data is not None, name
    return f"/static/{name}?v={hashlib.sha256(data).hexdigest()[:12]}"


def static_file(name: str, *, is_dated: bool) -> Response | None:
    """Return the answer with a file; none where there is no such file."""
    data = static(name)
    if data is None:
        return None
    age = "public, max-age=31536000, immutable" if is_dated else "no-cache"
    return Response(
        data, media_type=TYPES[Path(name).suffix], headers={"Cache-Control": age}
    )
