"""What every story of somebody's results says of its sources: what was not read, what measured them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iodelta.ingest import Refusal
from iodelta.study.words import inert

REFUSALS = 10
"""Reasons that are given; the rest is counted."""

VERSIONS = 4
"""Versions of fio that are named."""

UNKNOWN = "The machine is not recorded in these results."


def not_read(refusals: Sequence[Refusal], common: str = "") -> Iterator[str]:
    """What could not be read, files with the same reason together; ``common`` is the folder that all lie in."""
    alike: dict[str, list[str]] = {}
    for refusal in refusals:
        line = f":{refusal.place.line}" if refusal.place.line else ""
        alike.setdefault(refusal.reason, []).append(refusal.place.file.removeprefix(common) + line)
    reasons = list(alike.items())
    for reason, files in reasons[:REFUSALS]:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        yield f"{inert(files[0])}{more}: {inert(reason)}"
    if len(reasons) > REFUSALS:
        left = sum(len(files) for _, files in reasons[REFUSALS:])
        yield f"and {left} more not read; --format json lists them"


def machine(versions: Iterable[str | None], recorded: Iterable[tuple[str, str]] = ()) -> Iterator[str]:
    """The system behind results: what iodelta ``recorded``; of those that somebody gave the fio that wrote them."""
    known_here = [f"{name}: {value}" for name, value in recorded]
    if known_here:
        yield from known_here
        return
    known = sorted({inert(version) for version in versions if version})
    if known:
        others = " and others" if len(known) > VERSIONS else ""
        yield f"fio: {', '.join(known[:VERSIONS])}{others}"
    yield UNKNOWN
