"""Runs one command and reports what it used. A copy of this file runs with the Python of any machine, so it imports
only the standard library.

``python3 supervisor.py REPORT LIMIT BYTES -- WORD ...``. Every process that the command leaves behind, daemons
included, becomes a child of this process (PR_SET_CHILD_SUBREAPER) and is ended before this process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""

LOOK = 0.1
"""Seconds between checks of how much was printed: some programs print a gigabyte in one second."""

GRACE = 0.5
"""Seconds from SIGTERM to SIGKILL."""

PATIENCE = 10.0
"""Seconds after which a killed process counts as hanging in the kernel."""

WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def parents() -> dict[int, tuple[int, str]]:
    """Process -> its parent and its name, of all processes."""
    processes = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    text = file.read().decode(errors="replace")
            except OSError:  # it has just ended
                continue
            name, _, rest = text.partition("(")[2].rpartition(")")
            state, parent = rest.split()[:2]
            if state not in "ZX":
                processes[int(entry)] = (int(parent), name)
    return processes


def descendants() -> dict[int, str]:
    """Process -> name, of all that descends from this one and is alive."""
    known = parents()
    mine = {os.getpid()}
    children: dict[int, str] = {}
    grown = True
    while grown:
        new = {
            pid: name
            for pid, (parent, name) in known.items()
            if parent in mine and pid not in mine
        }
        children.update(new)
        mine.update(new)
        grown = bool(new)
    return children


def reap() -> dict[int, int]:
    """Wait for every child that has ended; the exit status of each."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = status


def end_all() -> tuple[list[str], list[str]]:
    """End every descendant; the names of those that were alive, and of those that do not end."""
    reap()
    seen = descendants()
    begun = time.monotonic()
    left = seen
    while left and time.monotonic() < begun + PATIENCE:
        number = signal.SIGTERM if time.monotonic() < begun + GRACE else signal.SIGKILL
        for pid in left:
            # It has just ended, or belongs to another user.
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        reap()
        left = descendants()
        seen = {**seen, **left}
    return sorted(seen.values()), sorted(left.values())


def printed() -> int:
    """Bytes of both outputs."""
    return sum(os.fstat(stream).st_size for stream in (1, 2))


def floor() -> int:
    """Peak memory of this process in bytes: a child counts it as its own until it has become the command."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        sizes = [line.split()[1] for line in file if line.startswith("VmHWM:")]
    if not sizes:
        return 0
    return 1024 * int(sizes[0])


def cut(most: int) -> None:
    """Keep the beginning of outputs that are too long."""
    for stream in (1, 2):
        if os.fstat(stream).st_size > most:
            os.ftruncate(stream, most)


def watch(pid: int, begun: float, limit: float, most: int) -> tuple[int | None, str]:
    """Until the command ends, is to be stopped, takes too long or prints too much: its status or None, and why."""
    while True:
        now = time.monotonic()
        if now - begun >= limit:
            return None, "timeout"
        info = signal.sigtimedwait(WATCHED, max(0.001, min(LOOK, begun + limit - now)))
        if info is not None and info.si_signo != signal.SIGCHLD:
            return None, "stopped"
        ended = reap()
        if pid in ended:
            return ended[pid], ""
        if printed() > most:
            return None, "output"


def run(words: list[str], limit: float, most: int) -> dict[str, object]:
    """Return what a command did and used."""
    started, begun = time.time(), time.monotonic()
    try:
        pid = os.posix_spawnp(words[0], words, os.environ, setsigmask=())
    except (OSError, ValueError) as error:
        return {"why": "start", "error": getattr(error, "strerror", None) or str(error)}
    status, why = watch(pid, begun, limit, most)
    seconds = time.monotonic() - begun
    # Before the survivors end: reaping them adds their CPU time. Their writes belong to the command, though.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    survivors, stuck = end_all()
    written = 512 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock
    output = printed()
    cut(most)
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {
        "why": why,
        "code": code,
        "started": started,
        "seconds": seconds,
        "user": used.ru_utime,
        "system": used.ru_stime,
        "memory": 1024 * used.ru_maxrss,
        "floor": floor(),
        "written": written,
        "printed": output,
        "switches": used.ru_nvcsw + used.ru_nivcsw,
        "survivors": survivors if why == "" else [],
        "stuck": stuck,
    }


def main() -> None:
    report, limit, most, _, *words = sys.argv[1:]
    # Blocked before the command starts, so that ``sigtimedwait`` also gets a signal that came early.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    outcome = run(words, float(limit), int(most))
    with open(report, "w", encoding="utf-8") as file:
        json.dump(outcome, file)


if __name__ == "__main__":
    main()
