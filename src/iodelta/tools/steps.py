"""The commands of a build, one after the other: watched line by line, logged, ended with us."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from iodelta.errors import MeasureError

TAIL = 6
"""Lines of a failed command that the message repeats."""


def step(
    words: Sequence[str],
    place: Path,
    log: Path,
    *,
    remedy: str,
    on_line: Callable[[str], None] = lambda line: None,
) -> str:
    """Run ``words`` in ``place`` and return what they said; appended to ``log`` as it comes.

    Raises MeasureError, with the last lines and ``remedy``, for a command that is missing or fails.
    """
    output: list[str] = []
    tail: deque[str] = deque(maxlen=TAIL)
    environment = {**os.environ, "LC_ALL": "C"}
    with log.open("a", encoding="utf-8", buffering=1) as kept:
        kept.write(f"$ {' '.join(words)}\n")
        kept.flush()
        try:
            process = subprocess.Popen(
                words,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise MeasureError(
                f"cannot start {words[0]}: {error.strerror}",
                place=str(place),
                remedy=remedy,
            ) from error
        with process:
            try:
                for line in process.stdout or ():
                    kept.write(line)
                    output.append(line)
                    tail.append(line.rstrip())
                    on_line(line.rstrip())
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        code = process.returncode
    if code:
        last = "\n  ".join(tail)
        raise MeasureError(
            f"`{' '.join(words[:2])}` ended with {code}:\n  {last}",
            place=str(log),
            remedy=remedy,
        )
    return "".join(output)
