"""The options of fio's ``t/io_uring``, by fio's own names where fio has the same option.

``t/io_uring.c`` at its tags up to fio 3.42. It only reads, and takes one-letter switches; here they have the names that
say the same to fio, so that a depth is a depth in every table and chart. Its letters are understood too.
"""

from __future__ import annotations

from iodelta.experiment.values import size_bytes
from iodelta.jobfile import canonical

TOOL = "tool"
"""The option of a workload that says what makes the load; fio without it."""
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
"""What it does unless told otherwise, stated so that every reader of a cell knows it."""

ENGINES = {"io_uring": (), "libaio": ("-a1",), "pvsync2": ("-S1",)}
_NAMES = {letter: name for name, letter in SWITCHES.items()}


def name_of(key: str) -> str | None:
    """The name under which an option is kept; None for one that ``t/io_uring`` does not have."""
    first_name = _NAMES.get(key, canonical(key))
    if first_name in SWITCHES or first_name in DEFAULTS:
        return first_name
    if len(key) == 1 and key in LETTERS:
        return first_name
    return None


def switches(name: str, value: str | None) -> tuple[str, ...]:
    """One option as words for ``t/io_uring``. Raises ValueError for a value that it cannot be given."""
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
    """What a workload of ``t/io_uring`` may hold, for a message."""
    return ", ".join(
        [*DEFAULTS, *(name for name in SWITCHES if name not in DEFAULTS), *LETTERS]
    )
