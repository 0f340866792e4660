"""Rules: complete, hashed, and honest about what a budget can reach."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from iodelta.errors import RequestError
from iodelta.stats.sequential import nominal_tails
from iodelta.verdict import LOOKS, Judgement, Rules, Series, judge_series, metrics_for
from iodelta.verdict.family import plan_of
from iodelta.verdict.rules import Screen

METRICS = metrics_for(["read"])


def test_rules_survive_json_and_have_a_digest_of_their_own() -> None:
    rules = Rules.for_blocks(40, METRICS, comparisons=3, seed=11)
    again = msgspec.json.decode(msgspec.json.encode(rules), type=Rules)
    assert again == rules
    assert again.digest() == rules.digest()
    assert msgspec.structs.replace(rules, margin=0.02).digest() != rules.digest()


@pytest.mark.parametrize("blocks", [6, 7, 10, 16, 33, 80, 200])
def test_looks_end_with_the_budget_and_each_can_decide(blocks: int) -> None:
    """No look is spent where even the smallest p value there is, 2^-n on one side, exceeds its level."""
    rules = Rules.for_blocks(blocks, METRICS, comparisons=1)
    assert rules.looks[-1] == rules.max_blocks == blocks
    plan = plan_of(rules, ())
    for n, tail in zip(plan.blocks, nominal_tails(plan, rules.alpha / 2), strict=True):
        assert tail >= 0.5**n
    assert rules.reachable() is None


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_below_six_blocks_no_verdict_is_promised(blocks: int) -> None:
    finding = Rules.for_blocks(blocks, METRICS, comparisons=1).reachable()
    assert finding is not None
    assert finding.severity == "hard"
    assert finding.remedy.startswith("use at least 6: a larger --budget")


def test_a_large_family_on_few_blocks_can_only_show_equivalence() -> None:
    finding = Rules.for_blocks(12, METRICS, comparisons=150, family="holm").reachable()
    assert finding is not None
    assert finding.severity == "warning"
    assert "only equivalence" in finding.explanation


def test_the_family_is_corrected_for_as_it_grows() -> None:
    def family(comparisons: int, blocks: int = 40) -> str:
        return Rules.for_blocks(blocks, METRICS, comparisons=comparisons).family

    assert [family(n) for n in (1, 2, 7, 30, 31, 3000)] == ["each", "holm", "holm", "holm", "screen", "screen"]
    assert family(0) == "holm"
    assert family(150, blocks=12) == "holm"
    assert Rules.for_blocks(40, METRICS, comparisons=150, family="each").family == "each"


def test_stage_2_may_take_the_blocks_saved_on_other_cells() -> None:
    rules = Rules.for_blocks(20, METRICS, comparisons=150)
    assert rules.looks == LOOKS
    assert rules.max_blocks == 92


def test_an_extension_spends_the_reserve_and_needs_one() -> None:
    rules = Rules.for_blocks(20, METRICS, comparisons=3)
    longer = rules.extended(30)
    assert longer.max_blocks == 30
    assert plan_of(longer, ()).shares[-1] == pytest.approx(1.0)
    with pytest.raises(RequestError, match="beyond the 20 blocks"):
        rules.extended(20)
    with pytest.raises(RequestError, match="no alpha was kept"):
        msgspec.structs.replace(rules, reserve=0.0).extended(30)


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin": 0.0},
        {"alpha": 0.6},
        {"reserve": 1.0},
        {"looks": ()},
        {"looks": (12, 9)},
        {"looks": (9, 12), "extension": (10,)},
        {"metrics": METRICS + METRICS[:1]},
        {"comparisons": -1},
        {"screen": Screen(blocks=0)},
        {"screen": Screen(keep=0.9)},
    ],
)
def test_rules_that_cannot_be_followed_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(RequestError, match=r".+"):
        Rules(**{"metrics": METRICS, **wrong})  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="too short for one block"):
        Rules.for_blocks(0, METRICS, comparisons=1)


def clear_change(rules: Rules, cells: int) -> Judgement:
    """One cell loses a third in every block and metric; in the others the variants are alike. No two blocks tie."""
    rng = np.random.default_rng(5)
    blocks, series = rules.max_blocks, []
    for cell in range(cells):
        first = tuple((rng.random(blocks) < 0.5).tolist())
        noise = 0.01 * rng.standard_normal((2, blocks))
        places = range(0, 2 * blocks, 2)
        for one in rules.metrics:
            lost = (-0.4 if one.better == "higher" else 0.4) * (cell == 0)
            sign = 1 if one.better == "higher" else -1
            old, new = np.exp(sign * noise[0]), np.exp(sign * noise[1] + lost)
            at = tuple(places), tuple(place + 1 for place in places)
            series.append(Series(f"{cell}", one, "a", "b", tuple(range(blocks)), tuple(old), tuple(new), first, *at))
    return judge_series(series, rules)


@pytest.mark.parametrize(
    ("comparisons", "blocks"), [(1, 6), (2, 6), (2, 7), (2, 8), (3, 8), (3, 9), (10, 10), (10, 11), (50, 15), (50, 16)]
)
def test_a_change_is_out_of_reach_exactly_where_the_engine_cannot_call_the_clearest(
    comparisons: int, blocks: int
) -> None:
    rules = Rules.for_blocks(blocks, METRICS, comparisons=comparisons, family="holm")
    words = [verdict.word for verdict in clear_change(rules, comparisons).of("0")]
    assert ("regression" in words) == (rules.reachable() is None)


@pytest.mark.parametrize(("comparisons", "blocks"), [(2, 7), (50, 12), (150, 12)])
def test_the_blocks_that_are_asked_for_suffice_and_one_fewer_does_not(comparisons: int, blocks: int) -> None:
    finding = Rules.for_blocks(blocks, METRICS, comparisons=comparisons, family="holm").reachable()
    assert finding is not None
    needed = int(finding.remedy.removeprefix("use at least ").partition(":")[0])
    assert Rules.for_blocks(needed, METRICS, comparisons=comparisons, family="holm").reachable() is None
    assert Rules.for_blocks(needed - 1, METRICS, comparisons=comparisons, family="holm").reachable() is not None


def test_a_screen_is_corrected_for_each_metric_it_keeps() -> None:
    """60 cells keep 18 claims of one metric, and three times as many of three: 10 fresh blocks no longer suffice."""
    looks = {"looks": (10,), "family": "screen", "comparisons": 60}
    assert Rules(metrics=METRICS[:1], **looks).reachable() is None  # type: ignore[arg-type]
    assert Rules(metrics=METRICS, **looks).reachable() is not None  # type: ignore[arg-type]
