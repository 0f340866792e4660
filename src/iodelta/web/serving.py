"""Answer requests until somebody ends it: sockets, limits, and the server itself."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import gc
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import h11
import uvicorn
from anyio import to_thread
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from iodelta.errors import RequestError

CONNECTIONS = 256
"""Connections at once; further ones get the status 503."""

IDLE = 20
"""Seconds after which an idle connection is closed."""

THREADS = 16
"""Requests that are answered at once; further ones wait. Each takes the memory of its page, and all share one
interpreter, so more at once would not be faster."""

HEAD = 20.0
"""Seconds that the head of a request may take, from its first byte or the connection's beginning."""

MOST = CONNECTIONS // 2
"""Connections of one address at a time: a slow client must not keep all of them."""

FAREWELL = 2
"""Seconds for open responses when the server ends."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of ``mallopt``, from glibc's malloc.h."""

CYCLES = (700, 10, 10)
"""Python's own thresholds of ``gc``."""

LARGE = 128 << 10
"""An allocation of at least so many bytes goes back to the kernel as soon as it is freed."""


def share_heap() -> None:
    """Let all threads allocate from one heap that shrinks again; to be called before there are threads.

    By default glibc gives each thread a heap, up to eight for a processor, and every heap keeps the memory of the
    largest page that was ever made in it. Threads of Python wait for each other anyway. glibc also raises its
    threshold to the largest array that was ever freed, and the arrays of a judgement grow with the run; fixed limits
    prevent that. Other C libraries have no such parameters.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, LARGE)


def collect_often() -> None:
    """Restore Python's own thresholds of garbage collection, and exempt the objects that exist already.

    A command raises the thresholds, because it ends soon. Every request leaves a few cycles: a server that did not
    collect them grew by a KiB per request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*CYCLES)


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. Raises RequestError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        # Connections wait here until the server answers its first request.
        made.listen(CONNECTIONS)
    except socket.gaierror as error:
        raise RequestError(
            f"not an address of this machine: {host!r}", place="--host"
        ) from error
    except OSError as error:
        remedy = "name another with --port" if error.errno == errno.EADDRINUSE else ""
        why = os.strerror(error.errno or 0)
        raise RequestError(
            f"cannot listen on {host} port {port}: {why}", place="--host", remedy=remedy
        ) from error
    return made


def url_of(listening: socket.socket, prefix: str) -> str:
    """Return the address of the first page."""
    host, port = listening.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}{prefix}/"


class _Patient(H11Protocol):
    """A connection that is closed when the head of a request takes too long, and when an address has too many."""

    per_address: ClassVar[Counter[str]] = Counter()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self.per_address[self._address] += 1
        self._head = self.loop.call_later(HEAD, self._late)
        if self.per_address[self._address] > MOST:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.cancel()
        self.per_address[self._address] -= 1
        if not self.per_address[self._address]:
            del self.per_address[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head.cancel()
        elif (
            self._head.cancelled() or self.cycle is not before
        ):  # the head of a further request has begun
            self._head.cancel()
            self._head = self.loop.call_later(HEAD, self._late)

    def _late(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()


class _Server(uvicorn.Server):
    """A server with so many threads."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets)


def _is_unexpected(record: logging.LogRecord) -> bool:
    """False for the trace of an answer that was open when the server ended."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)


def serve(
    app: ASGIApp,
    listening: socket.socket,
    end: Callable[[], None],
    ready: Callable[[], None],
) -> None:
    """Answer requests until a signal arrives; then call ``end``.

    The handlers of signals are installed before ``ready`` is called. Without them Python could drop a KeyboardInterrupt
    in a callback of a weak reference, and the server would go on.
    """
    config = uvicorn.Config(
        app,
        http=_Patient,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=FAREWELL,
        h11_max_incomplete_event_size=32 << 10,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_unexpected)
    server = _Server(config)
    with server.capture_signals():
        ready()
        collect_often()
        try:
            server.run(sockets=[listening])
        finally:
            end()
