"""Dumps of btrfs ``read_stats``, as ``grep '^' .../devinfo/*/read_stats`` prints them, with time stamps between."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import DeviceStats
from iodelta.ingest.wording import clean
from iodelta.trial import Place

_GREP = re.compile(r"(\S{0,400}?/)?(?:devinfo/)?(\d{1,9})/read_stats:(.{1,2000})")
_BARE = re.compile(r"(?:cumulative )?ios[ :=]{1,3}\d{1,19}\s.{0,400}\bavg[ :=]{1,3}\d")
HINT = re.compile(r"/read_stats:|cumulative ios|\bios[ :=]{1,3}\d")
_STAMP = re.compile(r"Timestamp: (\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")


def dumps(lines: Sequence[Line], used: bytearray, file: str) -> list[DeviceStats]:
    """Return the counters of each device at each time; the indexes of the lines are marked in ``used``."""
    read: list[_Dump] = []
    at: float | None = None
    for index, line in enumerate(lines):
        text = line.text.strip()[:3000]
        if used[index]:
            continue
        stamp = _STAMP.search(text)
        if stamp:
            at = _time(stamp)
            continue
        grepped = _GREP.match(text) if "/read_stats:" in text else None
        if grepped is None and not _BARE.match(text):
            continue
        stated = (grepped[2], grepped[3]) if grepped else ("", text)
        used[index] = 1
        dump = _Dump(line.number, *stated, at)
        if read and _goes_on(read[-1], dump):
            words = f"{read[-1].words}\n{dump.words}"
            read[-1] = read[-1]._replace(words=words)
        else:
            read.append(dump)
    return [dump.stats(file) for dump in read]


class _Dump(NamedTuple):
    """The text of one device's ``read_stats``, and when it was read (Unix seconds)."""

    line: int
    device: str
    words: str
    at: float | None

    def stats(self, file: str) -> DeviceStats:
        """Return the numbers in the text."""
        fields = _fields(self.words)
        numbers = {
            clean(name): value for name, value in fields.items() if math.isfinite(value)
        }
        return DeviceStats(Place(file, self.line), clean(self.device), numbers, self.at)


def _goes_on(before: _Dump, dump: _Dump) -> bool:
    """Return whether a line continues the file of the previous line: it repeats none of its fields."""
    is_same = (before.device, before.at) == (dump.device, dump.at)
    return is_same and _names(dump.words).isdisjoint(_names(before.words))


def _time(stamp: re.Match[str]) -> float | None:
    year, month, *rest = map(int, stamp.groups())
    if 0 < month < 13 and year >= 1970:
        return float(calendar.timegm((year, month, *rest, 0, 0, 0)))
    return None


def _names(words: str) -> set[str]:
    return set(_fields(words))


def _fields(words: str) -> dict[str, float]:
    # Imports the room of machines.
    from iodelta.probe.counters import parse_read_stats

    return parse_read_stats(words)
