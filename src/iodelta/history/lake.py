"""A history as a Delta table in a directory or an S3-compatible store: written in batches, scanned by many."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import polars as pl

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError, needs_extra
from iodelta.experiment.model import PLACEBO
from iodelta.history.alerts import History, alerts_of
from iodelta.history.answers import HistoryPoint, LakeWritten
from iodelta.history.commits import Order
from iodelta.history.kept import in_processes
from iodelta.history.log import (
    Added,
    Entry,
    Named,
    NightBegun,
    NightEnded,
    Removed,
    read_entry,
)
from iodelta.history.points import Key
from iodelta.history.scan import Kept, scanned
from iodelta.history.store import Line, Store, in_unit

BATCH = 1000
"""Experiments of one commit: many small commits make a lake slow to read."""

LOG = "-log"
"""After the name of a lake: the table with the log of its history."""

OF_FOLDERS = (Added, Named, Removed, NightBegun, NightEnded)
"""Entries that a lake does not need: it has the nights themselves."""

TOGETHER = 200
"""Series that one process scans: each reads the months of its machine."""

PARTITIONS = ["month", "machine"]

_NAMES = (
    *(
        "month",
        "machine",
        "series",
        "key",
        "cell",
        "variant",
        "metric",
        "better",
        "unit",
    ),
    *(
        "experiment",
        "sha",
        "t",
        "epoch",
        "repo",
        "commit",
        "describe",
        "y",
        "se",
        "n",
        "lag1",
        "r",
        "r_se",
        "flags",
    ),
)
_KINDS = {
    "series": pl.Int64,
    "n": pl.Int64,
    **dict.fromkeys(("t", "y", "se", "lag1", "r", "r_se"), pl.Float64),
}


def export(
    store: Store, target: str, *, batch: int = BATCH, entries: Sequence[Entry] = ()
) -> LakeWritten:
    """Bring the lake at ``target`` to what the history holds: append what is missing, delete what was replaced or taken
    out. A table next to it has the ``entries`` of the log: the order of commits, alerts, decisions and notes. A second
    call after a kill goes on. Raises RequestError where the extra is missing, MeasureError."""
    table, write = _delta(target)
    in_history = {row["id"]: row["sha"] for row in store.experiments()}
    in_lake = _there(target) if table else {}
    stale = _not_in(in_lake, in_history)
    missing = _not_in(in_history, in_lake)
    with _said(target):
        if table is not None and stale:
            table.delete(f"experiment IN ({', '.join(map(_quoted, stale))})")
        for start in range(0, len(missing), batch):
            wanted = missing[start : start + batch]
            schema = {name: _KINDS.get(name, pl.String) for name in _NAMES}
            frame = pl.DataFrame(list(map(_row, store.rows(wanted))), schema=schema)
            write(target, frame, mode="append", partition_by=PARTITIONS)
        # Every write and delete leaves small files.
        if missing or stale:
            _delta(target)[0].optimize.compact()
        kept = [entry for entry in entries if not isinstance(entry, OF_FOLDERS)]
        if kept != entries_of(target):
            frame = pl.DataFrame(
                {
                    "line": range(len(kept)),
                    "entry": [msgspec.json.encode(one).decode() for one in kept],
                }
            )
            write(
                f"{target}{LOG}",
                frame.cast({"line": pl.Int64, "entry": pl.String}),
                mode="overwrite",
            )
    return LakeWritten(target, len(missing), len(stale), -(-len(missing) // batch))


def _not_in(these: Mapping[str, str], those: Mapping[str, str]) -> list[str]:
    """Return the nights of one side that the other has not, or has with other content (SHA)."""
    return [
        identifier for identifier, sha in these.items() if those.get(identifier) != sha
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _delta(target: str) -> tuple[Any, Any]:
    """Return the table, None where there is none yet, and what writes to it. Raises RequestError, MeasureError."""
    with needs_extra("lake", "a lake"):
        from deltalake import DeltaTable, write_deltalake
    with _said(target):
        return (
            DeltaTable(target) if DeltaTable.is_deltatable(target) else None
        ), write_deltalake


@contextlib.contextmanager
def _said(target: str) -> Iterator[None]:
    """What a store or the format says against it, as one of our errors."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError, pl.exceptions.PolarsError) as error:
        message = (
            str(error).strip().splitlines()[0]
            if str(error).strip()
            else type(error).__name__
        )
        remedy = "the part written so far stays; repeat the command to continue"
        raise MeasureError(
            f"cannot use the lake: {message}", place=target, remedy=remedy
        ) from error


def _there(target: str) -> dict[str, str]:
    """Experiment -> the digest that the lake has of it."""
    rows = _points(target).select("experiment", "sha").unique().collect()
    return dict(rows.iter_rows())


def entries_of(target: str) -> list[Entry]:
    """Return what the log of its history said when it was exported; nothing for a lake of an older iodelta."""
    if _delta(f"{target}{LOG}")[0] is None:
        return []
    with _said(target):
        rows = pl.scan_delta(f"{target}{LOG}").sort("line").collect()["entry"]
    return [read_entry(row) for row in rows]


def _points(target: str) -> pl.LazyFrame:
    with _said(target):
        return pl.scan_delta(target)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    key = from_json(row["key"], Key)
    subject = msgspec.json.decode(row["subject"])
    month = time.strftime("%Y-%m", time.gmtime(row["t"]))
    about = {"month": month, "machine": key.machine, "metric": key.metric}
    return (
        row
        | about
        | {name: subject.get(name, "") for name in ("repo", "commit", "describe")}
    )


def machines(target: str) -> list[str]:
    """Return the machines in a lake. Raises RequestError where there is none, MeasureError."""
    if _delta(target)[0] is None:
        raise RequestError(
            "there is no lake",
            place=target,
            remedy="`iodelta history export --to delta` writes one",
        )
    with _said(target):
        return sorted(_points(target).select("machine").unique().collect()["machine"])


def lines_of(target: str, machine: str, numbers: Sequence[int] = ()) -> Iterator[Line]:
    """Yield every series of one machine, each point once, oldest first; or those ``numbers`` and all without a change."""
    points = _points(target).filter(pl.col("machine") == machine)
    if numbers:
        is_quiet = (pl.col("variant") == PLACEBO) | pl.col("key").str.contains(
            '"role":"reference"', literal=True
        )
        points = points.filter(pl.col("series").is_in(list(numbers)) | is_quiet)
    with _said(target):
        own = points.collect().unique(subset=["series", "experiment"], keep="last")
    for part in own.sort("cell", "variant", "key", "t", "experiment").partition_by(
        "series", maintain_order=True
    ):
        first = part.row(0, named=True)
        key = from_json(first["key"], Key)
        line = tuple(_point(row, first["unit"]) for row in part.iter_rows(named=True))
        yield Line(
            key, first["cell"], first["variant"], first["better"], first["unit"], line
        )


def _point(row: dict[str, Any], unit: str) -> HistoryPoint:
    values = {name: row[name] for name in HistoryPoint.__struct_fields__}
    values["y"] = in_unit(row["y"], row["unit"], unit)
    return HistoryPoint(**(values | {"flags": tuple(row["flags"].split())}))


def scan_lake(target: str, engine: str = "") -> History:
    """Candidates and alerts of all machines, as a scan of the history finds them: by processes here, or by the workers
    of ``dask://HOST:PORT``. When a worker dies, another one does its part. Raises RequestError, MeasureError."""
    entries = entries_of(target) if machines(target) else []
    with _said(target):
        columns = (
            "machine",
            "series",
            "experiment",
            "t",
            "epoch",
            "commit",
            "describe",
            "repo",
        )
        named = _points(target).select(columns)
        series = (
            named.select("machine", "series")
            .unique()
            .sort("machine", "series")
            .collect()
        )
        nights = (
            named.drop("machine", "series")
            .unique("experiment")
            .sort("t", "experiment")
            .collect()
        )
    parts: list[tuple[str, tuple[int, ...]]] = []
    for (machine,), own in series.partition_by(
        "machine", as_dict=True, maintain_order=True
    ).items():
        numbers = own["series"].to_list()
        parts += [
            (machine, tuple(numbers[at : at + TOGETHER]))
            for at in range(0, len(numbers), TOGETHER)
        ]
    work = partial(_part, target, Order(entries))
    found = (
        _by_dask(work, parts, engine) if engine else in_processes(work, parts, few=1)
    )
    seen = {
        row["experiment"]: HistoryPoint(**row, y=0.0, se=0.0, r=None, r_se=None)
        for row in nights.iter_rows(named=True)
    }
    return alerts_of([one for part in found for one in part], entries, seen)


def _part(target: str, order: Order, part: tuple[str, tuple[int, ...]]) -> list[Kept]:
    """Return what is found in some series of one machine: what a worker does."""
    machine, numbers = part
    lines = list(lines_of(target, machine, numbers))
    return scanned([line for line in lines if line.key.number in numbers], order, lines)


def _by_dask(
    work: Callable[[tuple[str, tuple[int, ...]]], list[Kept]],
    parts: Sequence[tuple[str, tuple[int, ...]]],
    engine: str,
) -> list[list[Kept]]:
    scheme, _, address = engine.partition("://")
    if scheme != "dask" or not address:
        raise RequestError(
            f"not an engine: {engine!r}",
            place="--engine",
            remedy="write it as dask://HOST:PORT",
        )
    with needs_extra("lake", "this engine"):
        from distributed import Client, KilledWorker
    # What the engine says of its own troubles is for its log; ours is one sentence.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(f"tcp://{address}", timeout=30, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError) as error:
        raise MeasureError(
            f"no scheduler answers: {error}",
            place=engine,
            remedy="start `dask scheduler` there",
        ) from error
    with client:
        try:
            return list(client.gather(client.map(work, parts, pure=False, retries=2)))  # type: ignore[no-untyped-call]
        except (KilledWorker, OSError) as error:
            remedy = "look at the workers' own logs; scan again when they stay up"
            raise MeasureError(
                f"workers died repeatedly: {error}", place=engine, remedy=remedy
            ) from error
