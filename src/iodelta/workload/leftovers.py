"""Finds the processes of a load by their environment, even after iodelta itself was killed."""

from __future__ import annotations

import time

from iodelta.errors import MachineError, MeasureError
from iodelta.machine import Machine

MARKER = "IODELTA_EXPERIMENT"
"""Environment variable that every load carries; its children inherit it, those in a session of their own included."""


_SEARCH = """for file; do case "
$(tr '\\0' '\\n' <"$file")
" in *"
$0
"*) printf '%s\\n' "$file" ;; esac; done 2>/dev/null"""
"""Constant: what is searched for and the files come as arguments."""


def marked(experiment: str) -> dict[str, str]:
    """Return the environment that marks a load as belonging to ``experiment``."""
    return {MARKER: experiment}


def end_leftovers(machine: Machine, experiment: str) -> tuple[int, ...]:
    """End the processes that carry the marker of ``experiment``; returns those that were ended. A process that clears
    its environment (sudo) is not found. Raises MeasureError as ``end_carrying``."""
    return end_carrying(machine, MARKER, experiment)


def carrying(machine: Machine, variable: str, value: str) -> tuple[int, ...]:
    """Processes, ascending, whose environment at their start had ``variable`` set to ``value``."""
    wanted, files = f"{variable}={value}", machine.glob("/proc/[0-9]*/environ")
    # One command for all of them: over SSH a read each would take seconds. -s: some end meanwhile, some are not ours.
    try:
        listing = machine.run(
            ["grep", "-l", "-s", "-z", "-x", "-F", "-e", wanted, "--", *files],
            timeout=60,
        )
    except MachineError:  # a machine may have coreutils and no grep
        listing = machine.run(["sh", "-c", _SEARCH, wanted, *files], timeout=60)
    return tuple(sorted(int(path.split("/")[2]) for path in listing.text.split()))


def end_carrying(
    machine: Machine, variable: str, value: str, *, grace: float = 2.0
) -> tuple[int, ...]:
    """SIGTERM to them, SIGKILL after ``grace`` seconds; returns those that were ended.

    Raises MeasureError when some do not die, such as a process that waits for a device that does not answer.
    """
    ended: set[int] = set()
    pids = carrying(machine, variable, value)
    for signal in ("-TERM", "-KILL"):
        if not pids:
            break
        ended.update(pids)
        # Fails for those that have just ended.
        machine.run(["kill", signal, "--", *map(str, pids)], timeout=60)
        deadline = time.monotonic() + grace
        while (
            pids := carrying(machine, variable, value)
        ) and time.monotonic() < deadline:
            time.sleep(0.05)
    if pids:
        raise MeasureError(
            f"processes {', '.join(map(str, pids))} of an earlier run do not end",
            place=machine.name,
            remedy="they wait for a device that does not answer: see their /proc/PID/stack, then restart the machine",
        )
    return tuple(sorted(ended))
