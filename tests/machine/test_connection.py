"""What an ssh, or whoever is behind it, may say without end."""

from __future__ import annotations

import os
import select
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import LIMIT

from iodelta.errors import LostError, MachineError
from iodelta.machine import connection
from iodelta.machine.connection import Connection

Client = Callable[..., Connection]
GREETING = 'read -r brace; read -r line; echo "${line##* } up"'


class Ready:
    """For a far end that is never slower than the reader."""

    def register(self, *_: object) -> None:
        pass

    def poll(self, _: float) -> bool:
        return True


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A connection by an ssh that does this, given up after ``patience`` seconds without a shell."""

    def made(code: str, *, patience: float = LIMIT) -> Connection:
        program = tmp_path / "ssh"
        settings = "echo serveraliveinterval 1; echo serveralivecountmax 1"
        program.write_text(f'#!/bin/sh\ncase "$*" in -G*) {settings}; exit;; esac\n{code}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setattr(connection, "SHELL", patience)
        monkeypatch.setattr(select, "poll", Ready)
        return Connection("there")

    return made


def test_who_talks_without_end_but_gives_no_shell_is_given_up(client: Client) -> None:
    with pytest.raises(MachineError, match="no shell answers within 1 s"):
        client("exec cat /dev/zero", patience=1.0).open()


def test_who_talks_without_end_in_place_of_a_beat_is_given_up(client: Client) -> None:
    with pytest.raises(LostError, match="no answer for 2 s"):
        client(f"{GREETING}; exec cat /dev/zero").open()


def test_of_what_ssh_says_the_end_is_read(client: Client) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MachineError, match="Permission denied") as caught:
            client("head -c 50000000 /dev/zero >&2; echo; echo 'Permission denied (publickey)' >&2; exit 255").open()
        assert "without asking" in caught.value.remedy
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


WARNING = """@@@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@@@
Add correct host key in /home/u/own hosts to get rid of this message.
Offending ED25519 key in /home/u/own hosts:3
{more}Host key for [10.0.0.2]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        (
            '  remove with:\r\n  ssh-keygen -f "/home/u/own hosts" -R "[10.0.0.2]:2222"\r\n',
            'then `ssh-keygen -f "/home/u/own hosts" -R "[10.0.0.2]:2222"`',
        ),
        ("", "then remove line 3 of /home/u/own hosts"),
    ],
    ids=["a client that says how", "a client that says where"],
)
def test_a_changed_key_is_forgotten_as_ssh_says_whatever_alias_port_and_file_it_is_known_by(
    client: Client, tmp_path: Path, more: str, remedy: str
) -> None:
    (tmp_path / "warning").write_text(WARNING.format(more=more))
    with pytest.raises(MachineError) as raised:
        client(f"cat {tmp_path}/warning >&2; exit 255").open()
    assert raised.value.remedy.endswith(remedy)


REVOKED = """@@@@@ WARNING: REVOKED HOST KEY DETECTED! @@@@@
The ED25519 host key for [10.0.0.2]:2222 is marked as revoked.
This could mean that a stolen key is being used to
impersonate this host.
ED25519 host key for [10.0.0.2]:2222 was revoked and you have requested strict checking.
Host key verification failed.
"""
UNKNOWN = """No ED25519 host key is known for farm and you have requested strict checking.
Host key verification failed.
"""
OF_ADDRESS = """Warning: the ED25519 host key for 'farm' differs from the key for the IP address '10.0.0.2'
Offending key for IP in /home/u/known:7
Matching host key in /home/u/known:3
Exiting, you have requested strict checking.
Host key verification failed.
"""
NO_TYPE = "Unable to negotiate with 10.0.0.2 port 22: no matching host key type found. Their offer: ssh-ed25519\n"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (REVOKED, "the key of [10.0.0.2]:2222 is revoked in your known hosts: do not connect"),
        (UNKNOWN, "the key of farm is not known: compare it by `ssh -o StrictHostKeyChecking=ask there` once"),
        (OF_ADDRESS, "another key is known for its address: ask its owner, then remove line 7 of /home/u/known"),
        (NO_TYPE, "your ssh accepts none of the host's key types"),
        (WARNING.format(more=""), "the key of [10.0.0.2]:2222 is not the one known"),
    ],
    ids=["revoked", "unknown", "another address", "no type in common", "changed"],
)
def test_each_trouble_with_a_host_key_has_its_own_remedy_and_names_whose_key_it_is(
    client: Client, tmp_path: Path, said: str, remedy: str
) -> None:
    (tmp_path / "said").write_text(said)
    with pytest.raises(MachineError) as raised:
        client(f"cat {tmp_path}/said >&2; exit 255").open()
    assert raised.value.remedy.startswith(remedy)
