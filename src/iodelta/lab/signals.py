"""Ctrl-C, SIGTERM and SIGHUP ask a run to end; what was measured is kept and the machine is put back first."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def stop_on_signals(said: str = "") -> Iterator[Callable[[], bool]]:
    """A question, "has the user asked to stop?", true from the first signal on. More signals change nothing.

    A signal that is ignored when the run begins stays ignored, so that nohup and a shell's ``&`` work. Python handles
    signals only in its main thread; in another one the answer stays no. ``said`` is written to standard error at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if said and not asked:
            with contextlib.suppress(OSError):
                os.write(
                    sys.stderr.fileno(),
                    f"\r\x1b[K{said}\n".encode()
                    if sys.stderr.isatty()
                    else f"{said}\n".encode(),
                )
        asked.append(number)

    before = {
        number: handler
        for number in ((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        if (handler := signal.getsignal(number)) != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
