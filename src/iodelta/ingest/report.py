"""Read everything in one text: JSON, terse records, normal reports, t/io_uring, tables, read_stats, in any mix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter

import msgspec

from iodelta.ingest import (
    excerpts,
    io_uring,
    json_found,
    kbench,
    other_tools,
    own_reports,
    prose,
    read_stats,
    robot,
    tables,
    terse,
    text_report,
)
from iodelta.ingest.cleaning import Line, lines
from iodelta.ingest.merge import Report, once
from iodelta.ingest.model import Item, Refusal, Run
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Place

MOST_LINES = 1_000_000
"""Most lines of a text, enough for thirty thousand reports."""

_JOB_FILE = re.compile(r"\[global\w*\]|(?:rw|readwrite|ioengine|filename)\s?=\s?\S+")
_COMPLAINT = re.compile(r"fio: |fio version .{0,40}required|failed to (?:open|set)")
_UNKNOWN = (
    "no fio report, JSON, terse record, t/io_uring output, log or result table in it"
)
_UNENDED = re.compile(rb"[\w.,;%+-][ \t\0]*\Z")
"""The end of a text whose last line may be cut: no newline, bar, bracket or quote closes it."""
_BEGUN = re.compile(r": \(g=\d{1,9}\): rw=|^Starting \d{1,6} (?:process|thread)")


def read_text(data: bytes, file: str) -> list[Item]:
    """Everything in ``data``, the contents of ``file``, in order; one Refusal with the reason if there is nothing."""
    ended = not _UNENDED.search(data[-8:])
    reports, data = json_found.in_bytes(data, file)
    if data.count(b"\n") + data.count(b"\r") > MOST_LINES:
        reason = f"more than {MOST_LINES} lines and no fio log"
        return list(once([*reports, [Refusal(Place(file), reason)]]))
    cleaned = _restored(lines(data))
    used = bytearray(len(cleaned))
    whole = "\n".join(line.text for line in cleaned)
    reports += _reports_of_tools(cleaned, used, whole, file)
    of_tools, everywhere = other_tools.refused(cleaned, used, file)
    own = own_reports.refused(whole, cleaned, file)
    refused = [*of_tools, *own]
    has_stats = read_stats.HINT.search(whole)
    stats = read_stats.dumps(cleaned, used, file) if has_stats else []
    if tables.hinted(whole) and not (everywhere or own):
        reports += map(list, tables.tables(cleaned, used, file, ended=ended))
    items: list[Item] = [*once(sorted(reports, key=_line)), *stats, *refused]
    if not any(isinstance(item, Run) for item in items):
        # The contents of a text without a report or table: excerpts of reports, numbers in sentences, or the reason why
        # there is nothing.
        refused_ = bool(items)
        parts: list[Item] = []
        if excerpts.hinted(whole):
            parts += excerpts.runs(cleaned, used, file)
        items += parts or (
            [] if refused_ else _in_sentences(cleaned, used, whole, file)
        )
    if items and not own and not everywhere:
        items += tables.lost(cleaned, used, file)
    return items or [_nothing(cleaned, file)]


_JOINED = re.compile(
    r"\s+(?=(?:read|write|trim|mixed) ?: ?(?:IOPS=|io=)|(?:[sc]?lat|sync) ?\((?:nsec|usec|msec)\) ?:|[sc]?lat percentiles \("
    r"|\| +\d|bw ?\( ?[KMG]i?B|iops +:|iops: min|cpu ?:|cpu +:|IO depths +:|IO depths:|submit +:|submit:|complete +:|complete:"
    r"|issued \w{3,4}:|issued +:|latency +:|latency: |Run status group|(?:READ|WRITE|TRIM|MIXED): (?:bw|io)=|Disk stats"
    r"|[\w.-]{1,60}: \(groupid=|[\w.-]{1,60}: \(g=\d|Starting \d|fio-\d|errors +:|[\w-]{2,20}: ios=)"
)
_CAPITALS = re.compile(
    r"\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|starting(?= \d)|run(?= status)|disk(?= stats)"
    r"|io(?= depths))\b"
)


def _restored(cleaned: list[Line]) -> list[Line]:
    """``cleaned`` with fio's reports in fio's own capitals, and on lines of their own where they were joined to one."""
    joined = [
        line
        for line in cleaned
        if "(groupid=" in line.text.lower() and len(line.text) > 600
    ]
    in_capitals = any("(GROUPID=" in line.text for line in cleaned)
    if not joined and not in_capitals:
        return cleaned
    restored: list[Line] = []
    for line in cleaned:
        text = line.text
        if in_capitals and not re.search("[a-z]{2}", text):
            text = _CAPITALS.sub(
                lambda word: "IO" if word[0] == "io" else word[0].capitalize(),
                text.lower(),
            )
            text = re.sub(r"\(([rwt])\)", lambda kind: f"({kind[1].upper()})", text)
            if re.search(r"^\s*(?:read|write|trim|mixed) ?: ?iops=", text):
                text = text.replace("iops=", "IOPS=").replace("bw=", "BW=")
            elif re.search(
                r"^\s*(?:read|write|trim|mixed): (?:bw|io)=.*(?:run|mint)=", text
            ):
                head, _, rest = text.partition(":")
                text = f"{head.upper()}:{rest}"
        parts = (
            _JOINED.split(text) if "(groupid=" in text and len(text) > 600 else [text]
        )
        restored += [
            Line(line.number, part, line.tabbed if len(parts) == 1 else "")
            for part in parts
        ]
    return restored


_OF_JSON = ('"jobs"', '"client_stats"', '"fio version"', '"jobname"')


def _reports_of_tools(
    cleaned: Sequence[Line], used: bytearray, whole: str, file: str
) -> list[Report]:
    """Return the output of tools, each in its format; a reader runs only if the ``whole`` text contains its hints."""
    reports: list[Report] = []
    if any(key in whole for key in _OF_JSON):
        reports += json_found.in_lines(cleaned, used, file)
    if whole.count(";") >= terse.LEAST:
        reports += terse.records(cleaned, used, file)
    if "IOPS=" in whole or "submitter=" in whole:
        reports += [[run] for run in io_uring.outputs(cleaned, used, file)]
    if "(groupid=" in whole or text_report.HINT.search(whole):
        # One report per invocation: a repeated group begins the next.
        runs_ = text_report.reports(cleaned, used, file)
        reports_: list[Report] = []
        for run_ in runs_:
            repeated = (
                isinstance(run_, Run)
                and bool(reports_)
                and _repeats(run_, reports_[-1])
            )
            if not reports_ or repeated:
                reports_.append([])
            reports_[-1].append(run_)
        reports += reports_
    if robot.HINT in whole:
        reports += robot.tables(cleaned, used, file)
    if "(Read/Write)" in whole:
        reports += [list(runs) for runs in kbench.summaries(cleaned, used, file)]
    return reports + other_tools.results(cleaned, used, file)


def _in_sentences(
    cleaned: Sequence[Line], used: bytearray, whole: str, file: str
) -> list[Item]:
    """Return the numbers in the sentences of a text, and a refusal for those that were not understood."""
    runs = prose.rows(whole, file)
    items: list[Item] = [
        msgspec.structs.replace(
            run, place=Place(file, cleaned[run.place.line - 1].number)
        )
        for run in runs
    ]
    unread = prose.unread(whole, runs) if runs else []
    used[:] = b"\1" * len(used) if runs else used
    if unread:
        lines = plural(len(unread), "line")
        words = f"{lines} with rates in sentences that iodelta does not understand: not read; put them in"
        place = Place(file, cleaned[unread[0] - 1].number)
        items.append(
            Refusal(
                place,
                f"{words} a CSV with the columns test, IOPS, BW (MiB/s)",
                lost=True,
            )
        )
    return items


def _line(report: Report) -> int:
    return report[0].place.line


def _repeats(run: Run, report: Report) -> bool:
    """Return whether ``run`` belongs to another invocation than the runs of ``report``, by version, pid or group."""
    before = [other for other in report if isinstance(other, Run)]
    if not before:
        return False
    last = before[-1]
    if run.fio_version != last.fio_version or (run.group or 0) < (last.group or 0):
        return True
    return _job_key(run) in map(_job_key, before)


_job_key = attrgetter("jobname", "group", "pid")


def _nothing(cleaned: Sequence[Line], file: str) -> Refusal:
    """Return why nothing was read, at the first line that names a measure."""
    stripped = (line.text.strip() for line in cleaned[:5000])
    text = list(filter(None, stripped))
    if not text:
        why = "only blank lines"
    elif any(_BEGUN.search(line[:1000]) for line in text):
        why = "fio was started, but there is no report: it was killed, or the output is cut"
    else:
        complaint = next(filter(_COMPLAINT.match, text), "")
        if complaint:
            why = f"fio printed no result, but {clean(complaint[:200])!r}"
        else:
            options = list(filter(_JOB_FILE.match, text[:50]))
            if len(options) >= 2:
                why = "a fio job file: it says what to run, and contains no results"
            else:
                why = _UNKNOWN
    named = tables.first_hint(cleaned) if why == _UNKNOWN else None
    if named is None:
        return Refusal(Place(file), why)
    words = (
        f"{why}; this line names a measure, but it is not clear which numbers belong to it: put a comma, tab or | "
        "between columns, and a measure with its unit into every title"
    )
    return Refusal(Place(file, named.number), words)
