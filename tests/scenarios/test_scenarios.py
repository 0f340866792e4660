"""The posted questions as experiments: each can be read, small and in full, and asks what was asked."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner
from fakes import PaperMachine
from jsonschema import Draft202012Validator

from iodelta.cli.main import cli
from iodelta.cli.watching import RunWatcher
from iodelta.errors import MeasureError, RefusedError, RequestError
from iodelta.experiment import Experiment, parse
from iodelta.lab.guard import check_write
from iodelta.lab.plan import make_plan, warnings
from iodelta.lab.undo import restore_pending
from iodelta.machine import LocalMachine, Machine
from iodelta.parts.scenarios import (
    catalogue,
    jbod_mmap,
    queue_depth_sweep,
    raid10_governor,
    read_policy_order,
    ublk_null_affinity,
)
from iodelta.parts.scenarios.catalogue import scenario
from iodelta.parts.scenarios.model import Scenario
from iodelta.parts.scenarios.stage import Stage, staged
from iodelta.probe.topology import Target, resolve, resolve_tree
from iodelta.report.documents import schema
from iodelta.study.words import size
from iodelta.vm.spec import parse as parse_guest

BOOT_ID = "/proc/sys/kernel/random/boot_id"

MADE = {
    "queue-depth-sweep": {"target": "/dev/x"},
    "jbod-mmap": {"target": "/x/tree", "names": "iodelta.0.$filenum", "jobs": "192", "size": "8g"},
    "raid10-governor": {"target": "/dev/md0", "layout": "n2", "other": "powersave", "where": ""},
    "ublk-null-affinity": {
        "target": "/dev/ublkb0",
        "device": "a ublk null device",
        "tool": 'tool = "t/io_uring"',
        "what": "the CPUs",
        "baseline": "anywhere",
        "variants": '[variant.anywhere]\n[variant.device-queues]\ncpus = "device-queues"',
    },
}
"""What the preparation of each would say."""


def experiment(one: Scenario, *, full: bool) -> Experiment:
    text = one.text(MADE[one.name], full=full)
    assert "@" not in text
    return parse(text, one.name)


@pytest.mark.parametrize("name", MADE)
def test_a_small_run_takes_three_minutes_at_most_and_a_full_one_asks_no_less(name: str) -> None:
    small, full = (experiment(scenario(name), full=full) for full in (False, True))
    assert small.design.budget <= 180
    assert full.design.budget > small.design.budget
    assert {cell.name for cell in small.cells} <= {cell.name for cell in full.cells}
    assert [variant.name for variant in small.variants] == [variant.name for variant in full.variants]


def test_the_sweep_in_full_is_the_posted_loop() -> None:
    found = experiment(queue_depth_sweep.SCENARIO, full=True)
    assert [cell.option("iodepth") for cell in found.cells] == [str(2**n) for n in range(12)]
    assert {cell.option("norandommap") for cell in found.cells} == {"1"}


def test_the_jbod_in_full_has_the_mmap_cases_and_tiobench_s_four_phases() -> None:
    names = {cell.name for cell in experiment(jbod_mmap.SCENARIO, full=True).cells}
    tiobench = {f"tiobench-{phase}" for phase in ("write", "random-write", "read", "random-read")}
    assert names >= tiobench | {"mmap-randread-4k", "mmap-randread-64k", "mmap-randwrite-64k"}


def test_the_array_s_cells_are_the_posted_ones_and_far_copies_have_a_scenario_of_their_own() -> None:
    cells = {(c.option("rw"), c.option("bs")) for c in experiment(raid10_governor.NEAR, full=False).cells}
    assert cells == {(rw, bs) for rw in ("randread", "randwrite") for bs in ("512k", "1024k")}
    assert scenario("raid10-governor-far") is raid10_governor.FAR


def test_an_array_needs_md_and_two_governors_and_says_what_is_missing() -> None:
    missing = {need.what: need.reason for need in raid10_governor.NEAR.missing(PaperMachine({}))}
    assert "CONFIG_MD" in missing["md"]
    assert "policy0" in missing["cpufreq"]
    policy = "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors"
    one = PaperMachine({"/proc/mdstat": "Personalities : [raid1]\n", policy: "performance\n"})
    missing = {need.what: need.reason for need in raid10_governor.NEAR.missing(one)}
    assert "raid10" in missing["md raid10"]
    assert "only performance" in missing["governors"]


@pytest.mark.parametrize(
    ("offered", "other"), [("performance powersave", "powersave"), ("schedutil performance", "schedutil")]
)
def test_the_governor_to_compare_with_is_what_a_distribution_would_have_instead(offered: str, other: str) -> None:
    policy = "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors"
    assert raid10_governor.other_governor(PaperMachine({policy: offered})) == other


def disk(name: str) -> Target:
    return cast(Target, SimpleNamespace(path=f"/dev/{name}", device=name))


def test_each_set_of_cpus_is_a_variant_once() -> None:
    queues = {f"/sys/block/ublkb0/mq/{n}/cpu_list": f"{2 * n}-{2 * n + 1}\n" for n in range(4)}
    machine = PaperMachine({"/sys/devices/system/cpu/online": "0-7\n", **queues})
    one = scenario("ublk-null-affinity")
    found = parse(one.text(one.foreseen(cast(Machine, machine), False, disk("ublkb0")), full=False))
    assert {variant.name: variant.knobs.get("cpus") for variant in found.variants} == {
        "anywhere": None,
        "device-queues": "device-queues",
        "first-half": "0-3",
        "other-half": "4-7",
    }
    alone = PaperMachine({"/sys/devices/system/cpu/online": "0-1\n", "/sys/block/loop0/mq/0/cpu_list": "0, 1\n"})
    text = one.foreseen(cast(Machine, alone), False, disk("loop0"))["variants"]
    assert "first-half" not in text, "it is the queue's CPU"


@pytest.mark.parametrize("target", [None, disk("loop0")], ids=["its own", "the user's"])
@pytest.mark.parametrize("name", [one.name for one in catalogue.SCENARIOS])
def test_the_barest_machine_has_a_plan_or_hears_what_it_lacks(name: str, target: Target | None) -> None:
    """The user cannot add a variant to a scenario: an error of its own experiment file names what nobody can do."""
    bare = cast(Machine, PaperMachine({"/sys/devices/system/cpu/online": "0\n"}))
    one = scenario(name)
    if one is ublk_null_affinity.SCENARIO:
        with pytest.raises(MeasureError, match=r"one CPU.*\n.*--vm"):
            one.foreseen(bare, False, target)
        return
    assert len(parse(one.text(one.foreseen(bare, False, target), full=False), name).variants) > 1


@pytest.mark.parametrize(
    ("here", "device"),
    [
        ({}, "used in place of ublk's null device (neither ublk nor null_blk is here; a guest has them: --vm"),
        ({"/sys/module/null_blk": ""}, "a null_blk device of 4 queues, not 16: one for each CPU (there is no ublk)"),
        ({"/dev/ublk-control": ""}, "a ublk null device of 4 queues, not 16: one for each CPU"),
    ],
)
def test_the_plan_names_the_device_that_takes_the_place_of_ublks_and_its_queues(
    here: dict[str, str], device: str
) -> None:
    machine = PaperMachine({"/sys/devices/system/cpu/online": "0-3\n", **here}, {"rublk --help": ""})
    one = scenario("ublk-null-affinity")
    values = one.foreseen(cast(Machine, machine), False, None)
    assert device in parse(one.text(values, full=False), one.name).question


@pytest.mark.root
def test_a_rehearsal_says_what_stands_in_and_how_to_ask_the_question_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ublk_null_affinity, "_server", lambda machine: "")
    monkeypatch.setattr(ublk_null_affinity, "_has_null", lambda machine: False)
    done = CliRunner().invoke(cli, ["scenario", "run", "ublk-null-affinity", "--dry-run"])
    text = " ".join(done.output.split())
    assert "a loop device over an empty file, used in place of ublk's null device" in text
    assert "--vm --kernel 6.12" in text


def ublk(token: str, *, present: str = "") -> tuple[list[str], list[str]]:
    """What makes the ublk device of a stage, and what undoes it, on a machine where ``present`` is there already."""
    made: list[tuple[list[str], list[str]]] = []
    files = {"/dev/ublk-control": "", BOOT_ID: "this boot\n", **({present: ""} if present else {})}
    stage = SimpleNamespace(machine=PaperMachine(files), token=token, make=lambda *words: made.append(words))
    assert ublk_null_affinity._ublk(cast(Stage, stage))
    return made[0]


def test_a_ublk_device_has_a_number_of_its_stages_own_and_is_nobody_elses() -> None:
    make, undo = ublk("0123456789abcdef")
    number = make[-1]
    assert ublk("fedcba9876543210")[0][-1] != number
    assert 0 < int(number) < 1 << 20, "a minor number"
    assert undo[3:] == ["sh", "this boot", f"/dev/ublkc{number}", make[0], "del", "-n", number]
    with pytest.raises(MeasureError, match="exists already"):
        ublk("0123456789abcdef", present=f"/dev/ublkc{number}")


@pytest.mark.parametrize(("boot", "there", "undone"), [("", True, True), ("another", True, False), ("", False, False)])
def test_what_a_number_leads_to_is_removed_in_the_boot_that_made_it_and_only_there(
    tmp_path: Path, boot: str, there: bool, undone: bool
) -> None:
    control, done = tmp_path / "ublkc1", tmp_path / "a b"
    if there:
        control.touch()
    words = [boot or Path(BOOT_ID).read_text().strip(), str(control), "touch", str(done)]
    subprocess.run(["sh", "-c", ublk_null_affinity.REMOVE_UBLK, "sh", *words], check=True)
    assert done.exists() == undone


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """rublk, and two kernels of which one has ublk."""

    def find(name: str) -> SimpleNamespace:
        missing = {} if name == "6.12" else {"ublk_drv": "kernel has no CONFIG_BLK_DEV_UBLK"}
        loadable = SimpleNamespace(needed=lambda names: SimpleNamespace(missing=missing))
        return SimpleNamespace(release=f"{name}.0", loadable=lambda: loadable)

    monkeypatch.setattr(ublk_null_affinity, "find", find)
    monkeypatch.setattr(ublk_null_affinity, "has_program", lambda name: True)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", ["queue-depth-sweep", "ublk-null-affinity"])
def test_kernels_can_be_the_variants_in_a_guest(name: str) -> None:
    one, kernels = scenario(name), ("6.1", "6.12")
    variants = {"variants": "[variant.a]\nkernel = '6.1'\n[variant.b]\nkernel = '6.12'", "baseline": "a", "new": "b"}
    values = {**(one.in_guest or {}), **one.of_guest(kernels), **variants}
    found = parse(f"machine = '{one.guest_name(kernels, full=False)}'\n" + one.text(values, full=False), name)
    assert found.boots
    assert found.target.path == "/dev/target"


@pytest.mark.usefixtures("known")
def test_the_null_device_of_a_guest_is_ublks_where_every_kernel_has_it_and_t_io_uring_reads_it_on_two_nodes() -> None:
    one = ublk_null_affinity.SCENARIO
    both, new = (parse_guest(one.guest_name(kernels, full=False)[3:]) for kernels in (("6.1", "6.12"), ("6.12",)))
    assert (both.target, new.target) == ("null_blk", "ublk-null")
    assert dict(new.options)["queues"] == str(new.cpus)
    assert (both.nodes, new.nodes) == (2, 2)
    assert "a null_blk device (ublk is not in kernel 6.1.0) of" in one.of_guest(("6.1", "6.12"))["device"]
    values = {**(one.in_guest or {}), **one.of_guest(("6.12", "6.12")), "variants": "[variant.a]\n[variant.b]"}
    found = parse(one.text({**values, "baseline": "a"}, full=False))
    assert {cell.option("tool") for cell in found.cells} == {"t/io_uring"}
    assert {condition.knobs.get("cpus") for condition in found.conditions} == {None, "node:0"}


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", MADE)
def test_every_scenario_of_disks_has_a_guest(name: str) -> None:
    for full in (False, True):
        spec = parse_guest(scenario(name).guest_name(("6.12",), full=full).removeprefix("vm:"))
        assert spec.kernel == "6.12"
        assert spec.disks or spec.target


def test_a_guest_is_refused_where_it_would_not_help_and_beside_a_target() -> None:
    refused = (
        ["read-policy-order", "--vm"],
        ["queue-depth-sweep", "--vm", "--target=/x"],
        ["queue-depth-sweep", "--kernel=6.1"],
    )
    for words in refused:
        done = CliRunner().invoke(cli, ["scenario", "run", *words])
        assert isinstance(done.exception, RequestError)


def test_an_unknown_name_names_its_neighbours() -> None:
    with pytest.raises(RequestError, match="did you mean jbod-mmap"):
        scenario("jbod")


def test_a_target_that_a_scenario_cannot_measure_is_refused() -> None:
    with pytest.raises(RequestError, match="a directory, in which it makes its own"):
        jbod_mmap.SCENARIO.check_target("block", "/dev/sda")


def test_what_is_missing_ends_a_run_with_reasons_and_4(monkeypatch: pytest.MonkeyPatch) -> None:
    if not list(raid10_governor.NEAR.missing(LocalMachine())):
        monkeypatch.setattr(LocalMachine, "glob", lambda self, pattern: [])
    done = CliRunner().invoke(cli, ["scenario", "run", "raid10-governor"])
    assert isinstance(done.exception, MeasureError)
    assert done.exception.exit_code == 4
    assert "cannot run here" in str(done.exception)


def test_where_the_report_cannot_go_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "iodelta.parts.scenarios.command.contacts", lambda *given, **named: pytest.fail("a machine was asked")
    )
    found = CliRunner().invoke(cli, ["scenario", "run", "read-policy-order", "--output", "report.pdf"])
    assert isinstance(found.exception, RequestError)
    assert "add --format" in str(found.exception)


def test_list_and_show_are_documents_too() -> None:
    listed = json.loads(CliRunner().invoke(cli, ["scenario", "list", "--format", "json"]).stdout)
    assert listed["schema"] == "iodelta.scenario-list/1"
    assert {one["name"] for one in listed["scenarios"]} >= set(MADE)
    shown = json.loads(CliRunner().invoke(cli, ["scenario", "show", "jbod-mmap", "--format", "json"]).stdout)
    assert "@TARGET@" in shown["experiment"]


# ------------------------------------------------------------------------------------- directories of files


def tree(text: str) -> Experiment:
    return parse(f"[target]\npath = '/x'\nfiles = '{text}'\n[workload]\nrw = 'read'\n[variant.a]\n[variant.b]\n")


@pytest.mark.parametrize("files", ["../x", "/etc/passwd", "$jobnum/../../x", "a b", "", "x/"])
def test_names_of_files_cannot_lead_out_of_the_directory(files: str) -> None:
    with pytest.raises(RequestError):
        tree(files)


def test_only_a_directory_that_iodelta_made_and_marked_may_be_written_in(tmp_path: Path) -> None:
    assert tree("$jobnum/$filenum").target.files == "$jobnum/$filenum"
    machine, place = LocalMachine(), tmp_path / "pl[a]ce"
    (place / "one").mkdir(parents=True)
    found = resolve_tree(machine, str(place))
    assert found.devices == resolve(machine, str(place / "one")).devices
    (place / "one").rmdir()
    (place / "memory").symlink_to("/dev/shm")
    assert resolve_tree(machine, str(place)).devices == resolve(machine, "/dev/shm").devices
    (place / "memory").unlink()
    found = resolve_tree(machine, str(place))
    with pytest.raises(RequestError, match="is a directory"):
        check_write(machine, found)


@pytest.mark.root
@pytest.mark.fio
def test_a_small_jbod_is_made_measured_and_removed_and_made_again_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jbod_mmap, "FILES", 2)
    monkeypatch.setattr(jbod_mmap, "PROCESSES", 2)
    tiny = {**jbod_mmap.SCENARIO.small, "trial": "200ms", "budget": "4s", "files": "2"}
    monkeypatch.setattr(catalogue, "SCENARIOS", (dataclasses.replace(jbod_mmap.SCENARIO, small=tiny),))
    done = CliRunner().invoke(cli, ["scenario", "run", "jbod-mmap", "--folder", "made", "--format", "json"])
    assert done.exit_code in (0, 1, 3), done.output
    plan = json.loads((tmp_path / "made/plan.json").read_bytes())
    assert plan["experiment"]["target"]["files"] == "$jobnum/iodelta.0.$filenum"
    events = [json.loads(line) for line in (tmp_path / "made/journal.jsonl").read_text().splitlines()]
    finished = [event for event in events if event["type"] == "finished"]
    assert finished
    assert {event["problem"] for event in finished} == {""}
    devices = next(event["target"]["devices"] for event in events if event["type"] == "session")
    assert len(devices) == 4, "two partitions of two disks"
    assert not list(tmp_path.glob("iodelta-scenario-*"))
    told = CliRunner().invoke(cli, ["report", "made", "--format", "mail"]).stdout
    assert "iodelta scenario run -- jbod-mmap" in told
    more = CliRunner().invoke(cli, ["run", "made", "--budget", "3s"])
    assert "makes again" in more.stderr
    assert more.exit_code in (0, 1, 3), more.output
    events = [json.loads(line) for line in (tmp_path / "made/journal.jsonl").read_text().splitlines()]
    assert sum(event["type"] == "session" for event in events) == 2
    assert not list(tmp_path.glob("iodelta-scenario-*"))
    assert restore_pending(LocalMachine()) == []


SIZES = pytest.mark.parametrize("full", [False, True], ids=["small", "full"])
EVERY = pytest.mark.parametrize("name", [one.name for one in catalogue.SCENARIOS])
BIG = PaperMachine(
    {
        "/sys/devices/system/cpu/online": "0-63\n",
        "/sys/devices/system/node/node0/cpulist": "0-7,16-47\n",
        "/sys/devices/system/node/node1/cpulist": "8-15,48-63\n",
        "/dev/ublk-control": "",
    },
    {"rublk --help": ""},
)
"""A machine with more CPUs than queues and nodes that are no halves, where the most sets of CPUs differ."""


def plan_of(one: Scenario, text: str) -> list[str]:
    """The rules of the warnings of a plan, which must reach its first look."""
    plan = make_plan(parse(text, one.name))
    found = {finding.rule: finding for finding in warnings(plan)}
    assert int(plan.budget_rounds) >= plan.rules.looks[0], (plan.budget_rounds, plan.rules.looks)
    assert "plan.budget" not in found
    assert "hard" not in {finding.severity for finding in found.values()}
    return list(found)


@SIZES
@EVERY
def test_every_plan_reaches_its_first_look_and_a_word(name: str, full: bool) -> None:
    """Two small plans paid for fewer blocks than come before the first look: two minutes of measuring for no word."""
    one = scenario(name)
    for machine in (LocalMachine(), cast(Machine, BIG)):
        found = plan_of(one, one.text(one.foreseen(machine, full, None), full=full))
        if (name, full) == ("btrfs-read-policy", False):
            assert found == ["verdict.too-few-blocks"], "112 comparisons on 6 blocks, as its description says"
        else:
            assert "verdict.too-few-blocks" not in found


@pytest.mark.usefixtures("known")
@SIZES
@pytest.mark.parametrize("name", [one.name for one in catalogue.SCENARIOS if one.in_guest is not None])
def test_every_plan_of_booted_kernels_reaches_its_first_look(name: str, full: bool) -> None:
    one = scenario(name)
    for kernels in (("6.1", "6.12"), ("5.10", "5.15", "6.1", "6.12")):
        values = one.of_kernels(kernels, full=full)
        found = plan_of(one, "machine = 'vm'\n" + one.text(values, full=full))
        assert "verdict.too-few-blocks" not in found


@pytest.mark.root
@EVERY
def test_a_rehearsal_names_the_variants_of_the_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On two CPUs and a loop device it named ``first-half`` where the run had ``device-queues``."""
    one, machine = scenario(name), LocalMachine()
    if missing := one.missing(machine):
        pytest.skip("; ".join(need.reason for need in missing))
    monkeypatch.setattr(read_policy_order, "benchmark", lambda *given: [])
    words = ["scenario", "run", name, "--dry-run", "--format", "json"]
    answer = json.loads(CliRunner().invoke(cli, words).stdout)
    with staged(machine, RunWatcher(print), full=False, target=None, home=str(tmp_path), stop=lambda: False) as stage:
        made = parse(one.made(stage, machine=""), name)
    planned = answer["plan"]["plan"]["experiment"]
    assert [variant["name"] for variant in planned["variants"]] == [variant.name for variant in made.variants]
    assert planned["question"] == made.question
    assert planned["design"]["budget"] == made.design.budget


@pytest.mark.root
@pytest.mark.fio
@pytest.mark.parametrize("format_", ["console", "json"])
def test_a_rehearsal_on_a_disk_of_the_user_s_own_is_the_plan_of_a_run(format_: str, tmp_path: Path) -> None:
    data, words = tmp_path / "db.img", ["scenario", "run", "queue-depth-sweep", "--dry-run", "--format", format_]
    data.write_bytes(b"records " * (1 << 17))
    done = CliRunner().invoke(cli, [*words, "--target", str(data)])
    assert done.exit_code in (0, 2), done.output
    if format_ == "console":
        shown = " ".join(done.stdout.split())
        for part in (f"Target {data}", "Writes nothing is written", "Knob block.scheduler", "Order (seed"):
            assert part in shown
        return
    document = json.loads(done.stdout)
    Draft202012Validator(schema("iodelta.scenario-plan/1")).validate(document)
    assert document["plan"]["surveys"][0]["target"]["path"] == str(data)
    assert (document["home"], document["space"], document["makes"]) == ("", 0, "")


@pytest.mark.root
@pytest.mark.fio
def test_a_scenario_asks_the_guard_with_the_consent_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--destroy`` was not passed on, so that no scenario could write to a disk of the user's own."""
    data, writing = tmp_path / "db.img", queue_depth_sweep.TEMPLATE.replace('"randread"', '"randwrite"')
    data.write_bytes(b"records " * (1 << 17))
    small = {
        **queue_depth_sweep.SCENARIO.small,
        "depths": "[1]",
        "budget": "4s",
        "variants": "[variant.a]\n[variant.b]",
    }
    small |= {"baseline": "a", "new": "b"}
    one = dataclasses.replace(queue_depth_sweep.SCENARIO, template=writing, small=small)
    monkeypatch.setattr(catalogue, "SCENARIOS", (one,))
    words = ["scenario", "run", one.name, "--target", str(data), "--folder", str(tmp_path / "made")]
    for more in ([], ["--dry-run"]):
        refused = CliRunner().invoke(cli, [*words, *more])
        assert isinstance(refused.exception, RefusedError), refused.output
        assert f"--destroy {data}" in str(refused.exception)
    assert data.read_bytes() == b"records " * (1 << 17)
    planned = CliRunner().invoke(cli, [*words, "--destroy", str(data), "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert f"YES: {data} will be overwritten" in " ".join(planned.stdout.split())
    done = CliRunner().invoke(cli, [*words, "--destroy", str(data)])
    assert done.exit_code in (0, 1, 3), done.output


@SIZES
@EVERY
def test_a_dry_run_plans_what_would_be_asked_says_the_space_and_makes_nothing(
    name: str, full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Stage, "make", lambda *given, **named: pytest.fail("something was made"))
    words = ["scenario", "run", name, "--dry-run", *(["--full"] if full else [])]
    done = CliRunner().invoke(cli, words)
    one = scenario(name)
    assert done.exit_code == (4 if one.missing(LocalMachine()) else 0), done.output
    said = " ".join(done.stdout.split())
    for part in ("Makes ", "Space ", "Target ", "Cells ", "Variants ", "Blocks ", "Time ", "Writes ", "Order (seed "):
        assert part in said
    for finding in warnings(make_plan(parse(one.text(one.foreseen(LocalMachine(), full, None), full=full)))):
        assert finding.remedy in said
    document = json.loads(CliRunner().invoke(cli, [*words, "--format", "json"]).stdout)
    Draft202012Validator(schema("iodelta.scenario-plan/1")).validate(document)
    assert document["space"] == one.space[full]
    assert {need["what"] for need in document["missing"]} == {need.what for need in one.missing(LocalMachine())}
    if one.space[full]:
        assert f"up to {size(one.space[full])}; " in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [one.name for one in catalogue.SCENARIOS if one.counted])
def test_where_a_guests_time_says_nothing_kernels_are_compared_by_counts(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the run says that it counts; with KVM, or ``--timed``, it measures time."""
    begun: list[str] = []
    monkeypatch.setattr(
        "iodelta.cli.counting.begin", lambda question, *given, **named: begun.append(question.experiment.clock)
    )
    monkeypatch.setattr("iodelta.vm.boot.why_no_kvm", lambda: "there is no /dev/kvm")
    words = ["scenario", "run", name, "--vm", "--kernel", "6.1", "--kernel", "6.12", "--folder", str(tmp_path / "out")]
    done = CliRunner().invoke(cli, words)
    assert begun == ["instructions"]
    assert "Time in an emulated guest says nothing (there is no /dev/kvm), so instructions are counted" in done.stderr
    assert parse(scenario(name).in_counts(("6.1", "6.12")), name).baseline == "6.1"


def test_what_cannot_be_counted_is_refused() -> None:
    for words in (["jbod-mmap", "--vm", "--count"], ["queue-depth-sweep", "--count"]):
        done = CliRunner().invoke(cli, ["scenario", "run", *words])
        assert isinstance(done.exception, RequestError)
