"""A writer that is killed at any instant loses no finished trial, and what it leaves is no sign of a changed folder."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from iodelta.lab.account import Account
from iodelta.lab.folder import EXPERIMENT, Finished, Folder, Session, Started
from iodelta.lab.integrity import integrity

KILLS = 40

WRITER = """
import os, sys
from pathlib import Path
from iodelta.lab.account import Account
from iodelta.lab.folder import Finished, Folder, Session, Started
folder = Folder.open(Path(sys.argv[1]))
with folder.writing():
    number = Account(folder.events()).next_trial
    folder.append(Session(1.0, "boot", os.getpid(), {}, "environment.json"))
    print(flush=True)
    while True:
        folder.append(Started(1.0, number, "cell", 0, 0, 0, "a", 1), sync=False)
        folder.write_raw(number, {"fio.json": os.urandom(3000), "record": b"{}"})
        folder.append(Finished(2.0, number, 1.0))
        number += 1
"""


def finished_after_a_kill(path: Path, delay: float) -> set[int]:
    """Write trials until a kill, and the numbers of all that are finished then."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"\n"
        time.sleep(delay)
        os.kill(writer.pid, signal.SIGKILL)
    return {event.trial for event in Folder.open(path).events() if isinstance(event, Finished)}


def test_kills_at_random_instants_lose_nothing_and_break_no_seal(tmp_path: Path) -> None:
    with Folder.making(tmp_path / "folder") as draft:
        draft.write(EXPERIMENT, b'question = "?"\n')
    rng, before = random.Random(14), set[int]()
    for kill in range(KILLS):
        after = finished_after_a_kill(tmp_path / "folder", rng.uniform(0.0, 0.1))
        assert before <= after, f"kill {kill + 1}"
        folder = Folder.open(tmp_path / "folder")
        events = folder.events()
        assert integrity(folder, Account(events)) == [], f"kill {kill + 1}"
        assert folder.seal.lines == len(events)
        assert folder.altered() == {}
        assert {event.trial for event in events if isinstance(event, Started)} >= after
        assert sum(isinstance(event, Session) for event in events) == kill + 1
        before = after
    while not before:  # on a disk that takes long to sync, a tenth of a second is too short for a trial
        kill += 1
        before = finished_after_a_kill(tmp_path / "folder", 0.1 * (kill - KILLS))
