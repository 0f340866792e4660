"""``python -m benchmarks.history.public TCPD``: segments of public series against what people marked in them (H5).

``TCPD`` is a clone of https://github.com/alan-turing-institute/TCPD (Van den Burg and Williams 2020, arXiv:2003.06222):
series of economy, weather, sports and simulation in which five people each marked change points. Measures and margin
are theirs. Series with several dimensions, and those that the repository may not distribute, are left out.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.history import rules
from iodelta.stats import changepoints, levels

Floats = NDArray[np.float64]
Marks = tuple[int, ...]
"""First points of new segments."""

MARGIN = 5
"""A mark counts as found by a point so near to it."""


@dataclass(frozen=True)
class Marked:
    """One series, and what each person marked in it."""

    name: str
    values: Floats
    people: tuple[Marks, ...]


def marked(place: Path) -> Iterator[Marked]:
    """Every series of one dimension that is there."""
    annotations = json.loads((place / "annotations.json").read_text())
    for name in sorted(annotations):
        file = place / "datasets" / name / f"{name}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text())["series"]
        values = np.asarray([np.nan if one is None else one for one in found[0]["raw"]], dtype=float)
        if len(found) == 1 and np.all(np.isfinite(values)):
            yield Marked(name, values, tuple(tuple(marks) for marks in annotations[name].values()))


def f_measure(people: Iterable[Marks], found: Marks) -> float:
    """Of the precision by all that anyone marked, and the mean recall over people; 0 counts as a mark of everyone."""
    wanted, own = [{0, *marks} for marks in people], {0, *found}
    precision = len(_met(set().union(*wanted), own)) / len(own)
    recall = float(np.mean([len(_met(marks, own)) / len(marks) for marks in wanted]))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _met(marks: set[int], found: set[int]) -> set[int]:
    """Marks near a point; each point is of one mark."""
    left, met = set(found), set()
    for mark in sorted(marks):
        near = sorted((abs(mark - point), point) for point in left if abs(mark - point) <= MARGIN)
        if near:
            met.add(mark)
            left.discard(near[0][1])
    return met


def covering(people: Iterable[Marks], found: Marks, points: int) -> float:
    """Mean over people of how well segments cover theirs: the best overlap of each, weighted by its length."""
    own = _parts(found, points)
    return float(np.mean([_covered(_parts(marks, points), own) / points for marks in people]))


def _covered(wanted: list[range], own: list[range]) -> float:
    return sum(len(part) * max(_overlap(part, other) for other in own) for part in wanted)


def _overlap(one: range, other: range) -> float:
    both = max(0, min(one.stop, other.stop) - max(one.start, other.start))
    return both / (len(one) + len(other) - both)


def _parts(marks: Marks, points: int) -> list[range]:
    bounds = sorted({0, points, *(mark for mark in marks if 0 < mark < points)})
    return [range(first, last) for first, last in itertools.pairwise(bounds)]


def iodelta(values: Floats) -> Marks:
    """As a history scans a series without errors and without a placebo."""
    y = 0.01 * (values - values.mean()) / (values.std() or 1.0)
    errors = np.zeros(len(y))
    first = changepoints.segments(y, errors)
    inflation = levels.inflation(y, errors, first.tau, changepoints.numbered(first.starts, len(y)))
    return tuple(step.at for step in changepoints.segments(y, errors, inflation=inflation).steps)


def otava(values: Floats) -> Marks:
    """Apache Otava with its defaults."""
    y = 0.01 * (values - values.mean()) / (values.std() or 1.0)
    return tuple(place for _, place, _ in rules.otava(y))


def report(place: Path) -> str:
    """The table as Markdown."""
    ways: dict[str, Callable[[Floats], Marks]] = {"iodelta": iodelta, "no change": lambda values: ()}
    if "otava (whole series)" in rules.rivals():
        ways["otava"] = otava
    heads = [f"{name}: found, F, covering" for name in ways]
    lines = ["| " + " | ".join(["series", "points", "marks a person", *heads]) + " |"]
    lines += ["|---|---:|---:|" + "---:|" * len(ways)]
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for one in marked(place):
        cells = [one.name, f"{len(one.values)}", f"{np.mean([len(marks) for marks in one.people]):.1f}"]
        for name, way in ways.items():
            found = way(one.values)
            scores[name].append((f_measure(one.people, found), covering(one.people, found, len(one.values))))
            cells.append(f"{len(found)}, {scores[name][-1][0]:.2f}, {scores[name][-1][1]:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    means = [np.mean(rows, axis=0) for rows in scores.values()]
    cells = [f"**{mean[0]:.3f}, {mean[1]:.3f}**" for mean in means]
    lines.append(f"| mean of {len(scores['iodelta'])} | | | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.public", description=__doc__)
    parser.add_argument("place", type=Path, metavar="TCPD", help="directory with annotations.json and datasets")
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    chosen = parser.parse_args()
    text = report(chosen.place)
    print(text)
    if chosen.markdown is not None:
        said = "with apache-otava " + importlib.metadata.version("apache-otava") if "otava" in text else "without otava"
        chosen.markdown.write_text(f"# Public series that people marked\n\nTCPD, {said}.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
