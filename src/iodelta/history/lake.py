"""A history as a Delta table in a directory or an S3-compatible store: written in batches, scanned by many."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError, needs_extra
from iodelta.history.answers import Candidate, HistoryPoint, LakeWritten
from iodelta.history.points import Key
from iodelta.history.scan import scan
from iodelta.history.store import Line, Store

BATCH = 1000
"""Experiments of one commit: many small commits make a lake slow to read."""

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


def export(store: Store, target: str, *, batch: int = BATCH) -> LakeWritten:
    """Bring the lake at ``target`` to what the history holds: append what is missing, delete what was replaced or taken
    out. A second call after a kill goes on. Raises RequestError where the extra is missing, MeasureError."""
    table, write = _delta(target)
    in_history = {row["id"]: row["sha"] for row in store.experiments()}
    in_lake = _there(target) if table else {}
    stale = _not_in(in_lake, in_history)
    missing = _not_in(in_history, in_lake)
    with _said(target):
        if table is not None and stale:
            table.delete(f"experiment IN ({', '.join(map(_quoted, stale))})")
        for start in range(0, len(missing), batch):
            frame = _frame(store, missing[start : start + batch])
            write(target, frame, mode="append", partition_by=PARTITIONS)
        # Every write and delete leaves small files.
        if missing or stale:
            _delta(target)[0].optimize.compact()
    return LakeWritten(target, len(missing), len(stale), -(-len(missing) // batch))


def _not_in(these: Mapping[str, str], those: Mapping[str, str]) -> list[str]:
    """The nights of one side that the other has not, or has with other content (SHA)."""
    return [
        identifier for identifier, sha in these.items() if those.get(identifier) != sha
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _delta(target: str) -> tuple[Any, Any]:
    """The table, None where there is none yet, and what writes to it. Raises RequestError, MeasureError."""
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
    except (DeltaError, OSError) as error:
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


def _points(target: str) -> pl.LazyFrame:
    with _said(target):
        return pl.scan_delta(target)


def _frame(store: Store, wanted: list[str]) -> pl.DataFrame:
    schema = {name: _KINDS.get(name, pl.String) for name in _NAMES}
    return pl.DataFrame(list(map(_row, store.rows(wanted))), schema=schema)


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
    """The machines in a lake. Raises RequestError where there is none."""
    if _delta(target)[0] is None:
        raise RequestError(
            "there is no lake",
            place=target,
            remedy="`iodelta history export --to delta` writes one",
        )
    return sorted(_points(target).select("machine").unique().collect()["machine"])


def lines_of(target: str, machine: str) -> Iterator[Line]:
    """Every series of one machine, each point once, oldest first."""
    own = _points(target).filter(pl.col("machine") == machine).collect()
    own = own.unique(subset=["series", "experiment"], keep="last").sort(
        "cell", "variant", "key", "t", "experiment"
    )
    for part in own.partition_by("series", maintain_order=True):
        first = part.row(0, named=True)
        key = from_json(first["key"], Key)
        points = tuple(map(_point, part.iter_rows(named=True)))
        yield Line(
            key, first["cell"], first["variant"], first["better"], first["unit"], points
        )


def _point(row: dict[str, Any]) -> HistoryPoint:
    values = {name: row[name] for name in HistoryPoint.__struct_fields__}
    return HistoryPoint(**(values | {"flags": tuple(row["flags"].split())}))


def scan_machine(target: str, machine: str) -> list[Candidate]:
    """Candidates of one machine: what a worker does."""
    return scan(lines_of(target, machine))


def scan_lake(target: str, engine: str = "") -> list[Candidate]:
    """Candidates of all machines, the largest z first: here, or by the workers of ``dask://HOST:PORT``. When a worker
    dies, another one does its part. Raises RequestError, MeasureError."""
    wanted = machines(target)
    parts = (
        _by_dask(target, wanted, engine)
        if engine
        else [scan_machine(target, machine) for machine in wanted]
    )
    return sorted(
        _joined(parts),
        key=lambda candidate: (
            -candidate.z,
            candidate.cell,
            candidate.variant,
            candidate.metric,
        ),
    )


def _joined(parts: Iterable[Sequence[Candidate]]) -> Iterator[Candidate]:
    for part in parts:
        yield from part


def _by_dask(target: str, wanted: Sequence[str], engine: str) -> list[list[Candidate]]:
    scheme, _, address = engine.partition("://")
    if scheme != "dask" or not address:
        raise RequestError(
            f"not an engine: {engine!r}",
            place="--engine",
            remedy="write it as dask://HOST:PORT",
        )
    with needs_extra("lake", "this engine"):
        from distributed import Client, KilledWorker
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
            tasks = client.map(
                scan_machine,
                [target] * len(wanted),
                list(wanted),
                pure=False,
                retries=2,
            )
            return list(client.gather(tasks))  # type: ignore[no-untyped-call]
        except (KilledWorker, OSError) as error:
            remedy = "look at the workers' own logs; scan again when they stay up"
            raise MeasureError(
                f"workers died repeatedly: {error}", place=engine, remedy=remedy
            ) from error
