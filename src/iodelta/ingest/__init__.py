"""Foreign results, whatever wrote them and whatever was done to them since, as runs with honest numbers."""

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
