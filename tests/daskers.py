"""A Dask scheduler and its workers, each a process of its own, on a port that the scheduler takes itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from waiting import LIMIT, until

FOLLOW = """
import sys
from distributed import Client
address, workers, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with Client(address, timeout=limit, set_as_default=False) as client:
    client.wait_for_workers(workers, timeout=limit)
"""
"""Ends when all workers are there: iodelta gives up after a minute, in which a loaded machine may not start them."""


@contextlib.contextmanager
def dask_cluster(
    place: Path, workers: int, env: Mapping[str, str] = os.environ
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Its address as tcp://HOST:PORT, and the workers; ``place`` is an existing directory."""
    file = place / "scheduler.json"

    def started(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", *words, "--no-dashboard"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=place, env=env)

    listening = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    made = [started("distributed.cli.dask_scheduler", *listening)]
    try:
        until(lambda: _address(file) or made[0].poll() is not None)
        address = _address(file)
        own = ("--no-nanny", "--nthreads", "1", "--death-timeout", f"{LIMIT:.0f}")
        made += [started("distributed.cli.dask_worker", address, *own) for _ in range(workers)]
        subprocess.run([sys.executable, "-c", FOLLOW, address, str(workers), str(LIMIT)], cwd=place, check=True)
        yield address, made[1:]
    finally:
        for one in reversed(made):
            one.kill()
            one.wait(LIMIT)


def _address(file: Path) -> str:
    """What the scheduler wrote of itself; empty until all of it is there."""
    try:
        return str(json.loads(file.read_text())["address"])
    except (OSError, ValueError):
        return ""
