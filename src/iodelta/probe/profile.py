"""Where CPU time goes while a load runs, by perf(1): counts of events, and the kernel's functions, each per I/O.

The load's own code is left out: fio spends much of a short run calibrating its clock. Sources: perf-stat(1)
(CSV format), perf-report(1). Without hardware counters, as in most virtual machines, perf samples the CPU clock
instead: nanoseconds then replace cycles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from iodelta.errors import MachineError
from iodelta.machine import Machine

EVENTS = "task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branch-misses,cache-misses"

LOAD = re.compile(
    r"fio|io_uring|iou-|kworker|ksoftirqd|swapper|md\d|loop\d|ublk|kublk|rublk|btrfs|jbd2|irq/|dm|xfs"
)
"""Beginnings of the names of processes that work for a load; other processes are left out."""

IDLE = re.compile(
    r"idle|halt|mwait|pv_native_safe_halt|poll_state|cpu_startup_entry|do_idle"
)

KEPT = 200
"""Symbols that are kept of one profile, the largest."""


class Profile(msgspec.Struct, frozen=True):
    """One profiled run. Per I/O: ``unit`` is ns of CPU, or the event that was sampled."""

    unit: str
    symbols: dict[str, float]
    """Function of the kernel -> its share of one I/O."""

    @property
    def total(self) -> float:
        """Return all functions together, per I/O."""
        return sum(self.symbols.values())


def missing(machine: Machine) -> str:
    """Return why perf cannot be used here, or an empty text."""
    try:
        done = machine.run(
            ["perf", "stat", "-a", "-x,", "-e", "task-clock", "--", "true"], timeout=30
        )
    except MachineError:
        return "needs perf (package linux-perf, or linux-tools of this kernel)"
    if done.returncode != 0:
        message = done.error_text.splitlines()[-1:]
        return f"perf cannot count here: {''.join(message) or 'it printed nothing'} (kernel.perf_event_paranoid?)"
    return ""


def stat_words(output: str) -> tuple[str, ...]:
    """Words before the load that count events of its own processes."""
    return ("perf", "stat", "-x,", "-e", EVENTS, "-o", output, "--")


def record_words(output: str) -> tuple[str, ...]:
    """Words before the load that sample the whole machine, since much of an I/O runs in threads of the kernel."""
    return (
        "perf",
        "record",
        "-q",
        "-a",
        "--all-kernel",
        "-F",
        "999",
        "-o",
        output,
        "--",
    )


def counts(text: str) -> dict[str, float | None]:
    """Return the events of ``perf stat -x,``, times in ns; None for one that this machine cannot count."""
    events: dict[str, float | None] = {}
    for line in text.splitlines():
        words = line.split(",")
        if len(words) > 3 and not line.startswith("#"):
            number = re.fullmatch(r"\d+(\.\d+)?", words[0])
            event, scale = (
                words[2].partition(":")[0],
                1e6 if words[1] == "msec" else 1.0,
            )
            events[event if scale == 1.0 else f"{event} (ns)"] = (
                float(words[0]) * scale if number else None
            )
    return events


def profile(machine: Machine, data: str, ios: int) -> Profile:
    """Return the symbols of a recording, per I/O. Raises MachineError."""
    words = [
        "perf",
        "report",
        "-i",
        data,
        "--stdio",
        "--no-children",
        "--sort",
        "comm,dso,symbol",
        "-t",
        "\t",
    ]
    done = machine.run(words, timeout=120, env={"LC_ALL": "C"})
    if done.returncode != 0:
        raise MachineError(
            f"perf report: {done.stderr.decode(errors='replace').strip()}", place=data
        )
    return parsed(done.text, ios)


def _of_the_load(text: str) -> Iterator[tuple[str, float]]:
    """Functions of the kernel that worked for the load, and their shares in percent."""
    for line in text.splitlines():
        words = [word.strip() for word in line.split("\t")]
        if len(words) < 4 or not re.fullmatch(r"\d+(\.\d+)?%", words[0]):
            continue
        percent, comm, _, symbol = words[:4]
        function = re.sub(r"^\[.\] ", "", symbol)
        is_load = symbol.startswith("[k]") and LOAD.match(comm.strip(":"))
        if is_load and not IDLE.search(function):
            yield function, float(percent[:-1])


def parsed(text: str, ios: int) -> Profile:
    """Return the symbols in ``perf report --sort comm,dso,symbol -t TAB`` that worked for the load, per I/O."""
    event = (re.findall(r"of event '([^']+)'", text) or ["?"])[0].partition(":")[0]
    whole = float((re.findall(r"Event count \(approx\.\): (\d+)", text) or ["0"])[0])
    symbols: dict[str, float] = {}
    for name, share in _of_the_load(text):
        symbols[name] = symbols.get(name, 0.0) + share / 100 * whole / max(1, ios)
    kept = sorted(symbols.items(), key=lambda item: -item[1])[:KEPT]
    return Profile(
        "ns of CPU" if event in ("cpu-clock", "task-clock") else event, dict(kept)
    )
