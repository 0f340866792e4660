"""A host to be reached over SSH: a real sshd in a network namespace, at the end of a cable that can be pulled.

Keys, configuration, known hosts and state are in a directory of the test's; neither /etc/ssh nor ~/.ssh is read. It
shares this machine's kernel and devices, so what iodelta does there can be looked at from here.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from acceptance.stand import shell
from waiting import LIMIT, until

COREUTILS = (
    "base64 basename cat chmod cut date dd df dirname echo env expr head id ln ls mkdir mktemp mv nproc od printf pwd "
    "readlink rm rmdir sleep sort stat sync tail tee test timeout touch tr true uname wc"
)
"""Programs of coreutils; some of a shell's own besides."""

NETS = "/tmp/iodelta-test-nets.lock"
"""Locked by the process that takes a network, among all that run tests here."""


def _pam() -> str:
    """Without PAM, sshd lets nobody in whose password is locked (auth.c, ``allowed_user``)."""
    entry = next((line for line in Path("/etc/shadow").read_text().splitlines() if line.startswith("root:")), "")
    return "yes" if entry.split(":")[1:2] and entry.split(":")[1].startswith("!") else "no"


def _free_net() -> str:
    """A network that nobody has here: a fleet takes many, and another run of the tests may have its own."""
    taken = set(re.findall(r"inet (10\.213\.\d+)\.", shell("ip", "-4", "address")))
    return random.SystemRandom().choice([net for net in (f"10.213.{one}" for one in range(1, 255)) if net not in taken])


@functools.cache
def _keys() -> tempfile.TemporaryDirectory[str]:
    """Keys of a user and of a host, and another one; they go with the tests. All hosts have the same: each has known
    hosts of its own."""
    place = tempfile.TemporaryDirectory(prefix="iodelta-keys-")
    for key in ("user", "host", "other"):
        shell("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{place.name}/{key}")
    return place


class Host:
    """Aliases in its client configuration: ``there``, and those that ``alias`` adds."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.state = place / "remote-state"
        self.name = f"iod{uuid.uuid4().hex[:6]}"
        self.near = self.far = ""
        """Addresses of this machine and of the host, at the ends of the cable that ``open`` lays."""
        self._daemons: list[subprocess.Popen[bytes]] = []

    def open(self) -> None:
        veth = (f"{self.name}a", f"{self.name}b")
        shell("ip", "netns", "add", self.name)
        shell("ip", "link", "add", veth[0], "type", "veth", "peer", "name", veth[1], "netns", self.name)
        with open(NETS, "w") as taking:  # or two tests see that a network is free, and both take it
            fcntl.flock(taking, fcntl.LOCK_EX)
            net = _free_net()
            self.near, self.far = f"{net}.1", f"{net}.2"
            shell("ip", "address", "add", f"{self.near}/24", "dev", veth[0])
        shell("ip", "link", "set", veth[0], "up")
        shell("ip", "-n", self.name, "address", "add", f"{self.far}/24", "dev", veth[1])
        shell("ip", "-n", self.name, "link", "set", veth[1], "up")
        shutil.copytree(_keys().name, self.place, dirs_exist_ok=True)
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        (self.place / "authorized").write_text((self.place / "user.pub").read_text())
        (self.place / "known").write_text(f"{self.far} {(self.place / 'host.pub').read_text()}")
        (self.place / "ssh_config").write_text(f"Include {self.place}/hurry\n")
        self.alias("there")
        self.serve(22)
        # What ssh finds first on PATH is the user's own client, told of a configuration that is not in ~/.ssh.
        (self.place / "bin").mkdir()
        client = self.place / "bin" / "ssh"
        client.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.place}/ssh_config "$@"\n')
        client.chmod(0o755)

    def close(self) -> None:
        for daemon in self._daemons:
            daemon.terminate()
            daemon.wait(LIMIT)
        subprocess.run(["ip", "link", "delete", f"{self.name}a"], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)

    def serve(self, port: int, *options: str, mounts: Mapping[Path, str] | None = None) -> int:
        """One more sshd there, with options of its own; returns its process. Those who log in by it see other files in
        the place of theirs: ``mounts``, what is mounted on what."""
        config = self.place / f"sshd_config-{port}"
        lines = [
            *(f"Port {port}", f"ListenAddress {self.far}", f"HostKey {self.place}/host", "PidFile none"),
            *(
                f"AuthorizedKeysFile {self.place}/authorized",
                "StrictModes no",
                f"UsePAM {_pam()}",
                "PermitRootLogin yes",
            ),
            *("PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintMotd no"),
            *options,
        ]
        if not any(option.startswith("SetEnv") for option in options):
            lines.append(f"SetEnv IODELTA_STATE={self.state}")
        config.write_text("\n".join(lines) + "\n")
        # Not `ip netns exec`, which would give it another /sys.
        words = ["nsenter", f"--net=/run/netns/{self.name}", "/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
        if mounts is not None:
            code = "".join(f"mount --bind {shlex.quote(str(f))} {shlex.quote(to)} && " for f, to in mounts.items())
            words = ["unshare", "--mount", "sh", "-c", f'{code} exec "$@"', "sh", *words]
        with open(self.place / f"sshd-{port}.log", "ab") as log:
            self._daemons.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        until(lambda: "Server listening" in (self.place / f"sshd-{port}.log").read_text())
        return self._daemons[-1].pid

    def programs(self, *names: str) -> str:
        """A directory with these programs and no others, for the PATH of a poor host."""
        place = self.place / f"programs-{uuid.uuid4().hex[:6]}"
        place.mkdir()
        for name in names:
            found = shutil.which(name)
            assert found, name
            (place / name).symlink_to(found)
        return str(place)

    def alias(self, name: str, *options: str, port: int = 22, key: str = "user") -> None:
        """A host of that name in the client's configuration."""
        own = (
            *(f"HostName {self.far}", f"Port {port}", "User root"),
            *(f"IdentityFile {self.place}/{key}", "IdentitiesOnly yes", "IdentityAgent none"),
            *(f"UserKnownHostsFile {self.place}/known", "GlobalKnownHostsFile /dev/null", f"HostKeyAlias {self.far}"),
            "KexAlgorithms curve25519-sha256",
        )
        with open(self.place / "ssh_config", "a") as file:
            file.write("\n".join((f"Host {name}", *options, *own)) + "\n")  # of two values the first counts

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.place}/bin:{os.environ['PATH']}"}

    def cable(self, state: str) -> None:
        """``down`` pulls it, ``up`` puts it in again."""
        shell("ip", "link", "set", f"{self.name}a", state)

    @contextlib.contextmanager
    def hurry(self) -> Iterator[None]:
        """Who connects meanwhile gives the host up after some six seconds of silence, and is given up by it."""
        file = self.place / "hurry"
        file.write_text("ServerAliveInterval 2\nServerAliveCountMax 2\n")
        try:
            yield
        finally:
            file.unlink()

    def sessions(self) -> list[int]:
        """The sshd processes that serve connections now."""
        found = []
        for daemon in self._daemons:
            done = subprocess.run(["pgrep", "-P", str(daemon.pid)], capture_output=True, text=True, check=False)
            found += [int(pid) for pid in done.stdout.split()]
        return found

    def cut(self) -> None:
        """kill -9 of every sshd session."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
