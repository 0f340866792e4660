"""The options of fio's ``t/io_uring``, by fio's own names where fio has the same option.

Source: ``t/io_uring.c`` up to fio 3.42. The program only reads, and has one-letter switches. Here they have fio's
names, so that a depth is called the same in every table and chart; the letters are accepted too.
"""

from __future__ import annotations

import math

from iodelta.experiment.values import size_bytes
from iodelta.jobfile import canonical

TOOL = "tool"
"""The option of a workload that names the tool; fio without it."""
IO_URING = "t/io_uring"

SWITCHES = {
    "iodepth": "d",
    "iodepth_batch": "s",
    "iodepth_batch_complete_min": "c",
    "bs": "b",
    "numjobs": "n",
    "hipri": "p",
    "fixedbufs": "B",
    "registerfiles": "F",
    "direct": "O",
}
"""fio's first name -> the letter of ``t/io_uring``."""

LETTERS = "DNPSTVXeut"
"""Options that only ``t/io_uring`` has: dma map, no-op, node, register ring, latency and the like."""

DEFAULTS = {
    "rw": "randread",
    "bs": "4k",
    "iodepth": "128",
    "numjobs": "1",
    "direct": "1",
    "ioengine": "io_uring",
}
"""Its default options, made explicit in every cell."""

ENGINES = {"io_uring": (), "libaio": ("-a1",), "pvsync2": ("-S1",)}
_NAMES = {letter: name for name, letter in SWITCHES.items()}


def name_of(key: str) -> str | None:
    """Return the name of an option in cells; None if ``t/io_uring`` does not have it."""
    name = _NAMES.get(key, canonical(key))
    return name if name in SWITCHES | DEFAULTS or key in set(LETTERS) else None


def switches(name: str, value: str | None) -> tuple[str, ...]:
    """Return one option as words for ``t/io_uring``. Raises ValueError for a value that it does not accept."""
    text = "1" if value is None else value.strip()
    if name == "rw":
        if text not in ("read", "randread"):
            raise ValueError("t/io_uring only reads: rw is randread or read")
        return (f"-R{int(text == 'randread')}",)
    if name == "ioengine":
        if text not in ENGINES:
            raise ValueError(f"t/io_uring has the engines {', '.join(ENGINES)}")
        return ENGINES[text]
    number = size_bytes(text)
    return (f"-{SWITCHES.get(name, name)}{number}",)


def allowed() -> str:
    """Return the options of a workload of ``t/io_uring``, for a message."""
    return ", ".join(dict.fromkeys((*DEFAULTS, *SWITCHES, *LETTERS)))


def seconds(ramp: float, runtime: float) -> int:
    """Return how long a run is: its first second or its ramp is dropped, its last is not printed."""
    return max(1, math.ceil(ramp)) + math.ceil(runtime) + 1
