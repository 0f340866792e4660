"""Hosts that measured one plan: their words, the word they give together, and what may not be averaged."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from carried import BY_ID, ENVIRONMENT, QUESTION, carried, forge
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from iodelta.bundle.packing import pack
from iodelta.cli.fleet import report as command
from iodelta.errors import RequestError
from iodelta.fleet.events import Moved
from iodelta.fleet.folder import FleetFolder
from iodelta.fleet.host import FleetHost
from iodelta.fleet.measured import hosts_in
from iodelta.lab.calibration import Calibration
from iodelta.lab.folder import Abandoned, Folder
from iodelta.report.documents import schema
from iodelta.report.formats.charts.changes import charts_of_fleet
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import rendered
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.checks import checks_of, code_of
from iodelta.report.stories.fleet import cheaper, of_fleet
from iodelta.study.fleet import Cheaper, FleetAccount, fleet_account
from iodelta.verdict.agreement import Agreed, JointWord, agreed

ALIKE = ("stor1", "stor2", "stor3", "stor4", "stor5")
LOSS = -0.2


def asked(blocks: int = 12, more: str = "") -> str:
    """The question of ``carried`` with one cell and one metric."""
    text = QUESTION.format(path=BY_ID, blocks=blocks).replace("iodepth = [1, 4]", "iodepth = 1")
    return text.replace('"read.iops", "read.lat.mean"', '"read.iops"') + more


def machine(name: str, *, cpu: str = "Testor 3000", disk: str = "Disk A", clock: str = "tsc") -> dict[str, Any]:
    """What is recorded of a host."""
    return {
        **ENVIRONMENT,
        "host": {"name": name, "machine_id": f"id of {name}"},
        "kernel": {**ENVIRONMENT["kernel"], "clocksource": clock},
        "cpu": {"model": cpu, "threads": "32"},
        "devices": [{"name": "nvme0n1", "model": disk}],
    }


def measure(place: Path, *names: str, text: str = "") -> None:
    """Hosts that lose a fifth."""
    for seed, name in enumerate(names, 1):
        carried(place / name, LOSS, text=text or asked(), seed=seed, environment=machine(name))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five hosts that lose a fifth, and one of another model that loses nothing."""
    place = tmp_path_factory.mktemp("fleet")
    measure(place, *ALIKE)
    odd = machine("odd", cpu="Testor 1", disk="Disk B", clock="hpet")
    carried(place / "odd", 0.0, text=asked(), seed=9, environment=odd)
    return place


def of(place: Path, *names: str) -> FleetAccount:
    found = fleet_account({name: Folder.open(place / name) for name in names}, [f"iodelta fleet report {place.name}"])
    code = code_of(checks_of(found), frozenset({"regression", "inconclusive"}))
    assert found.exit_code in (code, 4)
    return found


def text_of(found: FleetAccount) -> str:
    told = "\n".join(line.plain for line in lines(of_fleet(found), whole=True))
    return " ".join(told.split())


def test_hosts_that_all_lose_a_fifth_regress_everywhere(measured: Path) -> None:
    found = of(measured, *ALIKE)
    (row,) = found.rows
    assert row.word == "regression on these hosts"
    assert row.typical is not None
    assert row.total is not None
    for together in (row.typical, row.total):
        assert together.mean.value == pytest.approx(LOSS, abs=0.01)
        assert together.next.low is not None
        assert together.next.high is not None
        assert together.next.low < LOSS < together.next.high < 0
    assert found.exit_code == 1
    assert found.level == pytest.approx(1 - 0.05 / 2)
    assert "regression on these hosts" in text_of(found)


def test_a_host_of_another_model_without_the_loss_makes_it_depend_on_the_machine(measured: Path) -> None:
    found = of(measured, *ALIKE, "odd")
    (row,) = found.rows
    assert row.word == "depends on the machine"
    assert row.apart is not None
    assert row.apart[1] == "odd"
    groups = {(group.by, group.value): group for group in row.groups}
    assert groups["CPU", "Testor 1"].hosts == ("odd",)
    assert groups["disk", "Disk A"].change == pytest.approx(LOSS, abs=0.01)
    assert ("kernel", "6.18.1") not in groups, "all have one kernel"
    text = text_of(found)
    assert "kernel.clocksource: tsc | hpet" in text
    assert found.exit_code == 1, "some hosts regress for sure"
    assert row.surely_worse == ALIKE


@pytest.mark.parametrize("names", [ALIKE, (*ALIKE, "odd")])
def test_a_report_of_hosts_fits_one_screen_and_names_the_command_that_shows_the_rest(
    measured: Path, names: tuple[str, ...]
) -> None:
    story = of_fleet(of(measured, *names))
    screen = [line.plain for line in lines(story)]
    assert len(screen) <= 24, "\n".join(screen)
    assert "All details: `iodelta fleet report" in "\n".join(screen)
    assert "--verbose`" in "\n".join(screen)
    assert any(line.startswith("System") for line in screen)
    whole = [line.plain for line in lines(story, whole=True)]
    assert "Each host" in whole
    assert "Each host" not in screen


@pytest.mark.parametrize(("names", "code"), [(("stor1", "odd"), 1), (("odd",), 3)])
def test_fewer_than_three_hosts_speak_each_for_itself(measured: Path, names: tuple[str, ...], code: int) -> None:
    found = of(measured, *names)
    (row,) = found.rows
    assert row.word is None
    assert row.typical is None
    assert found.exit_code == code
    assert "no joint verdict (fewer than 3 hosts could be averaged)" in " ".join(text_of(found).split())


def test_hosts_without_a_change_are_equivalent_everywhere_only_once_stalls_are_excluded(tmp_path: Path) -> None:
    for seed in range(1, 5):
        environment = machine(f"h{seed}")
        carried(tmp_path / f"h{seed}", 0.0, text=asked(32), sd=0.003, blocks=32, seed=seed, environment=environment)
        carried(tmp_path / f"s{seed}", 0.0, text=asked(12), sd=0.003, blocks=12, seed=seed, environment=environment)
    long, short = of(tmp_path, "h1", "h2", "h3", "h4"), of(tmp_path, "s1", "s2", "s3", "s4")
    assert [row.word for row in long.rows] == ["equivalent on these hosts"]
    assert long.exit_code == 0
    assert [row.word for row in short.rows] == ["inconclusive"]
    assert "rare stalls" in short.rows[0].says
    assert short.exit_code == 3
    assert short.rows[0].settles is not None


def test_folders_of_another_plan_are_refused_with_what_differs(measured: Path, tmp_path: Path) -> None:
    carried(tmp_path / "other", LOSS, text=asked().replace("riops=4000", "riops=3000"))
    folders = {"stor1": Folder.open(measured / "stor1"), "other": Folder.open(tmp_path / "other")}
    with pytest.raises(RequestError, match="variants are not those of stor1"):
        fleet_account(folders)


@pytest.mark.parametrize(("alias", "why"), [(False, "copy"), (True, "same machine and disk as stor2")])
def test_a_copy_or_another_name_of_a_host_is_no_further_host(
    measured: Path, tmp_path: Path, alias: bool, why: str
) -> None:
    shutil.copytree(measured, tmp_path / "all")
    if alias:
        carried(tmp_path / "all/again", LOSS, text=asked(), seed=77, environment=machine("stor2"))
    else:
        shutil.copytree(measured / "stor1", tmp_path / "all/again")
    found = of(tmp_path / "all", "stor1", "stor2", "again")
    assert [one.name for one in found.drained] == ["again"]
    assert why in found.drained[0].drained
    assert found.rows[0].word is None, "two hosts are left"


def test_bundles_without_names_are_hosts_of_their_own(measured: Path, tmp_path: Path) -> None:
    for name in ALIKE[:3]:
        data = pack(Folder.open(measured / name), machine={}).data
        (tmp_path / f"{name}.iodelta.tar.zst").write_bytes(data)
    found = fleet_account(hosts_in(tuple(str(tmp_path / f"{name}.iodelta.tar.zst") for name in ALIKE[:3]))[0])
    assert [one.drained for one in found.hosts] == ["", "", ""]
    assert len(found.rows[0].averaged) == 3


def test_a_latency_that_grows_is_a_regression_with_a_positive_change(tmp_path: Path) -> None:
    text = asked().replace('"read.iops"', '"read.lat.mean"')
    measure(tmp_path, *"abcd", text=text)
    (row,) = of(tmp_path, "a", "b", "c", "d").rows
    assert row.word == "regression on these hosts"
    assert row.typical is not None
    assert row.total is not None
    for together in (row.typical, row.total):
        assert together.mean.value == pytest.approx(0.25, abs=0.01), "a fifth less in the same time takes 1/0.8 each"


def changed(folder: Path) -> None:
    """A raw file of another measurement in place of one."""
    files = sorted((folder / "raw").iterdir())
    files[0].write_bytes(files[2].read_bytes())


def alarmed(folder: Path) -> None:
    """A calibration in which a variant against itself was called a change as often as not."""
    calibration = Calibration("k", "randread", "nvme0n1", 1.0, 40, 20, ())
    Folder.open(folder).write_struct("calibration.json", [calibration])
    forge(Folder.open(folder))


def cut_off(folder: Path) -> None:
    """A plan that cannot be read."""
    (folder / "plan.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "why"), [(changed, "not what was measured"), (alarmed, "false alarms"), (cut_off, "plan")]
)
def test_a_host_that_cannot_be_trusted_is_shown_and_not_averaged(
    measured: Path, tmp_path: Path, damage: Any, why: str
) -> None:
    shutil.copytree(measured, tmp_path / "all")
    damage(tmp_path / "all/odd")
    found = of(tmp_path / "all", *ALIKE, "odd")
    assert [one.name for one in found.drained] == ["odd"]
    assert why in found.drained[0].drained
    assert [row.word for row in found.rows] == ["regression on these hosts"]
    text = text_of(found)
    assert "1 of 6 hosts not averaged" in text
    assert "odd: " in text


def test_a_host_whose_placebo_was_called_a_change_is_drained(tmp_path: Path) -> None:
    measure(tmp_path, *"abc", text=asked(more="placebo = true\n"))  # the placebo loses as well
    found = of(tmp_path, "a", "b", "c")
    assert len(found.drained) == 3
    assert all("placebo" in one.drained for one in found.drained)
    assert found.exit_code == 4


def test_a_placebo_that_all_hosts_call_a_change_takes_every_word_back(measured: Path) -> None:
    found = msgspec.structs.replace(of(measured, *ALIKE), placebo="slow")
    assert found.exit_code == 3
    assert "do not trust the other verdicts" in text_of(found)


def test_cells_that_a_host_gave_up_are_named(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured, tmp_path / "all")
    folder = carried(tmp_path / "all/late", LOSS, text=asked(), seed=5, end=None, environment=machine("late"))
    with folder.writing():
        folder.append(Abandoned(9000.0, "randread 4k", "fio hung"))
    assert "late could not measure randread 4k: fio hung" in text_of(of(tmp_path / "all", *ALIKE[:3], "late"))


WORDS: list[tuple[JointWord, JointWord | None, JointWord]] = [
    ("regression everywhere", "improvement on average", "inconclusive"),
    ("improvement everywhere", "regression everywhere", "inconclusive"),
    ("equivalent everywhere", "regression everywhere", "regression everywhere"),
    ("equivalent everywhere", "inconclusive", "inconclusive"),
    ("inconclusive", "equivalent everywhere", "inconclusive"),
    ("equivalent everywhere", "depends on the machine", "depends on the machine"),
]


@pytest.mark.parametrize(("typical", "total", "word"), WORDS)
def test_the_word_of_typical_trials_never_contradicts_that_of_all_work(
    typical: JointWord, total: JointWord | None, word: JointWord
) -> None:
    assert agreed(typical, total, stalls_excluded=True).word == word


def test_no_change_anywhere_is_not_said_while_a_host_may_stall() -> None:
    assert agreed("equivalent everywhere", None, stalls_excluded=False).word == "inconclusive"
    assert agreed("regression everywhere", None, stalls_excluded=False) == Agreed("regression everywhere", "typical")
    better = agreed("improvement everywhere", "improvement on average", stalls_excluded=False)
    assert better.word == "improvement everywhere"
    assert better.says.endswith("the trials of a host do not exclude rare stalls")
    assert "stalls" not in agreed("improvement everywhere", None, stalls_excluded=True).says


@pytest.mark.parametrize(
    ("found", "choice", "said"),
    [
        (
            Cheaper(7, 2.0, 40, 1.0),
            "blocks",
            "2 more hosts (2 h of machine time) or 40 blocks in all on each of today's hosts (60 min of machine time) "
            "would probably settle it; blocks are cheaper.",
        ),
        (Cheaper(6, 0.5, 400, 9.0), "hosts", "1 more host (30 min of machine time) or 400 blocks"),
        (
            Cheaper(9, 4.0, None, None),
            "hosts",
            "4 more hosts (4 h of machine time) would probably settle it. More blocks would not, because the hosts "
            "themselves may differ too much.",
        ),
        (Cheaper(None, None, 40, 1.0), "blocks", "would probably settle it. More hosts would not."),
        (Cheaper(None, None, None, None), "neither", "Neither more hosts nor more blocks would settle it."),
    ],
)
def test_more_hosts_and_more_blocks_are_weighed_in_machine_hours(found: Cheaper, choice: str, said: str) -> None:
    assert found.choice == choice
    assert said in cheaper(found, 5)


def formats(found: FleetAccount) -> Mapping[str, str]:
    texts = {name: rendered(found, name).decode() for name in ("mail", "markdown", "csv", "json")}
    console = "\n".join(line.plain for line in lines(of_fleet(found), whole=True))
    return {**texts, "console": console, "html": html_of(found, charts_of_fleet(found)).decode()}


def test_every_format_has_every_host_the_word_and_how_to_do_it_again(measured: Path) -> None:
    found = of(measured, *ALIKE, "odd")
    for text in formats(found).values():
        flat = " ".join(text.replace("\\", "").split())
        for said in (*ALIKE, "odd", "depends on the machine", "iodelta fleet report"):
            assert said in flat
    rows = list(csv.DictReader(io.StringIO(rendered(found, "csv").decode())))
    assert [row["host"] for row in rows if row["list"] == "rows.hosts"] == [*ALIKE, "odd"]
    assert [row["word"] for row in rows if row["list"] == "rows"] == ["depends on the machine"]
    assert [row["name"] for row in rows if row["list"] == "hosts"] == [*ALIKE, "odd"]
    document = json.loads(rendered(found, "json"))
    Draft202012Validator(schema("iodelta.fleet/1")).validate(document)
    assert document["rows"][0]["apart"][1] == "odd"


def test_the_forest_gives_a_host_that_is_not_averaged_the_word_that_the_table_gives_it(tmp_path: Path) -> None:
    """It had none there, and two rows that are not of hosts were counted among the comparisons."""
    measure(tmp_path, *"ab")
    alarmed(carried(tmp_path / "c", LOSS, text=asked(), seed=3, environment=machine("c")).path)
    found = of(tmp_path, "a", "b", "c")
    assert [host.averaged for host in found.rows[0].hosts] == [True, True, False]
    ((_, (figure,)),) = charts_of_fleet(found)
    assert [row["word"] for row in figure.rows] == [host.word for host in found.rows[0].hosts]
    assert "no joint verdict; 3 hosts: 3 regression; more is better." in figure.alt
    assert "The last two rows" not in figure.about


@pytest.mark.parametrize(
    "evil",
    [
        "\x1b[2J\x1b]0;owned\x07",
        "<script>alert(1)</script>",
        "![x](http://evil.example/x.png)",
        "=1+1",
        "\u202eabc",
        "x" * 300,
    ],
)
def test_names_of_hosts_are_letters_in_every_format(measured: Path, evil: str) -> None:
    folders = {f"{evil}{number}": Folder.open(measured / name) for number, name in enumerate((*ALIKE, "odd"))}
    found = fleet_account(folders, [evil])
    members = tuple(msgspec.structs.replace(one, cpu=evil, disk=evil, kernel=evil) for one in found.hosts)
    texts = formats(msgspec.structs.replace(found, hosts=members, notes=(evil,), question=evil))
    for name, text in texts.items():
        assert not any(ord(char) < 32 and char != "\n" for char in text if name != "html")
        assert "\u202e" not in text
        assert "\x1b" not in text
    assert not [line for line in texts["mail"].splitlines() if len(line) > 72]
    assert "<script>alert" not in texts["html"]
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(texts["markdown"])
    assert not re.search(r"<(img|a|script)\b", page)
    cells = [cell for row in csv.reader(io.StringIO(texts["csv"])) for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_the_command_takes_folders_or_a_fleet_and_gives_the_code_only_if_asked(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured, tmp_path / "night/hosts")
    assert list(hosts_in((str(tmp_path / "night"),))[0]) == [*sorted((*ALIKE, "odd"))]
    plain, gated = run(str(tmp_path / "night")), run(str(tmp_path / "night"), "--exit-code")
    assert (plain.exit_code, gated.exit_code) == (0, 1)
    assert "depends on the machine" in plain.output
    page = tmp_path / "hosts.html"
    assert run(*(str(measured / name) for name in ALIKE), "-o", str(page)).exit_code == 0
    assert "mean of hosts" in page.read_text()


def test_hosts_that_a_fleet_lost_drained_or_never_reached_are_named_with_the_reason(
    measured: Path, tmp_path: Path
) -> None:
    fleet = FleetFolder(tmp_path / "night")
    fleet.make()
    moves = {name: Moved(9.0, name, "done") for name in ALIKE}
    moves["odd"] = Moved(9.0, "odd", "drained", "its environment differs: kernel.release: 6.12 | 6.18")
    moves["gone"] = Moved(9.0, "gone", "lost", "cannot connect: No route to host")
    moves["cut"] = Moved(9.0, "cut", "lost", "the connection is lost")
    moves["late"] = Moved(9.0, "late", "waiting", "it does not answer")
    with fleet.journal.held():
        fleet.fix({"experiment.toml": asked().encode()})
        fleet.join(FleetHost(name, name) for name in (*moves, "never"))
        for move in moves.values():
            fleet.journal.append(move)
    for name in (*ALIKE, "odd"):
        shutil.copytree(measured / name, fleet.place(name))
    carried(fleet.place("late"), LOSS, text=asked(), seed=5, end=None, environment=machine("late"))
    carried(fleet.place("cut"), LOSS, text=asked(), blocks=0, end=None, environment=machine("cut"))
    folders, left = hosts_in((str(fleet.path),))
    found = fleet_account(folders, ["iodelta fleet report night"], left)
    assert {one.name: one.drained for one in found.drained} == {
        "odd": "the fleet drained it: its environment differs: kernel.release: 6.12 | 6.18",
        "gone": "it was not measured: lost: cannot connect: No route to host",
        "cut": "it has no complete block: lost: the connection is lost",
        "never": "it was not measured: waiting",
    }
    assert [one.host for one in found.rows[0].averaged] == [*sorted((*ALIKE, "late"), key=list(folders).index)]
    assert found.rows[0].word == "regression on these hosts", "what no host measured takes nothing from what others did"
    for text in formats(found).values():
        flat = " ".join(text.replace("\\", "").split())
        assert "cannot connect: No route to host" in flat
        assert "never" in flat
    assert "Not ended: late (waiting: it does not answer)" in text_of(found)
    assert "4 of 10 hosts not averaged" in text_of(found)


def test_a_directory_of_something_else_is_refused_with_the_folders_that_a_fleet_has(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="neither a fleet folder") as refused:
        hosts_in((str(tmp_path),))
    assert "iodelta fleet run" in (refused.value.remedy or "")
