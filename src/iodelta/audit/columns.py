"""The columns of somebody's table: which hold a number of what in which unit, and which name the row."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from iodelta.ingest import Run
from iodelta.trial import Kind

Holds = Literal["iops", "bandwidth", "mean", "percentile", "other"]

_TIME = {"ns": 1.0, "nsec": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9}
_RATE = re.compile(r"([kmg]?)(i?)b(?:yte)?s?\s*(?:/|per\s+)\s*s", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3}


class Column(msgspec.Struct, frozen=True):
    """What a column holds: ``scale`` is its unit in I/Os per second, bytes per second or ns; None when not given."""

    holds: Holds
    kind: Kind | None = None
    percent: float | None = None
    scale: float | None = None


@lru_cache(maxsize=512)
def column(title: str) -> Column | None:
    """What the column with this title holds; None for one that names the row: ``Policy``, ``Test``, ``iodepth``."""
    text = title.casefold().replace("_", " ")
    if re.search(r"Δ|\b(change|delta|diff)", title, re.IGNORECASE):
        return Column("other")
    kind: Kind | None = "read" if re.search(r"\b(read|rr)\b", text) else None
    kind = "write" if re.search(r"\b(write|rw)\b", text) else kind
    if re.search(r"iops\b|ios?/s\b", text):
        return Column("iops", kind, None, 1e3 if "kiops" in text else 1.0)
    rate = _RATE.search(text)
    if rate or re.search(r"\b(bw|bandwidth|throughput)\b", text):
        base = 1024.0 if rate and rate[2] else 1000.0
        return Column("bandwidth", kind, None, base ** _POWER[rate[1]] if rate else None)
    percent = re.search(r"\bp(\d{2}(?:\.\d+)?)\b|\b(\d{2}(?:\.\d+)?)\s*(?:%|th\b)", text)
    late = re.search(r"\b(lat|latency|latencies|clat|slat)\b", text)
    if percent and (late or percent[1]):
        return Column("percentile", kind, float(percent[1] or percent[2]), _time(text))
    if late or re.search(r"\b(avg|mean)\b.*\b(ms|us|µs|usec|msec)\b", text):
        spread = re.search(r"\b(max|min|std\w*|dev)\b", text)
        return Column("other", kind) if spread else Column("mean", kind, None, _time(text))
    return Column("other", kind) if re.search(r"%|\b(cpu|util\w*|std\w*|cv|bytes|elapsed)\b", text) else None


def _time(text: str) -> float | None:
    unit = re.search(r"[(\[,/ ](ns|nsec|us|µs|μs|usec|ms|msec|s)[)\] ]*$", text)
    return _TIME[unit[1]] if unit else None


def naming(run: Run) -> dict[str, str]:
    """The cells that name a table's row, by title, in the columns' order. A number of five digits names nothing."""
    return {
        title: text
        for title, text in run.labels.items()
        if column(title) is None and not re.fullmatch(r"\s*(\d[\d ,.]{4,}|[\d.]+e[+-]?\d+)\s*", text, re.IGNORECASE)
    }
