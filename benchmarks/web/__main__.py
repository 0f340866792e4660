"""``python -m benchmarks.web``: 50 clients look at a history of 500 nights and at a run that goes on.

Every client opens a page, reads for a second, and opens the next. Printed are the times of answers by kind of page, the
memory of the server ten times on the way, how many trials the run made, and the load of the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from iodelta.experiment import Subject
from iodelta.history.points import Key, Night, Point
from iodelta.history.store import Store, url_of

NIGHTS, SERIES = 500, 96
IODELTA = (sys.executable, "-c", "from iodelta.cli.main import main; main()")


def night(number: int, rng: np.random.Generator) -> Night:
    """Every series once; the first one loses 2 % after 400 nights."""
    points = []
    for at in range(SERIES):
        key = Key("stor1", (("bs", str(at)), ("rw", "randread")), (), (), "read.iops", "block", "", "")
        step = 0.02 if at == 0 and number >= 400 else 0.0
        y, r = 11.0 + 0.01 * rng.standard_normal(), step + 0.004 * rng.standard_normal()
        points.append(Point(key, f"cell {at}", "new", "higher", "IOPS", y, 0.003, 12, 0.0, r, 0.004))
    begun = 1.7e9 + 86400.0 * number
    subject = Subject("linux", f"{number:040x}", f"v{number}")
    return Night(
        f"e{number}", f"s{number}", begun, "stor1", "e", {}, subject, f"/n/{number}", "complete", tuple(points)
    )


def make_history(place: Path) -> None:
    """A history that nobody measured."""
    place.mkdir()
    store, rng = Store(url_of(place / "history.db")), np.random.default_rng(1)
    store.prepare()
    store.add_all([night(number, rng) for number in range(NIGHTS)])
    store.close()


class NoRunError(Exception):
    """The run that the clients look at has ended: there is nothing to measure."""


def finished_trials(journal: Path) -> int:
    """How many trials a run has made."""
    return journal.read_bytes().count(b'"finished"') if journal.exists() else 0


def check_run(run: subprocess.Popen[str], log: Path) -> None:
    """Raises NoRunError where the run has ended, with the last line that it printed."""
    if run.poll() is not None:
        said = [line for line in log.read_text().splitlines() if line.strip()]
        last = said[-1].strip() if said else f"exit code {run.returncode}"
        raise NoRunError(f"nothing was measured, because the run that people should look at has ended: {last}")


@contextmanager
def started(*words: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command of iodelta, ended afterwards. What it says goes to a file: a pipe that nobody reads fills up."""
    with open(cwd / f"{words[0]}.log", "w") as log:
        process = subprocess.Popen([*IODELTA, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def resident(pid: int) -> float:
    """MiB of memory that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


class Client:
    """One person."""

    def __init__(self, address: str, pages: dict[str, str], until: float, seed: int) -> None:
        self._address, self._pages, self._until = address, pages, until
        self._rng = random.Random(seed)
        self.times: list[tuple[str, float]] = []
        self.errors: list[str] = []

    def look(self) -> None:
        """Open page after page."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        while time.monotonic() < self._until:
            kind = self._rng.choice(sorted(self._pages))
            begun = time.monotonic()
            try:
                connection.request("GET", self._pages[kind], headers={"Accept": "text/html"})
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(f"{kind}: {error!r}")
                connection.close()
                continue
            if answer.status != 200:
                self.errors.append(f"{kind}: {answer.status}")
            self.times.append((kind, time.monotonic() - begun))
            time.sleep(self._rng.uniform(0.5, 1.5))


def asked(address: str, path: str) -> dict[str, object]:
    """The document of a page."""
    connection = http.client.HTTPConnection(address, timeout=300)
    connection.request("GET", path, headers={"Accept": "application/json"})
    found: dict[str, object] = json.loads(connection.getresponse().read())
    return found


def pages_of(address: str) -> dict[str, str]:
    """What the clients open, by kind."""
    board, listed = asked(address, "/matrix"), asked(address, "/")
    series = board["series"][0]["id"]  # type: ignore[index]
    found = {"results": "/", "matrix": "/matrix", "series": f"/series/{series}", "alerts": "/triage"}
    for one in listed["results"]:  # type: ignore[attr-defined]
        found["run"], found["trials"] = f"/experiment/{one['id']}", f"/experiment/{one['id']}/trials"
    return found


def measure(place: Path, clients: int, seconds: float) -> None:
    """Print what was seen."""
    (place / "runs").mkdir()
    make_history(place / "history")
    # Two names for the same thing and a margin that nothing reaches: a run that were decided would end too early.
    variants = ("--variant", "a:fio.description=a", "--variant", "b:fio.description=b")
    endless = ("--margin", "0.001%", "--blocks", "2000")
    load = ("--rw=randread", "--bs=4k", "--ioengine=null")
    words = (
        "run",
        "--folder",
        "runs/live",
        "--size",
        "1m",
        "--trial",
        "500ms",
        "--ramp",
        "0",
        "--wait",
        *variants,
        *endless,
    )
    with (
        started(*words, "--budget", f"{int(2 * seconds) + 600}s", "--", *load, cwd=place) as run,
        started("serve", "--port", "0", "--folders", "runs", "--history", "history", cwd=place) as server,
    ):
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().split()[0]).netloc
        journal, log = place / "runs/live/journal.jsonl", place / "run.log"
        while not finished_trials(journal):
            check_run(run, log)
            time.sleep(0.2)
        pages = pages_of(address)
        until = time.monotonic() + seconds
        people = [Client(address, pages, until, seed) for seed in range(clients)]
        threads = [threading.Thread(target=person.look, daemon=True) for person in people]
        memory = [resident(server.pid)]
        for thread in threads:
            thread.start()
        for tenth in range(9, -1, -1):
            time.sleep(max(0.0, until - tenth * seconds / 10 - time.monotonic()))
            check_run(run, log)
            memory.append(resident(server.pid))
        for thread in threads:
            thread.join()
        check_run(run, log)
        show(people, memory)
    print(f"trials of the run: {finished_trials(journal)}; load of the machine: {os.getloadavg()[1]:.1f}")


def show(people: list[Client], memory: list[float]) -> None:
    """A line for each kind of page, and the memory."""
    times = [one for person in people for one in person.times]
    errors = [one for person in people for one in person.errors]
    for kind in (*sorted({kind for kind, _ in times}), "all"):
        own = [1000 * taken for name, taken in times if kind in (name, "all")]
        middle, late = np.quantile(own, (0.5, 0.95))
        print(
            f"{kind:<8} {len(own):>6} answers  median {middle:6.0f} ms  p95 {late:6.0f} ms  slowest {max(own):6.0f} ms"
        )
    print(f"errors: {len(errors)} {sorted(set(errors))[:3]}")
    print(f"memory of the server, MiB: {' '.join(f'{size:.0f}' for size in memory)}")


def main() -> None:
    """Parse and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        try:
            measure(Path(place), given.clients, given.seconds)
        except NoRunError as error:
            parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
