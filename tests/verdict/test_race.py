"""The benchmark of decision rules: peers' rules do what was published of them, and the comparison comes out as claimed.

Shares at fixed runs are those of the peers' document, section 5; iodelta's demand is a third of the best peer's runs.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, ttest_ind, ttest_ind_from_stats

from benchmarks.verdicts import noise, peers, race

ROOT = Path(__file__).parents[2]

RULES = {rule.name: rule for rule in peers.RULES}


def seen(name: str, cv: float, runs: int, change: float) -> float:
    """Share of 2000 experiments on white noise in which the published rule speaks (no change) or says slower."""
    rng = np.random.default_rng([runs, round(1e4 * cv), round(1e4 * change)])
    a, b = (1 + cv * rng.standard_normal((2000, runs)) for _ in range(2))
    said = RULES[name].signals(a, b * (1 + change), rng)
    return float(np.mean(said > 0 if change else said != 0))


@pytest.mark.parametrize(
    ("name", "cv", "runs", "alarms", "found"),
    [
        ("fsperf band", 0.01, 5, 0.04, 0.59),
        ("lkp default", 0.01, 5, 0.03, 0.70),
        ("lkp gap", 0.01, 3, 0.03, 0.23),
        ("mmtests", 0.01, 3, 0.01, 0.17),
        ("mmtests", 0.02, 10, 0.00, 0.00),
        ("Welch t", 0.02, 10, 0.05, 0.55),
    ],
)
def test_a_peers_rule_sees_what_was_measured_of_it(
    name: str, cv: float, runs: int, alarms: float, found: float
) -> None:
    assert seen(name, cv, runs, 0.0) == pytest.approx(alarms, abs=0.015)
    assert seen(name, cv, runs, 0.02) == pytest.approx(found, abs=0.04)


def test_one_run_of_many_seconds_is_taken_for_many_runs_and_the_floor_hides_what_matters() -> None:
    """Pooled seconds of one run a side alarm at almost any difference: 48 % at a run-to-run CV of 1 %, nominal 1 %."""
    rule = RULES["Firecracker"]
    rng = np.random.default_rng(1)
    a, b = (1 + 0.01 * rng.standard_normal((2000, 1)) for _ in range(2))
    assert float(np.mean(np.abs(rule.score(a, b, rng)) > rule.threshold)) > 0.3
    assert float(np.mean(rule.signals(a, b * 1.02, rng) != 0)) < 0.05


def test_the_tests_among_the_rules_are_scipys() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 0.02, (50, 12)), rng.normal(1.01, 0.03, (50, 12))
    t, u = (rule(a, b, rng) for rule in (peers.welch, peers.benchstat))
    expected = ttest_ind(b, a, axis=1, equal_var=False).pvalue
    assert 2 * (1 - np.vectorize(_phi)(np.abs(t))) == pytest.approx(expected, abs=1e-9)
    ranks = mannwhitneyu(b, a, axis=1, method="asymptotic", use_continuity=True).pvalue
    assert 2 * (1 - np.vectorize(_phi)(np.abs(u))) == pytest.approx(ranks, abs=1e-9)


def test_otavas_split_is_the_one_of_largest_energy_and_its_test_uses_population_deviations() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(1, 0.02, (1, 10)), rng.normal(1.05, 0.02, (1, 10))
    history = np.concatenate([a[0], b[0]])

    def energy(at: int) -> float:
        x, y = history[:at], history[at:]
        apart = [np.abs(np.subtract.outer(p, q)).mean() for p, q in ((x, y), (x, x), (y, y))]
        return float(at * (20 - at) / 20 * (2 * apart[0] - apart[1] - apart[2]))

    split = max(range(2, 19), key=energy)
    x, y = history[:split], history[split:]
    p = ttest_ind_from_stats(y.mean(), y.std(), len(y), x.mean(), x.std(), len(x)).pvalue
    assert 2 * (1 - _phi(float(np.abs(peers.otava(a, b, rng)[0])))) == pytest.approx(float(p), rel=1e-3)


def _phi(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2))


@pytest.mark.night
@pytest.mark.parametrize("name", ["white", "autocorrelated", "linear drift", "sticky bimodal"])
def test_iodelta_needs_a_third_of_the_best_peers_runs_and_no_more_on_white_noise(name: str) -> None:
    heat = race.race(name, noise.models()[name], seed=11, reps=30, cv=0.02)
    assert heat.own.alarms <= 0.07
    assert heat.own.found[1] >= 0.95
    assert heat.own.typical / heat.best("sure").sure <= (1.0 if name == "white" else 1 / 3)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """One recorded series of 120 runs that drift slowly."""
    values = np.exp(0.01 * np.cumsum(np.random.default_rng(4).normal(size=120)))
    (tmp_path / "disk.json").write_text(json.dumps({"machine": "a disk", "values": values.tolist()}))
    return tmp_path


def test_recorded_runs_become_a_seventh_noise_that_keeps_their_order(recorded: Path) -> None:
    model = noise.models(recorded)["recorded"]
    series = next(iter(noise.recorded_series(recorded).values()))
    drawn = model(30, 50, np.random.default_rng(5))
    assert drawn.shape == (50, 30)
    doubled = np.concatenate([series, series])
    assert all(any(np.array_equal(row, doubled[at : at + 30]) for at in range(120)) for row in drawn)
    assert float(series.std()) == pytest.approx(1.0)
    assert "recorded" not in noise.models(recorded / "nothing")


@pytest.mark.parametrize(
    "content", ["[]", "{}", "no json", '{"values": [1.0]}', json.dumps({"values": [1.0] * 50}), '{"values": "x"}']
)
def test_a_file_that_is_no_recording_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ValueError, match=r"bad\.json"):
        noise.recorded_series(tmp_path)


@pytest.mark.night
def test_the_table_fits_a_terminal_and_follows_from_its_seed(recorded: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.verdicts", "--reps", "10", "--noise", "recorded", "--seed", "3"]
    paper = tmp_path / "table.md"
    command += ["--recorded", str(recorded), "--markdown", str(paper)]
    first, second = (subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout
    assert max(len(line) for line in first.stdout.splitlines()) <= 80
    assert {"RECORDED", "iodelta", "mmtests"} <= set(first.stdout.split())
    assert "| iodelta | pairs |" in paper.read_text()
