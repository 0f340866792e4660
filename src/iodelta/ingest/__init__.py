"""Read foreign results, from any tool and after any change by mail or editors, as runs with honest numbers."""

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
