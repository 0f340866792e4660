"""Where the work of a fleet is done: threads of this process, or the user's own Dask scheduler."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from iodelta.errors import MeasureError, RequestError, needs_extra

SCHEME = "tcp://"
FIRST_WORKER = 60
"""Seconds to wait for the first worker of the user's scheduler: both are often started together."""


class _Threads:
    """A thread for each host: it waits for the process that measures there."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def submit(
        self, work: Callable[..., Any], *words: Any, pure: bool = False, **named: Any
    ) -> Future[Any]:
        """Begin it, as dask's client does."""
        return self._pool.submit(work, *words, **named)

    def gather(self, tasks: Iterable[Future[Any]]) -> list[Any]:
        """Return the results in the order of the tasks."""
        return [task.result() for task in tasks]


@contextlib.contextmanager
def workers(address: str, most: int) -> Iterator[tuple[Any, int]]:
    """What takes work, and how many hosts it can measure at the same time, ``most`` at most.

    Raises RequestError where the extra is missing or the address is not valid, MeasureError when no scheduler answers.
    """
    if not address:
        with ThreadPoolExecutor(most, "iodelta-host") as pool:
            yield _Threads(pool), most
        return
    if not address.startswith(SCHEME):
        raise RequestError(
            f"not a scheduler: {address!r}",
            place="--scheduler",
            remedy="write it as tcp://HOST:PORT",
        )
    with needs_extra("fleet", "a scheduler"):
        from distributed import Client
    # What the engine says of its own troubles is for its log; ours is one sentence.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=30, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise MeasureError(
            f"no scheduler answers: {error}",
            place=address,
            remedy="start `dask scheduler` there",
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError as error:
            raise MeasureError(
                f"the scheduler got no workers within {FIRST_WORKER} s",
                place=address,
                remedy="start `dask worker` for it",
            ) from error
        threads = sum(client.nthreads().values())  # type: ignore[no-untyped-call]
        yield client, min(most, threads)
