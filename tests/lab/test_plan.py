"""Everything that is decided before the first trial is in the plan, and nothing that is decided later."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from iodelta.errors import MeasureError
from iodelta.experiment import Experiment, parse
from iodelta.lab.folder import PLAN, Folder
from iodelta.lab.plan import HEADROOM, OVERHEAD, Plan, make_plan, warnings
from iodelta.lab.session import read_plan

TWO = "[variant.a]\n[variant.b]\n"


def experiment(workload: str = 'rw = "randread"\ndirect = 1', design: str = "", variants: str = TWO) -> Experiment:
    return parse(f"[workload]\n{workload}\n{variants}\n[design]\n{design}")


def rules(plan: Plan) -> list[str]:
    return [finding.rule for finding in warnings(plan)]


def test_a_seed_decides_order_and_rules_and_one_that_was_not_given_is_drawn_and_kept() -> None:
    given = make_plan(experiment(design="seed = 7"))
    assert given.seed == 7
    assert make_plan(experiment(design="seed = 7")).schedule == given.schedule
    assert make_plan(experiment(design="seed = 7")).rules == given.rules
    drawn = {make_plan(experiment()).seed for _ in range(5)}
    assert len(drawn) == 5


def test_two_experiments_never_share_an_identifier_even_of_one_seed() -> None:
    assert make_plan(experiment(design="seed = 7")).identifier != make_plan(experiment(design="seed = 7")).identifier


@pytest.mark.parametrize(
    ("workload", "metrics"),
    [
        ('rw = "randread"\nbs = "4k"', ["read.iops", "read.lat.mean", "read.lat.p99"]),
        ('rw = "randwrite"\nbs = "4k"', ["write.iops", "write.lat.mean", "write.lat.p99"]),
        ('rw = "read"\nbs = "1m"', ["read.bandwidth", "read.lat.mean", "read.lat.p99"]),
    ],
)
def test_small_blocks_are_judged_by_iops_and_large_ones_by_bandwidth(workload: str, metrics: list[str]) -> None:
    assert [metric.name for metric in make_plan(experiment(workload)).rules.metrics] == metrics


def test_the_family_is_every_cell_variant_and_metric_that_the_cell_can_have() -> None:
    workload = '[workload.reads]\nrw = "randread"\n[workload.mixed]\nrw = "randrw"'
    three = "[variant.a]\n[variant.b]\n[variant.c]\n"
    design = 'metrics = ["read.iops", "write.iops"]'
    plan = make_plan(parse(f"{workload}\n{three}\n[design]\n{design}"))
    assert plan.rules.comparisons == 2 * (1 + 2), "the cell that only reads has no write.iops"


def test_the_budget_pays_for_the_planned_rounds_with_headroom_for_cells_that_are_decided_early() -> None:
    plan = make_plan(experiment(design='budget = "10m"\ntrial = "5s"\nramp = "1s"'))
    rounds = 600 / (2 * (6 + OVERHEAD))
    assert plan.budget_rounds == pytest.approx(rounds)
    assert len(plan.schedule.rounds) == plan.rules.max_blocks == min(80, int(HEADROOM * rounds))


def test_no_cell_gets_more_blocks_than_were_asked_for() -> None:
    assert make_plan(experiment(design='budget = "5h"\nblocks = 33')).rules.max_blocks == 33


def test_a_budget_that_ends_before_the_first_look_is_said_before_the_start() -> None:
    assert "plan.budget" in rules(make_plan(experiment(design='budget = "50s"')))
    assert "plan.budget" not in rules(make_plan(experiment(design='budget = "10m"')))


def test_a_cell_that_would_measure_the_page_cache_is_said_before_the_start() -> None:
    assert "plan.page-cache" in rules(make_plan(experiment('rw = "randread"')))
    assert "plan.page-cache" not in rules(make_plan(experiment('rw = "randread"\ndirect = 1')))
    assert "plan.page-cache" not in rules(make_plan(experiment('rw = "randread"\nioengine = "mmap"')))


def test_the_plan_on_disk_is_the_plan_with_its_limits_of_noise(tmp_path: Path) -> None:
    one = experiment(design="seed = 7")
    plan = make_plan(one)
    folder = Folder.begin(tmp_path / "folder", "text", plan)
    assert read_plan(folder) == plan
    assert msgspec.json.decode(folder.read(PLAN))["quality"]["repeats"] == plan.quality.repeats


def test_a_plan_changed_by_one_byte_is_not_followed(tmp_path: Path) -> None:
    folder = Folder.begin(tmp_path / "folder", "text", make_plan(experiment()))
    path = folder.path / PLAN
    path.write_bytes(path.read_bytes().replace(b'"alpha": 0.05', b'"alpha": 0.06'))
    with pytest.raises(MeasureError, match="changed since the run began"):
        read_plan(folder)
