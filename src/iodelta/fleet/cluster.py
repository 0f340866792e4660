"""Where the work of a fleet is done: dask.distributed in this process, or the user's own scheduler."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from typing import Any

from iodelta.errors import MeasureError, RequestError, needs_extra

SCHEME = "tcp://"
HERE = "127.0.0.1:0"
FIRST_WORKER = 60
"""Seconds to wait for the first worker of the user's scheduler: both are often started together."""


@contextlib.contextmanager
def workers(address: str, most: int) -> Iterator[tuple[Any, int]]:
    """A client, and how many hosts its workers can measure at the same time, ``most`` at most.

    Raises RequestError where the extra is missing or the address is not valid, MeasureError when no scheduler answers.
    """
    with needs_extra("fleet", "a fleet"):
        from distributed import Client, LocalCluster
    if not address:
        # distributed warns about threads that block, and ours block while they wait for hosts.
        logging.getLogger("distributed").setLevel(logging.ERROR)
        # Without an address dask's dashboards would listen on every network.
        pages = {
            "dashboard_address": HERE,
            "worker_dashboard_address": HERE,
        }
        local = {"processes": False, "n_workers": 1, "memory_limit": 0, **pages}
        with (
            tempfile.TemporaryDirectory(prefix="iodelta-fleet-") as place,
            LocalCluster(
                threads_per_worker=most, local_directory=place, **local
            ) as cluster,  # type: ignore[no-untyped-call]
            Client(cluster, set_as_default=False) as client,  # type: ignore[no-untyped-call]
        ):
            yield client, most
        return
    if not address.startswith(SCHEME):
        raise RequestError(
            f"not a scheduler: {address!r}",
            place="--scheduler",
            remedy="write it as tcp://HOST:PORT",
        )
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
