"""A machine behind a connection: the verbs as code for a POSIX sh there, which needs only coreutils."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, Self, cast

from iodelta.errors import LostError, MachineError
from iodelta.machine.base import Completed
from iodelta.machine.channel import Channel, Reply, quoted
from iodelta.machine.spelling import (
    between,
    command,
    exit_code,
    listing,
    prelude,
    reason,
    source,
    spelt,
    text_of,
    texts_of,
)
from iodelta.machine.stopping import STUCK, stop


class ShellProcess:
    """A command in a session of its own there; the channel that started it reports its end."""

    def __init__(
        self, machine: ShellMachine, channel: Channel, pid: int, args: tuple[str, ...]
    ) -> None:
        self.pid = pid
        self.args = args
        self._machine = machine
        self._channel: Channel | None = channel
        self._code: int | None = None

    def poll(self) -> int | None:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> int | None:
        if self._channel is not None:
            reply = self._channel.receive(timeout)
            if reply is None:
                return None
            self._code = exit_code(reply.word)
            self._machine.give(self._channel)
            self._channel = None
        return self._code

    def stop(self, grace: float = 5.0) -> int:
        return stop(
            self, self._signal, grace, place=f"{self._machine.name}: {self.args[0]}"
        )

    def _signal(self, number: signal.Signals) -> None:
        self._machine.ask(
            f"kill -s {number.name.removeprefix('SIG')} -- -{self.pid} 2>/dev/null; iodelta_end 0"
        )


class ShellLock:
    """A sh there that has the file open, with flock(1) on it; the lock ends with that sh."""

    def __init__(self, machine: ShellMachine, channel: Channel) -> None:
        self._machine = machine
        self._channel: Channel | None = channel

    def release(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            with contextlib.suppress(LostError):
                channel.ask("exec 9<&-; iodelta_end 0")
                self._machine.give(channel)


SEPARATOR = "/proc/sys/kernel/random/boot_id"
"""A file whose random text separates the files of one ``cat``."""

Question = tuple[str, ...]
"""``("read", PATH)``, ``("glob", PATTERN)`` or ``("run", WORD, ...)``."""
Answer = bytes | MachineError | list[str] | Completed


class Block(threading.local):
    """The questions that the present ``together`` block of a thread expects, those asked, and the known answers."""

    def __init__(self) -> None:
        self.begin(None, ())

    def begin(
        self, name: tuple[str, ...] | None, expected: tuple[Question, ...]
    ) -> None:
        self.name = name
        self.expected = expected
        self.asked: dict[Question, None] = {}
        self.known: dict[Question, Answer] = {}

    def ahead(self, question: Question) -> tuple[Question, ...]:
        """Return the questions to ask along with one: all expected ones, else all files of the glob that listed it."""
        if question in self.expected:
            return self.expected
        for known, answer in self.known.items():
            if (
                question[0] == "read"
                and known[0] == "glob"
                and question[1] in cast(list[str], answer)
            ):
                return tuple(("read", path) for path in cast(list[str], answer))
        return (question,)


def code_of(question: Question) -> str:
    """Return the code of a program to run, with its environment."""
    words = question[1:]
    at = words.index("")
    return command(words[at + 1 :], env=dict(word.split("=", 1) for word in words[:at]))


LOOKS = frozenset({"getconf", "id", "readlink", "stat", "test"})
"""Programs that change nothing, so their output may be read ahead."""

BUILTIN = frozenset({"kill", "test"})
"""Commands that are built into the shell, and may not exist as programs: timeout(1) cannot run them."""

PLACES = """printf '%s\\0' "$PWD"
if [ "$IODELTA_STATE" ]; then printf '%s\\0' "$IODELTA_STATE"
elif [ "$(id -u)" = 0 ]; then printf '%s\\0' /var/lib/iodelta
else printf '%s\\0' "${XDG_STATE_HOME:-$HOME/.local/state}/iodelta"; fi
command -v setsid >/dev/null 2>&1 && printf setsid || printf timeout; iodelta_end 0"""


class Line(Protocol):
    """A connection to a machine, over which several shells can run at a time."""

    def open(self) -> None:
        """Reach it. Raises MachineError."""

    def close(self, *, clean: bool) -> None:
        """End it; unless ``clean``, also end what still runs there."""

    def channel(self) -> Channel:
        """Return a new sh there. Raises LostError, MachineError."""

    @property
    def ahead(self) -> float:
        """Seconds by which the clock there is ahead of ours."""

    @property
    def patience(self) -> float:
        """Seconds after which everything that a lost line left running has ended."""


class ShellMachine:
    """Use it in ``with``: entering connects."""

    def __init__(self, name: str, line: Line) -> None:
        self.name = name
        self._connection = line
        self._connected = False
        self._gone: LostError | None = None
        """Why the connection was lost, unless it just ended."""
        self._idle: list[Channel] = []
        self._channels: list[Channel] = []
        """All of them; in one that is not idle a command may still run."""
        self._pool = threading.Lock()
        self._block = Block()
        self._learned: dict[tuple[str, ...], tuple[Question, ...]] = {}
        self._leader, self._separator = "", b""
        self.directory = self.state = ""

    def __enter__(self) -> Self:
        self._connection.open()
        self._connected = True
        try:
            places = self.ask(PLACES).stdout.split(b"\0")
            if len(places) != 3:
                raise MachineError(
                    f"the shell there answers {places[0][:200]!r} instead of its directories",
                    place=self.name,
                    remedy="`sh` there must be a POSIX shell with nothing of its own in front of printf and id",
                )
            self._separator = self._read_one(SEPARATOR)
        except BaseException:
            self.__exit__()
            raise
        self.directory, self.state = os.fsdecode(places[0]), os.fsdecode(places[1])
        # A process group of its own, for ``stop``: by setsid(1), else by timeout(1), which makes one for itself.
        self._leader = "setsid" if places[2] == b"setsid" else "timeout 0"
        return self

    def __exit__(self, *_: object) -> None:
        if not self._connected:
            return
        self._connected = False
        clean = len(self._idle) == len(self._channels)
        for channel in self._channels:
            channel.close()
        self._idle, self._channels = [], []
        self._separator = b""  # the next connection may find another boot
        self._connection.close(clean=clean)

    @property
    def patience(self) -> float:
        return self._connection.patience

    # ---------------------------------------------------------------------------------------------- channels

    def ask(self, code: str) -> Reply:
        """Return one answer of an idle channel."""
        return self.ask_all([code])[0]

    def ask_all(
        self, codes: Sequence[str], timeout: float | None = None
    ) -> list[Reply]:
        """Return all answers in one round trip. A channel that is interrupted in the middle is never used again."""
        channel = self._take()
        done = False
        try:
            channel.send("\n".join(codes))
            replies = []
            for _ in codes:
                reply = channel.receive(timeout)
                if reply is None:
                    raise MachineError(
                        "SIGKILL does not end a command there: it hangs in the kernel",
                        place=self.name,
                        remedy="look at dmesg there; nothing can be measured until it ends",
                    )
                replies.append(reply)
            done = True
        finally:
            if done:
                self.give(channel)
            else:
                channel.close()
        return replies

    def give(self, channel: Channel) -> None:
        """Take back a channel that has nothing left to say."""
        with self._pool:
            self._idle.append(channel)

    def _take(self) -> Channel:
        if not self._connected:
            raise self._gone or LostError("there is no connection", place=self.name)
        with self._pool:
            channel = self._idle.pop() if self._idle else None
        if channel is None:
            channel = self._connection.channel()
            with self._pool:
                self._channels.append(channel)
        return channel

    # ------------------------------------------------------------------------------------------------- verbs

    def run(
        self,
        args: Sequence[str],
        *,
        timeout: float | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        words = tuple(args)
        if words[0] in LOOKS and not (stdin or cwd):
            given = tuple(f"{name}={value}" for name, value in (env or {}).items())
            return cast(Completed, self._answer(("run", *given, "", *words)))
        self._block.known.clear()
        return self._run(words, timeout=timeout, stdin=stdin, env=env, cwd=cwd)

    def _run(
        self,
        words: tuple[str, ...],
        *,
        timeout: float | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        begun = time.monotonic()
        limited = timeout is not None and words[0] not in BUILTIN
        code = command(
            words,
            before=f"timeout -k 5 {timeout}" if limited else "",
            stdin=stdin,
            env=env,
            cwd=cwd,
        )
        (reply,) = self.ask_all(
            [code], None if timeout is None else timeout + 5 + STUCK
        )
        return self._completed(words, reply, time.monotonic() - begun, timeout)

    def _completed(
        self,
        words: tuple[str, ...],
        reply: Reply,
        seconds: float,
        timeout: float | None,
    ) -> Completed:
        if reply.word == "missing":
            raise MachineError(
                f"cannot start {words[0]}: {os.strerror(errno.ENOENT)} (ENOENT)",
                place=self.name,
                remedy=f"is {words[0]} installed there and on PATH?",
            )
        if reply.word == "undecoded":
            raise _undecoded(f"cannot start {words[0]}", reply.stderr, self.name)
        code = exit_code(reply.word)
        late = timeout is not None and seconds >= timeout and code in (124, -9)
        return Completed(words, code, reply.stdout, reply.stderr, seconds, late)

    def start(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdout: str = "/dev/null",
        stderr: str = "/dev/null",
    ) -> ShellProcess:
        self._block.known.clear()
        words = tuple(args)
        files = f"</dev/null >>{quoted(stdout)} 2>>{quoted(stderr)}"
        channel = self._take()
        try:
            channel.send(
                f"if ! command -v {quoted(words[0])} >/dev/null 2>&1; then iodelta_end missing; iodelta_end 0\n"
                f"elif ! ( {prelude(env, cwd)} : ) {files}; then iodelta_end failed; iodelta_end 0\n"
                f"else ( {prelude(env, cwd)} exec {self._leader} {spelt(words)} ) {files} &\n"
                "iodelta_end $!; wait $!; iodelta_end $?; fi"
            )
            first = channel.receive()
            if first is None or not first.word.isdigit():
                channel.receive()
                why = (
                    first.stderr.decode(errors="replace").strip()
                    if first and first.word == "failed"
                    else ""
                )
                raise MachineError(
                    f"cannot start {words[0]}: {why or f'{os.strerror(errno.ENOENT)} (ENOENT)'}",
                    place=self.name,
                    remedy=f"is {words[0]} installed there and on PATH?",
                )
        except MachineError:
            self.give(channel)
            raise
        except BaseException:
            channel.close()
            raise
        return ShellProcess(self, channel, int(first.word), words)

    def read(self, path: str) -> str:
        return self.read_bytes(path).decode(errors="replace")

    def read_bytes(self, path: str) -> bytes:
        return cast(bytes, self._answer(("read", path)))

    def write(self, path: str, text: str) -> None:
        # A sysfs file takes a value in one write(2). dd makes one, without O_CREAT, and reports its error.
        self._dd(path, text.encode(), "conv=nocreat,notrunc", f"cannot write {text!r}")

    def append(self, path: str, data: bytes) -> None:
        self._dd(path, data, "oflag=append conv=notrunc,fsync", "cannot append")

    def put(self, local: str, remote: str) -> None:
        try:
            with open(local, "rb") as file:
                data = file.read()
        except OSError as error:
            raise MachineError(f"cannot copy: {error.strerror}", place=local) from error
        self._dd(remote, data, "", f"cannot copy to {self.name}")

    def get(self, remote: str, local: str) -> None:
        data = self.read_bytes(remote)
        try:
            with open(local, "wb") as file:
                file.write(data)
        except OSError as error:
            raise MachineError(
                f"cannot copy to {local}: {error.strerror}", place=remote
            ) from error

    def _dd(self, path: str, data: bytes, how: str, failed: str) -> None:
        self._block.known.clear()
        # All of it as one block: dd's count of full blocks shows whether base64 passed on everything.
        words = f"LC_ALL=C dd of={quoted(path)} bs={len(data) or 1} iflag=fullblock {how} status=noxfer"
        reply = self.ask(
            f"{source(data)} ( umask 077; {words} ) >/dev/null; iodelta_end $?"
        )
        lines = reply.stderr.splitlines()
        message = b"\n".join(
            line
            for line in lines
            if not line.endswith((b" records in", b" records out"))
        )
        if reply.word != "0":
            raise MachineError(f"{failed}: {reason(message)}", place=path)
        if b"%d+0 records out" % bool(data) not in lines:
            raise _undecoded(failed, message, path)

    def glob(self, pattern: str) -> list[str]:
        return list(cast(list[str], self._asked(("glob", pattern))))

    def lock(self, path: str, *, wait: float = 0.0) -> ShellLock | None:
        self._block.known.clear()
        channel = self._take()
        try:
            reply = channel.ask(
                f'p={quoted(path)}; if ! [ -e "$p" ]; then iodelta_end none\n'
                'elif ! command exec 9<"$p"; then iodelta_end 1\n'
                f"elif flock {f'-w {wait}' if wait else '-n'} 9; then\n"
                '  if [ "$p" -ef /proc/$$/fd/9 ]; then iodelta_end held; else exec 9<&-; iodelta_end none; fi\n'
                "else r=$?; exec 9<&-; [ $r = 127 ] || r=none; iodelta_end $r; fi"
            )
        except BaseException:
            channel.close()
            raise
        if reply.word == "held":
            return ShellLock(self, channel)
        self.give(channel)
        if reply.word == "127":
            raise MachineError(
                "needs flock", place=self.name, remedy="install util-linux there"
            )
        if reply.word != "none":
            raise MachineError(f"cannot open: {reason(reply.stderr)}", place=path)
        return None

    def time(self) -> float:
        return time.time() + self._connection.ahead

    # ------------------------------------------------------------------------------------------ asking ahead

    @contextlib.contextmanager
    def together(self, *name: str) -> Iterator[None]:
        block = self._block
        if block.name is not None:
            yield
            return
        block.begin(name, self._learned.get(name, ()))
        try:
            yield
        finally:
            self._learned[name] = tuple(block.asked)
            block.begin(None, ())

    def _answer(self, question: Question) -> Answer:
        """Return the answer to a question. Raises MachineError where it is one."""
        answer = self._asked(question)
        if isinstance(answer, MachineError):
            raise MachineError(answer.what, place=answer.place, remedy=answer.remedy)
        return answer

    def _asked(self, question: Question) -> Answer:
        """Return the answer to one question. In ``together`` others are asked along with it: those of the last block
        of this name, or the files next to it."""
        block = self._block
        if block.name is None:
            return self._answers([question])[question]
        block.asked[question] = None
        if question not in block.known:
            block.known.update(self._answers(block.ahead(question)))
        return block.known[question]

    def _answers(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        """Return all answers in one round trip. Files that cannot be separated in the stream are read again, one by
        one.
        """
        # The separator file must not be among the files of a stream: its text would count as a separator.
        answers: dict[Question, Answer] = (
            {("read", SEPARATOR): self._separator} if self._separator else {}
        )
        asked: dict[str, list[Question]] = {"read": [], "glob": [], "run": []}
        for question in questions:
            if question not in answers:
                asked[question[0]].append(question)
        files = [path for _, path in asked["read"]]
        patterns = [pattern for _, pattern in asked["glob"]]
        runs = asked["run"]
        # Code that answers all files, then all patterns, then each program
        spelt_codes = []
        if files:
            spelt_codes.append(
                f"LC_ALL=C cat -- {spelt(between(files, SEPARATOR))} </dev/null; iodelta_end $?"
            )
        if patterns:
            spelt_codes.append(f"{''.join(map(listing, patterns))} iodelta_end 0")
        codes = [*spelt_codes, *map(code_of, runs)]
        begun = time.monotonic()
        replies = iter(self.ask_all(codes) if codes else ())
        if files:
            answers |= self._texts(files, next(replies))
        if patterns:
            # The matches of each pattern; in the answer an empty path ends those of a pattern
            paths = iter(next(replies).stdout.split(b"\0"))
            matches: dict[Question, Answer] = {}
            for pattern in patterns:
                matches["glob", pattern] = sorted(
                    os.fsdecode(path) for path in iter(paths.__next__, b"")
                )
            answers |= matches
        for question, reply in zip(runs, replies, strict=True):
            words = question[question.index("") + 1 :]
            try:
                answers[question] = self._completed(
                    words, reply, time.monotonic() - begun, None
                )
            except MachineError as error:
                answers[question] = error
        return answers

    def _texts(self, files: Sequence[str], reply: Reply) -> dict[Question, Answer]:
        texts = (
            [text_of(files[0], reply)]
            if len(files) == 1
            else texts_of(files, reply, self._separator)
        )
        answers: dict[Question, Answer] = {}
        for path, text in zip(files, texts, strict=True):
            answers["read", path] = self._single(path) if text is None else text
        return answers

    def _single(self, path: str) -> bytes | MachineError:
        return cast(bytes | MachineError, self._answers([("read", path)])["read", path])

    def _read_one(self, path: str) -> bytes:
        answer = self._single(path)
        return b"" if isinstance(answer, MachineError) else answer


def _undecoded(failed: str, output: bytes, place: str) -> MachineError:
    return MachineError(
        f"{failed}: base64 there did not decode what was sent: {reason(output)}",
        place=place,
        remedy="is coreutils installed there, all of it, and on PATH?",
    )
