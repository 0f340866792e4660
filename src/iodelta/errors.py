"""The one exception tree: every message says what happened, where, and what to do next.

The command line turns an ``IodeltaError`` into its message on standard error and its ``exit_code``; anything else is
a defect of iodelta and keeps its traceback.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import ClassVar


class IodeltaError(Exception):
    """Something the user can act on. ``place`` is a file:line, device, knob or trial; ``remedy`` the next step."""

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        place = self.place.replace("\n", "\\x0a")  # no name makes lines of a message
        head = f"{place}: {self.what}" if place else self.what
        if not self.remedy:
            return head
        return f"{head}\n  {self.remedy}"

    @property
    def sentence(self) -> str:
        """Return the message in one line, for a text that it becomes a part of."""
        return "; ".join(" ".join(line.split()) for line in str(self).split("\n  ", 1))


@contextlib.contextmanager
def needs_extra(extra: str, use: str) -> Iterator[None]:
    """Import packages within. Raises RequestError, naming the ``extra`` of iodelta, where one is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise RequestError(
            f"{use} needs {error.name}",
            remedy=f"install iodelta with it: pip install 'iodelta[{extra}]'",
        ) from error


def pasted(path: object) -> str:
    """Return a path as a word of a shell's command line, for a command that the reader is to paste."""
    text = str(path)
    is_option = text.startswith("-") and text != "-"  # which is standard input
    return shlex.quote(f"./{text}" if is_option else text)


class RequestError(IodeltaError):
    """The request itself is wrong (a key, a value, a path, a refused target): nothing was started. Exit 2."""

    exit_code: ClassVar[int] = 2


class RefusedError(RequestError):
    """The safety guard will not write to this target. Exit 2, device bytes unchanged."""


class MeasureError(IodeltaError):
    """The measurement could not be made or went on no longer: finished trials are kept. Exit 4."""


class MachineError(MeasureError):
    """A command could not be run, or a file not read or written, on the machine."""


class UnreachableError(MachineError):
    """The machine could not be reached now, and may be later: it is off, cut off, or booting."""


class LostError(MeasureError):
    """The machine does not answer any more. No MachineError: what cannot be asked must never pass for what is not
    there."""


class KnobError(MeasureError):
    """A knob cannot be read, set, or did not take the value that was written."""
