"""The tiers of tests: what CI may not pass over, and what stays together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiers

TESTS = """
import pytest
from tiers import one_at_push, scaled
@pytest.mark.skipif(True, reason="REASON")
def test_that_is_skipped(): pass
@pytest.mark.parametrize("each", one_at_push("abc"))
def test_of_each(each): pass
@pytest.mark.night
def test_of_the_night(): pass
def test_of_a_share(): assert scaled(200) == EXAMPLES
"""


def outcome(place: Path, tier: str, reason: str) -> tuple[int, str]:
    """Run those tests as CI does, with this repository's conftest.py; return the exit code and what pytest prints."""
    place.joinpath("test_it.py").write_text(
        TESTS.replace("REASON", reason).replace("EXAMPLES", "200" if tier == "night" else "20")
    )
    here = Path(tiers.__file__).parent
    words = ["-m", "pytest", "-p", "conftest", "--tier", tier, "--all-run", "-p", "no:cacheprovider", "-ra", str(place)]
    environment = {**os.environ, "PYTHONPATH": str(here)}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=place, env=environment)
    return done.returncode, done.stdout


def test_a_tool_that_is_missing_fails_and_hardware_that_is_missing_does_not(tmp_path: Path) -> None:
    code, text = outcome(tmp_path, "push", "chromium is not installed")
    assert code == pytest.ExitCode.TESTS_FAILED, text
    assert "FAILURE, can be installed (1): chromium is not installed" in text
    code, text = outcome(tmp_path, "push", "no cpufreq here")
    assert code == 0, text
    assert "absent (1): no cpufreq here" in text


@pytest.mark.parametrize(("tier", "count"), [("push", "2 passed"), ("night", "5 passed")])
def test_the_night_has_every_test_and_all_examples(tmp_path: Path, tier: str, count: str) -> None:
    code, text = outcome(tmp_path, tier, "no cpufreq here")
    assert code == 0, text
    assert count in text, text


@pytest.mark.xdist_group("kept")
def test_a_group_is_kept_together(request: pytest.FixtureRequest) -> None:
    """pytest 9.2 with pytest-xdist 3.8 spread every group over all processes, each of which made the fixture again."""
    kept = request.node.nodeid.endswith("@kept")
    assert kept or "PYTEST_XDIST_WORKER" not in os.environ
