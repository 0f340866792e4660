"""Entry point: read paths into runs and refusals, without exceptions for the contents of files."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from iodelta import plugins
from iodelta.errors import IodeltaError
from iodelta.ingest import json_report, own_reports
from iodelta.ingest.cleaning import looks_binary
from iodelta.ingest.model import DeviceStats, Imported, Item, Refusal, Run
from iodelta.ingest.numbers import version_of
from iodelta.ingest.sources import HEAD, Source, UnreadableError, sources, sources_of
from iodelta.ingest.tar import at_most
from iodelta.trial import Place

if TYPE_CHECKING:
    from iodelta.ingest.logs import Summary

LARGEST = 64 << 20
"""Most bytes of a report: fio writes tens of kilobytes, and tens of megabytes for a thousand hosts with histograms."""

_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""The first bytes of zlib: fio's logs with log_store_compressed."""


def read(
    paths: Iterable[str | os.PathLike[str]], *, stdin: BinaryIO | None = None
) -> Imported:
    """Everything in ``paths``: files, folders (recursively), archives, and ``-`` for ``stdin``.

    Every file is either read or refused with the reason. Raises RequestError for a path that does not exist.
    """
    with uncollected():
        return _sorted(scan(paths, stdin=stdin))


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause Python's cyclic garbage collector, which would search everything that was read again and again: reading
    creates no cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _sorted(items: Iterable[Item]) -> Imported:
    runs: list[Run] = []
    device_stats: list[DeviceStats] = []
    refusals: list[Refusal] = []
    for item in items:
        if isinstance(item, Run):
            runs.append(item)
        elif isinstance(item, DeviceStats):
            device_stats.append(item)
        else:
            refusals.append(item)
    return Imported(
        runs=tuple(runs), device_stats=tuple(device_stats), refusals=tuple(refusals)
    )


def read_bytes(data: bytes, name: str) -> Imported:
    """``read`` of one file's contents. Its ``name`` is its place, and shows the measure of a fio log."""
    return _sorted(_scan(sources_of(data, name)))


def scan(
    paths: Iterable[str | os.PathLike[str]], *, stdin: BinaryIO | None = None
) -> Iterator[Item]:
    """``read`` as an iterator, with at most one file in memory.

    fio's logs come last, because only the reports next to them show the unit of their latencies.
    """
    return _scan(sources(paths, stdin))


def _scan(opened: Iterable[Source | Refusal]) -> Iterator[Item]:
    logs: list[Summary] = []
    versions: dict[str, set[str]] = {}
    for source in opened:
        if isinstance(source, Refusal):
            yield source
            continue
        for item in _read_one(source):
            if not isinstance(item, Item):
                logs.append(item)
                continue
            if isinstance(item, Run) and item.fio_version:
                versions.setdefault(_folder(item.place), set()).add(item.fio_version)
            yield item
    seen = {log.job: log.rows_seen() for log in logs if log.rows_seen() is not None}
    for log in logs:
        # The fio version of the reports in the nearest folder with any; None if they measure in different units.
        version: str | None
        folder = _folder(log.place)
        while folder not in versions and folder:
            folder = folder.rpartition("/")[0]
        nearest = sorted(versions.get(folder) or set().union(*versions.values()))
        parsed = filter(None, map(version_of, nearest))
        measures_ns = {version >= (2, 99) for version in parsed}
        if len(measures_ns) != 1:
            version = None
        else:
            version = nearest[-1]
        yield log.run(version_of(version), version, seen.get(log.job))


def _folder(place: Place) -> str:
    return place.file.rpartition("/")[0]


def _read_one(source: Source) -> Iterator[Item | Summary]:
    place = Place(source.name)
    reason = _why_unreadable(source.head)
    if reason:
        yield Refusal(place, reason)
        return
    try:
        may_be_log = source.head[:64].lstrip()[:1].isdigit()
        log = _log(source) if may_be_log else None
        data = b"" if log is not None else _whole(source)
    except UnreadableError as error:
        yield Refusal(place, f"cannot be read to its end: {error}")
        return
    if log is not None:
        yield log
        return
    if len(data) > LARGEST:
        yield Refusal(place, f"larger than {LARGEST >> 20} MiB, and not a fio log")
        return
    yield from _report(data, source.name)


def _why_unreadable(head: bytes) -> str:
    """Return why a file with this beginning is not read; empty if it may contain results."""
    if not head:
        return "an empty file"
    if head.startswith(_ZLIB) and not head[:64].isascii():
        return "compressed by zlib: if it is a log of fio, fio --inflate-log=FILE writes it as text"
    if head.startswith(b"SQLite format 3\0"):
        return "an SQLite database: fsperf's is read when it is named itself, not in a folder"
    if own_reports.whole(head):
        return own_reports.REMEDY
    if looks_binary(head):
        return "binary data, but not an archive"
    return ""


def _report(data: bytes, name: str) -> Iterable[Item]:
    """Return the contents of a file that is not a log: usually one document of fio, else anything."""
    is_object = data[:256].lstrip()[:1] == b"{"
    document = json_report.whole_document(data, name) if is_object else None
    if document:
        return document
    # Importing all other readers takes long.
    from iodelta.ingest.report import read_text

    by_plugin = _by_plugins(data, name)
    if _has_runs(by_plugin):
        return by_plugin
    items = [*read_text(data, name), *by_plugin]
    if _has_runs(items):
        return items
    broken = plugins.troubles("reader", unusable)
    if broken:
        items.append(Refusal(Place(name), broken))
    return items


def _has_runs(items: Iterable[Item]) -> bool:
    return any(isinstance(item, Run) for item in items)


def unusable(name: str, made: object) -> str:
    """Return why a plugin's reader cannot be used; empty if it can."""
    return "" if callable(made) else "it is not a function of bytes and a name"


def _by_plugins(data: bytes, name: str) -> list[Item]:
    """Return the result of the first plugin's reader that knows this file, or a refusal for each reader that fails."""
    refused: list[Item] = []
    for plugin in plugins.sound("reader", unusable):
        try:
            items = plugins.guarded(plugin.title, plugin.made, Iterable[Item])(
                data, name
            )
        except IodeltaError as error:
            refused.append(Refusal(Place(name), error.what))
            continue
        if items:
            return list(items)
    return refused


def _log(source: Source) -> Run | Refusal | Summary | None:
    """Return the summary of a log; None if the rows are not those of a log."""
    single_threaded()
    # Importing numpy and polars takes a tenth of a second.
    from iodelta.ingest import hist_logs, logs

    if hist_logs.is_hist_log(source.head):
        return hist_logs.summarise(source.name, source.head, source.rest)
    if not logs.is_log(source.head):
        return None
    return logs.summarise(source.name, source.head, source.rest)


def single_threaded() -> None:
    """Keep numpy and polars from starting a thread per CPU, unless they are loaded already: the threads cost a third
    more CPU time, most of it in waiting. Child processes inherit the setting."""
    os.environ.update(
        {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"} | os.environ
    )


def _whole(source: Source) -> bytes:
    """Return all of a file; of a larger one a byte more than ``LARGEST``."""
    if (
        len(source.head) < HEAD
    ):  # asking for the rest of a short file costs more than parsing it
        return source.head
    return source.head + at_most(source.rest, LARGEST + 1 - len(source.head))
