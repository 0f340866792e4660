"""How a server ends: whenever Ctrl-C comes, and whatever it is answering."""

from __future__ import annotations

import subprocess
import sys

from waiting import LIMIT

ENDED = """
import asyncio, signal, socket, weakref
from iodelta.web import serving

listening = serving.bound("127.0.0.1", 0)
asking = socket.create_connection(listening.getsockname())

class Thing:
    pass

def interrupted(_):
    signal.raise_signal(signal.SIGINT)
    for _ in range(10):
        pass  # where Python looks for signals

{when}

try:
    serving.serve(app, listening, lambda: print("ended"), ready)
except KeyboardInterrupt:
    print("interrupted")
"""


def ended(when: str) -> subprocess.CompletedProcess[str]:
    """A server that is sent Ctrl-C as ``when`` says."""
    command = [sys.executable, "-c", ENDED.format(when=when)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


def test_ctrl_c_is_heard_as_soon_as_the_address_is_said() -> None:
    """A KeyboardInterrupt in a callback of a weak reference is lost."""
    done = ended("""
app = None

def ready():
    thing = Thing()
    reference = weakref.ref(thing, interrupted)
    del thing
""")
    assert (done.stdout.split(), done.stderr) == (["ended", "interrupted"], "")


def test_an_answer_that_is_open_at_the_end_leaves_no_trace() -> None:
    done = ended("""
serving.FAREWELL = 0

async def app(scope, receive, send):
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()

def ready():
    asking.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
""")
    assert done.stdout.split() == ["ended", "interrupted"], done
    assert "Traceback" not in done.stderr
