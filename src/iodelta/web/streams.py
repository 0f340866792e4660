"""The lines of a journal as they are written, to a browser or a program: events that a server sends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from iodelta.web.live import Following
from iodelta.web.security import PATIENCE

MOST = 64
"""Streams at once; a page without one polls."""

EVERY = 0.4
"""Seconds between two looks for new lines."""

HEARTBEAT = 15.0
"""Seconds without a line after which a comment keeps the connection alive."""

PART = 500
"""Lines that are sent at once."""

AGAIN = 1000
"""Milliseconds after which a browser connects again."""


class Streams:
    """How many are open, and whether they shall end."""

    def __init__(self) -> None:
        self.open = 0
        self.ending = False


class Stream(Response):
    """The journal's lines after one, each with its number; then how the run ended.

    A client that is gone, or does not read for a while, is dropped.
    """

    def __init__(self, streams: Streams, following: Following, after: int) -> None:
        super().__init__(
            headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
            media_type="text/event-stream",
        )
        del self.headers["content-length"]
        self._streams, self._following, self._after = streams, following, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams.open >= MOST:
            full = Response(
                "too many streams\n",
                503,
                headers={"Retry-After": "10"},
                media_type="text/plain",
            )
            await full(scope, receive, send)
            return
        self._streams.open += 1
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": self.raw_headers,
                }
            )
            async for part in self._parts(gone):
                body = {"type": "http.response.body", "body": part, "more_body": True}
                await asyncio.wait_for(send(body), PATIENCE)
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            pass  # the client does not read; uvicorn closes a connection whose response did not end
        finally:
            self._streams.open -= 1
            gone.cancel()

    async def _parts(self, gone: asyncio.Future[None]) -> AsyncIterator[bytes]:
        yield b"retry: %d\n\n" % AGAIN
        tail, heard = self._following.tail, time.monotonic()
        sent = min(self._after, len(tail.events))
        while not (gone.done() or self._streams.ending):
            lines = tail.lines(sent, sent + PART)
            if lines:
                yield b"".join(
                    b"id: %d\ndata: %b\n\n" % numbered
                    for numbered in enumerate(lines, sent + 1)
                )
                sent, heard = sent + len(lines), time.monotonic()
                continue
            if tail.broken or tail.state != "running":
                how = msgspec.json.encode({"state": tail.state, "broken": tail.broken})
                yield b"event: end\ndata: %b\n\n" % how
                return
            if time.monotonic() - heard > HEARTBEAT:
                yield b": still here\n\n"
                heard = time.monotonic()
            await asyncio.wait([gone], timeout=EVERY)
            tail.read()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
