"""Read foreign results, from any tool and after any change by mail or editors, as runs with honest numbers."""

from typing import TYPE_CHECKING

from iodelta.ingest.model import (
    DeviceStats,
    Disk,
    Format,
    Imported,
    Priority,
    Refusal,
    Run,
    Sampler,
    Workload,
    unknown,
)
from iodelta.lazily import found_in

if TYPE_CHECKING:
    from iodelta.ingest.reading import read, read_bytes, scan

__all__ = [
    "DeviceStats",
    "Disk",
    "Format",
    "Imported",
    "Priority",
    "Refusal",
    "Run",
    "Sampler",
    "Workload",
    "read",
    "read_bytes",
    "scan",
    "unknown",
]

if not TYPE_CHECKING:  # else mypy would take every name for one of this module's
    __getattr__ = found_in(__name__, "reading")
