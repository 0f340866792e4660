"""Facts in the name of a fio log: its measure, its job, and the other logs of the job."""

from __future__ import annotations

import re

from iodelta.ingest.model import Logged
from iodelta.ingest.wording import clean

_NAME = re.compile(r"(?:^|[_./!-])(bw|iops|slat|clat|lat)(?=\.|_|$)(?!.*_hist)")
_NUMBER = re.compile(r"\.(\d{1,6})\.log")
_KIND = re.compile(r"_(?:bw|iops|slat|clat|lat|clat_hist)(?=(?:\.\d{1,6})?\.log)")


def what(name: str) -> Logged | None:
    """Return the measure of a log with this name: only the name tells it."""
    kinds: list[Logged] = _NAME.findall(name.rpartition("/")[2])
    if not kinds:
        return None
    return kinds[-1]


def number_of(name: str) -> str:
    """Return the number of the job over the clones of all sections; empty if the jobs share a log (per_job_logs=0)."""
    number = _NUMBER.search(name)
    if not number:
        return ""
    return number[1]


def jobname(name: str) -> str:
    """Return the value of write_bw_log and similar options."""
    last = name.rpartition("/")[2].rpartition("!")[2]
    return clean(
        re.sub(r"_(?:bw|iops|slat|clat|lat)(?:\.\d{1,6})?\.log.{0,20}$", "", last)
    )


def without_kind(name: str) -> str | None:
    """Return a name that all logs of one job share; None for the name of another file."""
    stem, changes = _KIND.subn("", name)
    return stem if changes else None
