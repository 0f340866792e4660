"""What the name of a fio log says: of what it is, of which job, and which logs are of one job."""

from __future__ import annotations

import re

from iodelta.ingest.model import Logged
from iodelta.ingest.wording import clean

_NAME = re.compile(r"(?:^|[_./!-])(bw|iops|slat|clat|lat)(?=\.|_|$)(?!.*_hist)")
_NUMBER = re.compile(r"\.(\d{1,6})\.log")
_KIND = re.compile(r"_(?:bw|iops|slat|clat|lat|clat_hist)(?=(?:\.\d{1,6})?\.log)")


def what(name: str) -> Logged | None:
    """What a log of this name holds: fio says it nowhere else."""
    kinds: list[Logged] = _NAME.findall(name.rpartition("/")[2])
    if not kinds:
        return None
    return kinds[-1]


def number_of(name: str) -> str:
    """The number of the job, counted over the clones of all sections; empty where logs are not kept apart."""
    number = _NUMBER.search(name)
    if not number:
        return ""
    return number[1]


def jobname(name: str) -> str:
    """What was given to write_bw_log and the like."""
    last = name.rpartition("/")[2].rpartition("!")[2]
    return clean(
        re.sub(r"_(?:bw|iops|slat|clat|lat)(?:\.\d{1,6})?\.log.{0,20}$", "", last)
    )


def without_kind(name: str) -> str | None:
    """The same for all logs of one job; None for a name that is not a log's."""
    stem, changes = _KIND.subn("", name)
    return stem if changes else None
