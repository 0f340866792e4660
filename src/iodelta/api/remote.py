"""A history that ``iodelta serve`` shows, for programs elsewhere: the same calls, answered by the server."""

from __future__ import annotations

import http.client
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from iodelta.api.series import Series, chosen
from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError

if TYPE_CHECKING:
    from iodelta.history.answers import Candidate, NightAdded

T = TypeVar("T")

TOKEN = "IODELTA_TOKEN"
"""Environment variable with the token, where none is given."""

PATIENCE = 300.0
"""Seconds for one answer: the first look at a large history takes a while."""

SCHEMES = ("http", "https")


class _Problem(msgspec.Struct):
    """Why the server did not answer."""

    title: str = "the server does not say why"
    remedy: str = ""


def is_served(place: str) -> bool:
    """Return whether a place is the address of a server of ``iodelta serve``."""
    return urlsplit(place).scheme in SCHEMES


class ServedHistory:
    """The history of a server, with the rights of a token."""

    def __init__(self, place: str, token: str = "") -> None:
        parts = urlsplit(place)
        self._place, self._prefix = place, parts.path.rstrip("/")
        self._is_tls, self._host, self._port = (
            parts.scheme == "https",
            parts.hostname or "",
            parts.port,
        )
        self._token = token or os.environ.get(TOKEN, "")

    def add(self, *paths: str | Path) -> tuple[NightAdded, ...]:
        return tuple(map(self._add, paths))

    def series(
        self, *, machine: str = "", cell: str = "", variant: str = "", metric: str = ""
    ) -> list[Series]:
        from iodelta.history.exchange import HistoryLines

        asked = {"machine": machine, "cell": cell, "variant": variant, "metric": metric}
        wanted = {name: word for name, word in asked.items() if word}
        answer = self._asked(f"/history/lines?{urlencode(wanted)}", HistoryLines)
        return chosen(answer.lines, wanted)

    def scan(self) -> list[Candidate]:
        from iodelta.history.answers import HistoryScanAnswer

        return list(self._asked("/history/candidates", HistoryScanAnswer).candidates)

    def close(self) -> None:
        """Nothing is kept open."""

    def __enter__(self) -> ServedHistory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, path: str | Path) -> NightAdded:
        """Return a folder travels as a bundle that keeps the names of its machine: they are what makes it part of a
        series.
        """
        from iodelta.bundle.packed import is_bundle
        from iodelta.bundle.packing import pack
        from iodelta.history.answers import NightAdded
        from iodelta.history.exchange import HistoryAccess
        from iodelta.lab.folder import Folder

        place = Path(path)
        if is_bundle(place):
            data = place.read_bytes()
        else:
            data = pack(Folder.open(place), keep_identity=True).data
        access = self._asked("/history/access", HistoryAccess)
        added = self._asked("/history/add", NightAdded, data, access.csrf)
        return msgspec.structs.replace(added, folder=str(path))

    def _asked(
        self, path: str, kind: type[T], body: bytes | None = None, csrf: str = ""
    ) -> T:
        """Raises RequestError for what the server refuses, MeasureError where it does not answer."""
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers |= {
                "Content-Type": "application/octet-stream",
                "X-CSRF-Token": csrf,
            }
        connection = self._connection()
        try:
            method = "GET" if body is None else "POST"
            connection.request(method, self._prefix + path, body, headers)
            answer = connection.getresponse()
            status, data = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise MeasureError(
                f"the server does not answer: {error}", place=self._place
            ) from error
        finally:
            connection.close()
        try:
            if status != 200:
                problem = from_json(data, _Problem)
                raise RequestError(
                    problem.title,
                    place=self._place,
                    remedy=problem.remedy or self._remedy(status),
                )
            return from_json(data, kind)
        except msgspec.MsgspecError as error:
            raise MeasureError(
                f"not an answer of `iodelta serve --history` (status {status})",
                place=self._place,
            ) from error

    def _remedy(self, status: int) -> str:
        if status in (401, 403) and not self._token:
            return f"give a token: open_history(URL, token=...), or {TOKEN} in the environment"
        return ""

    def _connection(self) -> http.client.HTTPConnection:
        if self._is_tls:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=PATIENCE, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
