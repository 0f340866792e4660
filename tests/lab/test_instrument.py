"""Instruments look at runs of their own: no trial is touched, what they need is put back, what is missing is said."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes import PaperMachine
from workshop import Workshop

from iodelta.cli.main import cli
from iodelta.experiment import parse
from iodelta.lab.instrument import Instruments, Looked
from iodelta.probe import profile, stages
from iodelta.report.stories.experiment import looked

QUESTION = "[workload]\nrw = 'randread'\n[variant.a]\n[variant.b]\n"

REPORT = """
# Samples: 2K of event 'cpu-clock:pppH'
# Event count (approx.): 1000000
    40.00%\tfio            \t[kernel.kallsyms]\t[k] dd_dispatch_request
    10.00%\tkworker/1:1H   \t[kernel.kallsyms]\t[k] dd_dispatch_request
    20.00%\tfio            \tfio              \t[.] 0x2a7b7
    20.00%\tpython3        \t[kernel.kallsyms]\t[k] do_syscall_64
    10.00%\tswapper        \t[kernel.kallsyms]\t[k] pv_native_safe_halt
"""

STAT = """\
1.500,msec,task-clock,1500000,100.00,0.1,CPUs utilized
42,,context-switches:u,1,100.00,,
<not supported>,,cycles,0,100.00,,
"""

TRACE = """
     fio-123   [001] ..... 10.000000: block_bio_queue: 7,0 R 64 + 8 [fio]
     fio-123   [001] ..... 10.000002: block_rq_insert: 7,0 R 4096 () 64 + 8 none,0,0 [fio]
     fio-123   [001] ..... 10.000005: block_rq_issue: 7,0 R 4096 () 64 + 8 none,0,0 [fio]
  <idle>-0     [000] d.h.. 10.000105: block_rq_complete: 7,0 R () 64 + 8 none,0,0 [0]
     fio-123   [001] ..... 11.000000: block_bio_queue: 7,0 R 128 + 8 [fio]
     fio-123   [001] ..... 11.000001: block_rq_insert: 7,0 R 4096 () 128 + 8 be,0,4 [fio]
     fio-123   [001] ..... 11.000003: block_rq_issue: 7,0 R 4096 () 128 + 8 be,0,4 [fio]
  <idle>-0     [000] d.h.. 11.000203: block_rq_complete: 7,0 R () 128 + 8 be,0,4 [0]
"""


def test_a_profile_is_what_the_kernel_s_functions_take_for_one_io_without_other_processes_and_idling() -> None:
    found = profile.parsed(REPORT, ios=100)
    assert found.unit == "ns of CPU"
    assert found.symbols == pytest.approx({"dd_dispatch_request": 5000.0})


def test_an_event_that_cannot_be_counted_is_not_nought() -> None:
    assert profile.counts(STAT) == {"task-clock (ns)": 1.5e6, "context-switches": 42.0, "cycles": None}


def test_a_request_is_followed_from_stage_to_stage() -> None:
    found = {stage.name: stage.mean for stage in stages.parsed(TRACE)}
    assert found == pytest.approx(
        {"queue to issue": 4000.0, "insert to issue": 2500.0, "issue to complete": 150_000.0}, rel=1e-3
    )


def test_what_a_machine_lacks_is_a_reason() -> None:
    bare = PaperMachine({"/proc/filesystems": "nodev\tproc\n"}, {"id -u": "0\n"})
    assert "CONFIG_FTRACE" in stages.missing(bare)
    assert "root" in stages.missing(PaperMachine({}))
    assert "perf" in profile.missing(bare)


def test_the_difference_is_told_by_function_and_no_verdict_is_drawn() -> None:
    experiment = parse(QUESTION)
    sides = [
        Looked(
            experiment.cells[0].name,
            name,
            {"cycles": None},
            profile.Profile("ns of CPU", {"dd_dispatch_request": cost}),
        )
        for name, cost in (("a", 100.0), ("b", 700.0))
    ]
    told = list(looked(Instruments(tuple(sides), {"block": "no tracefs"}), experiment))
    assert "ns of CPU in the kernel for one I/O: 100 -> 700; by function: dd_dispatch_request +600." in told[0]
    assert told[-1] == "block saw nothing: no tracefs"


def tracing() -> list[str]:
    """Mounts of tracefs, and instances in it that are ours."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if " tracefs " in line]
    return mounts + [str(path) for path in Path(stages.TRACEFS).glob("instances/iodelta-*")]


@pytest.mark.root
@pytest.mark.fio
def test_a_run_is_looked_at_only_after_its_trials_and_leaves_no_tracing_behind(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    disk = workshop.loop(16)
    before = tracing()
    text = f"[target]\npath = '{disk}'\n[workload]\nrw = 'randread'\ndirect = 1\n"
    text += "[instrument]\nperf = true\nblock = true\n"
    text += "[variant.none]\n'block.scheduler' = 'none'\n[variant.dl]\n'block.scheduler' = 'mq-deadline'\n"
    Path("x.toml").write_text(text + "[design]\ntrial = '300ms'\nramp = '0s'\nblocks = 1\n")
    done = CliRunner().invoke(cli, ["run", "x.toml", "--folder", "made"])
    assert done.exit_code in (0, 1, 3), done.output
    found = json.loads(Path("made/instruments.json").read_bytes())
    events = Counter(json.loads(line)["type"] for line in Path("made/journal.jsonl").read_text().splitlines())
    assert events["started"] == 2 * (1 + events["repeated"]), "the runs under instruments are no trials"
    assert found["missing"] or [one["variant"] for one in found["looked"]] == ["none", "dl"]
    if not found["missing"]:
        names = [stage["name"] for stage in found["looked"][1]["stages"]]
        assert "issue to complete" in names
    assert tracing() == before
    assert not list((tmp_path / "state/pending").iterdir())
