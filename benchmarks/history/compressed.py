"""Nights of one machine, compressed: real fio on a loop device whose reads per second a control group limits.

    python -m benchmarks.history.compressed --nights 40 --minutes 20 --place /tmp/compressed

Each night is ``iodelta history night``: a commit that changes nothing, its build, an experiment of it against a
reference and a placebo, scan, confirmation. After the quiet nights a commit limits its own reads to 2 % fewer, and
nights go on until an alert is confirmed. Needs root, git, fio and the blkio controller of cgroup v1. With the place on
tmpfs the limit is all that the reads wait for. What it made is removed at the end; the history stays.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.history import rules
from iodelta.history.store import Store

BLKIO = Path("/sys/fs/cgroup/blkio")
LEVEL = 1000
"""Reads per second of the reference and of every quiet night."""

STEP = 0.02
AFTER = 5
"""Nights with the step, at most."""

NIGHTLY = """
[target]
path = "{device}"
[workload]
rw = "randread"
bs = "4k"
ioengine = "libaio"
iodepth = 32
direct = 1
[build]
repo = "{place}/repo"
command = "cp level built-level"
artifacts = ["built-level"]
[variant.reference]
role = "reference"
[variant.reference.command]
apply = ["{place}/throttle.sh", "{place}/level"]
restore = ["{place}/throttle.sh", "{place}/level"]
[variant.tonight]
[variant.tonight.command]
apply = ["{place}/throttle.sh", "{{built}}/built-level"]
restore = ["{place}/throttle.sh", "{place}/level"]
[design]
trial = "1s"
ramp = "0s"
blocks = 4
budget = "120s"
metrics = ["read.iops"]
placebo = true
"""


def main() -> int:
    """Run the nights, print and write what came of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.compressed", description=__doc__)
    parser.add_argument("--nights", type=int, default=200, help="quiet nights (default 200)")
    parser.add_argument("--minutes", type=float, default=120.0, help="the quiet nights end after so long (default 120)")
    parser.add_argument("--place", type=Path, required=True, help="a new directory for all of it")
    parser.add_argument("--markdown", type=Path, help="also write the result here")
    chosen = parser.parse_args()
    place = chosen.place.absolute()
    place.mkdir(parents=True)
    with _device(place) as device, _group(device, place):
        text = _nights(chosen, place, device)
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text)
    return 0


def _nights(chosen: argparse.Namespace, place: Path, device: str) -> str:
    (place / "level").write_text(f"{LEVEL}\n")
    (place / "nightly.toml").write_text(NIGHTLY.format(device=device, place=place))
    _commit(place, LEVEL, "the first build")
    begun, quiet, alerts = time.monotonic(), 0, 0
    while quiet < chosen.nights and time.monotonic() - begun < 60 * chosen.minutes:
        quiet += 1
        _commit(place, LEVEL, f"night {quiet}: nothing changes")
        answer = _night(place)
        alerts = len(answer["alerts"])
        confirmed = sum(one["state"] == "confirmed" for one in answer["alerts"])
        print(f"night {quiet}: {alerts} alerts, {confirmed} of them confirmed", file=sys.stderr, flush=True)
    false = [one for one in answer["alerts"] if one["state"] == "confirmed"]
    slower = _commit(place, round(LEVEL * (1.0 - STEP)), "limit reads")
    found: list[Any] = []
    after = 0
    while not found and after < AFTER:
        after += 1
        answer = _night(place)
        found = [one for one in answer["alerts"] if one["state"] == "confirmed" and one not in false]
        _commit(place, round(LEVEL * (1.0 - STEP)), f"night {after} after it")
    text = _told(quiet, alerts, len(false), after, found, slower, time.monotonic() - begun)
    return "\n".join([text, *_rivals(place, quiet), ""])


def _rivals(place: Path, quiet: int) -> Iterator[str]:
    """What other rules say of the same nights of the build, in hindsight."""
    store = Store(f"sqlite:///{place}/iodelta-history/history.db")
    (line,) = [line for line in store.lines() if line.variant == "tonight"]
    store.close()
    seen = {"level": [point.y for point in line.points], "ratio": [point.r or 0.0 for point in line.points]}
    for name, rule in rules.rivals().items():
        for by, values in seen.items():
            places = [at for _, at, _ in rule(np.asarray(values))]
            true = sum(abs(at - quiet) <= 1 for at in places)
            yield f"- {name}, by {by}: {len(places) - true} false points, {true} at the step."


def _told(quiet: int, alerts: int, false: int, after: int, found: list[Any], slower: str, seconds: float) -> str:
    lines = [
        "# Compressed nights of a real device",
        "",
        f"{quiet} quiet nights and {after} with a step of {STEP:.0%}, in {seconds / 60:.0f} minutes: a loop device",
        f"limited to {LEVEL} reads per second, 4 blocks of reference, build and placebo a night.",
        "",
        f"- Quiet nights: {alerts} candidates, {false} confirmed alerts.",
    ]
    if not found:
        return "\n".join([*lines, f"- The step was not confirmed within {after} nights.", ""])
    (alert, *_) = found
    inside = any(one["sha"] == slower for one in alert["commits"])
    lines += [
        f"- The step: confirmed in night {after} after it (`{alert['experiments'][-1]['word']}`).",
        f"- Its range: {len(alert['commits'])} commit(s), which {'hold' if inside else 'DO NOT HOLD'} the true one.",
        f"- What the confirmation found: {'; '.join(alert['experiments'][-1]['verdicts'])}.",
        "",
    ]
    return "\n".join(lines)


def _night(place: Path) -> Any:
    words = [sys.executable, "-c", "from iodelta.cli.main import main; main()", "history", "night"]
    done = subprocess.run(
        [*words, "nightly.toml", "--wait", "--format", "json"], cwd=place, capture_output=True, text=True, timeout=1800
    )
    if done.returncode in (2, 4):
        raise RuntimeError(done.stderr[-2000:] + done.stdout[-2000:])
    return json.loads(done.stdout)


def _commit(place: Path, level: int, subject: str) -> str:
    repo = place / "repo"
    if not repo.exists():
        _git(place, "init", "-q", "repo")
    (repo / "level").write_text(f"{level}\n")
    _git(repo, "add", "level")
    _git(repo, "-c", "user.name=Night", "-c", "user.email=n@x", "commit", "-q", "--allow-empty", "-m", subject)
    return _git(repo, "rev-parse", "HEAD").strip()


def _git(place: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=place, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def _device(place: Path) -> Iterator[str]:
    """A loop device of 64 MiB."""
    (place / "disk").write_bytes(os.urandom(64 << 20))
    device = subprocess.run(
        ["losetup", "--find", "--show", str(place / "disk")], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextlib.contextmanager
def _group(device: str, place: Path) -> Iterator[None]:
    """A control group with this process in it, and a script that sets its limit from a file."""
    group, before = BLKIO / f"iodelta-nights-{os.getpid()}", BLKIO / "cgroup.procs"
    number = os.stat(device).st_rdev
    script = place / "throttle.sh"
    limit = f"{group}/blkio.throttle.read_iops_device"
    script.write_text(f'#!/bin/sh\necho "{os.major(number)}:{os.minor(number)} $(cat "$1")" > {limit}\n')
    script.chmod(0o755)
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        before.write_text(str(os.getpid()))
        group.rmdir()


if __name__ == "__main__":
    sys.exit(main())
