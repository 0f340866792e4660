"""The reproducer, run for real: a plain shell with fio does the trials, and the machine is afterwards as it was."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from reproducing import READS, SHELL, plan_of, run, trials_of, written
from workshop import Workshop

from iodelta.errors import RequestError
from iodelta.experiment.model import of_boot
from iodelta.knob.registry import FAMILIES

UNSCRIPTED = ("irq.affinity", "mirror.read_policy", "mount.options")
"""Knobs that no plain script can set; those of a boot neither."""


def scheduler(node: str) -> str:
    return Path(f"/sys/block/{Path(node).name}/queue/scheduler").read_text().strip()


@pytest.mark.root
@pytest.mark.fio
def test_the_trials_run_in_the_same_order_and_the_scheduler_comes_back(workshop: Workshop, tmp_path: Path) -> None:
    node = workshop.loop(16)
    plan = plan_of(READS + "\niodepth = [1, 2]")
    before = scheduler(node)
    done = run(written(tmp_path, plan, node), node, "results")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in (tmp_path / "results/trials.tsv").read_text().splitlines()]
    cells = [cell.name for cell in plan.experiment.cells]
    variants = [variant.name for variant in plan.experiment.variants]
    order = [(cells[int(cell) - 1], variants[int(variant) - 1]) for cell, variant, *_ in rows]
    assert order == [(one.cell, one.variant) for one in trials_of(plan, 1)]
    assert all(float(rate) > 0 for *_, rate in rows)
    assert sorted(path.name for path in (tmp_path / "results/none").iterdir()) == ["c1-b1.json", "c2-b1.json"]
    assert scheduler(node) == before
    assert not (tmp_path / "results/saved").exists()


@pytest.mark.root
@pytest.mark.fio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_end_in_the_middle_leaves_nothing_changed(
    workshop: Workshop, tmp_path: Path, number: signal.Signals
) -> None:
    node = workshop.loop(16)
    before = scheduler(node)
    other = next(name for name in ("none", "mq-deadline") if f"[{name}]" not in before)
    same = f"[variant.a]\n'block.scheduler' = '{other}'\n[variant.b]\n'block.scheduler' = '{other}'"
    path = written(tmp_path, plan_of(variants=same), node, blocks=20)
    running = subprocess.Popen([SHELL, path, node, "results"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "trial 1 of 40" in running.stderr.readline()
    assert f"[{other}]" in scheduler(node)
    running.send_signal(number)
    code = running.wait(timeout=240)
    running.stderr.close()
    if number == signal.SIGTERM:
        assert code == 143
    else:  # nobody was there to put it back; what was found is on disk
        assert run(path, "--restore", "results").returncode == 0
    assert scheduler(node) == before
    assert not (tmp_path / "results/saved").exists()


@pytest.mark.root
@pytest.mark.fio
def test_a_limit_holds_fio_alone_and_its_group_is_gone_afterwards(workshop: Workshop, tmp_path: Path) -> None:
    node = workshop.loop(16)
    limits = "[variant.free]\n[variant.held]\n'cgroup.io_max' = 'riops=300'"
    done = run(written(tmp_path, plan_of(variants=limits, trial="1s"), node), node, "results")
    assert done.returncode == 0, done.stderr
    rates = {
        variant: float(rate)
        for _, variant, _, rate in map(str.split, (tmp_path / "results/trials.tsv").read_text().splitlines())
    }
    assert rates["2"] < 450  # an idle throttle has saved up a little
    assert not list(Path("/sys/fs/cgroup").glob("**/iodelta-reproduce-*"))


@pytest.mark.fio
def test_a_scratch_file_is_made_and_deleted(tmp_path: Path) -> None:
    engines = "[variant.a]\n'fio.ioengine' = 'psync'\n[variant.b]\n'fio.ioengine' = 'sync'"
    plan = plan_of("rw = 'randread'\nbs = '4k'", engines, "[target]\nsize = '4m'")
    scratch = tmp_path / "scratch" / f"{plan.identifier}.dat"  # where the experiment had it
    scratch.parent.mkdir()
    scratch.write_bytes(bytes(4 << 20))
    path = written(tmp_path, plan, str(scratch))
    scratch.unlink()
    done = run(path, str(scratch.parent), "results")
    assert done.returncode == 0, done.stderr
    assert list(scratch.parent.iterdir()) == []


@pytest.mark.root
@pytest.mark.fio
def test_a_mounted_device_and_an_unnamed_overwrite_are_refused(workshop: Workshop, tmp_path: Path) -> None:
    node = workshop.loop(32)
    path = written(tmp_path, plan_of(READS.replace("randread", "randwrite")), node)
    before = workshop.checksum(node)
    assert "say so with --overwrite" in run(path, node, "results").stderr
    workshop.run("mkfs.ext4", "-q", node)
    point = workshop.mount(node)
    (point / "kept").write_text("kept")
    os.sync()
    before = scheduler(node)
    refused = run(path, "--overwrite", node, "results")
    assert (refused.returncode, refused.stderr.strip()) == (1, f"reproduce: {node} is mounted")
    backing = Path(f"/sys/block/{Path(node).name}/loop/backing_file").read_text().strip()
    assert "is the backing file of a loop device" in run(path, "--overwrite", backing, "results").stderr
    assert scheduler(node) == before
    assert (point / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    "name", [*(name for family in FAMILIES for name in family.names), "kernel.cmdline", "vm.memory"]
)
def test_every_knob_there_is_can_be_written_or_has_a_reason(tmp_path: Path, name: str) -> None:
    setting = name.replace("sysfs:*", "sysfs:/sys/x").replace("*", "x")
    value = "{ apply = ['true'], restore = ['true'] }" if name == "command" else "'1'"
    plan = plan_of(variants=f"[variant.a]\n[variant.b]\n'{setting}' = {value}")
    if setting in UNSCRIPTED or of_boot(setting):
        with pytest.raises(RequestError, match="cannot be written as a plain script") as caught:
            written(tmp_path, plan, str(tmp_path))
        assert caught.value.place == setting
        assert "iodelta pack" in caught.value.remedy
    else:
        assert written(tmp_path, plan, str(tmp_path)).is_file()


LOAD = "[target]\nsize = '1m'\n[condition.busy]\nbackground = {{rw = '{rw}', rate_iops = 9{more}}}"


def test_a_fio_load_is_on_the_target_of_the_reader_and_writes_only_when_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    reads = written(tmp_path, plan_of(more=LOAD.format(rw="read", more="")), f"{tmp_path}/file").read_text()
    assert 'begin_load fio --name=background --filename="$named"' in reads
    assert "--readonly" in reads.split("begin_load fio")[1].split("\n")[0]
    assert "writes=no" in reads
    writes = written(tmp_path, plan_of(more=LOAD.format(rw="write", more="")), f"{tmp_path}/file").read_text()
    assert "writes=yes" in writes
    with pytest.raises(RequestError, match="filename"):
        written(tmp_path, plan_of(more=LOAD.format(rw="write", more=", filename = '/dev/sda'")), f"{tmp_path}/file")


@pytest.mark.root
@pytest.mark.fio
def test_of_two_spellings_of_one_setting_the_one_in_force_comes_back(tmp_path: Path) -> None:
    """The kernel makes the other 0, and refuses a 0 for the bytes."""
    ratio, size = (Path(f"/proc/sys/vm/dirty_background_{name}") for name in ("ratio", "bytes"))
    before = [path.read_text() for path in (ratio, size)]
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    variants = "[variant.left]\n[variant.set]\n'sysctl.vm.dirty_background_bytes' = '10485760'"
    path = written(tmp_path, plan_of(READS + "\nsize = '1m'", variants), str(tmp_path / "file"), blocks=3)
    done = run(path, str(tmp_path / "file"), "results")
    after = [path.read_text() for path in (ratio, size)]
    if after != before:  # this machine is not left changed by a test that fails
        (ratio if before[0].strip() != "0" else size).write_text(max(before, key=lambda text: text.strip() != "0"))
    assert done.returncode == 0, done.stderr
    assert after == before


def test_what_a_setting_resets_is_kept_with_it(tmp_path: Path) -> None:
    variants = "[variant.a]\n[variant.b]\n'cpu.governor' = 'performance'"
    text = written(tmp_path, plan_of(variants=variants), str(tmp_path)).read_text()
    governor, preference = (
        f"/sys/devices/system/cpu/cpufreq/policy*/{name}"
        for name in ("scaling_governor", "energy_performance_preference")
    )
    assert f"    keep {governor}\n    keep {preference}\n" in text
    assert f"        put_back_all {governor}\n        put_back_all {preference}\n" in text
