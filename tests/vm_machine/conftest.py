"""One real guest for all tests that only look at it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from iodelta.machine.vm import VmMachine
from iodelta.vm import boot, kernels

KERNEL = "6.1"
"""The quicker to boot of those that `scripts/setup test` fetches."""

NEEDS_GUEST = pytest.mark.skipif(
    shutil.which(boot.QEMU) is None
    or shutil.which("busybox") is None
    or not any(kernels.matches(KERNEL, kernel.release, kernel.package) for kernel in kernels.here()),
    reason="needs qemu, busybox and Linux 6.1 (`iodelta kernel fetch 6.1`), which scripts/setup gets",
)

TEXT = "cpufreq=3000:1000,disk=64m:iops=200,disk=32m:nvme:error=8,disk=16m:kept:scsi,target=md-raid1"


@pytest.fixture(scope="package")
def guest() -> Iterator[VmMachine]:
    """A throttled virtio disk, an nvme that fails at a sector, a scsi disk that keeps what is written, an array."""
    with VmMachine(f"{KERNEL},{TEXT}") as machine:
        yield machine
