"""Steps between nights: the range names the nights around the change, an epoch is never compared with another."""

from __future__ import annotations

from pathlib import Path

import pytest
from nights import having, night, opened, stepping

from iodelta.history.answers import Candidate
from iodelta.history.points import Night
from iodelta.history.scan import scan


def scanned(tmp_path: Path, nights: list[Night]) -> list[Candidate]:
    """Candidates of a history of these nights."""
    store = opened(tmp_path)
    store.add_all(nights)
    found = scan(store.lines())
    store.close()
    return found


def test_a_slower_build_is_between_the_nights_around_it(tmp_path: Path) -> None:
    (found,) = scanned(tmp_path, stepping(0.02))
    assert found.by == "ratio"
    assert found.size == pytest.approx(0.02, abs=0.004)
    assert int(found.last_good.describe[3:]) < 20 <= int(found.first_bad.describe[3:])
    assert int(found.first_bad.describe[3:]) - int(found.last_good.describe[3:]) <= 4
    assert found.few


def bare(nights: list[Night]) -> list[Night]:
    """Without a reference."""
    return [having(one, r=None, r_se=None) for one in nights]


def test_fewer_iops_are_worse_without_a_reference_too(tmp_path: Path) -> None:
    (found,) = scanned(tmp_path, bare(stepping(0.1)))
    assert found.by == "level"
    assert found.size == pytest.approx(0.1, abs=0.01)


def test_a_change_at_an_epoch_is_no_step(tmp_path: Path) -> None:
    nights = [night(n, r=0.05 * (n >= 20), epoch="old disk" if n < 20 else "new disk") for n in range(40)]
    assert scanned(tmp_path, nights) == []


def test_quiet_nights_have_no_candidate(tmp_path: Path) -> None:
    assert scanned(tmp_path, [night(n) for n in range(100)]) == []


def test_a_drift_that_the_reference_shares_is_no_candidate(tmp_path: Path) -> None:
    """A machine that gets 10 % slower in 60 nights: the level alone says so, the ratio to the reference does not."""
    drifting = [having(night(n), y=night(n).points[0].y - 0.1 * n / 60) for n in range(60)]
    assert scanned(tmp_path, drifting) == []
    (tmp_path / "bare").mkdir()
    assert scanned(tmp_path / "bare", bare(drifting))


def test_nights_whose_few_blocks_agree_by_luck_are_no_step_among_noisy_ones(tmp_path: Path) -> None:
    """Ten real nights without a change, of four blocks on a machine without a free CPU: some had blocks alike to 1e-6,
    and among them the others were seven sd off."""
    values = [6.9296, 6.9273, 6.9379, 6.9755, 6.8838, 6.9762, 6.9691, 6.9031, 6.9717, 6.9649]
    errors = [0.033958, 0.046048, 0.039194, 0.000914, 0.098375, 1e-6, 0.009143, 0.068798, 0.006688, 0.003031]
    blocks = [4, 3, 4, 4, 4, 3, 4, 2, 4, 4]
    nights = [
        having(one, y=y, se=se, n=n, r=None, r_se=None)
        for one, y, se, n in zip(map(night, range(10)), values, errors, blocks, strict=True)
    ]
    assert scanned(tmp_path, nights) == []
