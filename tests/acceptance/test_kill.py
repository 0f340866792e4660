"""Random kills; ``python -m tests.acceptance.soak`` makes as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiers import scaled

from .soak import soak

pytestmark = [pytest.mark.root, pytest.mark.beside]


def test_after_a_kill_at_any_moment_every_setting_is_back_and_no_finished_trial_is_missing(tmp_path: Path) -> None:
    kills = scaled(20, 4)
    happened = soak(tmp_path, kills, seed=20, stands=4).counts
    assert happened["kills"] >= kills
    assert all(happened[name] for name in ("restores", "continued", "trials"))
