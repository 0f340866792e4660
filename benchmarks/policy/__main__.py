"""``python -m benchmarks.policy``: the simulator's speed and tables, and what the mirror costs beside plain fio.

Ratios are taken within one round (fio and the mirror adjacent in time, in random order), CPU seconds beside wall time,
since neighbours disturb them least; medians with the quartiles over the rounds. The page goes to ``--write``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.policy.gist import GROUPS, Column, table
from benchmarks.policy.published import PUBLISHED
from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.mirrors.model import Layout, Run, Workload, World, disk
from iodelta.parts.mirrors.simulate import simulate

MIB = 1 << 20


def quartiles(values: Sequence[float]) -> str:
    """Median (lower quartile .. upper quartile)."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return (
        f"{middle:,.3g} ({low:,.3g} .. {high:,.3g})" if middle < 1000 else f"{middle:,.0f} ({low:,.0f} .. {high:,.0f})"
    )


def fio(path: str, depth: int, seconds: float) -> tuple[float, float, float]:
    """IOPS, mean latency in us, and CPU us per I/O of plain fio on one member, with all that makes it quick."""
    words = ["fio", "--name=x", f"--filename={path}", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring"]
    words += ["--fixedbufs=1", "--registerfiles=1", "--norandommap", "--randrepeat=0", f"--iodepth={depth}"]
    words += [f"--runtime={seconds}", "--ramp_time=200ms", "--time_based", "--output-format=json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    job = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["jobs"][0]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # fio's own usr_cpu and sys_cpu leave out the kernel's io_uring workers, who do all reads of tmpfs.
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cpu *= seconds / (seconds + 0.2)
    return job["read"]["iops"], job["read"]["lat_ns"]["mean"] / 1e3, 1e6 * cpu / job["read"]["total_ios"]


def mirror(paths: Sequence[str], policy: str, depth: int, seconds: float) -> tuple[float, float, float]:
    """The same of the mirror."""
    code = (
        "import json, sys; from iodelta.parts.mirrors.mirror import Request, run\n"
        "members, policy, depth, seconds, seed = json.loads(sys.argv[1])\n"
        "done = run(Request(members=tuple(members), policy=policy, iodepth=depth, seconds=seconds, seed=seed))\n"
        "cpu = (done.usr_cpu + done.sys_cpu) / 100 * done.seconds\n"
        "print(json.dumps([done.iops, done.read.mean / 1e3, 1e6 * cpu / done.read.ios]))\n"
    )
    asked = json.dumps([list(paths), policy, depth, seconds, random.randrange(1, 1 << 30)])
    done = subprocess.run([sys.executable, "-c", code, asked], check=True, capture_output=True)
    found: list[float] = json.loads(done.stdout)
    return found[0], found[1], found[2]


def against_fio(rounds: int, seconds: float) -> list[str]:
    lines = [
        "## The mirror beside plain fio",
        "",
        f"Members of 256 MiB on tmpfs (O_DIRECT), {rounds} rounds of {seconds:g} s each, order drawn in each round.",
        "`added` is the mean latency beyond fio's in the same round. CPU is all of the process, with the kernel's",
        "workers to which io_uring gives reads of tmpfs; of fio also its start, some 0.1 s.",
        "",
        "| depth | load | IOPS | IOPS per core used | mean us | added us |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        paths = [f"{place}/{number}" for number in range(2)]
        data = os.urandom(MIB) * 256
        for path in paths:
            Path(path).write_bytes(data)
        for depth in (1, 32):
            ways: dict[str, Callable[[int], tuple[float, float, float]]] = {
                "fio, one member": lambda depth: fio(paths[0], depth, seconds),
                "mirror, one member": lambda depth: mirror(paths[:1], "devid", depth, seconds),
                "mirror of two, queue": lambda depth: mirror(paths, "queue", depth, seconds),
                "mirror of two, latency-rr": lambda depth: mirror(paths, "latency-rr", depth, seconds),
            }
            found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name in random.sample(list(ways), len(ways)):
                    found[name].append(ways[name](depth))
            base = found["fio, one member"]
            for name, runs in found.items():
                added = [run[1] - plain[1] for run, plain in zip(runs, base, strict=True)]
                row = (
                    quartiles([run[0] for run in runs]),
                    quartiles([1e6 / run[2] for run in runs]),
                    quartiles([run[1] for run in runs]),
                    "" if runs is base else quartiles(added),
                )
                lines.append(f"| {depth} | {name} | {' | '.join(row)} |")
    return [*lines, ""]


def speed(rounds: int) -> list[str]:
    """Completions per CPU second, six positional disks."""
    members = tuple(disk(devid, 7200, 170) for devid in range(1, 7))
    lines = [
        "## The simulator's speed",
        "",
        "Six positional disks, raid1; million completions per second of one core.",
        "",
    ]
    lines += ["| policy | depth 1 | depth 32 |", "|---|---|---|"]
    for policy in ("queue", "round-robin", "latency", "zfs"):
        row = []
        for depth, seconds in ((1, 20_000.0), (32, 3_000.0)):
            rates = []
            for seed in range(rounds):
                run = Run(policy, Workload(True, 4096, depth, 50 << 30, seed, (1000,)), seconds)
                begun = time.process_time()
                outcome = simulate([World(seed, members, Layout("raid1"), (run,))], 1)[0][0]
                rates.append(outcome.events / (time.process_time() - begun) / 1e6)
            row.append(quartiles(rates))
        lines.append(f"| {policy} | {' | '.join(row)} |")
    run = Run("queue", Workload(True, 4096, 32, 50 << 30, 1, (1000,)), 1_500.0)
    worlds = [World(seed, members, Layout("raid1"), (run,)) for seed in range(8)]
    ratios = []
    for _ in range(rounds):
        took = []
        for threads in (1, 2):
            begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            simulate(worlds, threads)
            after = resource.getrusage(resource.RUSAGE_SELF)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            took.append((time.perf_counter() - begun, cpu))
        ratios.append((took[0][0] / took[1][0], took[1][1] / took[0][1]))
    lines += ["", f"Eight worlds on two threads against one: {quartiles([wall for wall, _ in ratios])} times as fast, "]
    lines[-1] += f"for {quartiles([cpu for _, cpu in ratios])} times the CPU time."
    return [*lines, ""]


def tables() -> list[str]:
    lines = ["## The published tables", "", "IOPS of five slots: ours / published. Five worlds, seeds 1 to 5.", ""]
    columns: tuple[tuple[Column, str], ...] = (
        ("A", "policy only, no cache, fresh offsets"),
        ("F", "order only: the same random policy in all slots, a warming cache, the same offsets"),
        ("B", "policies, cache and the benchmark's order"),
    )
    for column, what in columns:
        found = table(column)
        lines += [f"Column {column}: {what}", "", f"| group | {' | '.join(POLICIES)} |", "|---" * 6 + "|"]
        for group in GROUPS:
            pairs = zip(found[group], PUBLISHED.columns[column][group], strict=True)
            lines.append(f"| {group} | {' | '.join(f'{ours:.0f} / {theirs:.0f}' for ours, theirs in pairs)} |")
        lines.append("")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    machine = f"{os.cpu_count()} CPUs ({platform.machine()}), Linux {platform.release()}, load {os.getloadavg()[0]:.1f}"
    lines = ["# Read policies: figures", "", f"Measured on {machine}; `python -m benchmarks.policy`.", ""]
    lines += [*tables(), *speed(given.rounds), *against_fio(given.rounds, given.seconds)]
    text = "\n".join(lines)
    if given.write:
        given.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
