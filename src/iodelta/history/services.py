"""The newest values as Perfherder and LNT take them. Both identify a series by its name alone."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from iodelta.errors import RequestError
from iodelta.history.answers import HistoryPoint
from iodelta.history.newest import marks_of, newest, plain
from iodelta.history.store import Line

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


def perfherder(lines: Iterable[Line]) -> Made:
    """Return a Perfherder artifact: a suite for each cell, which the machine, variant and role distinguish as its
    options.
    """
    usable, left_out = [], []
    for line, point in newest(lines):
        if point.y > math.log(LARGEST):
            left_out.append(f"{_words(line)}: Perfherder takes values up to 1e12")
        else:
            usable.append((line, point))
    marks = marks_of(usable, _signature)
    suites: dict[tuple[str, ...], dict[str, Any]] = {}
    for line, point in usable:
        name = shortened(line.cell + marks[line.key.number], SUITE)
        options = _options(line)
        suite = {"name": name, "extraOptions": list(options), "subtests": []}
        subtest = {
            "name": shortened(line.key.metric, SUITE),
            "value": min(math.exp(point.y), LARGEST),
            "lowerIsBetter": line.better == "lower",
        }
        if line.unit:
            subtest["unit"] = shortened(line.unit, UNIT)
        suites.setdefault((name, *options), suite)["subtests"].append(subtest)
    document = {"framework": {"name": "iodelta"}, "suites": list(suites.values())}
    return document, tuple(left_out)


def _options(line: Line) -> tuple[str, ...]:
    texts = (line.key.machine, line.variant, line.key.role)
    return tuple(dict.fromkeys(shortened(text, OPTION) for text in texts if text))


def _signature(line: Line) -> tuple[str, ...]:
    """Return what Perfherder tells series apart by: it sorts the options."""
    options = sorted(_options(line))
    names = (shortened(line.cell, SUITE), shortened(line.key.metric, SUITE))
    return (*names, " ".join(options))


def lnt(lines: Iterable[Line]) -> Made:
    """Return a report of LNT (format 2) for its default suite, NTS: the newest experiment. What is better when higher
    is a ``score``, what takes time an ``execution_time``. Raises RequestError for several machines."""
    pairs = list(newest(lines))
    if not pairs:
        raise RequestError("the history has no point", place="history export --to lnt")
    machines = sorted({line.key.machine for line, _ in pairs})
    if len(machines) > 1:
        raise RequestError(
            f"a report of LNT is of one machine, and the history has {len(machines)}",
            place="history export --to lnt",
            remedy=f"name one with --machine, such as {machines[0]}",
        )
    latest = max((point for _, point in pairs), key=lambda point: point.t)
    usable: list[tuple[Line, HistoryPoint]] = []
    left_out: list[str] = []
    for line, point in pairs:
        why = _why_not_lnt(line, point, latest)
        if why:
            left_out.append(f"{_words(line)}: {why}")
        else:
            usable.append((line, point))
    marks = marks_of(usable, _words)
    tests = [_test(line, point, marks[line.key.number]) for line, point in usable]
    machine = {"name": shortened(machines[0], NAME)}
    return {
        "format_version": "2",
        "machine": machine,
        "run": _run(latest),
        "tests": tests,
    }, tuple(left_out)


def _why_not_lnt(line: Line, point: HistoryPoint, latest: HistoryPoint) -> str:
    """Return why a point is not in a report of LNT; empty if it is."""
    if point.experiment != latest.experiment:
        return "not in the newest experiment"
    if line.better == "higher" or line.unit in SECONDS:
        return ""
    unit = line.unit or "no unit"
    return f"LNT's suite has no metric that is better when lower, in {unit}"


def _run(point: HistoryPoint) -> dict[str, str]:
    begun = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(point.t))
    # LNT orders runs by this field and refuses a report without it.
    order = point.describe or point.commit or begun
    run = {
        "start_time": begun,
        "end_time": begun,
        "llvm_project_revision": shortened(order, NAME),
    }
    if point.commit:
        run["commit"] = shortened(point.commit, NAME)
    return run


def _test(line: Line, point: HistoryPoint, mark: str) -> dict[str, Any]:
    value = math.exp(point.y)
    metric = "score" if line.better == "higher" else "execution_time"
    if metric == "execution_time":
        value *= SECONDS[line.unit]
    return {"name": shortened(_words(line) + mark, NAME), metric: value}


def _words(line: Line) -> str:
    """Return a series in words, without its machine."""
    return " ".join(
        filter(None, (line.cell, line.variant, line.key.role, line.key.metric))
    )


def shortened(text: str, most: int) -> str:
    """``text`` in at most so many characters: the end of a longer one is a digest of it. NUL is left out, which
    PostgreSQL does not store."""
    text = plain(text)
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: most - 9]}~{digest[:8]}"
