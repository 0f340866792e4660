"""This machine."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO

from iodelta.errors import MachineError
from iodelta.machine.base import Completed
from iodelta.machine.stopping import stop


class LocalProcess:
    """A child in a session of its own: a terminal's Ctrl-C reaches only iodelta, and ``stop`` reaches the whole session."""

    def __init__(self, popen: subprocess.Popen[bytes], args: tuple[str, ...]) -> None:
        self._popen = popen
        # Popen.wait(timeout) polls in steps of up to 50 ms; a pidfd wakes at once.
        self._pidfd = os.pidfd_open(popen.pid)
        self.pid = popen.pid
        self.args = args

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self._pidfd)

    def poll(self) -> int | None:
        return self._popen.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        if timeout is not None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(max(0, round(1000 * timeout))):
                return None
        return self._popen.wait()

    def stop(self, grace: float = 5.0) -> int:
        return stop(self, self._signal, grace, place=self.args[0])

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class LocalLock:
    """An open file with flock(2) on it: the kernel releases it when we end, however we end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class LocalMachine:
    """The machine iodelta runs on."""

    name = "local"
    patience = 0.0
    _environment: Mapping[str, str] = MappingProxyType({})

    @property
    def directory(self) -> str:
        return os.getcwd()

    @property
    def state(self) -> str:
        """``$IODELTA_STATE``, else /var/lib/iodelta for root, else ``$XDG_STATE_HOME/iodelta``."""
        given = os.environ.get("IODELTA_STATE")
        if given:
            return os.path.abspath(given)
        if os.geteuid() == 0:
            return "/var/lib/iodelta"
        home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        return f"{home}/iodelta"

    def run(
        self,
        args: Sequence[str],
        *,
        timeout: float | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        begun = time.monotonic()
        with _memory() as out, _memory() as err, _memory() as source:
            source.write(stdin)
            source.seek(0)
            process = self._spawn(
                args, env=env, cwd=cwd, stdin=source, stdout=out, stderr=err
            )
            try:
                code = process.wait(timeout)
                late = code is None
                if code is None:
                    code = process.stop()
            except BaseException:
                process.stop()
                raise
            out.seek(0)
            err.seek(0)
            return Completed(
                process.args,
                code,
                out.read(),
                err.read(),
                time.monotonic() - begun,
                late,
            )

    def start(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdout: str = "/dev/null",
        stderr: str = "/dev/null",
    ) -> LocalProcess:
        with _appended(stdout, args) as out, _appended(stderr, args) as err:
            return self._spawn(
                args, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def _spawn(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | None,
        **streams: object,
    ) -> LocalProcess:
        words = tuple(args)
        try:
            popen = subprocess.Popen(  # type: ignore[call-overload]
                words,
                env={**os.environ, **self._environment, **(env or {})},
                cwd=cwd,
                start_new_session=True,
                **streams,
            )
        except (OSError, ValueError) as error:
            raise MachineError(
                f"cannot start {words[0]}: {_reason(error)}",
                place=self.name,
                remedy=f"is {words[0]} installed and on PATH?",
            ) from error
        return LocalProcess(popen, words)

    def read(self, path: str) -> str:
        return self.read_bytes(path).decode(errors="replace")

    def read_bytes(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise MachineError(f"cannot read: {_reason(error)}", place=path) from error

    def write(self, path: str, text: str) -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise MachineError(
                f"cannot write {text!r}: {_reason(error)}", place=path
            ) from error

    def glob(self, pattern: str) -> list[str]:
        return sorted(glob.glob(pattern))

    def put(self, local: str, remote: str) -> None:
        self._copy(local, remote)

    def get(self, remote: str, local: str) -> None:
        self._copy(remote, local)

    def append(self, path: str, data: bytes) -> None:
        try:
            descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            try:
                if os.write(descriptor, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise MachineError(
                f"cannot append: {_reason(error)}", place=path
            ) from error

    def lock(self, path: str, *, wait: float = 0.0) -> LocalLock | None:
        end = time.monotonic() + wait
        try:
            descriptor = os.open(
                path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MachineError(f"cannot open: {_reason(error)}", place=path) from error
        held = LocalLock(descriptor)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(0.02)
                    continue
            else:
                # A file without a link was deleted between the open and the lock.
                if os.fstat(descriptor).st_nlink:
                    return held
            held.release()
            return None

    @contextlib.contextmanager
    def marking(self, env: Mapping[str, str]) -> Iterator[None]:
        """Add ``env`` to the environment of everything started meanwhile. On other machines a guardian ends what outlives
        us; here the next start has to find it by this mark."""
        before = self._environment
        self._environment = {**before, **env}
        try:
            yield
        finally:
            self._environment = before

    def time(self) -> float:
        return time.time()

    def together(self, *name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _copy(self, source: str, destination: str) -> None:
        try:
            shutil.copyfile(source, destination)
        except OSError as error:
            raise MachineError(
                f"cannot copy to {destination}: {_reason(error)}", place=source
            ) from error


def _memory() -> BinaryIO:
    """Return a file in memory, so that settings can be restored even with a full disk. Raises MachineError."""
    try:
        return os.fdopen(os.memfd_create("iodelta"), "w+b")
    except OSError as error:
        raise MachineError(
            f"cannot make a file in memory: {_reason(error)}", place=LocalMachine.name
        ) from error


def _appended(path: str, args: Sequence[str]) -> BinaryIO:
    try:
        return open(path, "ab")
    except OSError as error:
        raise MachineError(
            f"cannot start {args[0]}: {_reason(error)}", place=path
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"{os.strerror(error.errno)} ({errno.errorcode.get(error.errno, error.errno)})"
    return str(error)
