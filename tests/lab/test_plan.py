"""Everything that is decided before the first trial is in the plan, and nothing that is decided later."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from iodelta.errors import RequestError
from iodelta.experiment import Experiment, parse
from iodelta.lab.folder import Folder
from iodelta.lab.judged import read_plan
from iodelta.lab.plan import Plan, carry_over, make_plan, make_schedule, warnings

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


def test_the_family_is_every_cell_and_variant_whatever_the_number_of_metrics() -> None:
    workload = '[workload.reads]\nrw = "randread"\n[workload.mixed]\nrw = "randrw"'
    three = "[variant.a]\n[variant.b]\n[variant.c]\n"
    for metrics in ('["read.iops"]', '["read.iops", "write.iops"]'):
        plan = make_plan(parse(f"{workload}\n{three}\n[design]\nmetrics = {metrics}"))
        assert plan.rules.comparisons == 2 * 2
        assert plan.rules.family == "holm"
    assert make_plan(experiment()).rules.family == "each"


def test_a_family_that_corrects_for_nothing_is_refused() -> None:
    with pytest.raises(RequestError, match="their false alarms add up"):
        experiment(design='family = "each"')


def test_a_budget_that_ends_before_the_first_look_is_said_before_the_start() -> None:
    assert "plan.budget" in rules(make_plan(experiment(design='budget = "25s"')))
    assert "plan.budget" not in rules(make_plan(experiment(design='budget = "10m"')))


def test_a_cell_that_would_measure_the_page_cache_is_said_before_the_start() -> None:
    assert "plan.page-cache" in rules(make_plan(experiment('rw = "randread"')))
    assert "plan.page-cache" not in rules(make_plan(experiment('rw = "randread"\ndirect = 1')))
    assert "plan.page-cache" not in rules(make_plan(experiment('rw = "randread"\nioengine = "mmap"')))


# ------------------------------------------------------------------------------------------ carry-over and stalls

DROP = "\n".join(f'[variant.{name}]\n"memory.drop_caches" = "3"' for name in "ab") + "\n"
HALF = '[variant.a]\n"memory.drop_caches" = "3"\n[variant.b]\n'


@pytest.mark.parametrize(
    ("workload", "variants", "carry"),
    [
        ('rw = "randread"\ndirect = 1', TWO, "tested"),
        ('rw = "randwrite"\ndirect = 1', TWO, "superblocks"),
        ('rw = "trim"\ndirect = 1', TWO, "superblocks"),
        ('rw = "randread"', TWO, "superblocks"),
        ('rw = "randread"', DROP, "tested"),
        ('rw = "randread"', HALF, "superblocks"),
        ('rw = "randread"\ndirect = 1\nioengine = "mmap"', TWO, "superblocks"),
        ('rw = "randread"\ndirect = 1', '[variant.a]\n[variant.b]\n"fio.direct" = "0"\n', "superblocks"),
        ('rw = "randread"\ndirect = 1', '[variant.a]\n[variant.b]\n"fio.rw" = "randwrite"\n', "superblocks"),
        ('tool = "t/io_uring"', TWO, "tested"),
    ],
)
def test_a_workload_that_leaves_something_behind_has_superblocks(workload: str, variants: str, carry: str) -> None:
    plan = make_plan(experiment(workload, variants=variants))
    assert plan.rules.carry == carry
    twice = 2 if carry == "superblocks" else 1
    assert plan.per_round == 2 * twice
    assert {len(slot.order) for slot in plan.schedule.slots()} == {2 * twice}


@pytest.mark.parametrize(
    ("load", "carry"),
    [
        ('{ rw = "randwrite", rate_iops = "100" }', "superblocks"),
        ('{ rw = "randread" }', "tested"),
        ('"fio --name=x --rw=randrw --rate_iops=100"', "superblocks"),
        ('["/usr/bin/fio", "--name=x", "--readwrite=write:4k"]', "superblocks"),
        ('"fio --name=x --rw=read"', "tested"),
        ('"stress-ng --cpu 1"', "tested"),
    ],
)
def test_a_background_load_that_writes_has_superblocks_like_a_workload_that_does(load: str, carry: str) -> None:
    found = experiment(variants=f"{TWO}[condition.loaded]\nbackground = {load}\n")
    assert make_plan(found).rules.carry == carry


@pytest.mark.parametrize(
    ("asked", "carry"), [("none", "ignored"), ("tested", "tested"), ("superblocks", "superblocks")]
)
def test_the_design_decides_about_carry_over_where_it_says_so(asked: str, carry: str) -> None:
    assert make_plan(experiment('rw = "write"', design=f'carry-over = "{asked}"')).rules.carry == carry


def test_the_plan_says_what_superblocks_cost_and_what_their_absence_means() -> None:
    assert "twice the trials" in carry_over(make_plan(experiment('rw = "write"')))
    dear = make_plan(experiment('rw = "write"', design="conditioning = 3"))
    assert "4 times the trials: each variant runs 3 times uncounted" in carry_over(dear)
    assert (dear.per_block, dear.schedule.rounds[0][0].order[:4]) == (8, dear.schedule.rounds[0][0].order[:1] * 4)
    assert "ignored" in carry_over(make_plan(experiment('rw = "write"', design='carry-over = "none"')))
    assert "although" in carry_over(make_plan(experiment('rw = "write"', design='carry-over = "tested"')))
    assert carry_over(make_plan(experiment())) == ""


def test_where_every_trial_has_a_boot_of_its_own_there_are_no_superblocks() -> None:
    text = 'machine = "vm"\n[workload]\nrw = "write"\n[variant.a]\nkernel = "6.1"\n[variant.b]\nkernel = "6.2"\n'
    plan = make_plan(parse(text))
    assert plan.rules.carry == "tested"
    assert "boot of its own" in carry_over(plan)
    with pytest.raises(RequestError, match="boot of its own"):
        make_plan(parse(f'{text}[design]\ncarry-over = "superblocks"'))


def test_a_budget_that_never_excludes_stalls_is_said_with_the_way_out() -> None:
    (found,) = (one for one in warnings(make_plan(experiment(design="blocks = 16"))) if one.rule == "plan.stalls")
    assert "it takes 29 trials per variant, and the plan pays for 16" in found.explanation
    assert "--blocks 29" in found.remedy
    assert "--stalls 20%" in found.remedy
    assert "plan.stalls" not in rules(make_plan(experiment(design='blocks = 16\nstalls = "20%"')))
    assert "plan.stalls" not in rules(make_plan(experiment(design="blocks = 29")))


def test_a_plan_of_schema_1_is_read_with_mirrored_orders_and_goes_on_with_them(tmp_path: Path) -> None:
    plan = make_plan(experiment(design="seed = 42\nblocks = 12"))
    schedule = make_schedule(plan.experiment, 42, 12, order="mirrored")
    old = msgspec.to_builtins(msgspec.structs.replace(plan, schema=1, schedule=schedule))
    for name in ("order", "stalls", "carry"):
        del old["rules"][name]
    folder = Folder.begin(tmp_path / "folder", "text", old)
    found = read_plan(folder)
    assert found.rules.order == "mirrored"
    assert found.scheduled(20).rounds[:12] == schedule.rounds
    assert read_plan(Folder.begin(tmp_path / "new", "text", plan)).rules.order == "independent"


@pytest.mark.parametrize(
    ("workload", "judged"),
    [
        ('rw = "randwrite"\nfsync = 1', True),
        ('rw = "write"\nsync_file_range = "write:16"', True),
        ('rw = "randwrite"\nfsync = [0, 1]', True),
        ('rw = "randwrite"\nend_fsync = 1', False),
        ('rw = "randread"\nfsync = 1', False),
    ],
)
def test_the_latency_of_syncs_is_judged_where_the_load_makes_any(workload: str, judged: bool) -> None:
    metrics = [metric.name for metric in make_plan(experiment(workload)).rules.metrics]
    assert [name for name in metrics if name.startswith("sync.")] == (
        ["sync.lat.mean", "sync.lat.p99"] if judged else []
    )


def test_a_short_night_of_a_history_is_no_failure_and_a_short_run_is_said_to_reach_nothing() -> None:
    """Four blocks cannot give a verdict; against a reference they are meant as a point among hundreds."""
    four = "blocks = 4"
    assert rules(make_plan(experiment(design=four))) == ["verdict.too-few-blocks", "plan.stalls"]
    night = make_plan(experiment(design=four, variants='[variant.old]\nrole = "reference"\n[variant.tonight]\n'))
    (note,) = warnings(night)
    assert note.severity == "note"
    assert "too few for a verdict of this run alone" in note.explanation
    reached = experiment(design="blocks = 40", variants='[variant.old]\nrole = "reference"\n[variant.tonight]\n')
    assert rules(make_plan(reached)) == []
