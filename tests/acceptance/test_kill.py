"""Twenty random kills; ``python -m tests.acceptance.soak`` makes as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .soak import soak

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.beside]


def test_after_a_kill_at_any_moment_every_setting_is_back_and_no_finished_trial_is_missing(tmp_path: Path) -> None:
    tally = soak(tmp_path, 20, seed=20, stands=4)
    assert tally.kills >= 20
    assert tally.restores
    assert tally.continued
    assert tally.trials
