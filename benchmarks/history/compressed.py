"""Nights of one machine, compressed: real fio on a loop device whose reads per second a control group limits.

    python -m benchmarks.history.compressed --nights 40 --minutes 20 --place /dev/shm/compressed

Each night is ``iodelta history night``, in a process that begins with iodelta loaded: a commit that changes nothing,
its build, an experiment of it against a reference and a placebo, scan, confirmation. After the quiet nights a commit
limits its own reads to 2 % fewer, and nights go on until an alert is confirmed. The same command continues later.
Needs root, git, fio and the blkio controller of cgroup v1. With the place on tmpfs the limit is all that the reads wait
for, and with 256 of them pending fio may wait a quarter of a second for a CPU. The device is removed at the end; the
history stays.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from benchmarks.history import rules
from iodelta.history.store import Store

BLKIO = Path("/sys/fs/cgroup/blkio")
LEVEL = 1000
"""Reads per second of the reference and of every quiet night."""

STEP = 0.02
AFTER = 5
"""Nights with the step, at most."""

DONE = "nights.jsonl"
"""What each night said."""

LOADED = ("iodelta.cli.history_night", "iodelta.cli.run", "iodelta.cli.watching", "iodelta.history.scan")
"""What every night would load anew."""

NIGHTLY = """
[target]
path = "{place}/device"
[workload]
rw = "randread"
bs = "4k"
ioengine = "libaio"
iodepth = 256
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
trial = "{trial}s"
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
    parser.add_argument("--trial", type=float, default=1.0, help="seconds of a trial (default 1)")
    parser.add_argument("--place", type=Path, required=True, help="a directory for all of it")
    parser.add_argument("--markdown", type=Path, help="also write the result here")
    chosen = parser.parse_args()
    place = chosen.place.absolute()
    place.mkdir(parents=True, exist_ok=True)
    os.environ["IODELTA_STATE"] = str(place / "state")
    with _device(place) as device, _group(device, place):
        _nights(chosen, place)
    text = "\n".join([_told(_done(place), chosen.trial), *_rivals(place), ""])
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text)
    return 0


def _nights(chosen: argparse.Namespace, place: Path) -> None:
    """Quiet nights as many as are missing, and those with the step until it is confirmed."""
    (place / "level").write_text(f"{LEVEL}\n")
    (place / "nightly.toml").write_text(NIGHTLY.format(place=place, trial=chosen.trial))
    ends = time.monotonic() + 60 * chosen.minutes
    while not _ended(done := _done(place)):
        stepped = [one for one in done if one["slower"]]
        quiet = len(done) - len(stepped)
        if not stepped and quiet < chosen.nights and time.monotonic() < ends:
            _commit(place, LEVEL, f"night {quiet + 1}: nothing changes")
            slower = ""
        elif not stepped:
            slower = _commit(place, round(LEVEL * (1.0 - STEP)), "limit reads")
        else:
            slower = stepped[0]["slower"]
            _commit(place, round(LEVEL * (1.0 - STEP)), f"night {len(stepped)} after it")
        begun = time.monotonic()
        alerts = _night(place)["alerts"]
        night = {"slower": slower, "seconds": time.monotonic() - begun, "load": os.getloadavg()[0], "alerts": alerts}
        with (place / DONE).open("a") as file:
            file.write(json.dumps(night) + "\n")
        print(f"night {len(done) + 1}: {len(alerts)} alerts, {night['seconds']:.0f} s", file=sys.stderr, flush=True)


def _done(place: Path) -> list[Any]:
    """The nights so far."""
    file = place / DONE
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _ended(done: list[Any]) -> bool:
    """Whether the step is confirmed, or has had its nights."""
    return sum(bool(one["slower"]) for one in done) >= AFTER or bool(_found(done))


def _found(done: list[Any]) -> list[Any]:
    """Alerts that were confirmed after the step and not before."""
    before = {alert["id"] for one in done if not one["slower"] for alert in _confirmed(one)}
    after = [alert for one in done if one["slower"] for alert in _confirmed(one)]
    return [alert for alert in after if alert["id"] not in before]


def _confirmed(night: Any) -> list[Any]:
    return [alert for alert in night["alerts"] if alert["state"] == "confirmed"]


def _rivals(place: Path) -> Iterator[str]:
    """What other rules say of the same nights of the build, in hindsight."""
    quiet = sum(not one["slower"] for one in _done(place))
    store = Store(f"sqlite:///{place}/iodelta-history/history.db")
    (line,) = [line for line in store.lines() if line.variant == "tonight"]
    store.close()
    seen = {"level": [point.y for point in line.points], "ratio": [point.r or 0.0 for point in line.points]}
    for name, rule in rules.rivals().items():
        for by, values in seen.items():
            places = [at for _, at, _ in rule(np.asarray(values))]
            true = sum(abs(at - quiet) <= 1 for at in places)
            yield f"- {name}, by {by}: {len(places) - true} false points, {true} at the step."


def _told(done: list[Any], trial: float) -> str:
    stepped = [one for one in done if one["slower"]]
    quiet = [one for one in done if not one["slower"]]
    seconds = [one["seconds"] for one in done]
    load = [one["load"] for one in done]
    seen = {alert["id"] for one in quiet for alert in one["alerts"]}
    false = {alert["id"] for one in quiet for alert in _confirmed(one)}
    lines = [
        "# Compressed nights of a real device",
        "",
        f"{len(quiet)} quiet nights and {len(stepped)} with a step of {STEP:.0%}, in {sum(seconds) / 60:.0f} minutes:",
        f"a loop device limited to {LEVEL} reads per second, 4 blocks of reference, build and placebo a night,",
        f"trials of {trial:g} s, {np.median(seconds):.0f} s a night, at a load of {min(load):.0f} to {max(load):.0f}.",
        "",
        f"- Quiet nights: {len(seen)} candidates, {len(false)} confirmed alerts.",
    ]
    found = _found(done)
    if not found:
        return "\n".join([*lines, f"- The step was not confirmed within {len(stepped)} nights.", ""])
    (alert, *_) = found
    inside = any(one["sha"] == stepped[0]["slower"] for one in alert["commits"])
    lines += [
        f"- The step: confirmed in night {len(stepped)} after it (`{alert['experiments'][-1]['word']}`).",
        f"- Its range: {len(alert['commits'])} commit(s), which {'hold' if inside else 'DO NOT HOLD'} the true one.",
        f"- What the confirmation found: {'; '.join(alert['experiments'][-1]['verdicts'])}.",
        "",
    ]
    return "\n".join(lines)


def _night(place: Path) -> Any:
    """What ``iodelta history night`` prints, in a process of its own that has iodelta loaded."""
    for name in LOADED:
        importlib.import_module(name)
    out, err = place / "night.json", place / "night.err"
    child = os.fork()
    if not child:
        _command(place, out, err)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, 1, 3):
        raise RuntimeError(f"exit code {code}: {err.read_text()[-2000:]}")
    return json.loads(out.read_text())


def _command(place: Path, out: Path, err: Path) -> NoReturn:
    """The command, in this process."""
    from iodelta.cli.main import main as command

    code = 70
    try:
        os.chdir(place)
        for number, file in ((1, out), (2, err)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        sys.argv = ["iodelta", "history", "night", "nightly.toml", "--wait", "--format", "json"]
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except Exception:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


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
    if not (place / "disk").exists():
        (place / "disk").write_bytes(os.urandom(64 << 20))
    device = subprocess.run(
        ["losetup", "--find", "--show", str(place / "disk")], check=True, capture_output=True, text=True
    ).stdout.strip()
    (place / "device").unlink(missing_ok=True)
    (place / "device").symlink_to(device)
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
