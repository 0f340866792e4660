"""Extract fio's JSON documents from a larger text, each with fio's messages before it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

from iodelta.ingest import json_report
from iodelta.ingest.cleaning import Line, lines
from iodelta.ingest.merge import Report
from iodelta.ingest.model import Refusal, Run
from iodelta.ingest.notes import remarks
from iodelta.trial import Finding, Place

_SAID = 64 * 1024
"""Bytes before a document in which fio's messages are searched."""


def in_bytes(data: bytes, file: str) -> tuple[list[Report], bytes]:
    """Return the undamaged documents of ``data``, and ``data`` in which only their line ends remain: the fast way.

    Quoted, cut or damaged documents remain in ``data``, for ``in_lines``.
    """
    reports: list[Report] = []
    rest: list[bytes] = []
    if data.count(b"=3D") > 2:  # quoted-printable has changed what it quotes
        return reports, data
    end, line = 0, 1
    for start, span in json_report.documents(data):
        text = data[start : span.end]
        runs = None if span.open else json_report.whole_document(text, file)
        if not runs:
            continue
        line += data.count(b"\n", end, start)
        messages = (
            spoken.text for spoken in lines(data[max(end, start - _SAID) : start])
        )
        reports.append(_with(runs, remarks(messages, file), line - 1))
        ends = text.count(b"\n")
        rest += [data[end:start], b"\n" * ends]
        end, line = span.end, line + ends
    return reports, b"".join([*rest, data[end:]]) if reports else data


def in_lines(cleaned: Sequence[Line], used: bytearray, file: str) -> list[Report]:
    """Return the documents among cleaned lines, also damaged ones; their indexes are marked in ``used``."""
    rows = [line.text.encode("utf-8", "replace") for line in cleaned]
    ends = list(accumulate(len(row) + 1 for row in rows))
    data = b"\n".join(rows)
    numbers = [line.number for line in cleaned]
    reports: list[Report] = []
    said_from = 0
    for start, span in json_report.documents(data):
        first, last = bisect_right(ends, start), bisect_right(ends, span.end - 1)
        findings = remarks((line.text for line in cleaned[said_from:first]), file)
        said_from = last + 1
        used[first : last + 1] = b"\1" * (last + 1 - first)
        runs = json_report.read_document(data, start, span, Place(file, first + 1))
        reports.append(_with(runs, findings, 0, numbers))
    return [report for report in reports if report]


def _with(
    items: Iterable[Run | Refusal],
    findings: tuple[Finding, ...],
    shift: int,
    numbers: Sequence[int] = (),
) -> Report:
    """Return the items with ``findings`` and their original lines: ``shift`` lines further down, or from ``numbers``."""
    report: Report = []
    for item in items:
        line = item.place.line + shift
        place = Place(
            item.place.file, numbers[min(line, len(numbers)) - 1] if numbers else line
        )
        if isinstance(item, Refusal):
            report.append(Refusal(place, item.reason))
        else:
            report.append(
                msgspec.structs.replace(
                    item, place=place, findings=(*findings, *item.findings)
                )
            )
    return report
