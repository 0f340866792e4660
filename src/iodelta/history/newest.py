"""The newest value of every series, as other services take it: Bencher, KernelCI, Prometheus."""

from __future__ import annotations

import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from iodelta.history.answers import HistoryPoint
from iodelta.history.exchange import PointRow, row_of
from iodelta.history.scan import Kept
from iodelta.history.store import Line

Z95 = 1.959963984540054
"""Half the width of an interval of 95 %, in standard errors."""

BEYOND_FLOAT = math.log(sys.float_info.max)
"""The logarithm from which on ``math.exp`` overflows."""

ORIGIN = re.compile(r"[a-z0-9_]+")
"""What KernelCI takes for the name of a system that reports to it."""

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""Media type of the text for Prometheus."""


def newest(lines: Iterable[Line]) -> Iterator[tuple[Line, HistoryPoint]]:
    """Yield each series that has a point, with its newest."""
    for line in lines:
        if line.points:
            yield line, line.points[-1]


def marks_of(
    pairs: Iterable[tuple[Line, HistoryPoint]], name: Callable[[Line], object]
) -> dict[int, str]:
    """Series -> what is added to its name: nothing for the oldest of each name, so that a name stays that of its
    series when another one comes."""
    alike: dict[object, list[Line]] = defaultdict(list)
    for line, _ in pairs:
        alike[name(line)].append(line)
    marks = {}
    for same in alike.values():
        same.sort(key=lambda line: (line.points[0].t, line.key.number))
        for rank, line in enumerate(same):
            marks[line.key.number] = f" #{line.key.number:x}" if rank else ""
    return marks


def bmf(lines: Iterable[Line]) -> dict[str, dict[str, dict[str, float]]]:
    """Bencher's metric format, with intervals of 95 %."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    pairs = list(newest(lines))
    marks = marks_of(pairs, lambda line: (_benchmark(line), line.key.metric))
    for line, point in pairs:
        value = {"value": math.exp(point.y)}
        if "no-error" not in point.flags:
            half = Z95 * point.se
            value["lower_value"] = math.exp(point.y - half)
            # Bencher's bounds are optional numbers: there is none for an infinite one.
            if point.y + half < BEYOND_FLOAT:
                value["upper_value"] = math.exp(point.y + half)
        name = _benchmark(line) + marks[line.key.number]
        benchmarks.setdefault(name, {})[line.key.metric] = value
    return benchmarks


def _benchmark(line: Line) -> str:
    names = (line.key.machine, line.cell, line.variant, line.key.role)
    return " ".join(filter(None, names))


def kcidb(lines: Iterable[Line], origin: str) -> dict[str, Any]:
    """Return a report to KernelCI (schema 5.3): each experiment is a build of its commit, each series a test of it
    that is done and has a number."""
    checkouts: dict[str, dict[str, Any]] = {}
    builds: dict[str, dict[str, Any]] = {}
    tests = []
    for line, point in newest(lines):
        row = row_of(line, point)
        checkout = f"{origin}:{point.commit or point.experiment}"
        build = f"{origin}:{point.experiment}"
        checkouts[checkout] = {
            "id": checkout,
            "origin": origin,
            **_commit(row, point.repo),
        }
        builds[build] = {"id": build, "checkout_id": checkout, "origin": origin}
        unit = {"unit": plain(row.unit)} if row.unit else {}
        known = {
            name: getattr(row, name)
            for name in ("better", "error", "ratio", "ratio_error", "flags", "role")
        }
        tests.append(
            {
                "id": f"{build}-{line.key.number}",
                "build_id": build,
                "origin": origin,
                "path": ".".join(
                    map(_part, ("iodelta", row.cell, row.variant, row.metric))
                ),
                "comment": plain(f"{row.cell}, {row.variant}: {row.metric}"),
                "status": "DONE",
                "number": {"value": row.value, **unit},
                "start_time": row.time,
                "environment": {"comment": plain(row.machine)},
                "misc": {
                    name: value
                    for name, value in known.items()
                    if value not in ("", None)
                },
            }
        )
    return {
        "version": {"major": 5, "minor": 3},
        "checkouts": list(checkouts.values()),
        "builds": list(builds.values()),
        "tests": tests,
    }


def _commit(row: PointRow, repo: str) -> dict[str, str]:
    described: dict[str, str] = {}
    if re.fullmatch(r"[0-9a-f]{40}", row.commit):
        described["git_commit_hash"] = row.commit
    if row.build:
        described["git_commit_name"] = plain(row.build)
    if re.fullmatch(r"https://[!-~]+", repo):
        described["git_repository_url"] = repo
    return described


def _part(text: str) -> str:
    """Return a part of a path of KernelCI, which is made of letters, digits, ``-`` and ``_``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text) or "_"


def plain(text: str) -> str:
    """Without NUL, which PostgreSQL does not store."""
    return text.replace("\0", "")


GAUGES = (
    ("value", "", "Newest value of a series: the geometric mean of its blocks."),
    ("error", "ratio", "Standard error of the value, as a share of it."),
    (
        "against_reference",
        "ratio",
        "Newest value over the reference variant's in the same blocks.",
    ),
    ("against_reference_error", "ratio", "Standard error of that, as a share of it."),
    (
        "measured_timestamp",
        "seconds",
        "When the experiment of the newest value began, in Unix time.",
    ),
    ("nights", "", "Points of a series."),
)
"""Gauges of a series: name, unit and help."""


def openmetrics(series: Iterable[Kept]) -> str:
    """Gauges in the text format of OpenMetrics 1.0. A number that is not known has no sample."""
    samples = []
    for one in series:
        point = one.newest
        if point is None:
            continue
        sign = -1.0 if one.better == "higher" else 1.0
        named = {
            name: getattr(one, name)
            for name in (
                "machine",
                "cell",
                "variant",
                "metric",
                "unit",
                "better",
                "role",
            )
        }
        labels = ",".join(
            f'{name}="{_escaped(text)}"'
            for name, text in {**named, "series": str(one.series)}.items()
        )
        numbers = {
            "value": math.exp(point.y),
            "error": None if "no-error" in point.flags else point.se,
            "against_reference": None if point.r is None else math.exp(sign * point.r),
            "against_reference_error": point.r_se,
            "measured_timestamp": point.t,
            "nights": one.nights,
        }
        samples.append((labels, numbers))
    text = []
    for name, unit, about in GAUGES:
        metric = "_".join(filter(None, ("iodelta", name, unit)))
        text += [
            f"# TYPE {metric} gauge",
            *([f"# UNIT {metric} {unit}"] if unit else []),
            f"# HELP {metric} {about}",
        ]
        text += [
            f"{metric}{{{labels}}} {own[name]!r}"
            for labels, own in samples
            if own[name] is not None
        ]
    return "\n".join([*text, "# EOF", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
