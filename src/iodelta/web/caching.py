"""Pages of a history that did not change are not made again: a browser's copy stands, and so does the server's."""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from iodelta import __version__

KEPT = 64
"""Answers that are kept in memory."""

Endpoint = Callable[[Request], Response]


def kept(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, whose answers follow from the address, the user and the history alone."""

    @functools.wraps(endpoint)
    def answered(request: Request) -> Response:
        state, user = request.app.state, request.scope["user"]
        words = (
            *(
                __version__,
                state.site.rules.prefix,
                request.url.path,
                request.url.query,
            ),
            *(request.headers.get("accept", ""), user.name, user.role, user.csrf),
            *(state.site.history.stamp(), state.launches.running()),
        )
        tag = f'"{hashlib.sha256(repr(words).encode()).hexdigest()[:24]}"'
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={"ETag": tag, "Vary": "Accept"})
        answers: OrderedDict[str, tuple[bytes, dict[str, str]]] = state.answers
        if tag not in answers:
            response = endpoint(request)
            if response.status_code != 200:
                return response
            answers[tag] = bytes(response.body), {**response.headers, "ETag": tag}
            while len(answers) > KEPT:
                answers.popitem(last=False)
        # A response of its own each time: what compresses it writes into its headers.
        body, headers = answers[tag]
        return Response(body, headers=headers)

    return answered
