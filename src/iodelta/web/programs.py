"""A history for programs: whole series, candidates, and nights that are sent to be added."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from iodelta.bundle.archive import SUFFIX
from iodelta.bundle.packed import is_bundle
from iodelta.errors import IodeltaError, MeasureError, RequestError
from iodelta.history.adding import add
from iodelta.history.answers import HistoryScanAnswer
from iodelta.history.exchange import HistoryAccess, HistoryLines
from iodelta.history.kept import refresh
from iodelta.history.log import Given
from iodelta.lab.folder import room_for
from iodelta.web.fields import check_change
from iodelta.web.histories import Histories
from iodelta.web.negotiation import document
from iodelta.web.security import User, check_form
from iodelta.web.series import history_of

if TYPE_CHECKING:
    from iodelta.history.answers import NightAdded

WORDS = ("machine", "cell", "variant", "metric")

RECEIVED = "received"
"""Directory next to the log that keeps the bundles that were sent."""


def lines(request: Request) -> Response:
    """Return the series with these words, with every point."""
    wanted = {
        name: word for name in WORDS if (word := request.query_params.get(name, ""))
    }
    history = history_of(request)
    own = [
        int(one.id)
        for one in history.board().series
        if all(getattr(one, name) == word for name, word in wanted.items())
    ]
    return document(HistoryLines(tuple(history.store.lines(own) if own else ())))


def candidates(request: Request) -> Response:
    """Steps that stand out."""
    return document(HistoryScanAnswer(history_of(request).candidates(), ()))


def access(request: Request) -> Response:
    """Return what this user may, and the sign that changes need."""
    user: User = request.scope["user"]
    return document(HistoryAccess(user.name, user.role, user.csrf))


async def take(request: Request) -> Response:
    """Keep a bundle, and add its night."""
    check_change(request, "run")
    check_form(request.scope["user"], request.headers, "")
    data = await request.body()
    return document(await run_in_threadpool(_added, history_of(request), data))


def _added(history: Histories, data: bytes) -> NightAdded:
    """Raises RequestError for what is not a bundle, MeasureError."""
    place = history.log.path.absolute().parent / RECEIVED
    file = place / f"{hashlib.sha256(data).hexdigest()[:24]}{SUFFIX}"
    is_known = file.exists()
    try:
        place.mkdir(exist_ok=True)
        if not is_known:
            file.write_bytes(data)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise MeasureError(
            f"cannot keep the bundle: {error.strerror}",
            place=str(place),
            remedy=f"{room_for(error)}, then send it again",
        ) from error
    try:
        if not is_bundle(file):
            raise RequestError("not a bundle", remedy="`iodelta pack` makes one")
        added = add(file, Given(), history.store, history.log)
        refresh(history.store, history.log.entries()[0])
        return added
    except IodeltaError:
        if not is_known:
            file.unlink(missing_ok=True)
        raise
