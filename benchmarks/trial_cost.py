"""``python -m benchmarks.trial_cost``: what iodelta adds to a trial beyond fio's own wall time, and to its results.

Time: every step of a trial around fio is timed in real experiments on a loop device (root) or a scratch file, without
knobs, with a scheduler and with a control group to set, and once more in a folder with a long journal.

Effect: while one fio runs on all CPUs, so that whatever iodelta does must take from it, watching (looking at fio ten
times a second, reading the clocks of the CPUs once a second) is switched on and off by turns, in random order within
pairs of windows; the change of IOPS is estimated over the pairs with its interval.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from iodelta.experiment import parse
from iodelta.lab import bench, runner, session
from iodelta.lab.account import Account
from iodelta.lab.folder import Finished, Folder, Started
from iodelta.lab.plan import make_plan, trial_seed
from iodelta.lab.progress import Control
from iodelta.lab.record import RECORD
from iodelta.machine import LocalMachine
from iodelta.probe.counters import Counters
from iodelta.probe.topology import resolve
from iodelta.stats.effect import hodges_lehmann
from iodelta.workload import fio

MACHINE = LocalMachine()
PARTS = {
    "journal": (Folder, "append"),
    "raw files": (Folder, "write_raw"),
    "counters": (Counters, "snapshot"),
    "knobs": (bench, "turn"),
    "reading back": (bench, "read_run"),
    "noise": (bench, "noise"),
    "judging": (runner.Runner, "_judge"),
    "fio, started and collected": (bench, "run"),
    "fio itself": (fio, "_wait"),
    "whole": (runner.Runner, "_trial"),
}
KNOBS = {
    "no knob": ("", ""),
    "scheduler": ('"block.scheduler" = "none"', '"block.scheduler" = "mq-deadline"'),
    "control group": ('"cgroup.io_max" = "riops=50000"', '"cgroup.io_max" = "riops=40000"'),
}


class Quiet:
    """Nobody watches."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@contextlib.contextmanager
def timed() -> Iterator[dict[str, list[float]]]:
    """Seconds of every call of every part in the run proper: not of what is loaded before its first trial."""
    found: dict[str, list[float]] = defaultdict(list)
    plain_run = runner.Runner.run

    def run(self: runner.Runner) -> runner.Outcome:
        with contextlib.ExitStack() as stack:
            for part, (place, name) in PARTS.items():
                plain = getattr(place, name)
                setattr(place, name, _timed(plain, found[part]))
                stack.callback(setattr, place, name, plain)
            return plain_run(self)

    runner.Runner.run = run  # type: ignore[method-assign]
    try:
        yield found
    finally:
        runner.Runner.run = plain_run  # type: ignore[method-assign]


def _timed(function: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            into.append(time.perf_counter() - begun)

    return call


def cost(place: Path, target: str, knobs: tuple[str, str], trials: int, events: int = 0) -> dict[str, float]:
    """Median milliseconds of a trial by part; ``events`` lines are in the journal before the first of them."""
    cells = max(1, events // 400)
    depths = ", ".join(str(n) for n in range(1, cells + 1))
    text = f"""
margin = "0.01%"
[target]
path = "{target}"
size = "64m"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = [{depths}]
[variant.a]
{knobs[0]}
[variant.b]
{knobs[1]}
[design]
trial = "300ms"
ramp = 0
budget = "20d"
blocks = {2000 if events else trials // 2}
metrics = ["read.iops"]
"""
    plan = make_plan(parse(text))
    folder = Folder.begin(place, text, plan)
    if events:
        _lengthen(folder, place.with_name("source"), plan, events)
    with timed() as seconds:
        whole = seconds["whole"]

        def stop() -> bool:
            return bool(events) and len(whole) >= trials

        session.go(folder, MACHINE, Control(Quiet(), stop))
    count = len(whole)
    own = [total - wait for total, wait in zip(whole, seconds["fio itself"], strict=True)]
    started = seconds["fio, started and collected"]
    around = [total - wait for total, wait in zip(started, seconds["fio itself"], strict=True)]
    parts = {
        "added to fio": 1000 * statistics.median(own),
        "fio, started and collected": 1000 * statistics.median(around),
    }
    for part in ("knobs", "counters", "reading back", "noise", "raw files", "journal", "judging"):
        calls = seconds[part]
        each = len(calls) / count
        parts[part] = 1000 * statistics.median(calls) * each if calls else 0.0
    return parts


def _lengthen(folder: Folder, source: Path, plan: Any, events: int) -> None:
    """Fill the journal with finished trials, their raw files linked from those of a short real experiment."""
    made = Folder.open(source)
    numbers = sorted(Account(made.events()).usable())
    rng, number = random.Random(1), 0
    with folder.writing():
        for slot in plan.schedule.slots():
            for position, variant in enumerate(slot.order):
                number += 1
                seed = trial_seed(plan.seed, slot, 0, variant, fresh=True)
                folder.append(Started(0.0, number, slot.cell, slot.block, 0, position, variant, seed), sync=False)
                folder.append(Finished(0.0, number, 1.0), sync=False)
                like = rng.choice(numbers)
                for kind in ("fio.json", RECORD):
                    name = f"{number:06d}.{kind}.zst"
                    os.link(made.path / "raw" / f"{like:06d}.{kind}.zst", folder.path / "raw" / name)
            if 2 * number >= events:
                return


def effect(place: Path, seconds: int, seed: int) -> tuple[float, float, float, int, float]:
    """Relative change of IOPS by watching, its 95 % interval, the pairs it rests on, and iodelta's own CPU share."""
    data = place / "data"
    data.write_bytes(os.urandom(64 << 20))
    target = resolve(MACHINE, str(data))
    counters = Counters(MACHINE, target)
    rng = random.Random(seed)
    log = place / "log"
    args = [
        *("fio", "--name=load", f"--filename={data}", "--rw=randread", "--bs=4k", "--ioengine=psync", "--size=64m"),
        *(f"--numjobs={os.cpu_count()}", "--group_reporting", "--time_based", f"--runtime={seconds}"),
        *(f"--write_iops_log={log}", "--log_avg_msec=100", "--per_job_logs=0", "--log_unix_epoch=1"),
        *("--output=/dev/null", "--eta=never"),
    ]
    windows: list[tuple[float, float, bool]] = []
    process = MACHINE.start(args, cwd=str(place))
    time.sleep(1.5)
    spent = 0.0
    while process.poll() is None and len(windows) < seconds - 4:
        first = rng.random() < 0.5
        for on in (first, not first):
            begun, before = time.time(), _cpu()
            if on:
                end = time.monotonic() + 1.0
                while (left := end - time.monotonic()) > 0:
                    process.wait(min(fio.SLICE, left))
                counters.sample()
                spent += _cpu() - before
            else:
                process.wait(1.0)
            windows.append((begun, time.time(), on))
    process.wait()
    rates = _rates(next(place.glob("log*.log")), windows)
    pairs = [(rates[i], rates[i + 1], windows[i][2]) for i in range(0, len(windows) - 1, 2)]
    changes = [np.log(one / other) if on else np.log(other / one) for one, other, on in pairs if one and other]
    found = hodges_lehmann(changes)
    share = spent / sum(end - begin for begin, end, on in windows if on)
    return float(np.expm1(found.value)), float(np.expm1(found.low)), float(np.expm1(found.high)), len(changes), share


def _rates(log: Path, windows: list[tuple[float, float, bool]]) -> list[float]:
    """Mean IOPS of all jobs in each window, from the log's tenths of a second that lie wholly inside."""
    table = np.loadtxt(log, delimiter=",", usecols=(0, 1))
    at, rate = table[:, 0] / 1000, table[:, 1]
    return [float(rate[(at > begin + 0.1) & (at <= end)].mean()) for begin, end, _ in windows]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def device(place: Path) -> Iterator[str]:
    """A loop device over a file, where that is allowed; else a directory for a scratch file."""
    if os.geteuid() != 0:
        yield str(place)
        return
    image = place / "device.img"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    node = subprocess.run(
        ["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=True
    ).stdout.strip()
    try:
        yield node
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trial_cost", description=__doc__)
    parser.add_argument("--trials", type=int, default=40, help="trials of each experiment (default 40)")
    parser.add_argument("--events", type=int, default=40_000, help="lines of the long journal (default 40000; 0: none)")
    parser.add_argument("--seconds", type=int, default=600, help="seconds of the effect's fio (default 600; 0: none)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n\n")
    with tempfile.TemporaryDirectory(prefix="iodelta-cost-", dir=Path.cwd()) as text, device(Path(text)) as target:
        os.environ["IODELTA_STATE"] = f"{text}/state"
        for name, knobs in KNOBS.items():
            if name != "no knob" and os.geteuid() != 0:
                continue
            place = Path(text, "source" if name == "no knob" else name.replace(" ", "-"))
            _show(f"{name}, {given.trials} trials", cost(place, target, knobs, given.trials))
        if given.events:
            parts = cost(Path(text, "long"), target, KNOBS["no knob"], given.trials, given.events)
            _show(f"no knob, after {given.events} lines of journal", parts)
    if given.seconds:
        with tempfile.TemporaryDirectory(prefix="iodelta-cost-", dir="/dev/shm") as text:
            value, low, high, pairs, share = effect(Path(text), given.seconds, given.seed)
        sys.stdout.write(
            f"watching changes IOPS by {100 * value:+.3f} % ({100 * low:+.3f} .. {100 * high:+.3f} % at 95 %, "
            f"{pairs} pairs of 1 s);\nit takes {100 * share:.2f} % of one CPU while fio runs\n"
        )


def _show(title: str, parts: dict[str, float]) -> None:
    sys.stdout.write(f"{title}: median ms of a trial\n")
    for name, value in parts.items():
        sys.stdout.write(f"  {name:<28}{value:8.1f}\n")
    sys.stdout.write("\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
