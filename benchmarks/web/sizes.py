"""``python -m benchmarks.web.sizes [POINTS ...]``: what pages of a large history cost the server, in CPU and memory.

For each size: a table of so many points is imported and scanned, then pages are asked for, a decision is made, and a
night is added by another process.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.web.__main__ import IODELTA, resident

NIGHTS, CELLS = 500, 10
TICKS = os.sysconf("SC_CLK_TCK")
Row = tuple[str, float, float]


def table(path: Path, series: int, first: int, nights: int) -> None:
    """Nights of so many series, ten cells a machine; every tenth series loses 3 % half-way."""
    rng = np.random.default_rng(first)
    with path.open("w") as file:
        file.write("time,machine,cell,metric,value,error,better,unit,commit,repo,build\n")
        for night in range(first, first + nights):
            for number, noise in enumerate(0.01 * rng.standard_normal(series)):
                value = 50_000 * np.exp(noise - 0.03 * (number % 10 == 0 and night >= NIGHTS // 2))
                where = f"stor{number // CELLS:03},randread {number % CELLS}"
                about = f"{value:.2f},0.004,higher,IOPS,{night:040x},linux,v6.{night}"
                file.write(f"{1.7e9 + 86400 * night:.0f},{where},read.iops,{about}\n")


def used(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def command(*words: str) -> tuple[float, float]:
    """CPU seconds of a command with its processes, and the MiB of the largest of them so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*IODELTA, *words], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss / 1024


def measured(points: int, place: Path) -> list[Row]:
    """What was done, its CPU seconds, and MiB of memory."""
    series, history = max(points // NIGHTS, 1), str(place / "history")
    table(place / "all.csv", series, 0, NIGHTS)
    table(place / "more.csv", series, NIGHTS, 1)
    rows: list[Row] = [
        ("import", *command("history", "import", str(place / "all.csv"), "--from", "csv", "--history", history))
    ]
    rows.append(("scan of all", *command("history", "scan", "--history", history)))
    rows.append(("scan of nothing new", *command("history", "scan", "--history", history)))
    words = [*IODELTA, "serve", "--port", "0", "--write", "--history", history]
    with subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().split()[0]).netloc

        def ask(name: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
            connection, before = http.client.HTTPConnection(address, timeout=600), used(server.pid)
            connection.request("POST" if body else "GET", path, body, {"Accept": "text/html"} | headers)
            data = connection.getresponse().read()
            rows.append((name, used(server.pid) - before, resident(server.pid)))
            return data

        time.sleep(3.0)
        ask("first page", "/matrix")
        ask("alerts", "/triage")
        board = json.loads(ask("all as JSON", "/matrix", Accept="application/json"))
        own, alert = board["series"][0]["id"], board["alerts"][0]["id"]
        ask("a series", f"/series/{own}")
        ask("its chart", f"/series/{own}/chart.svg")
        ask("the series again", f"/series/{own}")
        ask("an alert", f"/alert/{alert}")
        csrf = json.loads(ask("who am I", "/history/access", Accept="application/json"))["csrf"]
        form = {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": csrf, "Accept": "application/json"}
        ask("a decision", f"/alert/{alert}/decide", f"word=expected&csrf={csrf}".encode(), **form)
        ask("first page after it", "/triage")
        added = command("history", "import", str(place / "more.csv"), "--from", "csv", "--history", history)
        rows.append(("add a night (another process)", *added))
        ask("first page after the night", "/matrix")
        server.terminate()
    return rows


def main() -> None:
    """Print a table for each size."""
    for points in [int(re.sub(r"\D", "", word)) for word in sys.argv[1:]] or [100_000, 1_000_000]:
        with tempfile.TemporaryDirectory(prefix="iodelta-sizes-") as place:
            print(f"\n{points:,} points\n\n| | CPU s | MiB |\n|---|--:|--:|")
            for name, seconds, memory in measured(points, Path(place)):
                print(f"| {name} | {seconds:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
