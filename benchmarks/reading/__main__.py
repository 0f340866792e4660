"""``python -m benchmarks.reading``: how fast results are read, and how fast others are on the same files.

Whole processes, all ways in turn in every round; CPU seconds, which neighbours on the machine change least, with the
least and the most of all rounds, and the median over the rounds of what each way took against iodelta's in that round.
With ``--fio-tools`` (the tools folder of a fio source tree) fio's own Python tools take part, with ``--fio-plot`` (its
command) fio-plot; neither is needed for iodelta. The table goes to ``--write``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from iodelta.trial import bin_edges

TEMPLATE = Path(__file__).parents[2] / "tests" / "data" / "same-run" / "fio-3.42.out"
SIZE = 200_000
ROW = 34
"""Bytes of a typical log row with an offset."""


def make_json(folder: Path, files: int, seed: int) -> list[Path]:
    """JSON+ files of about ``SIZE`` bytes, as fio 3.42 spells them, each with counts of its own."""
    found = re.search(r"^\{$.*?^\}$", TEMPLATE.read_text(), re.M | re.S)
    if found is None:
        raise SystemExit(f"{TEMPLATE} holds no JSON")
    rng = random.Random(seed)
    paths = []
    for number in range(files):
        document = json.loads(found[0])
        del document["jobs"][1:]
        document["global options"]["iodepth"] = str(number + 1)
        document["jobs"][0]["job options"]["iodepth"] = str(number + 1)
        job = document["jobs"][0]
        for kind in ("read", "write"):
            job[kind] = json.loads(json.dumps(job["read"]))
            for name in ("slat_ns", "clat_ns", "lat_ns"):
                low = rng.randrange(250, 300)
                bins = {}
                for index in range(low, low + 1050):
                    edges = bin_edges(index)
                    bins[str((edges[0] + edges[1]) // 2)] = rng.randrange(1, 5000)
                job[kind][name] |= {"bins": bins, "N": sum(bins.values())}
        text = json.dumps(document, indent=2, separators=(",", " : "))
        paths.append(folder / f"randread-{number + 1}-1.json")
        paths[-1].write_text(text)
    return paths


def make_log(path: Path, size: int, seed: int) -> int:
    """A latency log of single I/Os of about ``size`` bytes; its real size."""
    rng = np.random.default_rng(seed)
    rows = size // ROW
    with path.open("w") as file:
        for begin in range(0, rows, 200_000):
            count = min(200_000, rows - begin)
            times = np.sort(rng.integers(begin // 100, (begin + count) // 100, count))
            values = np.exp(rng.normal(11.3, 0.4, count)).astype(np.int64)
            kinds = (rng.random(count) < 0.3).astype(int)
            offsets = rng.integers(0, 2**18, count) * 4096
            columns = (times.tolist(), values.tolist(), kinds.tolist(), offsets.tolist())
            file.writelines(f"{t}, {v}, {k}, 4096, {o}, 0\n" for t, v, k, o in zip(*columns, strict=True))
    return path.stat().st_size


def make_hist(path: Path, size: int, seed: int) -> int:
    """A clat_hist log of about ``size`` bytes, a row a second and 1856 bins a row; its real size."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        second = 0
        while file.tell() < size:
            second += 1
            counts = np.zeros(1856, dtype=np.int64)
            counts[400:900] = rng.poisson(40, 500)
            file.write(f"{second * 1000}, 0, 4096, {', '.join(map(str, counts.tolist()))}\n")
    return path.stat().st_size


class Way(NamedTuple):
    """A command, and how much of the work of the first way it does (fio_jsonplus_clat2csv takes one file a start)."""

    name: str
    commands: Sequence[Sequence[str]]


class Took(NamedTuple):
    """CPU seconds and resident MiB of one round."""

    cpu: float
    peak: float
    said: str


IODELTA = [sys.executable, "-c", "from iodelta.cli.main import main; main()"]

READ = """
import resource, sys, time
from iodelta.ingest import read
before = time.process_time()
runs = read(sys.argv[1:]).runs
print(time.process_time() - before, sum(d.ios for run in runs for d in run.directions))
"""


def measured(words: Sequence[str], folder: Path) -> Took:
    """One command: its own CPU seconds and peak, from wait4. Raises SystemExit when it fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        out.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(words)[:200]}: {err.read().decode(errors='replace')[-500:]}")
        return Took(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out.read().decode(errors="replace"))


def race(ways: Sequence[Way], folder: Path, rounds: int) -> list[str]:
    """A row of the table for each way: CPU seconds, spread, and times the first way's."""
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way.name].append(sum(measured(words, folder).cpu for words in way.commands))
    first = taken[ways[0].name]
    rows = ["| way | CPU seconds | least .. most | times iodelta |", "|---|--:|--:|--:|"]
    for name, times in taken.items():
        ratio = statistics.median(own / base for own, base in zip(times, first, strict=True))
        rows.append(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} .. {max(times):.2f} | {ratio:.1f} |")
    return rows


def read_alone(paths: Sequence[str], folder: Path, rounds: int) -> tuple[str, float]:
    """CPU seconds of reading alone, start and imports left out: median with least and most; and peak MiB."""
    runs = [measured([sys.executable, "-c", READ, *paths], folder) for _ in range(rounds)]
    times = [float(run.said.split()[0]) for run in runs]
    text = f"{statistics.median(times):.3f} s ({min(times):.3f} .. {max(times):.3f})"
    return text, max(run.peak for run in runs)


def main() -> int:
    """Make the files, race, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--log-mb", type=int, default=1000, help="size of the large log (default 1000)")
    parser.add_argument("--part-mb", type=int, default=100, help="size of the logs that others read too (default 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fio-tools", type=Path, help="the tools folder of a fio source tree")
    parser.add_argument("--fio-plot", type=Path, help="the fio-plot command")
    parser.add_argument("--write", type=Path, help="file for the tables")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        text = "\n".join(_tables(Path(made), asked))
    print(text)
    if asked.write:
        asked.write.write_text(text + "\n")
    return 0


def _tables(folder: Path, asked: argparse.Namespace) -> list[str]:
    json_folder, log_folder, hist_folder = folder / "json", folder / "logs", folder / "hist"
    for made in (json_folder, log_folder, hist_folder):
        made.mkdir()
    paths = make_json(json_folder, asked.files, asked.seed)
    size = sum(path.stat().st_size for path in paths)
    tools, plot = asked.fio_tools, str(asked.fio_plot) if asked.fio_plot else ""
    shown = [*IODELTA, "show", "json"]
    ways = [Way("iodelta show", [shown])]
    if tools:
        tool = str(tools / "fio_jsonplus_clat2csv")
        every = [["python3", tool, str(path), str(folder / "out.csv")] for path in paths]
        ways.append(Way("fio_jsonplus_clat2csv, of each file", every))
    if plot:
        depths = [str(number + 1) for number in range(len(paths))]
        chart = [plot, "-i", "json", "-T", "x", "-r", "randread", "-l", "-n", "2", "-d", *depths, "-o", "x.png"]
        ways.append(Way("fio-plot -l (one chart)", [chart]))
    alone, _ = read_alone(["json"], folder, asked.rounds)
    lines = [
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {asked.rounds} interleaved rounds.",
        "",
        f"## {len(paths)} JSON+ files, {size / 1e6:.1f} MB",
        "",
        f"Reading alone, numbers, intervals and histograms: {alone} of CPU.",
        "",
        *race(ways, folder, asked.rounds),
    ]
    log = log_folder / "randread-iodepth-1-numjobs-1_lat.1.log"
    bytes_ = make_log(log, asked.part_mb * 1_000_000, asked.seed)
    ways = [Way("iodelta show", [[*IODELTA, "show", "logs"]])]
    if tools:
        ways.append(Way("fiologparser.py -s", [["python3", str(tools / "fiologparser.py"), "-s", str(log)]]))
    if plot:
        chart = [
            plot,
            "-i",
            "logs",
            "-T",
            "x",
            "-g",
            "-r",
            "randread",
            "-t",
            "lat",
            "-d",
            "1",
            "-n",
            "1",
            "-o",
            "x.png",
        ]
        ways.append(Way("fio-plot -g (one chart)", [[*chart, "-o", "x.png"]]))
    lines += ["", f"## A latency log of {bytes_ / 1e6:.0f} MB", "", *race(ways, folder, min(asked.rounds, 3))]
    hist = hist_folder / "randread_clat_hist.1.log"
    bytes_ = make_hist(hist, asked.part_mb * 1_000_000 // 4, asked.seed)
    ways = [Way("iodelta show", [[*IODELTA, "show", "hist"]])]
    if tools:
        tool = str(tools / "hist" / "fio-histo-log-pctiles.py")
        ways.append(Way("fio-histo-log-pctiles.py", [["python3", tool, str(hist)]]))
    lines += ["", f"## A histogram log of {bytes_ / 1e6:.0f} MB", "", *race(ways, folder, min(asked.rounds, 3))]
    log.unlink()
    bytes_ = make_log(log, asked.log_mb * 1_000_000, asked.seed)
    runs = [measured([sys.executable, "-c", READ, str(log)], folder) for _ in range(3)]
    rates = [bytes_ / float(run.said.split()[0]) / 1e6 for run in runs]
    peak = max(run.peak for run in runs)
    lines += [
        "",
        f"## A latency log of {bytes_ / 1e6:.0f} MB",
        "",
        f"{statistics.median(rates):.0f} MB per CPU second ({min(rates):.0f} .. {max(rates):.0f}); peak {peak:.0f} MiB",
    ]
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
