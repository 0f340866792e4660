"""Experiments that the site starts: each a process of its own, which nothing that happens to the server ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.lab.folder import JOURNAL, new_file, room_for
from iodelta.study.words import inert

BASE = "started"
"""Directory below the first one that is served."""

# A server that a shell started with `&` ignores Ctrl-C, and so would its children.
MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from iodelta.cli.main import main; main()"

SHOWN = 4000
"""Characters of what a process printed that a page shows: the last of them."""

MOST = 8
"""Processes at once: there is one for each disk, as a rule."""


class Launch(msgspec.Struct, frozen=True):
    """One process that was started, as it is recorded next to its folder."""

    folder: str
    """The experiment folder that it makes."""
    by: str
    """The user who started it; empty on a server without logins."""
    at: float
    """Unix seconds."""
    words: tuple[str, ...]
    """Of the command, after ``iodelta``."""


class Launches:
    """What was started. A record lies on disk, so that another server knows what this one started."""

    def __init__(self, root: Path) -> None:
        self.base = root.absolute() / BASE
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def new_folder(self) -> Path:
        """Return a place for a folder, named after the time."""
        stem = self.base / time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        names = [stem, *(stem.with_name(f"{stem.name}-{n}") for n in range(2, 100))]
        return next(name for name in names if not self._record(name).exists())

    def start(
        self, folder: Path, words: Sequence[str], by: str, text: str = ""
    ) -> Launch:
        """Begin ``iodelta WORDS``, which makes ``folder``; ``text`` goes to a file of its own before. Raises
        MeasureError."""
        launch = Launch(str(folder), by, time.time(), tuple(words))
        with self._lock:
            running = [p for p in self._processes.values() if p.poll() is None]
            if len(running) >= MOST:
                raise MeasureError(
                    f"{MOST} experiments run already", remedy="wait for one to end"
                )
            try:
                self.base.mkdir(parents=True, exist_ok=True)
                if text:
                    with new_file(self.file_of(folder)) as file:
                        file.write(text.encode())
                with new_file(self._record(folder)) as file:
                    file.write(msgspec.json.encode(launch))
                process = self._begun(folder, words)
            except OSError as error:
                raise MeasureError(
                    f"cannot be started: {error.strerror}",
                    place=error.filename or str(self.base),
                    remedy=f"{room_for(error)}, then start it again",
                ) from error
            self._processes[str(folder)] = process
        # Whoever started a process has to hear of its end, or it stays as a zombie.
        threading.Thread(target=process.wait, daemon=True).start()
        return launch

    def _begun(self, folder: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
        with new_file(self._log(folder)) as log:
            return subprocess.Popen(
                [sys.executable, "-c", MAIN, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def file_of(self, folder: Path) -> Path:
        """Where the text of an experiment is written."""
        return self.base / f"{folder.name}.toml"

    def get(self, folder: str) -> Launch | None:
        """Return what was started to make that folder; none where somebody else made it."""
        try:
            data = self._record(Path(folder)).read_bytes()
            launch = from_json(data, Launch)
        except (OSError, msgspec.MsgspecError):
            return None
        return launch if launch.folder == folder else None

    def runs(self, folder: str) -> bool:
        """Return whether its process has not ended; one of an earlier server is known by the lock of its journal."""
        return self._pid(folder) is not None

    def running(self) -> list[str]:
        """Folders of what this server started and that goes on."""
        return sorted(
            folder
            for folder, process in self._processes.items()
            if process.poll() is None
        )

    def printed(self, folder: str) -> str:
        """Return the end of what its process printed."""
        try:
            data = self._log(Path(folder)).read_bytes()
        except OSError:
            return ""
        lines = data.decode(errors="replace").splitlines()
        return "\n".join(map(inert, lines))[-SHOWN:]

    def cancel(self, folder: str) -> bool:
        """Ask its process to end as Ctrl-C does; false where there is none."""
        pid = self._pid(folder)
        if pid is None or self.get(folder) is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
            return True
        return False

    def _pid(self, folder: str) -> int | None:
        process = self._processes.get(folder)
        if process is not None:
            return process.pid if process.poll() is None else None
        launch = self.get(folder)
        if launch is None:
            return None
        writer = writer_of(Path(folder) / JOURNAL)
        if writer is None or not _is_of(writer, launch.words):
            return None
        return writer

    def _record(self, folder: Path) -> Path:
        return self.base / f"{self._name(folder)}.json"

    def _log(self, folder: Path) -> Path:
        return self.base / f"{self._name(folder)}.log"

    def _name(self, folder: Path) -> str:
        if folder.parent == self.base:
            return folder.name
        return f"confirmation-{folder.name}"


def writer_of(journal: Path) -> int | None:
    """Return the process that holds the lock of a journal, as the kernel names it; None without one."""
    try:
        number = journal.stat().st_ino
    except OSError:
        return None
    return lockers().get(number) or None


def _is_of(pid: int, words: Sequence[str]) -> bool:
    """Return whether a process is the one that was started: inodes of two filesystems may be the same number."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    given = [os.fsencode(word) for word in words]
    return line.split(b"\0")[-1 - len(given) : -1] == given


READINGS = 3
"""Times that the list is read. The kernel hands it out a page at a time, and where locks come and go in between, the next
page begins too late."""


def lockers() -> dict[int, int]:
    """Inode of a file that somebody holds a lock on -> the process that took it; 0 where the kernel names none."""
    held: dict[int, int] = {}
    for _ in range(READINGS):
        held |= _listed()
    return held


def _listed() -> dict[int, int]:
    try:
        text = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return {}
    words = (line.split() for line in text.splitlines())
    # 1: FLOCK ADVISORY WRITE 4711 00:19:1234 0 EOF
    return {
        int(word[5].rpartition(":")[2]): max(0, int(word[4]))
        for word in words
        if word[1:2] == ["FLOCK"]
    }
