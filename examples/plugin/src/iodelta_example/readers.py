"""What ACME bench prints: ``acme: randread bs=4k 41200 iops``, a line for each run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodelta.ingest import Run
from iodelta.ingest.model import Workload
from iodelta.trial import Direction, Place, Quantity, unknown

LINE = re.compile(r"^acme: (?P<rw>(?:rand)?(?:read|write)) bs=(?P<bs>\d+k) (?P<iops>\d{1,15}) iops$", re.MULTILINE)


def read_acme(data: bytes, name: str) -> Iterator[Run]:
    """The runs in a file; nothing where it is of another tool. It never raises."""
    for number, found in enumerate(LINE.finditer(data.decode("utf-8", "replace")), 1):
        kind = "write" if found["rw"].endswith("write") else "read"
        # The last digit was rounded: the interval says so.
        value = float(found["iops"])
        iops = Quantity(value, value - 0.5, value + 0.5, "IOPS")
        yield Run(
            place=Place(name, number),
            format="text",
            jobname=f"{found['rw']} {found['bs']}",
            directions=(Direction(kind, 0, 0, 0, iops, unknown("B/s")),),
            workload=Workload(rw=found["rw"]),
        )
