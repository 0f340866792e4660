"""The far end of a line may end at any moment."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator

import pytest

from iodelta.errors import LostError
from iodelta.machine.channel import Channel, Reply


def test_a_far_end_that_is_killed_before_it_has_read_all_is_lost() -> None:
    here, there = socket.socketpair()
    errors, silent = socket.socketpair()
    with here, there, errors, silent:
        channel = Channel((here.dup(), here, errors), LostError)
        channel.send("true")
        there.close()  # with data unread: the kernel resets the line
        with pytest.raises(LostError):
            channel.receive(10.0)
        channel.close()


@pytest.fixture
def channel() -> Iterator[Channel]:
    """To a sh, heard."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh"], stdin=pipe, stdout=pipe, stderr=pipe) as shell:
        assert shell.stdin
        assert shell.stdout
        assert shell.stderr
        made = Channel((shell.stdin, shell.stdout, shell.stderr), LostError)
        made.begin(":")
        assert made.greeted(10.0)
        yield made
        made.close()


@pytest.mark.parametrize("word", ["'\\377'", "'no status'", "''"])
def test_a_shell_that_answers_what_nobody_asked_for_is_lost(channel: Channel, word: str) -> None:
    with pytest.raises(LostError):
        channel.ask(f'iodelta_end "$(printf {word})"')


def test_an_answer_ends_where_the_command_has_ended(channel: Channel) -> None:
    assert channel.ask("printf 'out'; printf 'err' >&2; iodelta_end 7") == Reply("7", b"out", b"err")
