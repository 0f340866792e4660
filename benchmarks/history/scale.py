"""``python -m benchmarks.history.scale``: how long a history of a million points takes, whether eight writers get
along, and what is left when anything is killed at any time (S1 to S3)."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import numpy as np

from iodelta.experiment import Subject
from iodelta.history.adding import rebuild_file
from iodelta.history.finishing import finish
from iodelta.history.log import Added, Given, Log
from iodelta.history.points import Key, Night, Point
from iodelta.history.reading import nights_of
from iodelta.history.scan import scan
from iodelta.history.store import Store, experiment_row, inserted, series_row

METRICS = ("read.iops", "read.lat.mean", "read.lat.p99")
DAY = 86400.0

MANY = 2_000_000
"""More points than that are not written experiment by experiment: that is measured with fewer."""


def night(machine: int, number: int, cells: int) -> Night:
    """An experiment of ``cells`` cells on one machine, with a reference; every tenth cell gets 3 % slower half-way."""
    rng = np.random.default_rng([machine, number])
    noise = rng.standard_normal((cells, len(METRICS), 2)) * 0.004
    points = []
    for cell in range(cells):
        step = 0.03 * (cell % 10 == 0 and number >= 250)
        for place, metric in enumerate(METRICS):
            options = (("tool", "fio"), ("iodepth", str(cell)), ("rw", "randread"))
            key = Key(f"stor{machine:02}", options, (), (), "", metric, "block")
            better, unit = ("higher", "IOPS") if metric.endswith("iops") else ("lower", "ns")
            y, r = noise[cell, place].tolist()
            points.append(
                Point(key, f"randread {cell}", "new", better, unit, 11.0 + y, 0.004, 12, 0.0, r + step, 0.004)
            )
    return Night(
        identifier=f"experiment-{machine}-{number}",
        sha=f"sha-{machine}-{number}",
        t=1.7e9 + DAY * number + machine,
        machine=f"stor{machine:02}",
        epoch="e",
        facts={"fio.version": "fio-3.33"},
        subject=Subject("linux", f"{number:040x}", f"v6.{number}"),
        folder=f"/runs/{machine}/{number}",
        state="complete",
        points=tuple(points),
    )


def milliseconds(ask: Callable[[], object], times: int = 11) -> tuple[float, float]:
    """Median of wall and of CPU time; the first call is not counted."""
    ask()
    wall, cpu = [], []
    for _ in range(times):
        begun, used = time.perf_counter(), time.process_time()
        ask()
        wall.append(1000 * (time.perf_counter() - begun))
        cpu.append(1000 * (time.process_time() - used))
    return statistics.median(wall), statistics.median(cpu)


COLUMNS = "series, experiment, y, se, lag1, n, r, r_se, flags"
ROW = f"INSERT INTO point ({COLUMNS}) VALUES (?, ?, ?, 0.004, 0, 12, ?, 0.004, '')"


def fill(store: Store, machines: int, nights: int, cells: int) -> None:
    """The same nights, with other noise, series by series in the order of the index: a tenth of the time."""
    names = sorted(range(nights), key=lambda number: f"experiment-0-{number}")
    after = np.asarray([number >= nights // 2 for number in names])
    series = {
        point.key.number: (machine, place, point)
        for machine in range(machines)
        for place, point in enumerate(night(machine, 0, cells).points)
    }
    empty = (night(machine, number, 0) for machine in range(machines) for number in range(nights))
    with store.writing() as connection:
        connection.exec_driver_sql("DROP INDEX point_experiment")
        inserted(connection, "experiment", [experiment_row(one) for one in empty])
        inserted(connection, "series", [series_row(number, point) for number, (_, _, point) in series.items()])
        for number, (machine, place, _) in sorted(series.items()):
            noise = np.random.default_rng(number).standard_normal((2, nights)) * 0.004
            step = 0.03 * (place // len(METRICS) % 10 == 0) * after
            own = zip(names, (11.0 + noise[0]).tolist(), (noise[1] + step).tolist(), strict=True)
            rows = [(number, f"experiment-{machine}-{at}", y, r) for at, y, r in own]
            connection.exec_driver_sql(ROW, rows)
        connection.exec_driver_sql("CREATE INDEX point_experiment ON point (experiment)")


def sizes(url: str, machines: int, nights: int, cells: int, folder: Path | None) -> Iterator[str]:
    """S1: rows of a table."""
    store = Store(url)
    store.prepare()
    begun = time.perf_counter()
    points = machines * nights * cells * len(METRICS)
    if points > MANY:
        fill(store, machines, nights, cells)
    else:
        store.replace_all(night(machine, number, cells) for number in range(nights) for machine in range(machines))
        filled = time.perf_counter() - begun
        yield f"| all {machines * nights:,} experiments in one transaction | {filled:.0f} s | |"
    print(f"filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    one = night(0, 0, cells).points[0].key.number
    asked: dict[str, Callable[[], object]] = {
        f"one series of {nights} points": lambda: store.lines([one]),
        f"all nights of a machine: {cells * len(METRICS)} series": lambda: store.lines(machine="stor00"),
        "scan of one series": lambda: scan(store.lines([one])),
    }
    for name, ask in asked.items():
        wall, cpu = milliseconds(ask)
        yield f"| {name} | {wall:.1f} ms | {cpu:.1f} ms |"
    more = iter(night(0, nights + number, cells) for number in range(100))
    wall, cpu = milliseconds(lambda: store.add(next(more)))
    made, _ = milliseconds(lambda: night(0, nights, cells))
    name = f"add one experiment of {cells * len(METRICS)} points"
    yield f"| {name} | {max(wall - made, 0.0):.1f} ms | {max(cpu - made, 0.0):.1f} ms |"
    assert len(store.lines([one])[0].points) >= nights
    if folder is not None:
        wall, cpu = milliseconds(lambda: nights_of(folder, Given(), Log(folder / "no log")))
        yield f"| rebuild: read one experiment folder | {wall:.0f} ms | {cpu:.0f} ms |"
    store.close()
    print(f"S1: {points:,} points", file=sys.stderr, flush=True)


def _write(url: str, machine: int, nights: int, cells: int) -> None:
    store = Store(url)
    for number in range(nights):
        store.add(night(machine, number, cells))
    store.close()


def writers(url: str, count: int, nights: int, cells: int) -> str:
    """S2: processes that all add, one that scans, and a server whose pages are asked for; a row of a table."""
    store = Store(url)
    store.prepare()
    begun = time.perf_counter()
    own = [multiprocessing.Process(target=_write, args=(url, machine, nights, cells)) for machine in range(count)]
    with tempfile.TemporaryDirectory(prefix="iodelta-serve-") as place, _served(url, Path(place)) as address:
        for process in own:
            process.start()
        reader, answers = _reader(address, lambda: any(process.is_alive() for process in own))
        scans = 0
        while any(process.is_alive() for process in own):
            scan(store.lines(machine="stor00"))
            scans += 1
        reader.join()
    for process in own:
        process.join()
    lost = sum(process.exitcode != 0 for process in own)
    there = len(store.experiments())
    kind = "PostgreSQL" if url.startswith("postgresql") else "SQLite"
    seconds = time.perf_counter() - begun
    store.close()
    pages = answers.count(HTTPStatus.OK)
    errors = len(answers) - pages
    return f"| {kind} | {count} x {nights} | {there:,} | {lost} | {scans} | {pages}, {errors} | {seconds:.0f} s |"


PAGES = ("metrics", "metrics", "triage", "matrix")
"""What is asked of the server in turn."""


def _reader(address: str, goes_on: Callable[[], bool]) -> tuple[threading.Thread, list[int]]:
    """A thread that asks for page after page, and the status of each answer."""
    answers: list[int] = []

    def read() -> None:
        for page in itertools.cycle(PAGES):
            if not goes_on():
                return
            answers.append(_status(f"{address}{page}"))

    thread = threading.Thread(target=read)
    thread.start()
    return thread, answers


@contextlib.contextmanager
def _served(url: str, place: Path) -> Iterator[str]:
    """Address of an ``iodelta serve`` of the history."""
    history = [str(Path(url.removeprefix("sqlite:///")).parent)]
    if url.startswith("postgresql"):
        history = [url.replace("+psycopg", ""), "--log", str(place / "decisions.jsonl")]
    words = ["-c", "from iodelta.cli.main import main; main()", "serve", "--port", "0", "--history", *history]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=place)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=300) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


WORK = """
import sys
from pathlib import Path
from benchmarks.history.scale import work
work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""


def work(place: Path, what: str, seed: int) -> None:
    """What is killed: one of add, scan, rebuild and prune, as the commands do it, until the end."""
    store, log = Store(f"sqlite:///{place / 'history.db'}"), Log(place / "decisions.jsonl")
    store.prepare()
    print("ready", flush=True)
    for number in range(1_000_000):
        one = night(1, 1000 * seed + number, 4)
        if what == "add":
            log.append(Added(1.0, one.identifier, one.sha, one.folder, Given()))
            store.add(one)
        elif what == "scan":
            scan(store.lines())
        elif what == "rebuild":
            store.close()
            rebuild_file(place, [_again(entry) for entry in log.added().values()])
        else:
            _prune(store, log)
            log.append(Added(1.0, one.identifier, one.sha, one.folder, Given()))
            store.add(one)


def _prune(store: Store, log: Log) -> None:
    from iodelta.history.pruning import chosen, prune

    prune(chosen(store, before=None, keep=20, gone=False), store, log)


def _again(entry: Added) -> Night:
    """The night that an entry of the log names, as if read from its folder."""
    _, machine, number = entry.identifier.split("-")
    return night(int(machine), int(number), 4)


def differences(place: Path) -> list[str]:
    """What ``history check`` finds once it has finished what was interrupted: the log against the database."""
    begun = time.perf_counter()
    store, log = Store(f"sqlite:///{place / 'history.db'}"), Log(place / "decisions.jsonl")
    finish(store, log, _again)
    experiments = store.experiments()
    opened = time.perf_counter() - begun
    found = [f"opened after {opened:.1f} s"] if opened > 1.0 else []
    found += [store.damage()] if store.damage() else []
    found += [f"line {log.broken()} was changed"] if log.broken() else []
    logged, known = log.added(), {row["id"]: row["sha"] for row in experiments}
    found += [f"half a night: {one}" for one, sha in known.items() if one in logged and logged[one].sha != sha]
    found += [f"not in the log: {one}" for one in known if one not in logged]
    whole = {one.experiment for line in store.lines() for one in line.points}
    found += [f"without points: {one}" for one in known if one not in whole]
    found += [f"lost: {one}" for one in logged if one not in known]
    store.close()
    return found


def killed(times: int, seed: int) -> tuple[dict[str, int], list[str]]:
    """S3: kills of each kind, and everything that was wrong afterwards."""
    rng, kinds, wrong = random.Random(seed), ("add", "scan", "rebuild", "prune"), []
    counts = dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory(prefix="iodelta-kills-") as directory:
        place = Path(directory)
        store, log = Store(f"sqlite:///{place / 'history.db'}"), Log(place / "decisions.jsonl")
        store.prepare()
        for number in range(40):
            one = night(0, number, 4)
            log.append(Added(1.0, one.identifier, one.sha, one.folder, Given()))
            store.add(one)
        store.close()
        for number in range(times):
            what = kinds[number % len(kinds)]
            words = [sys.executable, "-c", WORK, str(place), what, str(number + 1)]
            process = subprocess.Popen(words, stdout=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.expovariate(10.0))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
            counts[what] += 1
            wrong += [f"{what}: {one}" for one in differences(place)]
    return counts, wrong


def report(machines: int, nights: int, cells: int, kills: int, postgres: str, folder: Path | None, seed: int) -> str:
    """Everything as Markdown."""
    lines = ["## S1: size", ""]
    with tempfile.TemporaryDirectory(prefix="iodelta-scale-") as place:
        points = machines * nights * cells * len(METRICS)
        lines += [f"{points:,} points of {machines} machines in SQLite.", "", "| | wall | CPU |", "|---|---:|---:|"]
        lines += list(sizes(f"sqlite:///{place}/history.db", machines, nights, cells, folder))
    lines += ["", "## S2: eight writers, a scan and a server at the same time", ""]
    lines += ["| database | writers x nights | there | failed writers | scans meanwhile | wall |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    with tempfile.TemporaryDirectory(prefix="iodelta-scale-") as place:
        lines += [writers(f"sqlite:///{place}/history.db", 8, 200, cells // 4 or 1)]
    if postgres:
        lines += [writers(postgres, 8, 200, cells // 4 or 1)]
    counts, wrong = killed(kills, seed)
    said = ", ".join(f"{count} of {what}" for what, count in counts.items())
    lines += ["", "## S3: kill -9", "", f"{sum(counts.values())} kills: {said}. Found wrong: {len(wrong)}.", ""]
    return "\n".join([*lines, *(f"- {one}" for one in wrong[:20])])


def main() -> int:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.scale", description=__doc__)
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument("--nights", type=int, default=500)
    parser.add_argument("--cells", type=int, default=32)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--postgres", default="", metavar="URL", help="an empty database: postgresql+psycopg://...")
    parser.add_argument("--folder", type=Path, help="of an experiment: how long a rebuild takes to read one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", type=Path, help="also write it here")
    chosen = parser.parse_args()
    load = f"{os.getloadavg()[0]:.1f}"
    text = report(
        chosen.machines, chosen.nights, chosen.cells, chosen.kills, chosen.postgres, chosen.folder, chosen.seed
    )
    said = f"Seed {chosen.seed}, {os.cpu_count()} CPUs, load {load} at the start, {os.getloadavg()[0]:.1f} at the end."
    print(f"{said}\n\n{text}")
    if chosen.markdown is not None:
        chosen.markdown.write_text(f"# A large history\n\n{said}\n\n{text.rstrip()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
