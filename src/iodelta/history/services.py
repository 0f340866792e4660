"""The newest value of every series, as other services take it: Bencher, KernelCI, Perfherder, LNT, Prometheus."""

from __future__ import annotations

import hashlib
import math
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from iodelta.errors import RequestError
from iodelta.history.answers import HistoryPoint
from iodelta.history.exchange import row_of
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

LARGEST = 1e12
"""The largest value of Perfherder's schema (schemas/performance-artifact.json of Treeherder)."""
SUITE, OPTION, UNIT = 80, 100, 20
"""Its most characters of a suite's or subtest's name, an extra option, a unit."""
NAME = 256
"""Most characters of a name in LNT's database."""

SECONDS: Mapping[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
}
"""Units of time: LNT's execution_time is in seconds."""

Made = tuple[dict[str, Any], tuple[str, ...]]
"""A document, and a sentence for each series that it leaves out."""

Newest = list[tuple[Line, HistoryPoint]]


def newest(lines: Iterable[Line]) -> Newest:
    """Return each series that has a point, with its newest."""
    return [(line, line.points[-1]) for line in lines if line.points]


def marks_of(pairs: Newest, name: Callable[[Line], object]) -> dict[int, str]:
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


def plain(text: str) -> str:
    """Without NUL, which PostgreSQL does not store."""
    return text.replace("\0", "")


def shortened(text: str, most: int) -> str:
    """``text`` in at most so many characters: the end of a longer one is a digest of it. NUL is left out."""
    text = plain(text)
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: most - 9]}~{digest[:8]}"


def bmf(lines: Iterable[Line]) -> dict[str, dict[str, dict[str, float]]]:
    """Bencher's metric format, with intervals of 95 %."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}

    def named(line: Line) -> str:
        return " ".join(
            filter(None, (line.key.machine, line.cell, line.variant, line.key.role))
        )

    pairs = newest(lines)
    marks = marks_of(pairs, lambda line: (named(line), line.key.metric))
    for line, point in pairs:
        value = {"value": math.exp(point.y)}
        if "no-error" not in point.flags:
            half = Z95 * point.se
            value["lower_value"] = math.exp(point.y - half)
            # Bencher's bounds are optional numbers: there is none for an infinite one.
            if point.y + half < BEYOND_FLOAT:
                value["upper_value"] = math.exp(point.y + half)
        benchmarks.setdefault(named(line) + marks[line.key.number], {})[
            line.key.metric
        ] = value
    return benchmarks


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
        about = {"id": checkout, "origin": origin}
        if re.fullmatch(r"[0-9a-f]{40}", row.commit):
            about["git_commit_hash"] = row.commit
        if row.build:
            about["git_commit_name"] = plain(row.build)
        if re.fullmatch(r"https://[!-~]+", point.repo):
            about["git_repository_url"] = point.repo
        checkouts[checkout] = about
        builds[build] = {"id": build, "checkout_id": checkout, "origin": origin}
        unit = {"unit": plain(row.unit)} if row.unit else {}
        more = {
            name: getattr(row, name)
            for name in ("better", "error", "ratio", "ratio_error", "flags", "role")
        }
        # A path of KernelCI is made of letters, digits, "-" and "_".
        parts = (
            re.sub(r"[^A-Za-z0-9_-]+", "_", text) or "_"
            for text in (row.cell, row.variant, row.metric)
        )
        tests.append(
            {
                "id": f"{build}-{line.key.number}",
                "build_id": build,
                "origin": origin,
                "path": ".".join(("iodelta", *parts)),
                "comment": plain(f"{row.cell}, {row.variant}: {row.metric}"),
                "status": "DONE",
                "number": {"value": row.value, **unit},
                "start_time": row.time,
                "environment": {"comment": plain(row.machine)},
                "misc": {
                    name: value
                    for name, value in more.items()
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


def _words(line: Line) -> str:
    """Return a series in words, without its machine."""
    return " ".join(
        filter(None, (line.cell, line.variant, line.key.role, line.key.metric))
    )


def _parted(
    pairs: Newest, why: Callable[[Line, HistoryPoint], str]
) -> tuple[Newest, tuple[str, ...]]:
    """Return the series that a service takes, and a sentence for each of the others."""
    usable, left_out = [], []
    for line, point in pairs:
        if said := why(line, point):
            left_out.append(f"{_words(line)}: {said}")
        else:
            usable.append((line, point))
    return usable, tuple(left_out)


def perfherder(lines: Iterable[Line]) -> Made:
    """Return a Perfherder artifact: a suite for each cell, which the machine, variant and role distinguish as its
    options.
    """

    def options(line: Line) -> list[str]:
        texts = (line.key.machine, line.variant, line.key.role)
        return list(dict.fromkeys(shortened(text, OPTION) for text in texts if text))

    usable, left_out = _parted(
        newest(lines),
        lambda _, point: (
            "Perfherder takes values up to 1e12" if point.y > math.log(LARGEST) else ""
        ),
    )
    # What Perfherder tells series apart by: it sorts the options.
    marks = marks_of(
        usable,
        lambda line: (
            shortened(line.cell, SUITE),
            shortened(line.key.metric, SUITE),
            " ".join(sorted(options(line))),
        ),
    )
    suites: dict[tuple[str, ...], dict[str, Any]] = {}
    for line, point in usable:
        name, own = shortened(line.cell + marks[line.key.number], SUITE), options(line)
        subtest = {
            "name": shortened(line.key.metric, SUITE),
            "value": min(math.exp(point.y), LARGEST),
            "lowerIsBetter": line.better == "lower",
        }
        if line.unit:
            subtest["unit"] = shortened(line.unit, UNIT)
        suite = suites.setdefault(
            (name, *own), {"name": name, "extraOptions": own, "subtests": []}
        )
        suite["subtests"].append(subtest)
    return {"framework": {"name": "iodelta"}, "suites": list(suites.values())}, left_out


def lnt(lines: Iterable[Line]) -> Made:
    """Return a report of LNT (format 2) for its default suite, NTS: the newest experiment. What is better when higher
    is a ``score``, what takes time an ``execution_time``. Raises RequestError for several machines."""
    pairs, place = newest(lines), "history export --to lnt"
    if not pairs:
        raise RequestError("the history has no point", place=place)
    machines = sorted({line.key.machine for line, _ in pairs})
    if len(machines) > 1:
        raise RequestError(
            f"a report of LNT is of one machine, and the history has {len(machines)}",
            place=place,
            remedy=f"name one with --machine, such as {machines[0]}",
        )
    latest = max((point for _, point in pairs), key=lambda point: point.t)

    def why(line: Line, point: HistoryPoint) -> str:
        if point.experiment != latest.experiment:
            return "not in the newest experiment"
        if line.better == "higher" or line.unit in SECONDS:
            return ""
        return f"LNT's suite has no metric that is better when lower, in {line.unit or 'no unit'}"

    usable, left_out = _parted(pairs, why)
    marks = marks_of(usable, _words)
    tests = []
    for line, point in usable:
        kind, factor = (
            ("score", 1.0)
            if line.better == "higher"
            else ("execution_time", SECONDS[line.unit])
        )
        tests.append(
            {
                "name": shortened(_words(line) + marks[line.key.number], NAME),
                kind: math.exp(point.y) * factor,
            }
        )
    begun = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(latest.t))
    # LNT orders runs by this field and refuses a report without it.
    order = shortened(latest.describe or latest.commit or begun, NAME)
    run = {"start_time": begun, "end_time": begun, "llvm_project_revision": order}
    if latest.commit:
        run["commit"] = shortened(latest.commit, NAME)
    machine = {"name": shortened(machines[0], NAME)}
    return {
        "format_version": "2",
        "machine": machine,
        "run": run,
        "tests": tests,
    }, left_out


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

LABELS = ("machine", "cell", "variant", "metric", "unit", "better", "role", "series")


def openmetrics(series: Iterable[Kept]) -> str:
    """Gauges in the text format of OpenMetrics 1.0. A number that is not known has no sample."""
    samples: list[tuple[str, dict[str, float | None]]] = []
    for one in series:
        point = one.newest
        if point is None:
            continue
        sign = -1.0 if one.better == "higher" else 1.0
        texts = {name: str(getattr(one, name)) for name in LABELS}
        escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
        labels = ",".join(
            f'{name}="{text.translate(escapes)}"' for name, text in texts.items()
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
        units = [f"# UNIT {metric} {unit}"] if unit else []
        text += [f"# TYPE {metric} gauge", *units, f"# HELP {metric} {about}"]
        text += [
            f"{metric}{{{labels}}} {own[name]!r}"
            for labels, own in samples
            if own[name] is not None
        ]
    return "\n".join([*text, "# EOF", ""])
