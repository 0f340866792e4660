"""``python -m benchmarks.history.large_lake``: ten million points on an S3-compatible server, scanned by Dask workers
of which one is killed (S4). The steps are compared with those that are in the data, and for some machines with a scan
here.

The points are written as Delta at once: what an export of a history writes, without the history.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from benchmarks.history.scale import DAY, night
from iodelta.history import lake
from iodelta.history.answers import Candidate
from iodelta.history.scan import scan

SIZE = 0.03
CHECKED = 4
"""Machines that are also scanned here."""

BATCH = 20
"""Machines of one commit."""


def frame(machine: int, nights: int, cells: int) -> pl.DataFrame:
    """All points of one machine; every tenth cell gets 3 % slower half-way."""
    rng = np.random.default_rng([4, machine])
    numbers = np.arange(nights)
    parts = []
    for point in night(machine, 0, cells).points:
        cell = int(point.cell.split()[1])
        noise = 0.004 * rng.standard_normal((2, nights))
        cost = SIZE * ((numbers >= nights // 2) & (cell % 10 == 0))
        about = {
            "machine": point.key.machine, "series": point.key.number, "key": msgspec.json.encode(point.key).decode(),
            "cell": point.cell, "variant": "new", "metric": point.key.metric, "better": point.better,
            "unit": point.unit, "epoch": "e",
            "repo": "linux", "se": 0.004, "n": 12, "lag1": 0.0, "r_se": 0.004, "flags": "",
        }  # fmt: skip
        own = pl.DataFrame({"number": numbers, "y": 11.0 + noise[0], "r": noise[1] + cost})
        parts.append(own.with_columns(*(pl.lit(value).alias(name) for name, value in about.items())))
    number = pl.col("number").cast(pl.String)
    made = pl.concat(parts).with_columns(
        pl.format("experiment-{}-{}", pl.lit(machine), number).alias("experiment"),
        pl.format("sha-{}-{}", pl.lit(machine), number).alias("sha"),
        (1.7e9 + DAY * pl.col("number")).alias("t"),
        number.str.zfill(40).alias("commit"),
        pl.format("v6.{}", number).alias("describe"),
    )
    at = pl.from_epoch(pl.col("t").cast(pl.Int64))
    schema = pl.Schema({name: lake._KINDS.get(name, pl.String) for name in lake._NAMES})
    return made.with_columns(at.dt.strftime("%Y-%m").alias("month")).select(lake._NAMES).cast(schema)


def fill(target: str, machines: int, nights: int, cells: int) -> int:
    """Write all machines; how many points."""
    from deltalake import write_deltalake

    points = 0
    for first in range(0, machines, BATCH):
        own = pl.concat([frame(one, nights, cells) for one in range(first, min(first + BATCH, machines))])
        write_deltalake(target, own, mode="append", partition_by=lake.PARTITIONS)
        points += len(own)
        print(f"{points:,} points written", file=sys.stderr, flush=True)
    return points


def right(found: Sequence[Candidate], machines: int, nights: int, cells: int) -> dict[str, int]:
    """Series with a step, those of them whose range of nights holds it, and candidates elsewhere."""
    stepped = machines * len(range(0, cells, 10)) * 3
    true = [one for one in found if int(one.cell.split()[1]) % 10 == 0]
    held = {one.series for one in true if _number(one.last_good.t) < nights // 2 <= _number(one.first_bad.t)}
    return {"series with a step": stepped, "of them found": len(held), "other candidates": len(found) - len(held)}


def _number(t: float) -> int:
    return round((t - 1.7e9) / DAY)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended in any case."""
    running = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextlib.contextmanager
def bucket() -> Iterator[str]:
    """A bucket on an S3-compatible server of its own."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    os.environ |= {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    with started("-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)) as server:
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT"), timeout=60).close()
                break
            except OSError:
                if server.poll() is not None:
                    raise
                time.sleep(0.2)
        yield "s3://bucket/history"


def scanned(target: str, kill_after: float) -> tuple[list[Candidate], float, int]:
    """The candidates, seconds, and how many workers were killed meanwhile; one is killed, another takes its place."""
    port = _free_port()
    worker = ["-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--no-nanny", "--nthreads", "1"]
    worker += ["--no-dashboard", "--death-timeout", "120"]
    with contextlib.ExitStack() as stack:
        scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(started(*scheduler, "--no-dashboard"))
        workers = [stack.enter_context(started(*worker)) for _ in range(2)]
        killed = threading.Event()

        def kill() -> None:
            os.kill(workers[0].pid, signal.SIGKILL)
            killed.set()
            stack.enter_context(started(*worker))

        timer = threading.Timer(kill_after, kill)
        timer.start()
        begun = time.monotonic()
        try:
            found = lake.scan_lake(target, f"dask://127.0.0.1:{port}").candidates
            return list(found), time.monotonic() - begun, int(killed.is_set())
        finally:
            timer.cancel()


def report(machines: int, nights: int, cells: int, kill_after: float) -> str:
    """Everything as Markdown."""
    with bucket() as target:
        begun = time.monotonic()
        points = fill(target, machines, nights, cells)
        filled = time.monotonic() - begun
        used = _workers_cpu()
        found, seconds, killed = scanned(target, kill_after)
        used = _workers_cpu() - used
        names = sorted(lake.machines(target))[:CHECKED]
        here = [one for name in names for one in scan(lake.lines_of(target, name))]
    same = sorted((one for one in found if one.machine in names), key=_key) == sorted(here, key=_key)
    counts = right(found, machines, nights, cells)
    lines = [
        f"{points:,} points of {machines} machines, written in {filled:.0f} s to an S3-compatible server.",
        f"Scanned by two Dask workers in {seconds:.0f} s, of which {killed} was killed and replaced on the way;",
        f"scheduler and workers used {used:.0f} s of CPU.",
        "",
        *(f"- {name}: {count:,}" for name, count in counts.items()),
        f"- {CHECKED} machines scanned here give {'the same' if same else 'OTHER'} candidates ({len(here)}).",
    ]
    return "\n".join(lines) + "\n"


def _workers_cpu() -> float:
    """Seconds of CPU of all processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _key(one: Candidate) -> tuple[str, str, str]:
    return one.machine, one.cell, f"{one.metric} {one.first_bad.t}"


def main() -> int:
    """Print it, and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.large_lake", description=__doc__)
    parser.add_argument("--machines", type=int, default=210)
    parser.add_argument("--nights", type=int, default=500)
    parser.add_argument("--cells", type=int, default=32)
    parser.add_argument("--kill-after", type=float, default=60.0, help="seconds of the scan (default 60)")
    parser.add_argument("--markdown", type=Path, help="also write it here")
    chosen = parser.parse_args()
    text = report(chosen.machines, chosen.nights, chosen.cells, chosen.kill_after)
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(f"# A large lake\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
