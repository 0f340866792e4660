"""An experiment of another machine on this one: nothing is dropped, and what is changed is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from carried import QUESTION, carried

from iodelta.bundle.packed import Packed
from iodelta.bundle.packing import pack
from iodelta.bundle.planning import Mapped, maps, onto, prepare, unplaceable, with_one_look
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, parse
from iodelta.experiment.written import rendered
from iodelta.lab.plan import make_plan
from iodelta.machine import LocalMachine

HERE = {"cpus": "0-3", "numa": "0"}
THERE = """# seed: cross-CPU frees
question = "Is the new slab slower over 32 CPUs?"
[workload]
rw = "randread"
bs = "4k"
cpus_allowed = ["0-31", "0"]
[variant.wide]
cpus = "0-31"
[variant.narrow]
cpus = "0,12,24"
[variant.node]
numa = "0"
"""


def mapped(*given: str, text: str = THERE, target: str = "/dev/nvme9n1") -> Mapped:
    return onto(parse(text), text, target, "", maps(given), HERE)


def test_every_set_that_is_not_here_is_named() -> None:
    with pytest.raises(RequestError) as caught:
        mapped()
    assert "cpus 0-31; cpus 0,12,24" in str(caught.value)
    assert "cpus 0-3, numa 0" in str(caught.value)
    assert "--map" in caught.value.remedy


def test_a_set_is_mapped_in_knobs_and_options_alike_and_said_once() -> None:
    found = mapped("cpus=0-31:0-3", "cpus=0,12,24:0-1")
    assert [variant.knobs for variant in found.experiment.variants] == [{"cpus": "0-3"}, {"cpus": "0-1"}, {"numa": "0"}]
    assert [cell.option("cpus_allowed") for cell in found.experiment.cells] == ["0-3", "0"]
    assert [note for note in found.notes if note.startswith("cpus")] == [
        "cpus: 0-31 there, 0-3 here",
        "cpus: 0,12,24 there, 0-1 here",
    ]
    assert parse(found.text).variants == found.experiment.variants


def test_one_set_for_all_that_are_not_here_must_not_make_variants_the_same() -> None:
    with pytest.raises(RequestError, match="variants wide and narrow become the same"):
        mapped("cpus=0-3")
    text = THERE.replace('cpus = "0,12,24"', 'cpus = "0-1"')
    assert [variant.knobs.get("cpus") for variant in mapped("cpus=0-3", text=text).experiment.variants] == [
        *("0-3", "0-1", None)
    ]


def test_a_set_that_is_here_stays() -> None:
    text = THERE.replace("0-31", "0-3").replace("0,12,24", "1")
    assert [note for note in mapped(text=text).notes if "cpus" in note] == []


def test_what_cannot_be_placed_is_listed_by_variant() -> None:
    assert unplaceable(parse(THERE), maps(()), HERE) == {
        "wide": "this machine has no cpus 0-31",
        "narrow": "this machine has no cpus 0,12,24",
    }


@pytest.mark.parametrize("text", ["cpus", "cpus=", "cpus=a", "cpus=0-1:", "gpus=0", "cpus=x:0", "cpus=0:1:2 "])
def test_a_mapping_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="is not a valid mapping"):
        maps((text,))


def test_memory_policies_keep_their_word() -> None:
    text = THERE.replace('numa = "0"', '"fio.numa_mem_policy" = "bind:4-7"')
    found = mapped("cpus=0-31:0-3", "cpus=0,12,24:0", "numa=4-7:0", text=text)
    assert found.experiment.variants[2].options == (("numa_mem_policy", "bind:0"),)


def test_the_file_of_a_reproduction_says_what_runs() -> None:
    """Also where the original one does not: a job file that lies elsewhere."""
    found = mapped("cpus=0-31:0-3", "cpus=0,12,24:0-1")
    again = parse(found.text)
    assert again.question == found.experiment.question
    assert (again.variants, again.design) == (found.experiment.variants, found.experiment.design)
    assert [cell.options for cell in again.cells] == [cell.options for cell in found.experiment.cells]
    assert [cell.name for cell in found.experiment.cells] == [cell.name for cell in parse(THERE).cells]
    elsewhere = THERE.replace('rw = "randread"', 'job_file = "/etc/passwd"')
    other = onto(parse(THERE), elsewhere, "/dev/x", "", maps(("cpus=0-31:0-3", "cpus=0,12,24:0")), HERE)
    assert "passwd" not in other.text
    assert [cell.options for cell in parse(other.text).cells] == [cell.options for cell in other.experiment.cells]


@pytest.mark.parametrize(
    "text",
    [
        THERE,
        QUESTION.format(path="/dev/x", blocks=3),
        THERE + '[condition.idle]\n[condition.busy]\nbackground = {rw = "read"}\n[design]\nplacebo = true\nseed = 3\n',
        '[workload.a]\nrw = "read"\n[workload.b]\nrw = "write"\nbs = "1m"\n[variant.x]\n[variant.y]\n',
    ],
)
def test_an_experiment_written_out_is_the_same_experiment(text: str) -> None:
    given = parse(text)
    again = parse(rendered(given))

    def bare(one: Experiment) -> object:
        return one.variants, one.conditions, one.design, one.margin, [cell.options for cell in one.cells]

    assert bare(again) == bare(given)


def test_the_target_must_be_named_unless_it_was_a_scratch_file(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="only you know which device matches it here") as caught:
        prepare(bundle(tmp_path), LocalMachine())
    assert "1000204886016 bytes" in str(caught.value)
    assert "--target" in caught.value.remedy


def test_the_path_of_there_is_never_used_here(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    text = QUESTION.replace('"cgroup.io_max" = "riops=5000"', "").replace(
        '"cgroup.io_max" = "riops=4000"', "cpus = '0'"
    )
    one = bundle(tmp_path, text=text.format(path="/etc/hostname", blocks=3))
    found = prepare(one, LocalMachine(), target=str(tmp_path / "file"))
    assert found.experiment.target.path == str(tmp_path / "file")
    assert "/etc/hostname" not in found.text
    assert found.notes[0] == f"target: /etc/hostname there, {tmp_path}/file here"


def test_a_variant_that_cannot_be_set_here_is_refused_or_left_out_aloud(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    text = QUESTION.format(path="/dev/x", blocks=3).replace('"cgroup.io_max"', '"fio.iodepth_low"')
    text = text.replace("riops=5000", "1").replace("riops=4000", "2")
    text = text.replace("[design]", '[variant.mad]\n"block.scheduler" = "no-such"\n[design]')
    one = bundle(tmp_path, text=text)
    with pytest.raises(RequestError, match=r"mad: block\.scheduler"):
        prepare(one, LocalMachine(), target=str(tmp_path / "file"))
    found = prepare(one, LocalMachine(), target=str(tmp_path / "file"), leave_out=True)
    assert [variant.name for variant in found.experiment.variants] == ["fast", "slow"]
    assert any(note.startswith("left out: mad: block.scheduler") for note in found.notes)
    assert "mad" not in found.text


def test_a_reproduction_has_one_look_at_the_blocks_that_its_size_needs() -> None:
    plan = make_plan(parse(QUESTION.format(path="/dev/x", blocks=60)))
    assert with_one_look(plan, 0).rules.looks == (12,)
    assert with_one_look(plan, 33).rules.looks == (33,)
    assert with_one_look(plan, 1000).rules.looks == (60,)


def bundle(tmp_path: Path, *, text: str = "", end: str | None = "complete", name: str = "x") -> Packed:
    place = tmp_path / f"{name}.iodelta.tar.zst"
    place.write_bytes(pack(carried(tmp_path / name, text=text, blocks=1, end=end), machine={}).data)
    return Packed(place)
