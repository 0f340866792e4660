"""fio's t/io_uring as a workload: its options as cells, its lines as a trial."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from fakes import PaperMachine
from workshop import Workshop

from iodelta.bundle.dangers import dangers
from iodelta.cli.main import cli
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import Experiment, parse
from iodelta.lab.plan import make_plan
from iodelta.machine import LocalMachine
from iodelta.tools.fio import built_fio
from iodelta.workload.fio import command_of
from iodelta.workload.io_uring import cannot_poll, is_polling, program, usage
from iodelta.workload.model import FioRequest, FioRun
from iodelta.workload.result import read_run

Make = Callable[..., FioRequest]

PRINTED = """submitter=0, tid=22939, file=/dev/loop2, node=-1
polled=0, fixedbufs=1/0, register_files=1, buffered=0, QD=32
Engine=io_uring, sq_ring=32, cq_ring=32
IOPS=216.46K, BW=845MiB/s, IOS/call=1/0
IOPS=1.23M, BW=4.80GiB/s, IOS/call=1/1
IOPS=1.25M, BW=4.88GiB/s, IOS/call=1/0
Exiting on timeout
Maximum IOPS=1.25M
"""
"""Of fio 3.33, -r4."""

NEEDS_BUILD = pytest.mark.skipif(built_fio() is None, reason="needs `iodelta fio build`, which scripts/setup runs")


def question(workload: str, variant: str = '"fio.fixedbufs" = 0') -> Experiment:
    return parse(f'[workload]\ntool = "t/io_uring"\n{workload}\n[variant.a]\n[variant.b]\n{variant}\n')


def printed(request: FioRequest, text: str, **how: object) -> FioRun:
    made = FioRun(
        request=request,
        args=("io_uring",),
        exit_code=0,
        ended="finished",
        started=1000.0,
        seconds=4.1,
        output=text.encode(),
        stdout=b"",
        stderr=b"",
        log=b"",
    )
    return msgspec.structs.replace(made, **how)


@pytest.fixture
def asked(request_for: Make) -> Callable[..., FioRequest]:
    """Two seconds after a ramp of one."""

    def make(*options: str, **changes: object) -> FioRequest:
        given: dict[str, object] = {"tool": "t/io_uring", "fio": "io_uring", "runtime": 2.0, "ramp": 1.0, "size": None}
        target = str(changes.pop("target", "/dev/loop2"))
        return request_for(target, *(options or ("bs=4k", "iodepth=32")), **{**given, **changes})

    return make


def test_depths_and_batches_are_cells_by_fios_names_or_the_tools_letters() -> None:
    found = question("iodepth = [1, 32]\ns = [1, 16]\nhipri = 0")
    assert [cell.name for cell in found.cells] == [
        f"iodepth={depth} iodepth_batch={batch}" for depth in (1, 32) for batch in (1, 16)
    ]
    assert found.cells == question("d = [1, 32]\niodepth_batch_submit = [1, 16]\np = 0").cells


def test_it_is_judged_by_its_rate_alone() -> None:
    assert [metric.name for metric in make_plan(question("p = 0")).rules.metrics] == ["read.iops"]


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        ('rw = "randwrite"', "only reads"),
        ("verify = 1", "no option verify"),
        ('iodepth = "many"', "not a valid size"),
        ('ioengine = "mmap"', "io_uring, libaio, pvsync2"),
        ("d = 1\niodepth = 2", "given twice"),
        ('[workload.one]\ntool = "fio"\nbs = "4k"\n[workload.two]\nbs = "8k"', "one tool"),
    ],
)
def test_what_it_cannot_do_is_refused(workload: str, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        question(workload)


def test_a_strangers_own_program_is_never_run() -> None:
    found = parse('[workload]\ntool = "/tmp/evil"\n[variant.a]\n[variant.b]\n')
    assert [danger.what for danger in dangers(found)] == ["tool=/tmp/evil"]
    assert dangers(question("iodepth = 8\nN = 1")) == ()


def test_the_command_line_has_the_tools_letters(asked: Make) -> None:
    words = command_of(asked("rw=read", "bs=16k", "iodepth=8", "fixedbufs=0", "ioengine=libaio", "N=1"))
    assert words == ["io_uring", "-R0", "-b16384", "-d8", "-B0", "-a1", "-N1", "-r4", "/dev/loop2"]


def test_the_first_line_is_warm_up_and_of_the_rest_iops_and_bandwidth_are_combined(asked: Make) -> None:
    result = read_run(printed(asked(), PRINTED))
    (direction,) = result.directions
    assert result.usable
    assert direction.runtime_ms == 2000
    assert result.window == (1001.0, 1003.0)
    # 1.23M is 1.225M to 1.235M; 4.80 "GiB/s" is 4795 to 4806 MiB/s, 256 I/Os of 4 KiB each: 1.22752M to 1.23034M.
    assert list(result.series["read.iops"]) == pytest.approx([1.23e6, 1.25e6], abs=400)
    assert direction.iops.high - direction.iops.low < 3100
    assert direction.bandwidth.value == pytest.approx(4096 * direction.iops.value)


def test_a_bandwidth_of_another_block_size_is_no_result(asked: Make) -> None:
    assert [one.rule for one in read_run(printed(asked("bs=8k"), PRINTED)).findings] == ["uring.disagree"]


def test_a_device_without_poll_queues_is_told_with_the_way_around() -> None:
    request = FioRequest(
        options=(("bs", "4k"),),
        target="/dev/sda",
        target_kind="device",
        runtime=1,
        ramp=0,
        seed=1,
        workdir="/tmp",
        tool="t/io_uring",
    )
    text = "io: unexpected ret=-95\nYour filesystem/driver/kernel doesn't support polled IO\n"
    (finding,) = read_run(printed(request, text)).findings
    assert finding.severity == "hard"
    assert "set hipri = 0 in [workload] (io: unexpected ret=-95" in finding.explanation
    assert "poll_queues" in finding.remedy


@pytest.mark.parametrize(
    ("release", "io_poll", "refused"),
    [("6.18.3-x", "0", True), ("6.18.3-x", "1", False), ("6.10.14", "0", False), ("6.12.1", None, False)],
    ids=["refused", "has poll queues", "an older kernel does not poll", "not known"],
)
def test_a_device_without_poll_queues_is_known_before_the_first_trial(
    release: str, io_poll: str | None, refused: bool
) -> None:
    files = {"/proc/sys/kernel/osrelease": f"{release}\n"}
    if io_poll is not None:
        files["/sys/block/sda/queue/io_poll"] = f"{io_poll}\n"
    assert cannot_poll(PaperMachine(files), "sda") is refused
    assert [is_polling(dict(question(words).cells[0].options)) for words in ("iodepth = 1", "p = 1", "hipri = 0")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "how", "rule"),
    [
        (PRINTED.replace("IOPS=1.25M, BW=4.88GiB/s, IOS/call=1/0\n", ""), {}, "fio.short"),
        (PRINTED + "22939: 17 IO errors\n", {}, "uring.errors"),
        ("file open: No such file or directory\n", {"exit_code": 1}, "fio.failed"),
        (PRINTED, {"exit_code": -9}, "fio.failed"),
        (PRINTED, {"ended": "timed out"}, "fio.timeout"),
        ("", {}, "fio.no-io"),
    ],
)
def test_a_run_that_did_not_do_what_was_asked_is_no_trial(
    asked: Make, text: str, how: dict[str, object], rule: str
) -> None:
    result = read_run(printed(asked(), text, **how))
    assert not result.usable
    assert [finding.rule for finding in result.findings] == [rule]


def test_without_a_build_the_way_to_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_CACHE", str(tmp_path))
    with pytest.raises(MeasureError, match="needs t/io_uring") as raised:
        program(LocalMachine(), "t/io_uring")
    assert raised.value.exit_code == 4
    assert "iodelta fio build" in raised.value.remedy


def test_another_program_is_not_taken_for_it() -> None:
    with pytest.raises(MeasureError, match="is not t/io_uring"):
        usage(LocalMachine(), "/bin/true")


@pytest.mark.root
@NEEDS_BUILD
def test_an_experiment_is_measured_reported_and_packed(workshop: Workshop, tmp_path: Path) -> None:
    node = workshop.loop(32)
    (tmp_path / "x.toml").write_text(
        f'[target]\npath = "{node}"\n[workload]\ntool = "t/io_uring"\nhipri = 0\niodepth = 4\n'
        '[variant.a]\n[variant.b]\n"fio.registerfiles" = 0\n[design]\ntrial = "1s"\nblocks = 1\nbudget = "60s"\n'
    )
    folder = str(tmp_path / "folder")
    call = CliRunner().invoke
    assert call(cli, ["run", str(tmp_path / "x.toml"), "--folder", folder]).exit_code == 3
    said = json.loads(call(cli, ["report", folder, "--format", "json"]).stdout)
    assert [verdict["metric"]["name"] for verdict in said["account"]["judgement"]["verdicts"]] == ["read.iops"]
    assert "io_uring -R1" in call(cli, ["report", folder, "--format", "mail"]).stdout
    bundle = str(tmp_path / "b.tar.zst")
    assert call(cli, ["pack", folder, "-o", bundle]).exit_code == 0
    planned = call(cli, ["reproduce", bundle, "--dry-run", "--target", node])
    assert planned.exit_code == 0, planned.output
    assert "-F0" in planned.output
