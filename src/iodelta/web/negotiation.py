"""One address, two forms: a page for people, JSON for programs that ask for it with ``Accept``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from iodelta.report.documents import written

JSON = "application/json"
PAGES = ("text/html", "application/xhtml+xml")


def prefers_json(request: Request) -> bool:
    """Return whether ``Accept`` ranks JSON above HTML; a page where it does not say."""
    ranks = dict(_ranks(request.headers.get("accept", "")))
    text = ranks.get("text/*", ranks.get("*/*", 0.0))
    page = max(ranks.get(kind, text) for kind in PAGES)
    return ranks.get(JSON, ranks.get("application/*", 0.0)) > page


def _ranks(accept: str) -> Iterator[tuple[str, float]]:
    """Media types with their weights; a weight that is not a number is 0."""
    for part in accept.split(","):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = 0.0
                with contextlib.suppress(ValueError):
                    weight = float(parameter[2:])
        if kind:
            yield kind, weight


def document(answer: object, status: int = 200) -> Response:
    """Return an answer as JSON, in the form that commands print."""
    return json_response(written(answer), status)


def json_response(data: bytes, status: int = 200) -> Response:
    """JSON that is encoded already. ``Vary`` makes caches keep it apart from the page at the same address."""
    return Response(data, status, media_type=JSON, headers={"Vary": "Accept"})
