"""Dumps of btrfs ``read_stats``, as ``grep '^' .../devinfo/*/read_stats`` prints them, with time stamps between."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import DeviceStats
from iodelta.ingest.wording import clean
from iodelta.trial import Place

_GREP = re.compile(r"(\S{0,400}?/)?(?:devinfo/)?(\d{1,9})/read_stats:(.{1,2000})")
_BARE = re.compile(r"(?:cumulative )?ios[ :=]{1,3}\d{1,19}\s.{0,400}\bavg[ :=]{1,3}\d")
HINT = re.compile(r"/read_stats:|cumulative ios|\bios[ :=]{1,3}\d")
_STAMP = re.compile(r"Timestamp: (\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")


def dumps(lines: Sequence[Line], used: bytearray, file: str) -> list[DeviceStats]:
    """What each device had served at each time; the indexes of the lines are marked in ``used``."""
    stats: list[tuple[int, str, float | None, str]] = []
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
        used[index] = 1
        device, words = (grepped[2], grepped[3]) if grepped else ("", text)
        if (
            stats
            and stats[-1][1:3] == (device, at)
            and not _names(words) & _names(stats[-1][3])
        ):
            # A file of several lines.
            stats[-1] = (
                *stats[-1][:3],
                f"{stats[-1][3]}\n{words}",
            )
        else:
            stats.append((line.number, device, at, words))
    return [
        DeviceStats(Place(file, number), clean(device), _finite(_fields(words)), when)
        for number, device, when, words in stats
    ]


def _time(stamp: re.Match[str]) -> float | None:
    year, month, *rest = map(int, stamp.groups())
    if 0 < month < 13 and year >= 1970:
        return float(calendar.timegm((year, month, *rest, 0, 0, 0)))
    return None


def _names(words: str) -> set[str]:
    return set(_fields(words))


def _finite(fields: dict[str, float]) -> dict[str, float]:
    return {
        clean(name): value for name, value in fields.items() if math.isfinite(value)
    }


def _fields(words: str) -> dict[str, float]:
    # With the machines that it counts on.
    from iodelta.probe.counters import parse_read_stats

    return parse_read_stats(words)
