"""What is said of the state of a disk before and during an experiment that writes to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from iodelta.experiment import Experiment, parse
from iodelta.lab.account import Account
from iodelta.lab.diskstate import Known, Prepared
from iodelta.lab.folder import Session
from iodelta.probe.identity import Identity
from iodelta.study.preparation import disk_findings, prepared_earlier
from iodelta.trial import Direction, Finding, Quantity, Trial
from iodelta.verdict import metric

RNG = np.random.default_rng(7)
GIB = 1 << 30
IDENTITY = Identity("boot", "8:16", GIB, serial="x")
TARGET: dict[str, Any] = {
    **{"path": "/dev/sdb", "kind": "block", "real_path": "/dev/sdb", "device": "sdb", "devno": "8:16", "disk": "sdb"},
    **{"devices": ["sdb"], "disks": ["sdb"], "mount": "", "fstype": "", "size_bytes": GIB},
    "identity": msgspec.to_builtins(IDENTITY),
}


def question(rw: str = "randwrite") -> Experiment:
    return parse(f'[target]\npath = "/dev/sdb"\n[workload]\nrw = "{rw}"\n[variant.a]\n[variant.b]\n')


def known(*, steady: bool = True, since: int | None = 0) -> Known:
    made = Prepared(IDENTITY, 0.0, steady, "2 x its size", GIB, 12, 5e8, "/folder", "boot", 0)
    return Known(made, since)


def found(disk: Known | None, levels: Callable[[str], Sequence[float]], rw: str = "randwrite") -> list[Finding]:
    """The findings of an experiment whose trials of each variant had these rates."""
    experiment = question(rw)
    said = msgspec.to_builtins(disk) if disk is not None else None
    account = Account([Session(0.0, "boot", 1, TARGET, "environment.json", "local", said)])
    trials = []
    for variant in ("a", "b"):
        for block, rate in enumerate(levels(variant)):
            iops = Quantity.exact(rate, "IOPS")
            one = Direction("write", 1000, 4096000, 1000, iops, iops)
            number = 2 * block + (variant == "b")
            trials.append(Trial(number, experiment.cells[0].name, variant, block, 0, 1, float(number), 1.0, (one,)))
    return list(disk_findings(experiment, account, trials, [metric("write.iops")]))


def even(variant: str) -> list[float]:
    return list(1000 * (1 + 0.03 * RNG.standard_normal(30)))


@pytest.mark.parametrize(
    ("disk", "rule", "severity"),
    [
        (Known(None), "disk.unknown", "warning"),
        (Known(None, rotational=True), "disk.unknown", "note"),
        (known(steady=False), "disk.not-steady", "warning"),
        (known(since=None), "disk.rebooted", "note"),
        (known(since=GIB // 2), "disk.written", "note"),
    ],
)
def test_a_disk_whose_state_is_not_known_is_a_finding_with_a_remedy(disk: Known, rule: str, severity: str) -> None:
    (one,) = found(disk, even)
    assert (one.rule, one.severity) == (rule, severity)
    assert "iodelta prepare /dev/sdb --destroy /dev/sdb" in one.remedy


@pytest.mark.parametrize("disk", [None, known(), known(since=GIB // 20)])
def test_a_disk_that_is_prepared_or_only_read_gives_no_finding(disk: Known | None) -> None:
    assert found(disk, even) == []


def test_an_arm_that_leaves_the_steady_state_is_named_and_the_other_is_not() -> None:
    def falling(variant: str) -> list[float]:
        return [rate * (1 - 0.01 * at) if variant == "b" else rate for at, rate in enumerate(even(variant))]

    (one,) = found(known(), falling)
    assert (one.rule, one.severity, one.place) == ("disk.left-steady", "warning", "randwrite 4k, b")
    assert "range over" in one.explanation
    assert "(20 % is steady)" in one.explanation
    assert found(known(), falling, rw="randread") == [], "reads leave no steady state of writes"


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        (known(since=GIB // 8), "2 x its size; steady after 12 rounds; 128 MiB written to it before the first trial"),
        (known(steady=False), "2 x its size; not steady after 12 rounds; 0 B written to it before the first trial"),
        (
            known(since=None),
            "2 x its size; steady after 12 rounds; an unknown amount written to it before the first trial",
        ),
    ],
)
def test_a_later_report_says_how_the_disk_was_prepared(disk: Known, words: str) -> None:
    account = Account([Session(0.0, "boot", 1, TARGET, "environment.json", "local", msgspec.to_builtins(disk))] * 2)
    assert prepared_earlier(account) == (("disk prepared", f"/dev/sdb, 1970-01-01 00:00 UTC: {words}"),)


@pytest.mark.parametrize("disk", [None, Known(None)])
def test_a_disk_of_which_nothing_is_known_was_not_prepared(disk: Known | None) -> None:
    said = msgspec.to_builtins(disk) if disk is not None else None
    assert prepared_earlier(Account([Session(0.0, "boot", 1, TARGET, "environment.json", "local", said)])) == ()
