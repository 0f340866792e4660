"""The one entrance: paths in, runs and refusals out; never an exception for what a file contains."""

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
from iodelta.ingest.model import DeviceStats, Imported, Refusal, Run
from iodelta.ingest.numbers import version_of
from iodelta.ingest.sources import Source, UnreadableError, sources, sources_of
from iodelta.trial import Place

if TYPE_CHECKING:
    from iodelta.ingest.logs import Summary

LARGEST = 64 << 20
"""Bytes of a file that is no log: fio writes tens of kilobytes, a thousand hosts with histograms tens of megabytes."""

_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""As zlib begins: fio's logs when log_store_compressed is set."""

Found = Run | DeviceStats | Refusal


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
    """Without Python's collector, which looks through all that was read, again and again, for circles: reading makes
    none, and what is made of it ends soon."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _sorted(items: Iterable[Found]) -> Imported:
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
    """``read`` of one file's contents; its ``name`` is shown as its place, and tells what a fio log holds."""
    return _sorted(_scan(sources_of(data, name)))


def scan(
    paths: Iterable[str | os.PathLike[str]], *, stdin: BinaryIO | None = None
) -> Iterator[Found]:
    """``read``, one finding at a time: no more than one file is held.

    fio's logs come last: only the reports beside them tell in which unit their latencies are.
    """
    return _scan(sources(paths, stdin))


def _scan(opened: Iterable[Source | Refusal]) -> Iterator[Found]:
    logs: list[Summary] = []
    versions: dict[str, set[str]] = {}
    for source in opened:
        if isinstance(source, Refusal):
            yield source
            continue
        for item in _read_one(source):
            if not isinstance(item, Run | DeviceStats | Refusal):
                logs.append(item)
                continue
            if isinstance(item, Run) and item.fio_version:
                versions.setdefault(_folder(item.place), set()).add(item.fio_version)
            yield item
    seen = {log.job: log.rows_seen() for log in logs if log.rows_seen() is not None}
    for log in logs:
        version = _version_beside(log.place, versions)
        yield log.run(version_of(version), version, seen.get(log.job))


def _version_beside(place: Place, versions: dict[str, set[str]]) -> str | None:
    """The fio of the reports in the nearest folder that has some; any of them when all measure in the same unit."""
    folder = _folder(place)
    while folder not in versions and folder:
        folder = folder.rpartition("/")[0]
    nearest = sorted(versions.get(folder) or set().union(*versions.values()))
    parsed = filter(None, map(version_of, nearest))
    measures_ns = {version >= (2, 99) for version in parsed}
    if len(measures_ns) != 1:
        return None
    return nearest[-1]


def _folder(place: Place) -> str:
    return place.file.rpartition("/")[0]


def _read_one(source: Source) -> Iterator[Found | Summary]:
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
    """Why a file that begins so is not read; empty for one that may hold results."""
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


def _report(data: bytes, name: str) -> Iterable[Found]:
    """What is in a file that is no log: mostly one whole document of fio, else anything."""
    is_object = data[:256].lstrip()[:1] == b"{"
    document = json_report.whole_document(data, name) if is_object else None
    if document:
        return document
    # All the other readers take a while to load.
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


def _has_runs(items: Iterable[Found]) -> bool:
    return any(isinstance(item, Run) for item in items)


def unusable(name: str, made: object) -> str:
    """Why a plugin's reader cannot be used; empty where it can."""
    return "" if callable(made) else "it is not a function of bytes and a name"


def _by_plugins(data: bytes, name: str) -> list[Found]:
    """What the first reader of a plugin finds that knows this file, and a refusal for each that fails."""
    refused: list[Found] = []
    for plugin in plugins.sound("reader", unusable):
        try:
            items: list[Found] = plugins.guarded(
                plugin.title, lambda reader: [*reader(data, name)]
            )(plugin.made)
        except IodeltaError as error:
            refused.append(Refusal(Place(name), error.what))
            continue
        wrong = [
            type(item).__name__
            for item in items
            if not isinstance(item, Run | DeviceStats | Refusal)
        ]
        if wrong:
            refused.append(
                Refusal(Place(name), f"{plugin.title} returned a {wrong[0]}, not a Run")
            )
        elif items:
            return items
    return refused


def _log(source: Source) -> Run | Refusal | Summary | None:
    """What is in a log; None when its rows say that it is none."""
    single_threaded()
    # Numpy and polars take a tenth of a second to load.
    from iodelta.ingest import hist_logs, logs

    if hist_logs.is_hist_log(source.head):
        return hist_logs.summarise(source.name, source.head, source.rest)
    if not logs.is_log(source.head):
        return None
    return logs.summarise(source.name, source.head, source.rest)


def single_threaded() -> None:
    """Have numpy and polars start no thread for each CPU, where they are not loaded yet: with them they take a third
    more of the CPUs, most of it waiting. A program that is started later inherits this."""
    os.environ.update(
        {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"} | os.environ
    )


def _whole(source: Source) -> bytes:
    parts, size = [source.head], len(source.head)
    while size <= LARGEST and (part := source.rest.read(1 << 20)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)
