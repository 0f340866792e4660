"""The far end of a line may end at any moment."""

from __future__ import annotations

import socket

import pytest

from iodelta.errors import LostError
from iodelta.machine.channel import Channel


def test_a_far_end_that_is_killed_before_it_has_read_all_is_lost() -> None:
    here, there = socket.socketpair()
    errors, silent = socket.socketpair()
    with here, there, errors, silent:
        channel = Channel((here.dup(), here, errors), "token", LostError)
        channel.send("true")
        there.close()  # with data unread: the kernel resets the line
        with pytest.raises(LostError):
            channel.receive(10.0)
        channel.close()
