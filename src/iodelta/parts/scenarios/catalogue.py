"""Every scenario there is, by name."""

from __future__ import annotations

import difflib

from iodelta.errors import RequestError
from iodelta.parts.scenarios import (
    btrfs_read_policy,
    jbod_mmap,
    queue_depth_sweep,
    raid10_governor,
    read_policy_order,
    ublk_null_affinity,
)
from iodelta.parts.scenarios.model import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    queue_depth_sweep.SCENARIO,
    jbod_mmap.SCENARIO,
    raid10_governor.NEAR,
    raid10_governor.FAR,
    ublk_null_affinity.SCENARIO,
    read_policy_order.SCENARIO,
    btrfs_read_policy.SCENARIO,
)


def scenario(name: str) -> Scenario:
    """Return the scenario of that name. Raises RequestError with near matches for an unknown one."""
    for candidate in SCENARIOS:
        if candidate.name == name:
            return candidate
    names = [candidate.name for candidate in SCENARIOS]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names
    raise RequestError(
        "there is no such scenario",
        place=name,
        remedy=f"did you mean {', '.join(near)}? `iodelta scenario list`",
    )
