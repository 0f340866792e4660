"""The database of a history: SQLite in a file, or PostgreSQL by URL. It can be rebuilt from the log and the folders."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment.command import kept_unit
from iodelta.experiment.model import PLACEBO
from iodelta.experiment.order import in_order
from iodelta.history.answers import Alert, HistoryPoint
from iodelta.history.place import network_of
from iodelta.history.points import Key, Night, Point
from iodelta.history.schema import ALERTS, SCHEMA, VERSION, migrate

_LOCK = 0x696F64656C7461
"""Advisory lock of PostgreSQL that writers take in turn."""

ROOM = 1 << 16
"""Bytes that SQLite needs free to open a file that others may write."""

UNCHANGED = "the database was not changed"
WHOLE = "the database holds the last step whole or not at all"
"""Of a server: the connection may have been lost while it was being committed."""

NAMED = 10_000
"""So many series are asked for by their numbers; SQLite takes some thirty thousand."""

TOGETHER = 20_000
"""Points that are inserted at once."""

Outcome = Literal["added", "replaced", "moved", "known"]


class Line(msgspec.Struct, frozen=True):
    """One series with its points, oldest first."""

    key: Key
    cell: str
    variant: str
    better: str
    unit: str
    points: tuple[HistoryPoint, ...]


def url_of(file: Path) -> sa.URL:
    """Return the URL of an SQLite file; its name may hold any character."""
    return sa.URL.create("sqlite", database=str(file))


def in_unit(y: float, unit: str, other: str) -> float:
    """Return the logarithm of a value in another unit: a series keeps its first one. Unchanged where they measure
    different things."""
    (base, factor), (wanted, divisor) = kept_unit(unit), kept_unit(other)
    return y + math.log(factor / divisor) if base == wanted else y


def inserted(
    connection: sa.Connection, table: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows that have the same columns."""
    if rows:
        mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        places = ", ".join([mark] * len(rows[0]))
        connection.exec_driver_sql(
            f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({places})",
            [tuple(row.values()) for row in rows],
        )


def _asked(
    connection: sa.Connection, text: str, **values: Any
) -> sa.CursorResult[*tuple[Any, ...]]:
    """Execute SQL that both databases understand; a list is what follows IN."""
    lists: list[sa.BindParameter[Any]] = [
        sa.bindparam(name, expanding=True)
        for name, value in values.items()
        if isinstance(value, list)
    ]
    return connection.execute(sa.text(text).bindparams(*lists), values)


class Store:
    """An open history."""

    def __init__(self, url: str | sa.URL) -> None:
        try:
            self.url = sa.make_url(url)
        except (ArgumentError, ValueError) as error:
            # ValueError: a port that is not a number.
            raise RequestError(
                "not the URL of a database",
                place="--history",
                remedy="write it as postgresql://USER@HOST:PORT/DATABASE",
            ) from error
        self.is_file = self.url.get_backend_name() == "sqlite"
        self._is_local = False
        if not self.is_file:
            self.place = self.url.render_as_string(hide_password=True)
            self._engine = sa.create_engine(self.url)
        else:
            self.place = self.url.database or ""
            self._engine = sa.create_engine(self._as_read_only())
            sa.event.listen(self._engine, "connect", _set_up)
            sa.event.listen(self._engine, "begin", _begin)

    def _as_read_only(self) -> sa.URL:
        """Return the file as one that nobody writes, where its directory is read-only or its disk full: there SQLite
        could not share its log with writers, and opens nothing."""
        file = Path(self.place).absolute()
        may_write = os.access(file.parent, os.W_OK, effective_ids=True)
        # A log that is there holds what the file does not: read without it, the history would be an old one.
        has_log = file.with_name(f"{file.name}-wal").exists()
        if (may_write and not self._is_full()) or has_log or not file.exists():
            return self.url
        query = {"immutable": "1", "uri": "true"}
        return self.url.set(database=f"file:{quote(str(file))}", query=query)

    def _is_full(self) -> bool:
        """Return whether the file system of the file has no room for SQLite's own files."""
        try:
            space = os.statvfs(Path(self.place).absolute().parent)
        except OSError:
            return False
        return space.f_bavail * space.f_frsize < ROOM

    @property
    def exists(self) -> bool:
        """False for a file that is not there; a server says so itself."""
        return not self.is_file or Path(self.place).exists()

    def prepare(self) -> None:
        """Make the tables where there are none, and bring older ones up to date. Raises RequestError for a history of a
        newer iodelta, and for a file on a network file system."""
        self.check_place()
        with self.writing() as connection:
            if sa.inspect(connection).has_table("iodelta_history"):
                migrate(connection, self._version(connection))
                return
            for statement in SCHEMA.split(";"):
                connection.exec_driver_sql(statement)
            inserted(connection, "iodelta_history", [{"version": VERSION}])

    def add(self, night: Night) -> Outcome:
        """Return one transaction: all of the night, or nothing."""
        return self.add_all([night])[0]

    def add_all(self, nights: Sequence[Night]) -> list[Outcome]:
        """Return one transaction: all of these nights, or nothing."""
        known: dict[str, tuple[str, str]] = {}
        query = "SELECT id, sha, folder FROM experiment WHERE id IN :ids"
        with self.writing() as connection:
            for first in range(0, len(nights), NAMED):
                ids = [night.identifier for night in nights[first : first + NAMED]]
                known |= {
                    row.id: (row.sha, row.folder)
                    for row in _asked(connection, query, ids=ids)
                }
            return _write(connection, nights, known)

    def replace_all(self, nights: Iterable[Night]) -> None:
        """Exactly these nights, in one transaction."""
        with self.writing() as connection:
            for table in ("point", "series", "experiment", "scan"):
                _asked(connection, f"DELETE FROM {table}")
            _write(connection, nights, {})

    def remove(self, identifiers: list[str]) -> None:
        """These nights and their points, and the series that have none left, in one transaction."""
        if not identifiers:
            return
        with self.writing() as connection:
            series: set[int] = set()
            for identifier in identifiers:
                series |= _take_out(connection, identifier)
            _drop_empty(connection, series)
            _touch(connection, series)

    def experiments(
        self, identifiers: Iterable[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return every experiment or those named, oldest first."""
        own = {} if identifiers is None else {"ids": list(set(identifiers))}
        where = "WHERE id IN :ids" if own else ""
        return self._read(f"SELECT * FROM experiment {where} ORDER BY t, id", **own)

    def nights(self) -> dict[str, HistoryPoint]:
        """When each experiment was and of which build, as a point without a value."""
        rows = self._read("SELECT id, t, epoch, subject FROM experiment ORDER BY t, id")
        return {
            row["id"]: HistoryPoint(
                row["t"], row["id"], row["epoch"], *_build(row["subject"])[:2], 0.0, 0.0, None, None,
                repo=_build(row["subject"])[2],
            )
            for row in rows
        }  # fmt: skip

    def scans(self) -> list[tuple[int, bool, bool, str]]:
        """Of every series its number, whether nothing changes in it but the machine, whether its last scan has all of
        its nights, and what that found (empty before the first), in the order of names."""
        rows = self._read(
            "SELECT id, variant, key, series.version = scan.version AS fresh, found "
            "FROM series LEFT JOIN scan ON scan.series = series.id ORDER BY cell, variant, key"
        )
        return [
            (
                row["id"],
                row["variant"] == PLACEBO or '"role":"reference"' in row["key"],
                bool(row["fresh"]),
                row["found"] or "",
            )
            for row in rows
        ]

    def state(self) -> tuple[int, int, int]:
        """Numbers that change with every night and every scan."""
        rows = self._read(
            "SELECT id, series.version AS own, scan.version AS scanned "
            "FROM series LEFT JOIN scan ON scan.series = series.id"
        )
        nights = self._read("SELECT count(*) AS n FROM experiment")[0]["n"]
        return nights, len(rows), hash(frozenset(tuple(row.values()) for row in rows))

    def behind(self) -> int:
        """Points of the series whose last scan has not all of their nights."""
        rows = self._read(
            "SELECT count(*) AS n FROM point JOIN series ON point.series = series.id WHERE NOT EXISTS "
            "(SELECT 1 FROM scan WHERE scan.series = series.id AND scan.version = series.version)"
        )
        return int(rows[0]["n"])

    def versions(self, series: Sequence[int]) -> dict[int, str]:
        """Return the version of each of these series: taken before its points are read, it is never newer than they
        are.
        """
        rows = self._read(
            "SELECT id, version FROM series WHERE id IN :ids", ids=list(series)
        )
        return {row["id"]: row["version"] for row in rows}

    def keep_scans(self, found: Sequence[tuple[int, str, str]]) -> None:
        """Replace what scans found: the number of each series, the version that was scanned, and the document."""
        rows = [
            dict(zip(("series", "version", "found"), one, strict=True)) for one in found
        ]
        with self.writing() as connection:
            _asked(
                connection,
                "DELETE FROM scan WHERE series IN :ids",
                ids=[number for number, _, _ in found],
            )
            inserted(connection, "scan", rows)

    def keep_alerts(self, alerts: Sequence[Alert]) -> None:
        """Exactly these alerts, for who reads them with SQL: they follow from points and log. Raises MeasureError."""
        found, steps = [], []
        for alert in alerts:
            own = {
                name: getattr(alert, name)
                for name in (
                    "id",
                    "kind",
                    "state",
                    "triage",
                    "why",
                    "range_word",
                    "opened",
                )
            }
            own["last_good"] = alert.last_good.experiment if alert.last_good else None
            own["first_bad"] = alert.first_bad.experiment if alert.first_bad else None
            own["size"] = alert.steps[0].size if alert.steps else None
            own["experiments"] = msgspec.json.encode(alert.experiments).decode()
            found.append(own)
            for step in alert.steps:
                ends = {
                    "last_good": step.last_good.experiment,
                    "first_bad": step.first_bad.experiment,
                }
                numbers = {"size": step.size, "error": step.error, "z": step.z}
                steps.append(
                    {
                        "alert": alert.id,
                        "series": step.series,
                        "followed": step.by,
                        **ends,
                        **numbers,
                    }
                )
        with self.writing() as connection:
            for statement in ALERTS.split(";"):
                connection.exec_driver_sql(statement)
            inserted(connection, "alert", found)
            inserted(connection, "step", steps)

    def lines(self, series: Sequence[int] = (), *, machine: str = "") -> list[Line]:
        """Return every series with its points, in the one order of cells; or those with these numbers, of one machine
        those with nights."""
        own: dict[str, Any] = {
            **({"ids": list(series)} if series else {}),
            **({"machine": machine} if machine else {}),
        }
        wheres = {"ids": "point.series IN :ids", "machine": "machine = :machine"}
        where = " AND ".join(wheres[name] for name in own) or "TRUE"
        points: dict[int, list[HistoryPoint]] = {}
        with self._reading() as connection:
            query = f"""SELECT point.series, t, experiment, epoch, subject, y, se, r, r_se, flags, n
                FROM point JOIN experiment ON point.experiment = experiment.id WHERE {where}"""
            for row in _asked(connection, query, **own):
                number, t, experiment, epoch, subject, y, se, r, r_se, flags, n = row
                commit, describe, repo = _build(subject)
                point = HistoryPoint(
                    t,
                    experiment,
                    epoch,
                    commit,
                    describe,
                    y,
                    se,
                    r,
                    r_se,
                    _flags(flags),
                    repo,
                    n,
                )
                points.setdefault(number, []).append(point)
            # A database takes so many numbers in one question; of more, series without a point go below.
            few = list(series) or (
                list(points) if machine and len(points) <= NAMED else []
            )
            named, numbers = ("WHERE id IN :ids", {"ids": few}) if few else ("", {})
            rows = _asked(
                connection,
                f"SELECT * FROM series {named} ORDER BY cell, variant, key",
                **numbers,
            ).all()
        places = {
            cell: place for place, cell in enumerate(in_order(row.cell for row in rows))
        }
        made = []
        for row in sorted(rows, key=lambda row: places[row.cell]):
            found = points.get(row.id, [])
            if found or not machine:
                found.sort(key=operator.attrgetter("t", "experiment"))
                key = from_json(row.key, Key)
                made.append(
                    Line(key, row.cell, row.variant, row.better, row.unit, tuple(found))
                )
        return made

    def rows(self, identifiers: list[str]) -> list[dict[str, Any]]:
        """Return the points of these experiments, each with its series and experiment."""
        return self._read(
            """SELECT point.*, key, cell, variant, better, unit, t, sha, epoch, subject FROM point
            JOIN experiment ON point.experiment = experiment.id JOIN series ON point.series = series.id
            WHERE point.experiment IN :ids""",
            ids=identifiers,
        )

    def damage(self) -> str:
        """Return what the database says of itself; empty when it is whole."""
        message = (
            str(self._read("PRAGMA integrity_check")[0]["integrity_check"])
            if self.is_file
            else "ok"
        )
        return "" if message == "ok" else message

    def close(self) -> None:
        """Let go of the file or the server."""
        self._engine.dispose()

    def _version(self, connection: sa.Connection) -> int:
        try:
            version = _asked(connection, "SELECT version FROM iodelta_history").scalar()
        except DBAPIError as error:
            # A lost connection or a full disk is another matter.
            if (
                "no such table" not in str(error.orig)
                and getattr(error.orig, "sqlstate", "") != "42P01"
            ):
                raise
            raise RequestError(
                "not a history of iodelta",
                place=self.place,
                remedy="where it was one, `iodelta history rebuild` makes it again; else name another with --history",
            ) from error
        if version is None or not 1 <= version <= VERSION:
            raise RequestError(
                f"this history has version {version}; this iodelta knows {VERSION}",
                place=self.place,
                remedy="use the iodelta that wrote it, or a newer one",
            )
        return int(version)

    def check_place(self) -> None:
        """Raises RequestError for a file on a network file system: WAL needs memory that all processes share."""
        if not self.is_file or self._is_local:
            return
        kind = network_of(Path(self.place))
        self._is_local = not kind
        if kind:
            raise RequestError(
                f"{kind} is a network file system: SQLite's write-ahead log would be damaged there",
                place=self.place,
                remedy="name a directory on a local disk with --history, or use postgresql://",
            )

    def _read(self, text: str, **values: Any) -> list[dict[str, Any]]:
        with self._reading() as connection:
            return [dict(row) for row in _asked(connection, text, **values).mappings()]

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        if not self.exists:
            raise RequestError(
                "there is no history",
                place=self.place,
                remedy="`iodelta history add FOLDER` makes one",
            )
        self.check_place()
        with self._telling(), self._engine.connect() as connection:
            if self._version(connection) < VERSION:
                connection.rollback()
                self.prepare()
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        with (
            self._telling(),
            self._engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            if not self.is_file:
                _asked(connection, "SELECT pg_advisory_xact_lock(:lock)", lock=_LOCK)
            yield connection

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            message = next(
                iter(str(error.orig).strip().splitlines()), "no reason given"
            )
            if self.is_file and self._is_full():
                message = "the disk is full"
            state = UNCHANGED if self.is_file else WHOLE
            remedies = {
                "malformed|not a database": "`iodelta history rebuild` makes it again from the folders",
                "full|No space left": f"free some space, then repeat the command; {state}",
                "readonly|unable to open": f"make the file and its directory writable, then repeat the command; {state}",
                "": f"{'' if self.is_file else 'check the server and its URL, then '}repeat the command; {state}",
            }
            remedy = next(
                said
                for words, said in remedies.items()
                if any(word in message for word in words.split("|"))
            )
            raise MeasureError(
                f"cannot use the history: {message}", place=self.place, remedy=remedy
            ) from error


# Many points share a build and their flags: a scan of years would decode them again and again.
@functools.lru_cache(maxsize=1 << 14)
def _build(subject: str) -> tuple[str, str, str]:
    """Commit, name and repository of a build."""
    fields = msgspec.json.decode(subject)
    return fields.get("commit", ""), fields.get("describe", ""), fields.get("repo", "")


@functools.lru_cache(maxsize=1 << 8)
def _flags(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _take_out(connection: sa.Connection, identifier: str) -> set[int]:
    """Remove an experiment with its points; returns the numbers of the series in which it had one."""
    series = {
        row.series
        for row in _asked(
            connection, "SELECT series FROM point WHERE experiment = :id", id=identifier
        )
    }
    _asked(connection, "DELETE FROM point WHERE experiment = :id", id=identifier)
    _asked(connection, "DELETE FROM experiment WHERE id = :id", id=identifier)
    return series


def _write(
    connection: sa.Connection,
    nights: Iterable[Night],
    known: dict[str, tuple[str, str]],
) -> list[Outcome]:
    """Add nights to those that are ``known`` with their SHA and folder; what became of each."""
    outcomes: list[Outcome] = []
    touched: set[int] = set()
    experiments: list[dict[str, Any]] = []
    points: list[tuple[int, Point, str]] = []

    def flush() -> None:
        series: dict[int, Point] = {}
        for number, point, _ in points:
            series.setdefault(number, point)
        query = "SELECT id, unit FROM series WHERE id IN :ids"
        there = (
            {row.id: row.unit for row in _asked(connection, query, ids=list(series))}
            if series
            else {}
        )
        inserted(connection, "experiment", experiments)
        rows = [
            series_row(number, point)
            for number, point in series.items()
            if number not in there
        ]
        inserted(connection, "series", rows)
        inserted(
            connection,
            "point",
            [
                _point_row(*one, there.get(one[0], series[one[0]].unit))
                for one in points
            ],
        )
        touched.update(series)
        experiments.clear()
        points.clear()

    for night in nights:
        sha, folder = known.get(night.identifier, ("", ""))
        if (sha, folder) == (night.sha, night.folder):
            outcomes.append("known")
        elif sha == night.sha:
            moved = "UPDATE experiment SET folder = :folder WHERE id = :id"
            _asked(connection, moved, folder=night.folder, id=night.identifier)
            outcomes.append("moved")
        else:
            before: set[int] = set()
            if sha:
                flush()
                before = _take_out(connection, night.identifier)
            experiments.append(experiment_row(night))
            own = [
                (point.key.number, point, night.identifier) for point in night.points
            ]
            points += own
            if before or len(points) >= TOGETHER:
                flush()
            _drop_empty(connection, before.difference(number for number, _, _ in own))
            touched |= before
            outcomes.append("replaced" if sha else "added")
        known[night.identifier] = (night.sha, night.folder)
    flush()
    _touch(connection, touched)
    return outcomes


def experiment_row(night: Night) -> dict[str, Any]:
    """Return the row of a night."""
    return {
        "id": night.identifier,
        "sha": night.sha,
        "t": night.t,
        "machine": night.machine,
        "epoch": night.epoch,
        "facts": msgspec.json.encode(night.facts, order="sorted").decode(),
        "subject": msgspec.json.encode(night.subject).decode(),
        "folder": night.folder,
        "state": night.state,
    }


def series_row(number: int, point: Point) -> dict[str, Any]:
    """Return the row of the series that a point belongs to."""
    own = {name: getattr(point, name) for name in ("cell", "variant", "better", "unit")}
    return {"id": number, "key": msgspec.json.encode(point.key).decode(), **own}


def _point_row(number: int, point: Point, experiment: str, unit: str) -> dict[str, Any]:
    own = {name: getattr(point, name) for name in ("se", "lag1", "n", "r", "r_se")}
    y = in_unit(point.y, point.unit, unit)
    return {
        "series": number,
        "experiment": experiment,
        "y": y,
        **own,
        "flags": " ".join(point.flags),
    }


def _touch(connection: sa.Connection, series: Iterable[int]) -> None:
    """Give these series another version: what a scan found in the one before is not all any more."""
    numbers, version = list(series), secrets.token_hex(6)
    for first in range(0, len(numbers), NAMED):
        query = "UPDATE series SET version = :version WHERE id IN :ids"
        _asked(connection, query, version=version, ids=numbers[first : first + NAMED])


def _drop_empty(connection: sa.Connection, series: Iterable[int]) -> None:
    """Those of these series that have no point left."""
    query = "DELETE FROM series WHERE id = :id AND NOT EXISTS (SELECT 1 FROM point WHERE series = :id)"
    for number in series:
        if _asked(connection, query, id=number).rowcount:
            _asked(connection, "DELETE FROM scan WHERE series = :id", id=number)


def _set_up(connection: Any, record: object) -> None:
    """Transactions are begun by ``_begin``; a writer waits half a minute for another one."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 30000")
    cursor.execute("PRAGMA foreign_keys = ON")
    # Whole after a power cut; the log, which is synced, has the rest.
    cursor.execute("PRAGMA synchronous = NORMAL")
    # A file that is only read keeps the mode it has.
    with contextlib.suppress(Exception):
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    """A writer takes its turn at once: two that read before they write would fail."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
