"""A real guest speaks as any machine does, and is gone when it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from processes import alive
from waiting import LIMIT, until

from iodelta.errors import LostError, MachineError
from iodelta.knob import knob
from iodelta.machine.vm import VmMachine
from iodelta.probe.caches import emulation_findings
from iodelta.probe.counters import Counters
from iodelta.probe.topology import resolve
from iodelta.vm import boot, kernels
from iodelta.vm import guest as guest_programs

from .conftest import KERNEL, NEEDS_GUEST

pytestmark = NEEDS_GUEST
PATIENCE = LIMIT


def guests(pid: int) -> Iterator[int]:
    """The processes of qemu that serve the guests of process ``pid``."""
    mark = f"iodelta-vm-{pid}-".encode()
    for number, words in alive():
        if words[0].startswith(b"qemu-system") and any(mark in word for word in words):
            yield number


def test_commands_files_patterns_and_processes(guest: VmMachine) -> None:
    assert guest.run(["uname", "-r"]).text.strip() == guest.release
    assert guest.run(["sh", "-c", "echo said; echo told >&2; exit 7"]).returncode == 7
    guest.append("/tmp/a b'c", b"\x00\xff\n")
    assert guest.read_bytes("/tmp/a b'c") == b"\x00\xff\n"
    assert guest.glob("/tmp/a*") == ["/tmp/a b'c"]
    with pytest.raises(MachineError, match="EINVAL"):
        guest.write("/sys/block/vda/queue/scheduler", "nonsense")
    process = guest.start(["sleep", "1000"])
    assert process.poll() is None
    assert process.stop() in (-signal.SIGTERM, -signal.SIGKILL)
    assert abs(guest.time() - time.time()) < 60


def test_a_file_is_held_by_one_alone(guest: VmMachine) -> None:
    guest.run(["mkdir", "-p", "/tmp/held"])
    held = guest.lock("/tmp/held")
    assert held is not None
    assert guest.lock("/tmp/held") is None
    held.release()


def test_a_knob_turns_and_goes_back(guest: VmMachine) -> None:
    scheduler = knob("block.scheduler", guest, resolve(guest, "/dev/vda"))
    saved = scheduler.save()
    before = scheduler.read()
    other = next(value for value in ("mq-deadline", "none") if value != before)
    scheduler.apply(other)
    scheduler.verify(other)
    scheduler.restore(guest, saved)
    assert scheduler.read() == before


def test_the_array_is_the_target_that_was_asked_for(guest: VmMachine) -> None:
    assert guest.directory == "/dev/target"
    assert guest.run(["readlink", "-f", "/dev/target"]).text.strip() == "/dev/md0"
    assert "raid1" in guest.read("/proc/mdstat")


def test_a_disk_is_no_faster_than_its_throttle(guest: VmMachine) -> None:
    job = "--name=a --filename=/dev/vda --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=4 --time_based"
    done = guest.run(["fio", *job.split(), "--runtime=2", "--ramp_time=1", "--output-format=json"], timeout=PATIENCE)
    assert 0 < json.loads(done.stdout)["jobs"][0]["read"]["iops"] < 215


def test_a_failing_sector_fails_and_others_do_not(guest: VmMachine) -> None:
    def read(sector: int) -> int:
        words = f"dd if=/dev/nvme0n1 of=/dev/null bs=512 count=1 skip={sector} iflag=direct"
        return guest.run(words.split(), timeout=PATIENCE).returncode

    assert read(8) != 0
    assert read(1000) == 0


def test_a_disk_that_keeps_gives_back_what_was_written(guest: VmMachine) -> None:
    write = ["dd", "of=/dev/sda", "bs=4096", "iflag=fullblock", "conv=fsync"]
    guest.run(write, stdin=b"kept" * 1024)
    assert guest.run(["dd", "if=/dev/sda", "bs=4096", "count=1", "iflag=direct"]).stdout == b"kept" * 1024


def test_emulated_time_is_a_finding(guest: VmMachine) -> None:
    said = [finding.rule for finding in emulation_findings(guest)]
    assert said == (["vm.clocks"] if not boot.why_no_kvm() else ["vm.emulated", "vm.clocks"])


def test_a_governor_is_set_read_back_and_put_back_and_the_clock_follows(guest: VmMachine) -> None:
    governor = knob("cpu.governor", guest, resolve(guest, "/dev/vda"))
    saved, before = governor.save(), governor.read()
    for value, megahertz in (("performance", 3000.0), ("powersave", 1000.0)):
        governor.apply(value)
        governor.verify(value)
        counters = Counters(guest, resolve(guest, "/dev/vda"))
        counters.sample()
        assert counters.snapshot().mhz == ((megahertz,),)
    governor.restore(guest, saved)
    assert governor.read() == before


def test_what_is_asked_together_is_what_is_asked_alone(guest: VmMachine) -> None:
    """Of a block that asks for the very file that stands between others, and for a program that is not there."""

    def asked() -> list[object]:
        found: list[object] = [guest.read("/proc/sys/kernel/random/boot_id"), guest.glob("/sys/block/vda/queue/*")]
        found += [guest.read(f"/sys/block/vda/queue/{name}") for name in ("nr_requests", "scheduler")]
        with pytest.raises(MachineError, match="installed there"):
            guest.run(["getconf", "CLK_TCK"])
        return found

    alone = asked()
    for _ in range(2):
        with guest.together("asked"):
            assert asked() == alone


@pytest.mark.night
def test_a_guest_that_panics_is_told_with_its_last_lines_and_none_outlives_a_kill() -> None:
    """Two boots in one: this process's guest panics, the other's owner is killed."""
    program = (
        "import time\nfrom iodelta.machine.vm import VmMachine\nwith VmMachine('6.1') as m:\n print(1, flush=True)\n "
    )
    words = [sys.executable, "-c", program + "time.sleep(600)"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as owner:
        with pytest.raises(LostError) as raised, VmMachine(KERNEL) as machine:
            machine.run(["sh", "-c", "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger"], timeout=PATIENCE)
        assert "Kernel panic" in str(raised.value)
        assert "  | " in str(raised.value)
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"1\n"
        theirs = list(guests(owner.pid))
        assert len(theirs) == 1
        owner.send_signal(signal.SIGKILL)
    until(lambda: not list(guests(owner.pid)))
    assert list(guests(os.getpid())) != theirs


@pytest.mark.night
@pytest.mark.skipif(
    not guest_programs.has_program("rublk") or not any(kernels.matches("6.12", one.release) for one in kernels.here()),
    reason="needs rublk (`scripts/setup ublk`) and Linux 6.12, the first fetched that has ublk",
)
def test_a_ublk_null_device_has_a_queue_for_each_cpu_of_two_nodes() -> None:
    with VmMachine("6.12,cpus=2,nodes=2,target=ublk-null:queues=2") as machine:
        lists = [machine.read(f"/sys/devices/system/node/node{node}/cpulist").strip() for node in range(2)]
        assert lists == ["0", "1"]
        device = machine.run(["readlink", "/dev/target"]).text.strip().removeprefix("/dev/")
        assert len(machine.glob(f"/sys/block/{device}/mq/*/cpu_list")) == 2
        assert machine.run(["dd", f"if=/dev/{device}", "of=/dev/null", "bs=4k", "count=8"]).returncode == 0
