"""Sentences about a table hold or fail by the table itself."""

from __future__ import annotations

import pytest
from posted import gist

from iodelta.audit import Audit, audit
from iodelta.audit.claims import check_claims
from iodelta.errors import RequestError


@pytest.fixture(scope="module")
def audited() -> Audit:
    return audit(row.run for row in gist())


@pytest.mark.parametrize(
    ("claim", "outcome", "holds", "cells"),
    [
        ("queue has the highest IOPS in random HDD defrag", "holds", 8, 8),
        ("queue has the highest IOPS in random SSD defrag", "false", 2, 8),
        ("queue has the lowest average latency in random HDD defrag", "untestable", 0, 8),
        ("queue has the best bandwidth in SeqRead SSD defrag off", "holds", 2, 2),
        ("round-robin is up to 69 % below queue in QD1 SSD 4 jobs", "false", 0, 2),
        ("pid is 52 % below queue in sequential SSD 1 job defrag off", "holds", 1, 1),
        ("pid is 52 % below queue in sequential SSD", "false", 1, 6),
        ("pid is 109 % slower than queue in p99 in QD32 SSD 4 jobs defrag off", "false", 0, 1),
        ("queue is more than 80 % faster than pid in random HDD 1 job QD1 defrag on", "holds", 1, 1),
    ],
)
def test_a_claim_is_counted_over_the_cells_it_names(
    audited: Audit, claim: str, outcome: str, holds: int, cells: int
) -> None:
    (checked,) = check_claims(claim, audited)
    assert (checked.outcome, checked.holds, checked.cells) == (outcome, holds, cells)


@pytest.mark.parametrize(
    ("how", "outcome"),
    [("more than 5", "untestable"), ("more than 20", "false"), ("up to 90", "untestable"), ("up to 20", "false")],
)
def test_a_percentage_does_not_hold_for_cells_that_cannot_be_tested(audited: Audit, how: str, outcome: str) -> None:
    """In four of the ten cells no mean can be believed; the others show 10 to 85 %."""
    (checked,) = check_claims(f"queue is {how} % below pid in latency in QD32 random defrag", audited)
    assert (checked.outcome, checked.cells) == (outcome, 10)
    assert "4 cells cannot be tested" in checked.explanation


def test_a_tie_within_rounding_is_no_win(audited: Audit) -> None:
    (checked,) = check_claims("queue has the highest IOPS in QD32 SSD 1 job random defrag off", audited)
    assert checked.outcome == "false"
    assert "tied within rounding in 1" in checked.explanation


def test_percentiles_that_a_repair_mends_can_bear_a_claim(audited: Audit) -> None:
    (checked,) = check_claims("latency has the lowest p99 in HDD sequential 4 jobs defrag on", audited)
    assert checked.outcome == "false"
    assert "cannot be tested" not in checked.explanation


def test_a_false_claim_is_a_hard_finding_and_an_untestable_one_a_warning(audited: Audit) -> None:
    found = [
        checked.finding()
        for checked in check_claims(
            "queue has the highest IOPS in SSD QD1 defrag; queue has the lowest latency in HDD random defrag;"
            "queue has the highest IOPS in HDD random defrag",
            audited,
        )
    ]
    assert [finding and finding.severity for finding in found] == ["hard", "warning", None]


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ("queue is best", "write it as"),
        ("bfq has the highest IOPS in QD1", "the rows are named: pid, round-robin"),
        ("queue has the highest IOPS in QD64", "no cell matches"),
    ],
)
def test_a_claim_that_cannot_be_read_says_what_can(audited: Audit, claim: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        check_claims(claim, audited)


@pytest.mark.parametrize(
    ("claim", "outcome", "says"),
    [
        ("20 % and 30 % make 50 %", "false", "-44.0 %"),
        ("20 % and 30 % make 44 %", "holds", "-44.0 %"),
        ("20 % regression, then 30 % regression make 44 % regression", "holds", "-44.0 %"),
        ("20 % and 20~30 % make more than 40 %", "holds", "to -35."),
        ("20 % and 20 % make more than 40 %", "false", "-36.0 %"),
        ("-20 % and +25 % make 0 %", "holds", "+0.0 %"),
        ("10.0 % gain and 10.0 % gain make 20 % gain", "false", "+21.0 %"),
        ("50 %, 20 % and 10 % make about 60 %", "holds", "-64.0 %"),
    ],
)
def test_changes_one_after_the_other_multiply(claim: str, outcome: str, says: str) -> None:
    (checked,) = check_claims(claim, audit([]))
    assert (checked.outcome, checked.cells) == (outcome, 1)
    assert says in checked.explanation
