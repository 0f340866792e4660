"""Several hosts in one experiment: a block is made on one of them, so that the host is a blocking factor."""

from __future__ import annotations

from iodelta.experiment import Experiment


def host_of(experiment: Experiment, block: int) -> str:
    """Name of the machine that makes a block; empty for this one.

    By twos: orders come in pairs that mirror each other, and each host is to see both.
    """
    names = experiment.machines
    return names[block // 2 % len(names)] if names else ""
