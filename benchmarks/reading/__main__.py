"""``python -m benchmarks.reading``: how fast results are read, and how fast others are on the same files.

All ways in turn in every round; CPU seconds, which neighbours on the machine change least, and of several times the
least, for they only add. Two columns: whole processes; and reading and summarising alone, which is the whole less the
same command on the smallest file of that kind in the same round (the start of Python, imports, the frame of a chart).
Files are in the page cache and everybody's bytecode is kept; all write to files. iodelta takes part twice: the library
reading everything and printing rates, means, deviations and percentiles; and ``iodelta show``, which also arranges the
runs and judges them by every rule of the audit. With ``--fio-tools`` (the tools folder of a fio source tree) fio's own
Python tools take part, with ``--fio-plot`` (its command) fio-plot; iodelta needs neither. Then a comparison with all
its charts, and the reader without a command around it.
The tables go to ``--write``.
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
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from iodelta.trial import bin_edges

TEMPLATE = Path(__file__).parents[2] / "tests" / "data" / "same-run" / "fio-3.42.out"
SIZE = 200_000
LOG = "randread-iodepth-1-numjobs-1_lat.1.log"
HIST = "randread_clat_hist.1.log"
QUICK, MOST = 10.0, 9
"""CPU seconds, and times, until which a way is measured again in each round."""
ROW = 34
"""Bytes of a typical log row with an offset."""


def make_json(folder: Path, files: int, seed: int, bins: int = 1050) -> None:
    """JSON+ files of about ``SIZE`` bytes, as fio 3.42 spells them, each with counts of its own."""
    found = re.search(r"^\{$.*?^\}$", TEMPLATE.read_text(), re.M | re.S)
    if found is None:
        raise SystemExit(f"{TEMPLATE} holds no JSON")
    rng = random.Random(seed)
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
                counts = {}
                for index in range(low, low + bins):
                    edges = bin_edges(index)
                    counts[str((edges[0] + edges[1]) // 2)] = rng.randrange(1, 5000)
                job[kind][name] |= {"bins": counts, "N": sum(counts.values())}
        text = json.dumps(document, indent=2, separators=(",", " : "))
        (folder / f"randread-{number + 1}-1.json").write_text(text)


def make_log(folder: Path, size: int, seed: int) -> None:
    """A latency log of single I/Os of about ``size`` bytes."""
    rng = np.random.default_rng(seed)
    rows = size // ROW
    with (folder / LOG).open("w") as file:
        for begin in range(0, rows, 200_000):
            count = min(200_000, rows - begin)
            times = np.sort(rng.integers(begin // 100, (begin + count) // 100, count))
            values = np.exp(rng.normal(11.3, 0.4, count)).astype(np.int64)
            kinds = (rng.random(count) < 0.3).astype(int)
            offsets = rng.integers(0, 2**18, count) * 4096
            columns = (times.tolist(), values.tolist(), kinds.tolist(), offsets.tolist())
            file.writelines(f"{t}, {v}, {k}, 4096, {o}, 0\n" for t, v, k, o in zip(*columns, strict=True))


def make_hist(folder: Path, size: int, seed: int) -> None:
    """A clat_hist log of about ``size`` bytes, a row a second and 1856 bins a row."""
    rng = np.random.default_rng(seed)
    with (folder / HIST).open("w") as file:
        second = 0
        while file.tell() < size:
            second += 1
            counts = np.zeros(1856, dtype=np.int64)
            counts[400:900] = rng.poisson(40, 500)
            file.write(f"{second * 1000}, 0, 4096, {', '.join(map(str, counts.tolist()))}\n")


class Way(NamedTuple):
    """The same work by one program: ``commands`` on the files, ``start`` one of them on the smallest file."""

    name: str
    commands: Sequence[Sequence[str]]
    start: Sequence[str]


class Took(NamedTuple):
    """CPU seconds, seconds by the clock and resident MiB of one process, and what it said."""

    cpu: float
    clock: float
    peak: float
    said: str


IODELTA = [sys.executable, "-c", "from iodelta.cli.main import main; main()"]

SUMMARISE = """
import sys
from iodelta.ingest import read
for run in read(sys.argv[1:]).runs:
    for direction in run.directions:
        latency = direction.lat or direction.clat or direction.slat
        points = [latency.quantile(p) for p in (0.5, 0.99, 0.999)]
        print(run.place.file, direction.kind, direction.ios, direction.iops.value, direction.bandwidth.value,
              latency.mean.value, latency.stddev.value, latency.max.value, *points)
"""

WITHOUT_CORE = """
import sys
sys.modules["iodelta_native"] = None
"""

READ = """
import sys, time
from iodelta.ingest import read
cpu, clock = time.process_time(), time.perf_counter()
read(sys.argv[1:])
print(time.process_time() - cpu, time.perf_counter() - clock)
"""


def measured(words: Sequence[str], folder: Path, *, fine: Sequence[int] = (0,)) -> Took:
    """One command, with its bytecode kept as after an installation: its own CPU seconds and peak, from wait4.

    Raises SystemExit when its exit code is not one of ``fine``.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        env = kept | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        begun = time.perf_counter()
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=err, env=env)
        _, status, used = os.wait4(process.pid, 0)
        clock = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        out.seek(0)
        if process.returncode not in fine:
            raise SystemExit(f"{' '.join(words)[:200]}: {err.read().decode(errors='replace')[-500:]}")
        said = out.read().decode(errors="replace")
        return Took(used.ru_utime + used.ru_stime, clock, used.ru_maxrss / 1024, said)


def least(commands: Sequence[Sequence[str]], folder: Path) -> float:
    """CPU seconds of all ``commands``: the least of several times where that is little, for neighbours only add."""
    took = [sum(measured(words, folder).cpu for words in commands)]
    while sum(took) < QUICK and len(took) < MOST:
        took.append(sum(measured(words, folder).cpu for words in commands))
    return min(took)


def race(ways: Sequence[Way], folder: Path, rounds: int) -> list[str]:
    """A row of the table for each way: medians over the rounds, and of its times the first way's in the same round."""
    whole: dict[str, list[float]] = {way.name: [] for way in ways}
    alone: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            start = least([way.start], folder)
            whole[way.name].append(least(way.commands, folder))
            alone[way.name].append(max(whole[way.name][-1] - start * len(way.commands), 0.001))
    rows = ["| way | whole process, s | times the first | alone, s | times the first |", "|---|--:|--:|--:|--:|"]
    for way in ways:
        cells = [way.name]
        for times in (whole, alone):
            own, first = times[way.name], times[ways[0].name]
            ratio = statistics.median(a / b for a, b in zip(own, first, strict=True))
            cells += [f"{statistics.median(own):.3f}", f"{ratio:.1f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


class Peers:
    """Commands of other programs on what stands in a folder, where they are installed."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._tools: Path | None = asked.fio_tools
        self._python: str = asked.python
        self._plot = str(asked.fio_plot) if asked.fio_plot else ""

    def json(self, small: Path, large: Path) -> Iterator[Way]:
        """fio_jsonplus_clat2csv takes one file a start."""
        files = sorted(large.iterdir())
        if self._tools:
            words = [self._python, str(self._tools / "fio_jsonplus_clat2csv")]
            every = [[*words, str(file), "out.csv"] for file in files]
            yield Way("fio_jsonplus_clat2csv, of each file", every, [*words, str(next(small.iterdir())), "out.csv"])
        if self._plot:
            chart = ("-T", "x", "-r", "randread", "-l", "-n", "2", "-o", "x.png")
            depths = [str(number + 1) for number in range(len(files))]
            large_chart = [self._plot, "-i", str(large), *chart, "-d", *depths]
            yield Way("fio-plot -l (one chart)", [large_chart], [self._plot, "-i", str(small), *chart, "-d", "1"])

    def log(self, small: Path, large: Path) -> Iterator[Way]:
        """Sums of seconds, means of seconds, a chart."""
        if self._tools:
            for option, meaning in (("-s", "sums"), ("-a", "means")):
                words = [self._python, str(self._tools / "fiologparser.py"), option]
                name = f"fiologparser.py {option} ({meaning} of seconds)"
                yield Way(name, [[*words, str(large / LOG)]], [*words, str(small / LOG)])
        if self._plot:
            chart = ("-T", "x", "-g", "-r", "randread", "-t", "lat", "-d", "1", "-n", "1", "-o", "x.png")
            large_chart = [self._plot, "-i", str(large), *chart]
            yield Way("fio-plot -g (one chart)", [large_chart], [self._plot, "-i", str(small), *chart])

    def hist(self, small: Path, large: Path) -> Iterator[Way]:
        """Percentiles over time; iodelta says those of the whole run."""
        if self._tools:
            for name in ("fio-histo-log-pctiles.py", "fiologparser_hist.py"):
                words = [self._python, str(self._tools / "hist" / name)]
                yield Way(name, [[*words, str(large / HIST)]], [*words, str(small / HIST)])


def contest(
    make: Callable[[Path, bool], None], peers: Callable[[Path, Path], Iterator[Way]], what: str, rounds: int
) -> list[str]:
    """A heading and a table: ``make`` fills a folder with the smallest or with the large files, iodelta and ``peers``
    read it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        small, large = folder / "small", folder / "large"
        for made in (small, large):
            made.mkdir()
            make(made, made is large)
        os.sync()  # or the first to read pays for the writing
        size = sum(file.stat().st_size for file in large.iterdir())
        summarise, show = [sys.executable, "-c", SUMMARISE], [*IODELTA, "show"]
        own = [
            Way("iodelta: read and summarised", [[*summarise, str(large)]], [*summarise, str(small)]),
            Way("iodelta show (and arranged, audited, as a table)", [[*show, str(large)]], [*show, str(small)]),
        ]
        return ["", f"## {what}, {size / 1e6:.0f} MB", "", *race([*own, *peers(small, large)], folder, rounds)]


def reading(make: Callable[[Path], None], what: str, script: str = READ) -> list[str]:
    """How fast the reader itself is on what ``make`` puts into a folder; its unit is megabytes, start left out."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        make(folder)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        files = [str(file) for file in folder.iterdir()]
        runs = [measured([sys.executable, "-c", script, *files], folder) for _ in range(3)]
        cpu, clock = (statistics.median(float(run.said.split()[at]) for run in runs) for at in (0, 1))
        rates = f"{cpu:.2f} s of CPU ({size / cpu:.0f} MB/s), {clock:.2f} s by the clock ({size / clock:.0f} MB/s)"
        return [f"| {what}, {size:.0f} MB | {rates} | {max(run.peak for run in runs):.0f} MiB |"]


def comparing(files: int, rounds: int, seed: int) -> list[str]:
    """How long it takes from two folders of JSON+ files to one HTML file with every chart: the whole process."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        sides = [folder / "old", folder / "new"]
        for number, side in enumerate(sides):
            side.mkdir()
            make_json(side, files // 2, seed + number)
        size = sum(file.stat().st_size for side in sides for file in side.iterdir()) / 1e6
        words = [*IODELTA, "compare", *map(str, sides), "--format", "html", "--output", str(folder / "report.html")]
        runs = [measured(words, folder, fine=(0, 1, 3)) for _ in range(rounds + 1)][1:]  # the first makes bytecode
        cpu, clock = statistics.median(run.cpu for run in runs), statistics.median(run.clock for run in runs)
        page = (folder / "report.html").stat().st_size / 1e6
        return [
            *("", "## From two folders to one HTML file with every chart", ""),
            f"`iodelta compare --format html` on {files} JSON+ files, {size:.0f} MB: {cpu:.2f} s of CPU, {clock:.2f} s "
            f"by the clock for the whole process, {max(run.peak for run in runs):.0f} MiB; a page of {page:.1f} MB.",
        ]


def main() -> int:
    """Make the files, race, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=300, help="files in the larger folder (default 300)")
    parser.add_argument("--log-mb", type=int, default=1000, help="size of the large log (default 1000)")
    parser.add_argument("--part-mb", type=int, default=100, help="size of the logs that others read too (default 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fio-tools", type=Path, help="the tools folder of a fio source tree")
    parser.add_argument("--python", default="python3", help="runs them: some need numpy, pandas, six")
    parser.add_argument("--fio-plot", type=Path, help="the fio-plot command")
    parser.add_argument("--write", type=Path, help="file for the tables")
    asked = parser.parse_args()
    peers, seed = Peers(asked), asked.seed

    def some(files: int) -> Callable[[Path, bool], None]:
        return lambda to, large: make_json(to, files, seed) if large else make_json(to, 1, seed, bins=5)

    def log(to: Path, large: bool) -> None:
        make_log(to, asked.part_mb * 1_000_000 if large else 100 * ROW, seed)

    def hist(to: Path, large: bool) -> None:
        make_hist(to, asked.part_mb * 250_000 if large else 1, seed)

    lines = [f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {asked.rounds} interleaved rounds."]
    for files in (60, asked.many):
        lines += contest(some(files), peers.json, f"{files} JSON+ files", asked.rounds if files == 60 else 1)
    lines += contest(log, peers.log, "A latency log of single I/Os", 1)
    lines += contest(hist, peers.hist, "A histogram log", asked.rounds)
    lines += comparing(60, max(asked.rounds, 3), seed)
    lines += ["", "## The reader alone", "", "| files | reading | peak |", "|---|---|--:|"]
    lines += reading(lambda to: make_json(to, 60, seed), "60 JSON+ files")
    lines += reading(lambda to: make_json(to, 60, seed), "60 JSON+ files, without the native core", WITHOUT_CORE + READ)
    lines += reading(lambda to: make_log(to, asked.log_mb * 1_000_000, seed), "a latency log")
    lines += reading(lambda to: make_hist(to, asked.part_mb * 250_000, seed), "a histogram log")
    text = "\n".join(lines)
    print(text)
    if asked.write:
        asked.write.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
