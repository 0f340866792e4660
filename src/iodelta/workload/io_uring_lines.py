"""The lines that fio's ``t/io_uring`` prints, of every version since 3.13: one a second, rounded in two ways."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.trial import Quantity

RATE = re.compile(
    r"IOPS=(\d{1,18})(?:\.(\d\d))?([KM]?), (?:BW=(\d{1,12}(?:\.\d\d)?)([MG])iB/s, )?IOS/call=(-?\d{1,9})/(-?\d{1,9})"
)
TROUBLE = re.compile(
    r"io: unexpected ret=|doesn't support polled IO|queue setup failed|submitted -?\d+, wanted"
)
ERRORS = re.compile(r"(\d{1,10}): (\d{1,18}) IO errors")


class Second:
    """One line: IOPS as printed, and the bandwidth in MiB/s, None with -N1 and before 3.28. Intervals of rounding."""

    def __init__(self, match: re.Match[str]) -> None:
        whole, digits, prefix, bandwidth, unit = match.groups()[:5]
        scale = {"": 1.0, "K": 1e3, "M": 1e6}[prefix]
        value = float(f"{whole}.{digits or 0}") * scale
        if digits:
            self.iops = Quantity(
                value, value - 0.005 * scale, value + 0.005 * scale, "1/s"
            )
        else:  # 3.29 and 3.30 cut to thousands
            self.iops = Quantity(
                value, value, value + scale if prefix else value, "1/s"
            )
        self.mib: Quantity | None = None
        if bandwidth is not None:
            number = float(bandwidth)
            # t/io_uring divides integers, so the value is cut, not rounded.
            exact = Quantity(number, number, number + 1, "MiB/s")
            wide = Quantity(
                number * 1000, number * 1000 - 5, number * 1000 + 6, "MiB/s"
            )
            self.mib = exact if unit == "M" else wide

    def fits(self, block: int) -> Quantity | None:
        """Return the IOPS that both fields allow with this block size; None when they contradict each other."""
        if self.mib is None:
            return self.iops
        per = 2**20 // block if block <= 2**20 else 2**20 / block
        low, high = (
            max(self.iops.low, self.mib.low * per),
            min(self.iops.high, self.mib.high * per),
        )
        if low <= high:
            return Quantity(min(max(self.iops.value, low), high), low, high, "1/s")
        return None


def mean(rates: Sequence[Quantity]) -> Quantity:
    """Of rates over seconds of the same length, with the mean of the intervals."""
    parts = zip(*((rate.value, rate.low, rate.high) for rate in rates), strict=True)
    value, low, high = (sum(part) / len(rates) for part in parts)
    return Quantity(value, low, high, "1/s")
