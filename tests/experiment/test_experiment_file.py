"""The experiment file: what it means, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.errors import RequestError
from iodelta.experiment import Experiment, load, parse
from iodelta.study.values import cell_places

VARIANTS = """
[variant.none]
"block.scheduler" = "none"
[variant.mq-deadline]
"block.scheduler" = "mq-deadline"
"""


def experiment(workload: str, rest: str = VARIANTS) -> Experiment:
    return parse(f"{workload}\n{rest}")


def refusal(text: str) -> str:
    with pytest.raises(RequestError) as raised:
        parse(text)
    return str(raised.value)


def test_the_designs_example_is_an_experiment_of_sixteen_cells() -> None:
    found = parse(
        """
question = "Does mq-deadline cost random reads on this array?"
baseline = "none"
margin = "1%"
[target]
path = "/dev/disk/by-id/x"
size = "100g"
[workload]
rw = "randread"
bs = "4k"
ioengine = "libaio"
direct = 1
iodepth = [1, 2, 4, 8, 16, 32, 64, 128]
[condition.idle]
[condition.defrag]
background = "btrfs filesystem defrag -r {target.mount}"
[design]
trial = "5s"
ramp = "1s"
budget = "30m"
"""
        + VARIANTS
    )
    assert len(found.cells) == 16
    assert found.cells[0].name == "idle: iodepth=1"
    assert found.cells[0].options == (
        ("rw", "randread"),
        ("bs", "4k"),
        ("ioengine", "libaio"),
        ("direct", "1"),
        ("iodepth", "1"),
    )
    assert found.margin == 0.01
    assert found.design.budget == 1800
    assert found.condition("defrag").background == ("btrfs", "filesystem", "defrag", "-r", "{target.mount}")
    assert found.variant("mq-deadline").knobs == {"block.scheduler": "mq-deadline"}


def test_every_combination_of_listed_values_is_a_cell() -> None:
    found = experiment('[workload]\nrw = ["randread", "read"]\nbs = ["4k", "64k", "1m"]\niodepth = 8')
    assert [cell.name for cell in found.cells] == [
        f"rw={rw} bs={bs}" for rw in ("randread", "read") for bs in ("4k", "64k", "1m")
    ]


@pytest.mark.parametrize(
    ("options", "varied", "name"),
    [
        ("bs = '4k'", "", "randread 4k"),
        ("bs = '4k'", "fio.iodepth", "randread 4k"),
        ("bs = '4k'", "fio.bs", "randread"),
        ("bs = '4k'", "fio.blocksize", "randread"),
        ("bs = '4k'", "fio.bssplit", "randread"),
        ("bsrange = '4k-64k'", "", "randread bsrange=4k-64k"),
        ("bssplit = '4k/50:64k/50'", "", "randread bssplit=4k/50:64k/50"),
        ("bs = '4k'", "fio.rw", "4k"),
    ],
)
def test_a_cell_is_named_after_what_all_variants_do_in_it(options: str, varied: str, name: str) -> None:
    values = {"fio.iodepth": ("1", "32"), "fio.rw": ("read", "write"), "fio.bssplit": ("4k/100", "8k/100")}
    first, second = values.get(varied, ("8k", "64k"))
    settings = [f'"{varied}" = "{value}"' if varied else "" for value in (first, second)]
    found = experiment(f"[workload]\nrw = 'randread'\n{options}", "[variant.a]\n{}\n[variant.b]\n{}".format(*settings))
    assert [cell.name for cell in found.cells] == [name]
    (place,) = cell_places(found)
    assert place.panel == name, "charts say the same"
    assert place.depth == (None if varied == "fio.iodepth" else 1)


def test_named_workloads_inherit_what_they_do_not_say() -> None:
    found = experiment(
        '[workload]\nbs = "4k"\ndirect = 1\n[workload.reads]\nrw = "randread"\n[workload.big]\nbs = "1m"'
    )
    assert [(cell.name, cell.option("bs"), cell.option("direct")) for cell in found.cells] == [
        ("reads", "4k", "1"),
        ("big", "1m", "1"),
    ]


def test_a_fio_job_file_gives_a_cell_for_each_section(tmp_path: Path) -> None:
    (tmp_path / "x.fio").write_text(
        "[global]\nbs=4k\nruntime=7\n[one]\nrw=randread\nioengine=libaio\niodepth=32\n[two]\nstonewall\nrw=read\n"
    )
    (tmp_path / "x.toml").write_text('[workload]\njob_file = "x.fio"\n' + VARIANTS)
    found = load(tmp_path / "x.toml")
    assert [cell.name for cell in found.cells] == ["one", "two"]
    assert found.cells[0].options == (("bs", "4k"), ("rw", "randread"), ("ioengine", "libaio"), ("iodepth", "32"))
    assert found.design.trial == 7


def test_a_variant_may_set_options_of_fio() -> None:
    found = experiment(
        '[workload]\nrw = "randread"', '[variant.a]\n"fio.ioengine" = "libaio"\n[variant.b]\nfio.ioengine = "io_uring"'
    )
    assert found.variant("a").options == (("ioengine", "libaio"),)
    assert found.variant("b").options == (("ioengine", "io_uring"),)
    assert found.variant("b").knobs == {}


def test_a_placebo_is_the_baseline_under_another_name() -> None:
    found = experiment('[workload]\nrw = "read"', VARIANTS + "[design]\nplacebo = true")
    assert found.variant("placebo").knobs == found.variant("none").knobs
    assert len(found.variants) == 3


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('[workload]\nrw = "read"\n[variants.a]\n', "experiment.toml:3", "did you mean variant?"),
        (f'[workload]\nrw = "read"\n{VARIANTS}[design]\ntrail = "5s"', "experiment.toml:9", "did you mean trial?"),
        (f'[workload]\nrw = "read"\n{VARIANTS}[design]\ntrial = "5 parsecs"', "experiment.toml:9", "500ms, 5s"),
        (f'[workload]\nrw = "read"\n{VARIANTS}[design]\nblocks = "many"', "experiment.toml:9", "int"),
        (f'margin = "fish"\n[workload]\nrw = "read"\n{VARIANTS}', "experiment.toml:1", "1% or 0.01"),
        (f'baseline = "nil"\n[workload]\nrw = "read"\n{VARIANTS}', "experiment.toml:1", "none, mq-deadline"),
        (f'[workload]\nrw = "read"\noutput = "x"\n{VARIANTS}', "", ""),
        (f'[workload]\nrw = "read"\nunlink = 1\n{VARIANTS}', "experiment.toml:3", "remove unlink"),
        (f"[workload]\nrw = []\n{VARIANTS}", "experiment.toml:2", "empty list"),
        ('[workload]\nrw = "read"\n[variant.a]\n', "experiment.toml:3", "two variants"),
        (f'[workload]\nrw = "read"\n[variant."a b"]\n{VARIANTS}', "experiment.toml:3", "letters, digits"),
        ("question = [\n", "experiment.toml", "not valid TOML"),
        (f'[target]\nsize = "big"\n[workload]\nrw="read"\n{VARIANTS}', "experiment.toml:2", "4k, 512m"),
        (f'[workload]\nrw = "read"\nruntime = 9\n{VARIANTS}[design]\ntrial = "3s"', "experiment.toml:10", "differ"),
        (
            f'[workload]\nrw = "read"\n{VARIANTS}[design.weights]\nx = 2',
            "experiment.toml:9",
            "cells are 'read 4k'",
        ),
        (f'[workload]\nrw = "read"\n{VARIANTS}[design]\nweights = {{read = -1}}', "experiment.toml:9", "a million"),
        (f'[workload]\nrw = "read"\nsize = "50%"\n{VARIANTS}', "experiment.toml:3", "'50%' is not a valid size"),
        (VARIANTS, "experiment.toml", "no [workload]"),
    ],
)
def test_a_wrong_file_is_told_the_key_the_line_and_the_allowed_values(text: str, place: str, said: str) -> None:
    if not place:  # options that iodelta sets itself anyway, pasted along, are no mistake
        assert parse(text).cells[0].options == (("rw", "read"),)
        return
    message = refusal(text)
    assert message.startswith(f"{place}: ")
    assert said in message


def test_two_cells_of_one_name_are_refused() -> None:
    assert "listed twice" in refusal('[workload]\nrw = "read"\niodepth = [1, 1]' + VARIANTS)


def test_options_without_effect_are_named_with_the_reason_wherever_they_stand() -> None:
    found = experiment(
        '[workload]\nrw = "read"\nwrite_bw_log = "x"\nloops = 3\nsection = "one"\nlog_avg_msec = 500',
        VARIANTS + '[condition.busy]\nbackground = {rw = "read", write_lat_log = "y"}\n',
    )
    names = {name for cell in found.cells for name, _ in cell.options}
    assert names == {"rw"}
    said = "\n".join(found.notes)
    assert "no effect here: write_bw_log, log_avg_msec (iodelta reads fio's output and keeps all of it)" in said
    assert "no effect here: loops (every trial is time_based already)" in said
    assert "no effect here: section (iodelta orders the trials" in said
    assert "condition busy: no effect here: write_lat_log" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('rw = "randread"\nbs = "4k,64k"', "4k for reads, 64k for writes, and rw=randread makes only reads"),
        ('rw = "randwrite"\nblocksize = "4k,64k"', "rw=randwrite makes only writes"),
        ('rw = "randread"\nbs = "4k,8k,16k,32k"', "one for trims, and ignores what follows"),
        ('rw = "randrw"\nrate_iops = "1,2,3,4"', "ignores what follows"),
        ('bs = "4k,64k"', "rw=read makes only reads"),
        ('rw = ["randrw", "randread"]\nbs = "4k,64k"', "rw=randread makes only reads"),
    ],
)
def test_a_list_that_fio_takes_apart_by_direction_is_refused_where_it_would_measure_one(
    options: str, said: str
) -> None:
    message = refusal(f"[workload]\n{options}" + VARIANTS)
    assert said in message
    assert "for a cell each: --" in message


@pytest.mark.parametrize(
    "options",
    [
        'rw = "randrw"\nbs = "4k,64k"',
        'rw = "randread"\nbs = ["4k", "64k"]',
        'rw = "randread"\nbs = "4k,4k"',
        'rw = "randread"\nbs = "4k,"',
        'rw = "randwrite"\nrate_iops = ",500"',
    ],
)
def test_values_for_each_direction_stay_where_a_workload_has_them(options: str) -> None:
    assert experiment(f"[workload]\n{options}", VARIANTS).cells


def test_a_variants_list_for_directions_that_its_cells_lack_is_refused() -> None:
    variants = '\n[variant.a]\n"fio.bs" = "4k,64k"\n[variant.b]\n"fio.bs" = "8k"\n'
    assert "give one value" in refusal('[workload]\nrw = "randread"' + variants)


@pytest.mark.parametrize(
    "line", ['target = "/dev/x"', 'target = ["/dev/x"]', 'design = "5s"', "design = [5]", 'prepare = "yes"']
)
def test_a_value_in_place_of_a_table_is_answered_by_the_table(line: str) -> None:
    table = line.partition(" ")[0]
    text = f'{line}\n[workload]\nrw = "randread"\n[variant.a]\n[variant.b]\n"block.scheduler" = "none"\n'
    with pytest.raises(RequestError, match=rf"\[{table}\] is a table: \w+ = "):
        parse(text)
