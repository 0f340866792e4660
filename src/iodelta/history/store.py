"""The database of a history: SQLite in a file, or PostgreSQL by URL. It can be rebuilt from the log and the folders."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment.model import PLACEBO
from iodelta.experiment.order import in_order
from iodelta.history.answers import HistoryPoint
from iodelta.history.place import network_of
from iodelta.history.points import Key, Night, Point
from iodelta.history.rows import (
    NIGHT_COLUMNS,
    POINT_COLUMNS,
    experiment_row,
    in_unit,
    point_of,
    point_row,
    series_row,
)
from iodelta.history.schema import (
    EXPERIMENTS,
    POINTS,
    SCANS,
    SERIES,
    TABLES,
    VERSION,
    VERSIONS,
    migrate,
)

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


def _parsed(url: str | sa.URL) -> sa.URL:
    try:
        return sa.make_url(url)
    except (ArgumentError, ValueError) as error:
        # ValueError: a port that is not a number.
        raise RequestError(
            "not the URL of a database",
            place="--history",
            remedy="write it as postgresql://USER@HOST:PORT/DATABASE",
        ) from error


class Store:
    """An open history."""

    def __init__(self, url: str | sa.URL) -> None:
        self.url = _parsed(url)
        self._is_local = False
        if not self.is_file:
            self.place = self.url.render_as_string(hide_password=True)
            self._engine = sa.create_engine(self.url)
        else:
            self.place = self.url.database or ""
            self._engine = sa.create_engine(self._as_read_only())
            sa.event.listen(self._engine, "connect", _set_up)
            sa.event.listen(self._engine, "begin", _begin)

    @property
    def is_file(self) -> bool:
        """Return whether it is a file of SQLite."""
        return self.url.get_backend_name() == "sqlite"

    def _as_read_only(self) -> sa.URL:
        """Return the file as one that nobody writes, where its directory is read-only or its disk full: there SQLite
        could not share its log with writers, and opens nothing."""
        file = Path(self.url.database or "").absolute()
        log = file.with_name(f"{file.name}-wal")
        may_write = os.access(file.parent, os.W_OK, effective_ids=True)
        if may_write and not self._is_full():
            return self.url
        # A log that is there holds what the file does not: read without it, the history would be an old one.
        if not file.exists() or log.exists():
            return self.url
        query = {"immutable": "1", "uri": "true"}
        return self.url.set(database=f"file:{quote(str(file))}", query=query)

    def _is_full(self) -> bool:
        """Return whether the file system of the file has no room for SQLite's own files."""
        try:
            space = os.statvfs(Path(self.url.database or "").absolute().parent)
        except OSError:
            return False
        return space.f_bavail * space.f_frsize < ROOM

    @property
    def exists(self) -> bool:
        """False for a file that is not there; a server says so itself."""
        return not self.is_file or Path(self.url.database or "").exists()

    def prepare(self) -> None:
        """Make the tables where there are none, and bring older ones up to date. Raises RequestError for a history of a
        newer iodelta, and for a file on a network file system."""
        self.check_place()
        with self.writing() as connection:
            if sa.inspect(connection).has_table(VERSIONS.name):
                migrate(connection, self._version(connection))
                return
            TABLES.create_all(connection)
            connection.execute(VERSIONS.insert().values(version=VERSION))

    def add(self, night: Night) -> Outcome:
        """Return one transaction: all of the night, or nothing."""
        return self.add_all([night])[0]

    def add_all(self, nights: Sequence[Night]) -> list[Outcome]:
        """Return one transaction: all of these nights, or nothing."""
        names = [night.identifier for night in nights]
        known: dict[str, tuple[str, str]] = {}
        with self.writing() as connection:
            for first in range(0, len(names), NAMED):
                of_them = EXPERIMENTS.c.id.in_(names[first : first + NAMED])
                columns = EXPERIMENTS.c.id, EXPERIMENTS.c.sha, EXPERIMENTS.c.folder
                known |= {
                    row.id: (row.sha, row.folder)
                    for row in connection.execute(sa.select(*columns).where(of_them))
                }
            return _write(connection, nights, known)

    def replace_all(self, nights: Iterable[Night]) -> None:
        """Exactly these nights, in one transaction."""
        with self.writing() as connection:
            for table in (POINTS, SERIES, EXPERIMENTS, SCANS):
                connection.execute(table.delete())
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
        query = sa.select(EXPERIMENTS).order_by(EXPERIMENTS.c.t, EXPERIMENTS.c.id)
        if identifiers is not None:
            query = query.where(EXPERIMENTS.c.id.in_(set(identifiers)))
        with self._reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def nights(self) -> dict[str, HistoryPoint]:
        """When each experiment was and of which build, as a point without a value."""
        wanted = (
            EXPERIMENTS.c.t,
            EXPERIMENTS.c.epoch,
            EXPERIMENTS.c.subject,
            sa.literal(0),
            EXPERIMENTS.c.id,
        )
        with self._reading() as connection:
            rows = connection.execute(
                sa.select(*wanted).order_by(EXPERIMENTS.c.t, EXPERIMENTS.c.id)
            )
            points = [point_of((*row, 0.0, 0.0, None, None, "", 0))[1] for row in rows]
        return {point.experiment: point for point in points}

    def scans(self) -> list[tuple[int, bool, bool, str]]:
        """Of every series its number, whether nothing changes in it but the machine, whether its last scan has all of
        its nights, and what that found (empty before the first), in the order of names."""
        joined = SERIES.outerjoin(SCANS, SCANS.c.series == SERIES.c.id)
        columns = [
            SERIES.c.id,
            SERIES.c.variant,
            SERIES.c.key,
            SERIES.c.version,
            SCANS.c.version,
            SCANS.c.found,
        ]
        query = (
            sa.select(*columns)
            .select_from(joined)
            .order_by(SERIES.c.cell, SERIES.c.variant, SERIES.c.key)
        )
        with self._reading() as connection:
            return [
                (
                    number,
                    variant == PLACEBO or '"role":"reference"' in key,
                    version == scanned,
                    found or "",
                )
                for number, variant, key, version, scanned, found in connection.execute(
                    query
                )
            ]

    def state(self) -> tuple[int, int, int]:
        """Numbers that change with every night and every scan."""
        joined = SERIES.outerjoin(SCANS, SCANS.c.series == SERIES.c.id)
        query = sa.select(SERIES.c.id, SERIES.c.version, SCANS.c.version).select_from(
            joined
        )
        with self._reading() as connection:
            rows = connection.execute(query).all()
            nights = (
                connection.scalar(sa.select(sa.func.count()).select_from(EXPERIMENTS))
                or 0
            )
        return nights, len(rows), hash(frozenset(map(tuple, rows)))

    def behind(self) -> int:
        """Points of the series whose last scan has not all of their nights."""
        scanned = sa.select(SCANS.c.series).where(
            SCANS.c.series == SERIES.c.id, SCANS.c.version == SERIES.c.version
        )
        joined = POINTS.join(SERIES, POINTS.c.series == SERIES.c.id)
        query = (
            sa.select(sa.func.count()).select_from(joined).where(~sa.exists(scanned))
        )
        with self._reading() as connection:
            return int(connection.scalar(query) or 0)

    def versions(self, series: Sequence[int]) -> dict[int, str]:
        """Return the version of each of these series: taken before its points are read, it is never newer than they
        are.
        """
        with self._reading() as connection:
            rows = connection.execute(
                sa.select(SERIES.c.id, SERIES.c.version).where(SERIES.c.id.in_(series))
            )
            return {row.id: row.version for row in rows}

    def keep_scans(self, found: Sequence[tuple[int, str, str]]) -> None:
        """Replace what scans found: the number of each series, the version that was scanned, and the document."""
        rows = [
            {"series": number, "version": version, "found": text}
            for number, version, text in found
        ]
        with self.writing() as connection:
            connection.execute(
                SCANS.delete().where(
                    SCANS.c.series.in_([row["series"] for row in rows])
                )
            )
            connection.execute(SCANS.insert(), rows)

    def lines(
        self, series: Sequence[int] = (), *, machine: str = "", since: float = -math.inf
    ) -> list[Line]:
        """Return every series with its points, in the one order of cells; or those with these numbers, of one machine,
        with the nights ``since`` then."""
        is_whole = not machine and not math.isfinite(since)
        described = sa.select(SERIES).order_by(
            SERIES.c.cell, SERIES.c.variant, SERIES.c.key
        )
        if series:
            described = described.where(SERIES.c.id.in_(series))
        points: dict[int, list[HistoryPoint]] = {}
        with self._reading() as connection:
            for row in connection.execute(_points_query(series, machine, since)).all():
                number, point = point_of(row)
                points.setdefault(number, []).append(point)
            # A database takes so many numbers in one question; of more, series without a point go below.
            if not is_whole and len(points) <= NAMED:
                described = described.where(SERIES.c.id.in_(points))
            rows = connection.execute(described).all()
        cells = in_order(row.cell for row in rows)
        places = {cell: place for place, cell in enumerate(cells)}
        rows = sorted(rows, key=lambda row: places[row.cell])
        if not is_whole:
            rows = [row for row in rows if row.id in points]
        return [_line(row, points.get(row.id, [])) for row in rows]

    def rows(self, identifiers: list[str]) -> list[dict[str, Any]]:
        """Return the points of these experiments, each with its series and experiment."""
        joined = POINTS.join(EXPERIMENTS, POINTS.c.experiment == EXPERIMENTS.c.id)
        joined = joined.join(SERIES, POINTS.c.series == SERIES.c.id)
        of_series = [
            SERIES.c[name] for name in ("key", "cell", "variant", "better", "unit")
        ]
        of_experiment = [
            EXPERIMENTS.c[name] for name in ("t", "sha", "epoch", "subject")
        ]
        wanted = sa.select(POINTS, *of_series, *of_experiment).select_from(joined)
        with self._reading() as connection:
            result = connection.execute(
                wanted.where(POINTS.c.experiment.in_(identifiers))
            )
            return [dict(row) for row in result.mappings()]

    def damage(self) -> str:
        """Return what the database says of itself; empty when it is whole."""
        if not self.is_file:
            return ""
        with self._reading() as connection:
            message = str(connection.scalar(sa.text("PRAGMA integrity_check")))
            return "" if message == "ok" else message

    def close(self) -> None:
        """Let go of the file or the server."""
        self._engine.dispose()

    def _version(self, connection: sa.Connection) -> int:
        try:
            version = connection.scalar(sa.select(VERSIONS.c.version))
        except DBAPIError as error:
            if not _lacks_table(error):
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
        kind = network_of(Path(self.url.database or ""))
        self._is_local = not kind
        if kind:
            raise RequestError(
                f"{kind} is a network file system: SQLite's write-ahead log would be damaged there",
                place=self.place,
                remedy="name a directory on a local disk with --history, or use postgresql://",
            )

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
                connection.execute(
                    sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK}
                )
            yield connection

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            lines = str(error.orig).strip().splitlines()
            message = lines[0] if lines else "no reason given"
            if self.is_file and self._is_full():
                message = "the disk is full"
            raise MeasureError(
                f"cannot use the history: {message}",
                place=self.place,
                remedy=self._remedy(message),
            ) from error

    def _remedy(self, message: str) -> str:
        if "malformed" in message or "not a database" in message:
            return "`iodelta history rebuild` makes it again from the folders"
        if "full" in message or "No space left" in message:
            step = "free some space, then repeat the command"
        elif "readonly" in message or "unable to open" in message:
            step = "make the file and its directory writable, then repeat the command"
        elif self.is_file:
            step = "repeat the command"
        else:
            step = "check the server and its URL, then repeat the command"
        return f"{step}; {UNCHANGED if self.is_file else WHOLE}"


def _lacks_table(error: DBAPIError) -> bool:
    """Return whether a database answered that it has no such table; a lost connection or a full disk is another matter."""
    of_sqlite = "no such table" in str(error.orig)
    of_postgresql = getattr(error.orig, "sqlstate", "") == "42P01"
    return of_sqlite or of_postgresql


def _take_out(connection: sa.Connection, identifier: str) -> set[int]:
    """Remove an experiment with its points; returns the numbers of the series in which it had one."""
    of_it = POINTS.c.experiment == identifier
    series = set(connection.scalars(sa.select(POINTS.c.series).where(of_it)))
    connection.execute(POINTS.delete().where(of_it))
    connection.execute(EXPERIMENTS.delete().where(EXPERIMENTS.c.id == identifier))
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
    points: list[dict[str, Any]] = []
    own_units: list[str] = []
    series: dict[int, Point] = {}

    def flush() -> None:
        units = {number: point.unit for number, point in series.items()}
        there: dict[int, str] = {}
        if series:
            query = sa.select(SERIES.c.id, SERIES.c.unit).where(SERIES.c.id.in_(series))
            there = {row.id: row.unit for row in connection.execute(query)}
        units |= there
        for row, unit in zip(points, own_units, strict=True):
            row["y"] = in_unit(row["y"], unit, units[row["series"]])
        rows = [
            series_row(number, point)
            for number, point in series.items()
            if number not in there
        ]
        # An insert of no rows would insert one of defaults.
        for table, own in (
            (EXPERIMENTS, experiments),
            (SERIES, rows),
            (POINTS, points),
        ):
            if own:
                connection.execute(table.insert(), own)
        touched.update(series)
        for gathered in (experiments, points, own_units, series):
            gathered.clear()

    for night in nights:
        sha, folder = known.get(night.identifier, ("", ""))
        if (sha, folder) == (night.sha, night.folder):
            outcomes.append("known")
        elif sha == night.sha:
            own = EXPERIMENTS.c.id == night.identifier
            connection.execute(
                EXPERIMENTS.update().where(own).values(folder=night.folder)
            )
            outcomes.append("moved")
        else:
            before: set[int] = set()
            if sha:
                flush()
                before = _take_out(connection, night.identifier)
            experiments.append(experiment_row(night))
            for point in night.points:
                series.setdefault(point.key.number, point)
                own_units.append(point.unit)
                points.append(point_row(point.key.number, point, night))
            if before or len(points) >= TOGETHER:
                flush()
            _drop_empty(
                connection,
                before.difference(point.key.number for point in night.points),
            )
            touched |= before
            outcomes.append("replaced" if sha else "added")
        known[night.identifier] = (night.sha, night.folder)
    flush()
    _touch(connection, touched)
    return outcomes


def _points_query(series: Sequence[int], machine: str, since: float) -> sa.Select[Any]:
    """Return the points of these series (empty: of all) with their nights, of one machine (empty: of all), ``since``
    then.
    """
    joined = POINTS.join(EXPERIMENTS, POINTS.c.experiment == EXPERIMENTS.c.id)
    of_night = [EXPERIMENTS.c[name] for name in NIGHT_COLUMNS]
    of_point = [POINTS.c[name] for name in POINT_COLUMNS]
    query = sa.select(*of_night, *of_point).select_from(joined)
    if series:
        query = query.where(POINTS.c.series.in_(series))
    if machine:
        query = query.where(EXPERIMENTS.c.machine == machine)
    if math.isfinite(since):
        query = query.where(EXPERIMENTS.c.t >= since)
    return query


def _touch(connection: sa.Connection, series: Iterable[int]) -> None:
    """Give these series another version: what a scan found in the one before is not all any more."""
    numbers, version = list(series), secrets.token_hex(6)
    for first in range(0, len(numbers), NAMED):
        own = SERIES.c.id.in_(numbers[first : first + NAMED])
        connection.execute(SERIES.update().where(own).values(version=version))


def _drop_empty(connection: sa.Connection, series: Iterable[int]) -> None:
    """Those of these series that have no point left."""
    for number in series:
        is_empty = ~sa.exists().where(POINTS.c.series == number)
        if connection.execute(
            SERIES.delete().where(SERIES.c.id == number, is_empty)
        ).rowcount:
            connection.execute(SCANS.delete().where(SCANS.c.series == number))


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


def _line(row: Any, points: list[HistoryPoint]) -> Line:
    points.sort(key=operator.attrgetter("t", "experiment"))
    key = from_json(row.key, Key)
    return Line(key, row.cell, row.variant, row.better, row.unit, tuple(points))
