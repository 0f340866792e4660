"""A history for Python programs: nights in, series and candidates out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from iodelta.api.series import Series, chosen
from iodelta.errors import RequestError, needs_extra

if TYPE_CHECKING:
    from iodelta.history.answers import Candidate, NightAdded
    from iodelta.history.log import Log
    from iodelta.history.store import Line, Store

FILE = "history.db"
LOG = "decisions.jsonl"


class History(Protocol):
    """What every history can do, whatever keeps it."""

    def add(self, *paths: str | Path) -> tuple[NightAdded, ...]:
        """Add experiment folders, each as one night; twice changes nothing. Raises RequestError, MeasureError."""
        ...

    def series(
        self, *, machine: str = "", cell: str = "", variant: str = "", metric: str = ""
    ) -> list[Series]:
        """Return the series with these words; an empty word is any."""
        ...

    def scan(self) -> Sequence[Candidate]:
        """Steps that stand out, the clearest first. They are candidates until they are confirmed."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


class StoredHistory:
    """A history in SQLite or PostgreSQL."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store, self._log = store, log

    def add(self, *paths: str | Path) -> tuple[NightAdded, ...]:
        from iodelta.history.adding import add
        from iodelta.history.log import Given

        self._store.prepare()
        added = tuple(
            add(Path(path), Given(), self._store, self._log) for path in paths
        )
        self.scan()
        return added

    def series(
        self, *, machine: str = "", cell: str = "", variant: str = "", metric: str = ""
    ) -> list[Series]:
        asked = {"machine": machine, "cell": cell, "variant": variant, "metric": metric}
        wanted = {name: word for name, word in asked.items() if word}
        return chosen(self._lines(), wanted)

    def scan(self) -> list[Candidate]:
        from iodelta.history.kept import refresh
        from iodelta.history.scan import clearest

        if not self._store.exists:
            return []
        kept, _ = refresh(self._store, self._log.entries()[0])
        return [one.candidate for one in clearest(kept)]

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> StoredHistory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lines(self) -> list[Line]:
        if self._store.exists:
            return self._store.lines()
        return []


def opened(place: str, log: Path | None = None, token: str = "") -> History:
    """Return the history at a place. Raises RequestError."""
    from iodelta.api.remote import ServedHistory, is_served

    if is_served(place):
        return ServedHistory(place, token)
    kind = store_class()
    written = log_of(place, log)
    store = store_of(place, kind)
    if not is_url(place):
        store.check_place()
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(
                f"cannot make the history: {error.strerror}", place=place
            ) from error
    return StoredHistory(store, written)


def is_url(place: str) -> bool:
    """Return whether the history is on a server."""
    return "://" in place


def log_of(place: str, log: Path | None) -> Log:
    """Return the log of a history. Raises RequestError where a server is named without one."""
    from iodelta.history.log import Log

    if log is None and is_url(place):
        raise RequestError(
            "a history on a server keeps its log in a file",
            place="--log",
            remedy="give --log FILE",
        )
    return Log(log or Path(place) / LOG)


def store_class() -> type[Store]:
    """Raises RequestError where the extra is not installed."""
    with needs_extra("history", "a history"):
        from iodelta.history.store import Store
    return Store


def store_of(place: str, kind: type[Store]) -> Store:
    """Return the database at a place. Raises RequestError for a URL of another kind."""
    if not is_url(place):
        from iodelta.history.store import url_of

        return kind(url_of(Path(place) / FILE))
    scheme, _, rest = place.partition("://")
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise RequestError(f"{scheme!r} is not a database that a history can use", place="--history",
                           remedy="give a directory, or postgresql://USER@HOST/DATABASE")  # fmt: skip
    return kind(f"postgresql+psycopg://{rest}")
