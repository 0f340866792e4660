"""``python -m benchmarks.history.rebuild FOLDER --folders 10000``: how long it takes to read so many folders of a real
experiment and write them to a new database, as ``iodelta history rebuild`` does. Each folder is a link to FOLDER, read
and checked whole; only its identifier and its time are exchanged."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.history.scale import DAY
from iodelta.errors import IodeltaError
from iodelta.history.adding import rebuild_file
from iodelta.history.log import Given
from iodelta.history.points import Night
from iodelta.history.reading import outcomes
from iodelta.history.store import Store


def links(folder: Path, place: Path, count: int) -> list[Path]:
    """So many names of one folder."""
    found = [place / f"{number}" for number in range(count)]
    for path in found:
        path.symlink_to(folder.resolve())
    return found


def nights(paths: list[Path]) -> Iterator[Night]:
    """What is in them, a night each."""
    with outcomes([(str(path), Given()) for path in paths]) as read:
        for number, (path, outcome) in enumerate(zip(paths, read, strict=True)):
            if isinstance(outcome, IodeltaError):
                raise outcome
            own = {"identifier": f"{outcome[0].identifier}-{number}", "folder": str(path)}
            yield msgspec.structs.replace(outcome[0], t=outcome[0].t + DAY * number, **own)


def used() -> float:
    """Seconds of CPU of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> int:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.rebuild", description=__doc__)
    parser.add_argument("folder", type=Path, help="of an experiment that iodelta measured")
    parser.add_argument("--folders", type=int, default=10_000)
    chosen = parser.parse_args()
    trials = (chosen.folder / "journal.jsonl").read_bytes().count(b'"type":"finished"')
    with tempfile.TemporaryDirectory(prefix="iodelta-rebuild-") as place:
        paths = links(chosen.folder, Path(place), chosen.folders)
        begun, spent = time.monotonic(), used()
        rebuild_file(Path(place), nights(paths))
        seconds, cpu = time.monotonic() - begun, used() - spent
        store = Store(f"sqlite:///{place}/history.db")
        there, points = len(store.experiments()), sum(len(line.points) for line in store.lines())
        store.close()
    print(f"{there:,} folders of {trials} trials, {points:,} points: {cpu:.0f} s of CPU, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
