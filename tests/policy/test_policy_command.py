"""``iodelta policy`` as somebody meets it who owns a mirror."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from iodelta.errors import IodeltaError, RequestError
from iodelta.experiment import parse
from iodelta.experiment.shorthand import shorthand
from iodelta.lab.turns import alone
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors import calibrate
from iodelta.parts.mirrors.command import command
from iodelta.parts.mirrors.mirror import MirrorRun, Request, run
from iodelta.probe.topology import resolve

from .members import MIB, files, loops


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder whose files answer at once, whatever else the disk is busy with."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


PAIR = "simulate --member ssd --member ssd"


def said(*words: str) -> str:
    done: Result = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def answer(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(*words, "--format", "json"))
    return found


def refusal(*words: str) -> str:
    with pytest.raises(IodeltaError) as caught:
        CliRunner().invoke(command, list(words), catch_exceptions=False)
    return str(caught.value)


def test_the_list_names_rule_source_and_ties_of_every_policy() -> None:
    found = answer("list")["policies"]
    assert {"pid", "round-robin", "queue", "md-raid1", "zfs", "historical-service-time"} <= {
        one["name"] for one in found
    }
    assert all(one["rule"] and one["source"] and one["ties"] for one in found)
    assert "min_contig=256k" in said("list")


def test_an_explanation_tells_the_numbers_of_this_array_and_what_to_look_at() -> None:
    text = said("explain", "round-robin", "pid", "--rate", "900", "--rate", "300", "--iodepth", "32")
    assert "600/s" in text
    assert "900/s with 50 %" in text
    assert text.count("Look:") == 3
    found = answer("explain", "latency", "--iops", "300")
    assert found["policies"][0]["explanations"][0]["numbers"]["seconds"] == pytest.approx(33.3, abs=0.1)


def test_a_simulation_shows_the_spread_over_worlds_and_says_that_its_members_are_models() -> None:
    words = ("simulate", "--member", "hdd:7200", "--member", "ssd", "--policy", "queue", "--iodepth", "1,32")
    text = said(*words, "--seconds", "5")
    assert "not measured" in text
    found = answer(*words, "--seconds", "5")
    assert found["closure"] is None
    assert [(one["policy"], one["iodepth"]) for one in found["predictions"]] == [("queue", 1), ("queue", 32)]
    assert all(one["least"] <= one["iops"] <= one["most"] for one in found["predictions"])
    assert all(sum(one["shares"]) == pytest.approx(1) for one in found["predictions"])


def test_an_open_load_says_what_arrives_and_which_policy_does_not_keep_up() -> None:
    pair = ("simulate", "--member", "hdd:7200", "--member", "hdd:7200", "--layout", "mirror", "--policy", "pid")
    words = (*pair, "--policy", "queue", "--rate", "60,400", "--seconds", "60", "--worlds", "2")
    found = answer(*words)["predictions"]
    assert [(one["rate"], one["policy"], one["iodepth"]) for one in found] == [
        (60, "pid", 0),
        (60, "queue", 0),
        (400, "pid", 0),
        (400, "queue", 0),
    ]
    assert [one["overloaded"] for one in found] == [False, False, True, False]
    assert found[0]["mean_ns"] > found[1]["mean_ns"], "one queue of two"
    text = said(*words)
    assert "arrive/s" in text
    assert text.count("does not keep up") == 1
    assert "pid does not keep up with 400 requests a second" in text


@pytest.mark.parametrize("layout", ["mirror", "raid1", "raid1c3", "raid1c4", "raid10"])
def test_every_layout_can_be_simulated_with_mixed_load_cache_and_defragmentation(layout: str) -> None:
    members = [word for _ in range(6) for word in ("--member", "hdd:5400:90")]
    options = ["--rw", "randrw", "--bs", "64k", "--jobs", "2", "--load", "--cache", "members", "--worlds", "1"]
    found = answer("simulate", *members, "--layout", layout, *options, "--seconds", "2", "--policy", "queue")
    assert all(one["iops"] > 0 for one in found["predictions"])


def test_calibrated_members_are_predicted_with_their_errors_beside_it(memory: Path) -> None:
    members, store = files(memory, 2, mib=4), memory / "members.json"
    made = answer("calibrate", *members, "--output", str(store), "--seconds", "0.1")
    assert [len(one["iops"]) for one in made["members"]] == [7, 7]
    assert all(0 <= one["closure"] < 1 for one in made["members"])
    found = answer("simulate", "--calibration", str(store), "--policy", "queue", "--seconds", "0.2", "--worlds", "1")
    assert found["closure"] == max(one["closure"] for one in made["members"])
    assert {one["policy"] for one in found["held_out"]} == {"queue", "round-robin"}
    text = said("simulate", "--calibration", str(store), "--policy", "queue", "--seconds", "0.2", "--worlds", "1")
    assert "Closure:" in text
    assert text.count("Hold-out:") == 2
    explained = answer("explain", "queue", "--calibration", str(store), "--iodepth", "5", "--jobs", "2")["array"]
    assert explained["rates"] == pytest.approx([one["iops"][3] for one in made["members"]], rel=0.01), "depth 8 of 10"
    assert explained["copies"] == 2
    large = ("explain", "queue", "--calibration", str(store), "--bs", "1m")
    assert "no reads like those of 1048576 bytes" in refusal(*large), "the members are too small for them"


def test_a_calibration_writes_only_to_members_that_are_named_and_then_predicts_a_mix(memory: Path) -> None:
    members, store = files(memory, 2, mib=1), str(memory / "members.json")
    before = [Path(member).read_bytes() for member in members]
    words = ("calibrate", *members, "--output", store, "--seconds", "0.1")
    assert "member1" in refusal(*words, "--destroy", members[0])
    assert [Path(member).read_bytes() for member in members] == before
    found = answer(*words, "--destroy", members[0], "--destroy", members[1])
    for one in found["members"]:
        for curve in ("write", "read_beside", "write_beside"):
            assert len(one["member"]["empirical"][curve]["depths"]) == 3
    assert [one["read_percent"] for one in found["held_out"]] == [100, 100, 70]


@pytest.mark.parametrize("starved", [1, 4])
def test_a_run_in_which_nothing_comes_back_is_made_again_twice_as_long(
    memory: Path, monkeypatch: pytest.MonkeyPatch, starved: int
) -> None:
    """The first reads find no CPU, as on a machine that tests keep busy."""
    asked: list[float] = []

    def late(request: Request, *, destroy: Sequence[str] = ()) -> MirrorRun:
        done = run(request, destroy=destroy)
        asked.append(request.seconds)
        if len(asked) > starved:
            return done
        return msgspec.structs.replace(done, read=msgspec.structs.replace(done.read, ios=0))

    monkeypatch.setattr(calibrate, "run", late)
    answer("calibrate", *files(memory, 2, mib=1), "--output", str(memory / "members.json"), "--seconds", "0.1")
    firsts = asked[: starved + 1]
    assert firsts == [0.1 * 2**attempt for attempt in range(starved + 1)]
    assert asked[starved + 1] == 0.1, "the next one is as short as it was asked"


def test_a_look_at_real_members_shows_shares_and_in_flight_and_says_it_is_no_verdict(tmp_path: Path) -> None:
    members = files(tmp_path, 3, mib=2)
    words = ("mirror", *members, "--policy", "queue", "--policy", "devid:2", "--iodepth", "8")
    text = said(*words, "--seconds", "0.2", "--ramp", "0")
    assert "not a verdict" in text
    assert "0 100 0 %" in text
    runs = answer(*words, "--seconds", "0.2", "--ramp", "0")["runs"]
    assert [run["policy"] for run in runs] == ["queue", "devid:2"]
    assert all(sum(sample) == 8 for run in runs for sample in run["trace"])
    assert sum(runs[0]["bins"].values()) == sum(member["reads"] for member in runs[0]["members"])


def test_the_experiment_it_offers_is_one_that_iodelta_run_takes(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=1)
    line = said(
        "mirror", *members, "--policy", "queue:ties=rotate", "--policy", "pid", "--experiment", "--iodepth", "1,4"
    )
    words = shlex.split(line)
    variants = [words[at + 1] for at, word in enumerate(words) if word == "--variant"]
    text = shorthand(variants=variants, fio=words[words.index("--") + 1 :], target={"path": members[0]})
    experiment = parse(text, "command line")
    assert [variant.name for variant in experiment.variants] == ["queue-ties-rotate", "pid"]
    assert experiment.variants[0].knobs["mirror.read_policy"] == f"queue:ties=rotate {members[0]} {members[1]}"
    assert len(experiment.cells) == 2


def test_a_mixed_workload_needs_leave_for_each_member_and_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=1)
    before = [Path(member).read_bytes() for member in members]
    words = ("mirror", *members, "--policy", "queue", "--rw", "randrw", "--seconds", "0.2")
    assert "--destroy" in refusal(*words)
    assert "member1" in refusal(*words, "--destroy", members[0])
    assert [Path(member).read_bytes() for member in members] == before
    assert "queue" in said(*words, "--destroy", members[0], "--destroy", members[1])


@pytest.mark.root
def test_a_member_that_only_seems_to_be_empty_is_not_written_to_unless_it_is_named(tmp_path: Path) -> None:
    with loops(tmp_path, 2, mib=2) as members:  # with data, and without a signature
        before = [Path(member).read_bytes() for member in members]
        words = ("mirror", *members, "--policy", "queue", "--rw", "randrw", "--iodepth", "1", "--seconds", "0.1")
        for destroy in ((), ("--destroy", members[0])):
            told = refusal(*words, *destroy)
            assert members[len(destroy) // 2] in told
            assert "was not made by iodelta (not empty: " in told
            assert "--destroy" in told
        store = ("--output", str(tmp_path / "store"), "--seconds", "0.1")
        assert members[1] in refusal("calibrate", *members, *store, "--destroy", members[0])
        assert [Path(member).read_bytes() for member in members] == before
        assert "queue" in said(*words, "--destroy", members[0], "--destroy", members[1])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("explain queue --rate -1", "above 0"),
        ("explain queue --rate 1 --calibration /nowhere", "either given or calibrated"),
        ("simulate --policy queue", "either modelled or calibrated"),
        ("simulate --member tape --policy queue", "not a member"),
        ("simulate --member hdd:7200:170:many", "not a valid size"),
        ("simulate --member hdd:10000", "no model of 10000 rpm"),
        (f"{PAIR} --layout mirror --size 9t", "more than the smallest"),
        (f"{PAIR} --rate fast", "not a list of rates"),
        (f"{PAIR} --rate 0", "above 0"),
        (f"{PAIR} --size 0", "a size is above 0"),
        (f"{PAIR} --rate 9 --iodepth 4", "has no depth"),
        (f"{PAIR} --iodepth 0", "not a list of depths"),
        ("simulate --calibration /nowhere", "not a calibration"),
        ("mirror /nowhere", "nothing at this path"),
        ("mirror /nowhere --policy quene", "no read policy"),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_wrong(words: str, told: str) -> None:
    assert told in refusal(*words.split())


def test_a_calibration_of_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"members": 3}')
    assert "not a calibration" in refusal("simulate", "--calibration", str(other))


def test_members_that_are_no_mirror_are_named(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=2)
    with open(members[1], "r+b") as file:
        file.seek(MIB)
        file.write(b"other")
    assert "mirror.content" in said("mirror", *members, "--policy", "queue", "--seconds", "0.1", "--iodepth", "1")
    with pytest.raises(RequestError, match="is the same"):
        CliRunner().invoke(command, ["mirror", members[0], members[0]], catch_exceptions=False)


def test_members_that_another_run_measures_are_left_to_it(tmp_path: Path) -> None:
    members = files(tmp_path, 2)
    output = str(tmp_path / "members.json")
    with alone(LocalMachine(), [resolve(LocalMachine(), members[1])], Path("/runs/first")):
        for words in (("mirror", *members, "--seconds", "0.1"), ("calibrate", *members, "--output", output)):
            message = refusal(*words)
            assert "/runs/first: this run is measuring on" in message
            assert "--wait" in message


def test_real_members_have_no_open_load_and_it_says_what_predicts_one(memory: Path) -> None:
    text = refusal("mirror", "--rate", "100", *map(str, files(memory, 2)))
    assert "cannot submit at a rate of its own" in text
    assert "policy simulate --rate" in text
    assert "--rate" not in said("mirror", "--help")


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("explain", "round-robin", "pid", "--rate", "900", "--rate", "300"),
        ("simulate", "--member", "hdd:7200", "--member", "ssd", "--policy", "queue", "--worlds", "2", "--seconds", "1"),
    ],
    ids=lambda words: str(words[0]),
)
def test_every_format_names_every_policy_and_how_to_do_it_again(words: tuple[str, ...]) -> None:
    asked: list[str] = [word for word in ("pid", "queue", "round-robin") if word in words] or ["pid", "queue", "zfs"]
    for format_ in ("console", "mail", "markdown", "html", "csv", "json"):
        text = " ".join(said(*words, "--format", format_).replace("\\\n", " ").replace("\\", "").split())
        assert all(policy in text for policy in asked), format_
        if words[0] != "list":
            assert f"iodelta {words[0]} " in text, format_  # the group is called without `policy` here
            assert format_ in ("csv", "json") or "System" in text, format_
            assert not re.search(r"--(rate|seconds) [0-9]+[.]0", text), "numbers as they were typed"
