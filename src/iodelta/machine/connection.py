"""One connection by the user's own OpenSSH client, and a guardian that ends what would outlive it on the host.

The master session runs the guardian: a small sh on the host that receives a beat every few seconds and answers with the
time. When beats stop or its input ends, whatever the reason (a kill of iodelta, a pulled cable, a hung host that comes
back), it ends every process that carries this connection's marker. Everything else runs in further sessions of the same
connection. The login shell there only ever gets the words ``exec sh``.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import tempfile
import threading
import time
import uuid
from collections import deque
from itertools import chain
from pathlib import Path

from iodelta.errors import LostError, MachineError, RequestError, UnreachableError
from iodelta.machine.channel import Channel

HOST = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.+-]*@)?[A-Za-z0-9_\[:][A-Za-z0-9_.:%\]-]*")
"""Hosts that may be passed to ssh: not an option, and without characters that a ProxyCommand's shell would act on."""

MARKER = "IODELTA_CONNECTION"
"""Environment variable of every process started on the host; children inherit it."""

SHELL = 30.0
"""Seconds within which a login must reach a shell."""

TAIL = 65536
"""Bytes that are kept of possibly endless output."""

ALIVE = (5, 3)
"""ServerAliveInterval (seconds) and ServerAliveCountMax, unless the user's configuration sets them."""

GUARDIAN = """{{
printf '%s up\\n' {token}
while :; do
  case "$(timeout {limit} head -c 1)" in
    x) date +%s.%N ;;
    q) exit ;;
    *) break ;;
  esac
done
for n in TERM KILL KILL KILL KILL KILL; do
  some=
  for e in /proc/[0-9]*/environ; do
    case "$(tr '\\0' '\\n' <"$e")" in
      *{marker}={token}*) e=${{e%/environ}}; kill -s $n ${{e#/proc/}}; some=1 ;;
    esac
  done
  [ "$some" ] || break
  sleep 1
done
exit
}} 2>/dev/null
"""

REMEDIES = (
    (
        "marked as revoked",
        "the key of {owner} is revoked in your known hosts: do not connect before its owner has given it another one",
    ),
    (
        "IDENTIFICATION HAS CHANGED",
        "the key of {owner} is not the one known: ask its owner, then {forget}",
    ),
    (
        "differs from the key for the IP address",
        "another key is known for its address: ask its owner, then {forget}",
    ),
    (
        "no matching host key type",
        "your ssh accepts none of the host's key types (HostKeyAlgorithms in ssh_config)",
    ),
    (
        "ost key",
        "the key of {owner} is not known: compare it by `ssh -o StrictHostKeyChecking=ask {host}` once",
    ),
    (
        "Permission denied",
        "ssh must log in without asking: load a key into your agent, or set IdentityFile for {host}",
    ),
    (
        "resolve hostname",
        "check the name: `ssh -G {host}` shows how ssh reads it",
    ),
)


class Connection:
    """A connection to one host, with a session for each channel."""

    def __init__(self, host: str, *, timeout: int = 20) -> None:
        """``timeout``: seconds until the host must answer (ConnectTimeout)."""
        if not HOST.fullmatch(host):
            raise RequestError(
                f"{host!r} is not a valid host",
                place="machine",
                remedy="ssh:HOST or ssh:USER@HOST; the rest in ~/.ssh/config",
            )
        self.host = host
        self._timeout = timeout
        self._token = uuid.uuid4().hex
        self._socket = ""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # what ssh says, for as long as the connection lives
        self._reason = ""
        self._clock: deque[tuple[float, float]] = deque(maxlen=12)
        self._closing = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heart", daemon=True)
        self._interval, self._limit = 0, 0

    def open(self) -> None:
        """Connect, once. Raises MachineError when no shell answers."""
        try:
            self._open()
        except BaseException:
            self._said.close()
            raise

    def _open(self) -> None:
        # ServerAliveInterval and ServerAliveCountMax that hold for this host
        try:
            done = subprocess.run(
                ["ssh", "-G", "--", self.host],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as failure:
            raise self._no_client(failure) from failure
        if done.returncode != 0:
            raise MachineError(
                f"ssh refuses its configuration: {' '.join(done.stderr.split())}",
                place=self._place,
                remedy="correct your ssh configuration",
            )
        given = dict(
            line.split(" ", 1) for line in done.stdout.splitlines() if " " in line
        )
        every, times = (
            int(given.get("serveraliveinterval", 0)),
            int(given.get("serveralivecountmax", 0)),
        )
        if every > 0:
            interval, count = every, max(1, times)
        else:
            interval, count = ALIVE
        self._interval, self._limit = interval, interval * count + interval
        # A short path (unix(7) allows 107 bytes) in a directory of the user's own; ssh removes the socket.
        place = Path(tempfile.gettempdir(), f"iodelta-ssh-{os.geteuid()}")
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            stat = place.lstat()
        except OSError as error:
            raise MachineError(
                f"cannot create this directory: {error.strerror}",
                place=str(place),
                remedy="free some space there",
            ) from error
        if (
            stat.st_uid != os.geteuid()
            or not place.is_dir()
            or place.is_symlink()
            or stat.st_mode & 0o077
        ):
            raise MachineError(
                "this directory does not belong to you alone",
                place=str(place),
                remedy="remove it, or set TMPDIR",
            )
        self._socket = f"{place}/{self._token[:12]}"
        alive = (f"ServerAliveInterval={interval}", f"ServerAliveCountMax={count}")
        words = self._words("ControlMaster=yes", "ControlPersist=no", *alive)
        self._master = self._spawn(words, stderr=self._said)
        try:
            # Send the guardian, and skip output of banners and start-up files before its answer
            script = GUARDIAN.format(
                token=self._token, limit=self._limit, marker=MARKER
            )
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipes()[0], script.encode())
            heard, end = b"", time.monotonic() + SHELL
            while f"{self._token} up\n".encode() not in heard:
                data = self._read(end - time.monotonic())
                if not data:
                    if data is None:
                        message = _plain(heard)
                        raise UnreachableError(
                            f"no shell answers within {SHELL:.0f} s; it said: {message or 'nothing'}",
                            place=self._place,
                            remedy=f"`ssh {self.host} exec sh` must start a POSIX shell that reads its standard input",
                        )
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._master.wait(5)
                    message = self._last_words()
                    if self._master.returncode == 255:
                        whole = self._told().decode(errors="replace")
                        known = next(
                            (text for sign, text in REMEDIES if sign in whole), ""
                        )
                        remedy = (
                            known
                            or "`ssh {host} true` must work without further options"
                        )
                        # An error with a remedy of its own does not go away by itself; the others may.
                        passes = not known or "Temporary failure" in whole
                        kind = UnreachableError if passes else MachineError
                        # The name of the host whose key ssh reports, which may be a jump host
                        named = re.search(
                            r"(?:Host key for|host key is known for|host key for) (\S+) (?:has changed|and you|was revoked)",
                            whole,
                        )
                        raise kind(
                            f"cannot connect: {message or 'ssh says nothing (LogLevel?)'}",
                            place=self._place,
                            remedy=remedy.format(
                                host=self.host,
                                owner=(_plain(named[1].encode()) if named else "")
                                or self.host,
                                forget=_forget(whole),
                            ),
                        )
                    reason = _plain(heard) or message or "nothing"
                    raise MachineError(
                        f"the login there starts no shell; it printed: {reason}",
                        place=self._place,
                        remedy="a user with a login shell is needed, without a forced command",
                    )
                heard = (heard + (data or b""))[-TAIL:]
            self._exchange_beat()
        except BaseException:
            self._master.kill()
            self._master.wait()
            self._close_pipes()
            raise
        self._heart.start()

    def close(self, *, clean: bool) -> None:
        """End the connection; unless ``clean``, the guardian also ends what still runs on the host."""
        self._closing.set()
        self._heart.join(1.0)
        if clean:
            with contextlib.suppress(OSError):
                os.write(self._pipes()[0], b"q")
        self._close_pipes()
        try:
            self._master.wait(2)
        except subprocess.TimeoutExpired:
            self._master.kill()
            self._master.wait()
        self._said.close()

    @property
    def ahead(self) -> float:
        """Seconds by which the clock there is ahead of ours."""
        # The quickest of the last beats: its round trip leaves the least room for an error (as in NTP).
        if not self._clock:
            return 0.0
        return min(self._clock)[1]

    @property
    def patience(self) -> float:
        """Seconds after which the guardian of a lost connection has ended what was left of it."""
        return self._limit + 8.0

    def channel(self) -> Channel:
        """Return a new sh there. Raises LostError, MachineError."""
        if self._reason:
            raise self.lost()
        # Through the master's socket only: without it ssh would open a connection of its own.
        words = self._words("ControlMaster=no", "ProxyCommand=false")
        process = self._spawn(words, stderr=subprocess.PIPE)
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("needs pipes")

        def end() -> None:
            process.terminate()
            process.wait()

        channel = Channel(
            (process.stdin, process.stdout, process.stderr), self.lost, end
        )
        # exec: /proc/PID/environ shows the environment at exec, so only a new sh carries the marker there.
        path = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
        channel.begin(f"{path}; {MARKER}={self._token}; export PATH {MARKER}; exec sh")
        try:
            greeted = channel.greeted(SHELL)
        except LostError:
            greeted = False
        if not greeted:
            channel.close()
            if self._master.poll() is None:
                self._reason = (
                    "its sshd refuses another session (is MaxSessions below 8?)"
                )
            raise self.lost()
        return channel

    def lost(self, said: str = "") -> LostError:
        """Return the error to raise when a session ended unexpectedly."""
        if not self._reason:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._master.wait(1.0)  # ssh prints the reason a moment later
            self._reason = (
                self._last_words() or _plain(said.encode()) or "it was closed"
            )
        return LostError(
            f"the connection is lost: {self._reason}",
            place=self._place,
            remedy="the processes there are ended; settings are restored at the next contact, by the same command or "
            f"`iodelta restore --machine {self._place}`",
        )

    # --------------------------------------------------------------------------------------------- the master

    @property
    def _place(self) -> str:
        return f"ssh:{self.host}"

    def _words(self, *options: str) -> list[str]:
        own = (
            *(
                "BatchMode=yes",
                f"ControlPath={self._socket}",
                f"ConnectTimeout={self._timeout}",
            ),
            *(
                "RemoteCommand=none",
                "PermitLocalCommand=no",
                "ClearAllForwardings=yes",
                "ForwardAgent=no",
            ),
            *("ForwardX11=no", "EscapeChar=none", "RequestTTY=no"),
        )
        given = chain.from_iterable(("-o", option) for option in (*options, *own))
        return ["ssh", *given, "--", self.host, "exec sh"]

    def _spawn(self, words: list[str], stderr: object) -> subprocess.Popen[bytes]:
        try:
            # In a session of its own, so that a terminal's Ctrl-C reaches iodelta alone.
            return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise self._no_client(error) from error

    def _no_client(self, error: OSError) -> MachineError:
        what = f"cannot start ssh: {error.strerror}"
        return MachineError(what, place=self._place, remedy="install OpenSSH's client")

    def _pipes(self) -> tuple[int, int]:
        if self._master.stdin is None or self._master.stdout is None:
            raise ValueError("needs pipes")
        return self._master.stdin.fileno(), self._master.stdout.fileno()

    def _close_pipes(self) -> None:
        for stream in (self._master.stdin, self._master.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self, timeout: float) -> bytes | None:
        """Return what arrived; None when nothing arrived in time; empty at the end of the stream."""
        poll = select.poll()
        poll.register(self._pipes()[1], select.POLLIN)
        if timeout > 0 and poll.poll(1000 * timeout):
            return os.read(self._pipes()[1], 65536)
        return None

    def _last_words(self) -> str:
        lines = [plain for line in self._told().splitlines() if (plain := _plain(line))]
        if not lines:
            return ""
        return lines[-1]

    def _told(self) -> bytes:
        """Return the end of ssh's output; the file position stays."""
        descriptor = self._said.fileno()
        return os.pread(descriptor, TAIL, max(0, os.fstat(descriptor).st_size - TAIL))

    # ---------------------------------------------------------------------------------------------- the heart

    def _beat(self) -> None:
        """The thread: a beat every interval. When a beat or its answer is missing, each end takes the other for gone."""
        while not self._closing.wait(self._interval):
            try:
                self._exchange_beat()
            except (OSError, ValueError, LostError):
                self._master.kill()
                return

    def _exchange_beat(self) -> None:
        begun, sent = time.monotonic(), time.time()
        os.write(self._pipes()[0], b"x")
        heard = b""
        while not heard.endswith(b"\n"):
            data = self._read(self._limit - (time.monotonic() - begun))
            if not data:
                if not self._reason and data is None:
                    self._reason = f"no answer for {self._limit:.0f} s"
                raise self.lost()
            heard = (heard + data)[-TAIL:]
        took = time.monotonic() - begun
        # Assumption: the beat takes as long there as back, so the clock was read halfway.
        if re.fullmatch(rb"\d+\.\d+\n", heard):
            self._clock.append((took, float(heard) - (sent + took / 2)))


def _forget(message: str) -> str:
    """Return how to remove a changed key: ssh prints the file and line that hold it, before any output of the host
    itself. The command is printed by Debian's and Fedora's ssh only, file and line by all."""
    command = re.search(r"remove with:\s*(ssh-keygen [^\r\n]+)", message)
    if command:
        return f"`{_plain(command[1].encode())}`"
    command = re.search(
        r"Offending (?:[\w-]+ key|key for IP) in ([^\r\n]+):(\d+)", message
    )
    if command:
        return f"remove line {command[2]} of {_plain(command[1].encode())}"
    return "remove its key from your known_hosts"


def _plain(output: bytes) -> str:
    """Return the end of untrusted output, as one line without control characters."""
    text = output.decode(errors="replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[-200:]
