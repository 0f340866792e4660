"""Somebody's bundle on many hosts: on how many it is reproduced, why not on the others, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import click
import msgspec
import pytest
from carried import BY_ID, carried
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from test_hosts_together import asked, machine, measure

from iodelta.bundle.packed import Packed
from iodelta.bundle.packing import pack
from iodelta.cli.commands import Asked
from iodelta.cli.main import cli
from iodelta.cli.reproduce import command, measured_again
from iodelta.errors import IodeltaError, RequestError
from iodelta.fleet.folder import BUNDLE, FleetFolder
from iodelta.fleet.reproducing import Wishes, files_of, goes_on, wishes_of
from iodelta.lab.folder import EXPERIMENT, Ended, Folder
from iodelta.report.documents import schema
from iodelta.report.formats.charts.changes import charts_of_fleet
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import rendered
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.fleet import of_fleet_reproduction
from iodelta.study.fleet_host import Left
from iodelta.study.fleet_reproduction import FleetReproduced, fleet_reproduced
from iodelta.study.reproduction import own_side

LOSS = -0.2


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that lost a fifth; three hosts that lose it too, one that loses nothing, one that is half done."""
    place = tmp_path_factory.mktemp("reproduced")
    theirs = carried(place / "theirs", LOSS, text=asked(), seed=20)
    (place / "theirs.iodelta.tar.zst").write_bytes(pack(theirs, machine={}).data)
    measure(place, *"abc")
    carried(place / "nothing", 0.0, text=asked(), seed=9, environment=machine("nothing"))
    half = carried(place / "half", LOSS, text=asked(), seed=10, environment=machine("half"))
    with half.writing():
        half.append(Ended(0.0, "interrupted"))
    return place


def of(place: Path, *names: str, lost: bool = False) -> FleetReproduced:
    there = own_side(Packed(place / "theirs.iodelta.tar.zst"))
    left = {"gone": Left("gone", "lost", "ssh:gone: cannot connect")} if lost else {}
    return fleet_reproduced(there, {name: Folder.open(place / name) for name in names}, left, ["iodelta again"])


def test_hosts_are_counted_by_what_each_makes_of_the_original(place: Path) -> None:
    found = of(place, "a", "b", "c")
    assert [one.word for one in found.hosts] == ["reproduced"] * 3
    assert found.exit_code == 0
    assert found.fleet.rows[0].word == "regression on these hosts"
    mixed = of(place, "a", "b", "c", "nothing", "half", lost=True)
    words = {one.host: one.word for one in mixed.hosts}
    good = dict.fromkeys(("a", "b", "c"), "reproduced")
    assert words == {**good, "nothing": "not reproduced", "half": "not measured", "gone": "not measured"}
    assert mixed.exit_code == 1
    assert of(place, "a", "b", "c", lost=True).exit_code == 4
    why = {one.host: one.why for one in mixed.hosts if one.why}
    assert why == {
        "half": "its experiment has not ended: interrupted",
        "gone": "it was not measured: lost: ssh:gone: cannot connect",
    }


def test_every_format_has_the_count_every_host_its_word_and_the_joint_word(place: Path) -> None:
    found = of(place, "a", "b", "c", "nothing", lost=True)
    console = "\n".join(line.plain for line in lines(of_fleet_reproduction(found), whole=True))
    texts = [rendered(found, name).decode() for name in ("mail", "markdown")]
    texts += [console, html_of(found, charts_of_fleet(found.fleet)).decode()]
    for text in texts:
        flat = " ".join(text.replace("\\", "").split())
        for said in (
            "Reproduced on 3 of 5 hosts",
            "not reproduced on nothing",
            "not measured on gone",
            "depends on the machine",
            "iodelta again",
            "cannot connect",
        ):
            assert said in flat, said
    rows = list(csv.DictReader(io.StringIO(rendered(found, "csv").decode())))
    assert [(row["host"], row["word"]) for row in rows if row["list"] == "hosts"] == [
        *((name, "reproduced") for name in "abc"),
        *(("nothing", "not reproduced"), ("gone", "not measured")),
    ]
    assert [row["word"] for row in rows if row["list"] == "fleet.rows"] == ["depends on the machine"]
    assert float(rows[0]["here.value"]) == pytest.approx(LOSS, abs=0.02)
    document = json.loads(rendered(found, "json"))
    Draft202012Validator(schema("iodelta.fleet-reproduction/1")).validate(document)


def test_names_of_hosts_and_reasons_are_letters(place: Path) -> None:
    evil = "\x1b[2J<script>alert(1)</script>"
    found = of(place, "a", "b", "c", lost=True)
    hosts = tuple(msgspec.structs.replace(one, host=evil, why=evil, notes=(evil,)) for one in found.hosts)
    odd = msgspec.structs.replace(found, hosts=hosts)
    for name in ("mail", "markdown", "csv", "json"):
        assert "\x1b" not in rendered(odd, name).decode()
    assert "<script>alert" not in html_of(odd, ()).decode()
    assert "\x1b" not in "\n".join(line.plain for line in lines(of_fleet_reproduction(odd), whole=True))


def test_the_question_of_a_bundle_goes_on_only_as_it_was_asked(place: Path, tmp_path: Path) -> None:
    bundle, wishes = Packed(place / "theirs.iodelta.tar.zst"), Wishes("class:disk", allow_commands=True)
    files = files_of(bundle, wishes, 'machine = "ssh:a"\n' + asked().replace(BY_ID, "/dev/other"))
    assert b"class:disk" in files[EXPERIMENT]
    assert b"ssh:a" not in files[EXPERIMENT]
    folder = FleetFolder(tmp_path / "fleet")
    assert not goes_on(folder, bundle, wishes)
    folder.make()
    with folder.journal.held():
        folder.fix(files)
    assert wishes_of(folder) == wishes
    assert goes_on(folder, bundle, wishes)
    for other in (Wishes("class:disk"), Wishes("class:nvme", allow_commands=True)):
        with pytest.raises(RequestError, match="another question"):
            goes_on(folder, bundle, other)
    assert folder.experiment().target.path == "class:disk"
    (folder.path / BUNDLE).write_bytes(b"another one")
    with pytest.raises(IodeltaError, match="changed since the fleet began"):
        folder.experiment()


ON = ("--hosts", "all", "--target", "class:disk")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "theirs.iodelta.tar.zst", "--hosts", "all"), "--hosts cannot be given with --against"),
        ((*ON, "--leave-out"), "--leave-out cannot be given with --hosts"),
        ((*ON, "--map", "cpus=0-1"), "each host may lack something else"),
        ((*ON, "--destroy", "/dev/sdb"), "not a device of one of the chosen hosts"),
        (("--hosts", "nobody"), "no host or tag is called 'nobody'"),
        (("--in-use", "skip"), "this is about the hosts of a fleet"),
        (("--log", "l.jsonl"), "a log without a history"),
    ],
)
def test_what_cannot_be_asked_together_is_refused_in_a_sentence_before_anything_else(
    words: tuple[str, ...], said: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    (tmp_path / "fleet.toml").write_text('[host.a]\nssh = "nowhere.invalid"\ntargets = { disk = "/dev/sdb" }\n')
    (tmp_path / "theirs.iodelta.tar.zst").write_bytes((place / "theirs.iodelta.tar.zst").read_bytes())
    before = sorted(one.name for one in tmp_path.iterdir())
    done = CliRunner().invoke(cli, ("reproduce", "theirs.iodelta.tar.zst", *words))
    assert isinstance(done.exception, RequestError), done.output
    assert said in str(done.exception)
    assert sorted(one.name for one in tmp_path.iterdir()) == before


@pytest.mark.parametrize("words", [("--target", "disk.img"), ON, (*ON, "--inventory", "ours.toml")])
def test_the_command_that_measures_it_again_is_one_that_can_be_given(words: tuple[str, ...]) -> None:
    """Without hosts it named their inventory, which has a default, and was refused for that."""
    with command.make_context("reproduce", ["theirs.iodelta.tar.zst", *words], click.Context(cli)) as context:
        again = measured_again(Asked(**context.params)).split()
    assert again[:3] == ["iodelta", "reproduce", "theirs.iodelta.tar.zst"]
    given, repeated = (dict(zip(each[::2], each[1::2], strict=True)) for each in (words, again[3:]))
    assert given.items() <= repeated.items()
    assert ("--inventory" in again) == ("--hosts" in again)
