"""Words of the command lines of ``iodelta policy``, and the ``iodelta run`` that it offers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from iodelta.errors import RequestError


def experiment_command(
    members: Sequence[str],
    policies: Sequence[str],
    rw: str,
    bs: str,
    iodepths: str,
    jobs: int,
    reads: int,
    size: str,
    buffered: bool,
) -> str:
    """Return the ``iodelta run`` that measures this with blocks and verdicts."""
    paths = [os.path.abspath(member) for member in members]
    words = [
        "iodelta",
        "run",
        "--target",
        paths[0],
        *(("--size", size) if size else ()),
    ]
    for policy in policies:
        name = re.sub(r"[^A-Za-z0-9._+-]", "-", policy)
        words += [
            "--variant",
            f"{name}:mirror.read_policy={shlex.join([policy, *paths])}",
        ]
    words += [
        "--placebo",
        "--",
        f"--rw={rw}",
        f"--bs={bs}",
        f"--iodepth={iodepths}",
        f"--direct={int(not buffered)}",
    ]
    words += ["--ioengine=io_uring", *((f"--numjobs={jobs}",) if jobs > 1 else ())]
    words += [f"--rwmixread={reads}"] if reads < 100 else []
    return shlex.join(words)


def reads_percent(rw: str, percent: int | None) -> int:
    """Percent of reads: only a mixed workload has others."""
    if rw not in ("randrw", "rw"):
        return 100
    return 70 if percent is None else percent


def once(values: Sequence[str], place: str) -> Sequence[str]:
    """Return the values. Raises RequestError for one that is given twice: its results could not be distinguished."""
    for at, value in enumerate(values):
        if value in values[:at]:
            raise RequestError(f"{value!r} is given twice", place=place)
    return values


def numbers(text: str) -> tuple[int, ...]:
    """Depths. Raises RequestError."""
    depths = tuple(
        int(part)
        for part in once(text.split(","), "--iodepth")
        if part.strip().isdecimal()
    )
    if not depths or len(depths) != len(text.split(",")) or min(depths) < 1:
        raise RequestError(
            f"not a list of depths: {text!r}", place="--iodepth", remedy="as in 1,32"
        )
    return depths


def rates_per_second(text: str) -> tuple[float, ...]:
    """Arrivals of open loads. Raises RequestError."""
    try:
        rates = tuple(float(part) for part in once(text.split(","), "--rate"))
    except ValueError as error:
        raise RequestError(
            f"not a list of rates: {text!r}", place="--rate", remedy="as in 200,400"
        ) from error
    if not all(0 < rate <= 1e8 for rate in rates):
        raise RequestError(
            f"a rate is above 0 and at most 100 million: {text!r}", place="--rate"
        )
    return rates


def size_of(text: str, place: str) -> int:
    """Bytes. Raises RequestError."""
    from iodelta.experiment.values import size_bytes

    try:
        size = size_bytes(text)
    except ValueError as error:
        raise RequestError(str(error), place=place) from error
    if not size:
        raise RequestError(f"a size is above 0: {text!r}", place=place)
    return size
