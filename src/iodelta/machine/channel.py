"""One sh at the far end of a pipe: it receives code, and frames the output of each piece.

Every answer ends with a line that begins with a random mark, on both streams. No command learns the mark, so no output
can be taken for it.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import time
import uuid
from collections.abc import Callable
from typing import Protocol

import msgspec

from iodelta.errors import LostError, MachineError

WORD = re.compile(r"[0-9]{1,10}|up|held|none|missing|undecoded|failed")
"""What an answer may end with. After any other word the shell is out of step, and is not used again."""

LIMIT = 256 << 20
"""Bytes of an answer at most."""


class Stream(Protocol):
    """One end of a pipe or socket."""

    def fileno(self) -> int:
        """Its descriptor."""

    def close(self) -> None:
        """Close it."""


class Reply(msgspec.Struct, frozen=True):
    """What the code printed, and the word it ended with."""

    word: str
    stdout: bytes
    stderr: bytes


def quoted(text: str) -> str:
    """``text`` as one word for a POSIX sh, never a keyword. Raises MachineError for a NUL."""
    if "\0" in text:
        raise MachineError(f"a word has a NUL in it: {text!r}")
    return "'" + text.replace("'", "'\\''") + "'"


class Channel:
    """Not for two threads at once. Code is sent in whole lines; replies come in its order."""

    def __init__(
        self,
        streams: tuple[Stream, Stream, Stream],
        lost: Callable[[str], LostError],
        end: Callable[[], None] = lambda: None,
    ) -> None:
        """``streams`` are the standard input, output and errors of the sh, ``end`` is called after they are closed."""
        self._end = end
        # A new mark for each channel: the connection's token is in the environment of commands.
        self._mark = uuid.uuid4().hex.encode()
        self._lost = lost
        self._out, self._err = bytearray(), bytearray()
        self._out_seen, self._err_seen = 0, 0
        """Offsets before which there is no mark, so that output is searched only once."""
        self._unsent = bytearray()
        self._closed = False
        self._stdin, self._stdout, self._stderr = streams
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)

    def send(self, code: str) -> None:
        """Send code that ends each answer by ``iodelta_end WORD``. Raises LostError."""
        self._unsent += os.fsencode(code) + b"\n"
        self._write()

    def receive(self, timeout: float | None = None) -> Reply | None:
        """Return the next reply; None when it has not come after ``timeout`` seconds. Raises LostError."""
        end = None if timeout is None else time.monotonic() + timeout
        while (reply := self._complete()) is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left < 0:
                return None
            # Wait until something can be read or the unsent part can be written. Both at once: if each side only
            # wrote, full pipes would block both.
            self._check_open()
            poll = select.poll()
            poll.register(self._stdout.fileno(), select.POLLIN)
            poll.register(self._stderr.fileno(), select.POLLIN)
            if self._unsent:
                poll.register(self._stdin.fileno(), select.POLLOUT)
            ready = dict(poll.poll(None if left is None else max(0, 1000 * left)))
            if ready.get(self._stdin.fileno()):
                self._write()
            for stream, buffer in (
                (self._stdout, self._out),
                (self._stderr, self._err),
            ):
                if ready.get(stream.fileno()):
                    try:
                        data = os.read(stream.fileno(), 1 << 18)
                    except (
                        ConnectionResetError
                    ):  # a far end that was killed before it had read all
                        data = b""
                    if not data:
                        raise self._lost(
                            bytes((self._err or self._out)[-4096:]).decode(
                                errors="replace"
                            )
                        )
                    buffer += data
                    if len(buffer) > LIMIT:
                        raise LostError(
                            f"an answer of more than {LIMIT >> 20} MiB is not read further",
                            remedy="the file there is too large, or a command prints without end",
                        )
        return reply

    def ask(self, code: str) -> Reply:
        """Send and receive."""
        self.send(code)
        reply = self.receive()
        if reply is None:
            raise self._lost("no answer")
        return reply

    def close(self) -> None:
        """End the shell by closing its streams."""
        self._closed = True
        for stream in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                stream.close()
        self._end()

    def begin(self, code: str) -> None:
        """Send ``code``, which ends in a sh, after a mark that separates its output from a login's."""
        token = self._mark.decode()
        self.send(f"printf '%s up\\n' {token}; printf '%s\\n' {token} >&2; {code}")

    def greeted(self, timeout: float) -> bool:
        """Return whether the sh answered in time; then ``iodelta_end`` is defined in it. Raises LostError."""
        if self.receive(timeout) is None:
            return False
        token = self._mark.decode()
        self.send(
            f"iodelta_end() {{ printf '%s %s\\n' {token} \"$1\"; printf '%s\\n' {token} >&2; }}"
        )
        return True

    def _complete(self) -> Reply | None:
        out_at = self._out.find(self._mark, self._out_seen)
        end = self._out.find(b"\n", out_at) if out_at >= 0 else -1
        err_at = self._err.find(self._mark, self._err_seen)
        self._out_seen = (
            out_at if out_at >= 0 else max(0, len(self._out) - len(self._mark))
        )
        self._err_seen = (
            err_at if err_at >= 0 else max(0, len(self._err) - len(self._mark))
        )
        if end < 0 or err_at < 0:
            return None
        self._out_seen = self._err_seen = 0
        word = (
            self._out[out_at + len(self._mark) : end].decode(errors="replace").strip()
        )
        if not WORD.fullmatch(word):
            raise self._lost(f"its shell sent an unexpected answer: {word!r}")
        reply = Reply(word, bytes(self._out[:out_at]), bytes(self._err[:err_at]))
        del self._out[: end + 1]
        del self._err[: err_at + len(self._mark) + 1]
        return reply

    def _write(self) -> None:
        self._check_open()
        try:
            while self._unsent:
                del self._unsent[
                    : os.write(self._stdin.fileno(), self._unsent[: 1 << 16])
                ]
        except BlockingIOError:
            return
        except OSError:
            raise self._lost(
                bytes(self._err[-4096:]).decode(errors="replace")
            ) from None

    def _check_open(self) -> None:
        if self._closed:
            raise LostError("the shell was closed")
