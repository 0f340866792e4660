"""The far end of a line may end at any moment."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator

import pytest
from waiting import LIMIT

from iodelta.errors import LostError
from iodelta.machine import channel as channels
from iodelta.machine.channel import Channel, Reply


def test_a_far_end_that_is_killed_before_it_has_read_all_is_lost() -> None:
    here, there = socket.socketpair()
    errors, silent = socket.socketpair()
    with here, there, errors, silent:
        channel = Channel((here.dup(), here, errors), LostError)
        channel.send("true")
        there.close()  # with data unread: the kernel resets the line
        with pytest.raises(LostError):
            channel.receive(LIMIT)
        channel.close()


@contextlib.contextmanager
def begun() -> Iterator[Channel]:
    """To a sh here, heard."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh"], stdin=pipe, stdout=pipe, stderr=pipe) as shell:
        assert shell.stdin
        assert shell.stdout
        assert shell.stderr
        made = Channel((shell.stdin, shell.stdout, shell.stderr), LostError)
        made.begin(":")
        assert made.greeted(LIMIT)
        yield made
        made.close()


@pytest.fixture
def channel() -> Iterator[Channel]:
    with begun() as made:
        yield made


@pytest.mark.parametrize("word", ["'\\377'", "'no status'", "''"])
def test_a_shell_that_answers_what_nobody_asked_for_is_lost(channel: Channel, word: str) -> None:
    with pytest.raises(LostError):
        channel.ask(f'iodelta_end "$(printf {word})"')


def test_an_answer_ends_where_the_command_has_ended(channel: Channel) -> None:
    assert channel.ask("printf 'out'; printf 'err' >&2; iodelta_end 7") == Reply("7", b"out", b"err")


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "LIMIT", 1 << 20)
    for errors in ("", ">&2"):
        with begun() as channel:
            assert len(channel.ask("head -c 1000000 /dev/zero; iodelta_end 0").stdout) == 1000000
            with pytest.raises(LostError, match="more than 1 MiB"):
                channel.ask(f"cat /dev/zero {errors}; iodelta_end 0")


def test_a_mark_is_found_wherever_a_read_ends_and_what_was_searched_is_not_searched_again() -> None:
    here, there = socket.socketpair()
    errors, error = socket.socketpair()
    with here, there, errors, error:
        channel = Channel((here.dup(), here, errors), LostError)
        channel._mark = b"token"
        for piece in (b"one tok", b"en", b" 0", b"\ntwo token 1\n"):
            assert channel.receive(0) is None
            there.send(piece)
        error.send(b"said to")
        assert channel.receive(0) is None
        error.send(b"ken\ntoken\n")
        first, second = channel.receive(LIMIT), channel.receive(LIMIT)
        assert first is not None
        assert second is not None
        assert (first.word, first.stdout, first.stderr) == ("0", b"one ", b"said ")
        assert (second.word, second.stdout, second.stderr) == ("1", b"two ", b"")
        channel.close()
