"""The task of a worker for one host: an `iodelta run` in a process of its own, until it ends or is asked to."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import IodeltaError
from iodelta.fleet.folder import FleetFolder

POLL = 0.5
"""Seconds between looks for the file that asks it to end."""

HOST_RUN = "iodelta.cli.fleet_host"
"""The module that such a process runs."""


ALLOWED = "commands"
"""A word for that process: commands that may write anywhere may run."""


class End(msgspec.Struct, frozen=True):
    """How the run on a host ended, for now."""

    kind: Literal["done", "drained", "stopped", "busy", "held", "away", "failed"]
    """``busy``: somebody else measures on its device. ``held``: another process writes to its folder. ``away``: it does
    not answer now, and may later."""
    reason: str = ""
    remedy: str = ""
    rate: float | None = None
    """Mean IOPS of the baseline, the geometric mean over cells."""


class Order(msgspec.Struct, frozen=True):
    """Which host of which fleet is measured."""

    folder: str
    identifier: str
    """Of the fleet, so that a worker that sees another folder under that path does nothing."""
    name: str
    destroy: tuple[str, ...] = ()
    allow_commands: bool = False


def measure(order: Order) -> End:
    """Measure one host, or continue with it. Raises nothing: an error is part of the answer."""
    folder = FleetFolder(Path(order.folder))
    try:
        begun = folder.begun()
        if begun is None or begun.identifier != order.identifier:
            return End(
                "failed",
                "this worker does not see the fleet folder",
                "workers need it under the same path",
            )
        return _run(folder, order)
    except IodeltaError as error:
        return End("failed", error.sentence, error.remedy)
    except OSError as error:
        return End(
            "failed",
            f"cannot start the run: {error}",
            "free some space or memory, then call it again",
        )


def _run(folder: FleetFolder, order: Order) -> End:
    answer, end = os.pipe()
    log = folder.log(order.name)
    log.parent.mkdir(exist_ok=True)
    words = [
        sys.executable,
        "-m",
        HOST_RUN,
        str(end),
        str(os.getpid()),
        order.folder,
        order.name,
        ALLOWED if order.allow_commands else "",
        *order.destroy,
    ]
    with contextlib.closing(os.fdopen(answer, "rb")) as answers:
        try:
            with log.open("ab") as output:
                # In a session of its own, so that a terminal's Ctrl-C reaches the scheduling process alone.
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(end,),
                    start_new_session=True,
                )
        finally:
            os.close(end)
        asked = _wait(process, folder.stop(order.name))
        data = answers.read()
    try:
        return from_json(data, End)
    except msgspec.MsgspecError:
        if asked:
            return End("stopped")
        return End(
            "failed",
            f"the run ended without an answer (exit {process.returncode})",
            f"the end of its output is in {log}",
        )


def _wait(process: subprocess.Popen[bytes], stop: Path) -> bool:
    """Wait for its end; whether it was asked to."""
    asked = False
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL)
            return asked
        if not asked and stop.exists():
            process.terminate()
            asked = True
