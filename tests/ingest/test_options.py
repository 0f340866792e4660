"""What a run was asked to do, from banners, command lines and the options in JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.ingest import Run, Workload, read
from iodelta.ingest.options import banner_options, workload
from iodelta.ingest.report import read_text

DATA = Path(__file__).parent.parent / "data"

REPORT = """x: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=32
fio-3.33
Starting 1 process

x: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 21 19:33:45 2026
  read: IOPS=1000, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)
     issued rwts: total=10000,0,0,0 short=0,0,0,0 dropped=0,0,0,0
"""


def the_run(text: str) -> Run:
    (run,) = (item for item in read_text(text.encode(), "x") if isinstance(item, Run))
    return run


@pytest.mark.parametrize(
    ("bs", "read_as"),
    [
        ("4K-4K/4K-4K", 4096),
        ("4K-4K/4K-4K/4K-4K", 4096),
        ("4096B-4096B,4096B-4096B,4096B-4096B", 4096),
        ("(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B", 4096),
        ("(R) 16.0KiB-16.0KiB, (W) 16.0KiB-16.0KiB, (T) 16.0KiB-16.0KiB", 16384),
        ("(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB", 1048576),
        ("(R) 4096B-64.0KiB, (W) 4096B-64.0KiB, (T) 4096B-64.0KiB", None),
        ("(R) 4096B-4096B, (W) 8192B-8192B, (T) 4096B-4096B", 4096),
    ],
)
def test_block_sizes_of_the_banner(bs: str, read_as: int | None) -> None:
    assert workload(banner_options("randread", bs, "psync", "1")).bs == read_as


def test_a_mix_of_block_sizes_is_no_single_one() -> None:
    options = banner_options("randrw", "(R) 4096B-4096B, (W) 8192B-8192B, (T) 4096B-4096B", "psync", "1")
    assert workload(options).bs is None


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"rw": "randread", "bs": "4k", "direct": "1"}, Workload(rw="randread", bs=4096, direct=True)),
        ({"readwrite": "readwrite", "blocksize": "1m"}, Workload(rw="rw", bs=1048576)),
        ({"rw": "write:4k", "direct": "0", "runtime": "5m"}, Workload(rw="write", direct=False, runtime=300)),
        ({"size": "100%", "runtime": "60s", "direct": ""}, Workload(runtime=60, direct=True)),
        ({"bs": "4k,8k", "rw": "randwrite"}, Workload(rw="randwrite", bs=8192)),
        ({"bssplit": "4k/50:8k/50", "bs": "4k"}, Workload()),
        ({"bs": "4k", "kb_base": "1000"}, Workload(bs=4000)),
        ({"bs": "128KiB", "runtime": "500ms"}, Workload(bs=131072, runtime=0.5)),
        ({"bs": "4096B", "runtime": "30"}, Workload(bs=4096, runtime=30)),
        ({"iodepth": "many", "numjobs": "-1"}, Workload()),
    ],
)
def test_options_as_people_spell_them(options: dict[str, str], asked: Workload) -> None:
    assert workload(options) == asked


COMMANDS = [
    "$ fio --name=x --rw=randread --direct=1 --iodepth=32 --runtime=30 --group_reporting",
    "root@host:~# fio --name x --rw randread --direct 1 --iodepth 32 --runtime 30 --group_reporting",
    "+ fio --name=x --readwrite=randread --direct=1 --iodepth=32 --runtime=30 --group_reporting",
    "$ sudo fio --name=x --rw=randread \\\n  --direct=1 --iodepth=32 \\\n  --runtime=30 --group_reporting",
    "> fio --name=x --rw=randread\n> --direct=1 --iodepth=32 --runtime=30 --group_reporting",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_above_a_report_tells_what_the_report_does_not(command: str) -> None:
    run = the_run(f"{command}\n{REPORT}")
    assert run.workload.direct is True
    assert run.workload.runtime == 30
    assert run.options["group_reporting"] == ""


def test_what_the_banner_says_stands_against_the_command() -> None:
    run = the_run(f"$ fio --name=x --rw=randread --bs=$((4 * 1024)) --ioengine=$ENGINE --direct=1\n{REPORT}")
    assert (run.workload.bs, run.workload.ioengine, run.workload.direct) == (4096, "libaio", True)


@pytest.mark.parametrize(
    "command",
    [
        "$ fio --name=x --rw=write --direct=1",
        "$ fio --name=x --rw=randread --iodepth=1 --direct=1",
        "$ fio --name=x --rw=randread --name=y --direct=1",
        "$ echo 'fio --direct=1",
    ],
)
def test_the_command_of_another_run_is_not_this_one_s(command: str) -> None:
    assert the_run(f"{command}\n{REPORT}").workload.direct is None


def test_each_report_has_the_command_above_it() -> None:
    text = f"$ fio --name=x --direct=1\n{REPORT}$ fio --name=x --direct=0\n{REPORT.replace('pid=1', 'pid=2')}"
    runs = [item for item in read_text(text.encode(), "x") if isinstance(item, Run)]
    assert [run.workload.direct for run in runs] == [True, False]


def test_json_merges_global_and_job_options() -> None:
    first, second = read([DATA / "fio-3.33" / "jf.json"]).runs
    assert first.options["ioengine"] == second.options["ioengine"] == "io_uring", "from the global section"
    assert (first.workload.rw, first.workload.numjobs, first.workload.iodepth) == ("randread", 2, 4)
