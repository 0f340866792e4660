"""What the machine counted between two moments: real devices, and the layouts of kernels that we do not have."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import PaperMachine, block_device
from knob.rooted import target
from workshop import Workshop

from iodelta.machine import LocalMachine
from iodelta.probe.counters import Counters, Snapshot, parse_read_stats
from iodelta.probe.topology import resolve

HERE = LocalMachine()
MIB = 1 << 20


def counters_of(files: dict[str, str], *devices: str, fstype: str = "") -> tuple[Counters, PaperMachine]:
    """Counters of a paper machine whose target lies on ``devices``."""
    machine = PaperMachine(files)
    for number, name in enumerate(devices):
        machine.files.update(block_device(name, f"8:{16 * number}"))
    return Counters(machine, target(*devices, fstype=fstype, mount="/mnt", path="/mnt/file")), machine


@pytest.mark.root
def test_reads_are_counted_on_the_device_and_on_what_is_below_it(workshop: Workshop) -> None:
    lower = workshop.loop(16)
    upper = workshop.loop(lower)
    counters = Counters(HERE, resolve(HERE, upper))
    names = [node.removeprefix("/dev/") for node in (upper, lower)]
    assert counters.disks[:2] == tuple(names)
    before = counters.snapshot()
    workshop.run("dd", f"if={upper}", "of=/dev/null", "bs=64k", "count=32", "iflag=direct")
    found = counters.difference(before, counters.snapshot())
    assert found[f"disk.{names[0]}.read_bytes"] == 2 * MIB
    assert found[f"disk.{names[0]}.read_ios"] == 32
    assert found[f"disk.{names[0]}.write_ios"] == 0
    assert found[f"disk.{names[1]}.read_bytes"] >= 2 * MIB
    assert found["seconds"] > 0


def test_what_a_disk_did_in_a_part_of_the_time_is_told_from_notes_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of warm-up, two that count, one that does not: 10, 100, 100 and 70 reads of 4 KiB."""
    counters, machine = counters_of({}, "sda")
    clock = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr("iodelta.probe.counters.time.monotonic", lambda: next(clock))

    def served(reads: int) -> None:
        machine.files["/proc/diskstats"] = f"8 0 sda {reads} 0 {8 * reads} 0 0 0 0 0 0 0 0\n"

    served(1000)
    before = counters.snapshot()
    for reads in (1010, 1110, 1210):
        served(reads)
        counters.note()
    served(1280)
    after = counters.snapshot()
    found = counters.within([[(1.0, 2.5)], [(1.0, 3.0)]], before, after)
    assert found["disk.sda.read_ios"] == 150
    assert found["disk.sda.read_bytes"] == 150 * 4096
    assert counters.within([[(0.0, 4.0)]], before, after)["disk.sda.read_ios"] == 280


OLD = "8 0 sda 10 1 80 5 20 2 160 7 0 9 12\n"  # 2.6.33: no discards
NEW = "8 0 sda 10 1 80 5 20 2 160 7 0 9 12 3 0 24 1 4 6\n"  # 5.5: discards and flushes


@pytest.mark.parametrize(("line", "discards"), [(OLD, None), (NEW, 3 * 512.0 * 8)])
def test_disk_statistics_of_old_and_new_kernels(line: str, discards: float | None) -> None:
    counters, machine = counters_of({"/proc/diskstats": "8 0 sda" + " 0" * (len(line.split()) - 3)}, "sda")
    before = counters.snapshot()
    machine.files["/proc/diskstats"] = line
    found = counters.difference(before, counters.snapshot())
    assert (found["disk.sda.read_ios"], found["disk.sda.read_merges"], found["disk.sda.read_bytes"]) == (10, 1, 40960)
    assert (found["disk.sda.write_bytes"], found["disk.sda.write_ms"]) == (81920, 7)
    assert (found["disk.sda.busy_ms"], found["disk.sda.queue_ms"]) == (9, 12)
    assert found.get("disk.sda.discard_bytes") == discards


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        (100.0, 350.0, 250.0),
        (2.0**32 - 100, 50.0, 150.0),
        (2.0**64 - 4096, 4096.0, 8192.0),
        (1000.0, 5.0, None),  # the device was reset, not wrapped
        (2.0**33, 5.0, None),
    ],
)
def test_a_counter_that_wraps_goes_on_and_one_that_is_reset_is_left_out(
    before: float, after: float, grown: float | None
) -> None:
    counters, _ = counters_of({})
    found = counters.difference(Snapshot(0, {"x.ms": before}, {}), Snapshot(1, {"x.ms": after}, {}))
    assert found.get("x.ms") == grown


def test_a_machine_that_counts_nothing_gives_nothing_but_the_time() -> None:
    counters, _ = counters_of({})
    before = counters.snapshot()
    counters.sample()
    assert set(counters.difference(before, counters.snapshot())) == {"seconds"}


def test_a_disk_that_vanishes_leaves_the_others(tmp_path: Path) -> None:
    counters, machine = counters_of({"/proc/diskstats": OLD + OLD.replace("sda", "sdb")}, "sda", "sdb")
    before = counters.snapshot()
    machine.files["/proc/diskstats"] = OLD
    found = counters.difference(before, counters.snapshot())
    assert "disk.sda.read_ios" in found
    assert "disk.sdb.read_ios" not in found


POLICY = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_cur_freq"


def test_the_clocks_seen_during_a_trial_are_those_between_its_snapshots() -> None:
    counters, machine = counters_of({POLICY.format(0): "800000\n", POLICY.format(1): "2300000\n"})
    counters.sample()
    before = counters.snapshot()
    machine.files[POLICY.format(0)] = "4200000\n"
    counters.sample()
    machine.files[POLICY.format(0)] = "1200000\n"
    counters.sample()
    after = counters.snapshot()
    found = counters.difference(before, after)
    assert (found["cpu.mhz_min"], found["cpu.mhz_max"], found["cpu.mhz_mean"]) == (1200, 4200, 2500)
    assert "cpu.mhz_min" not in counters.difference(after, counters.snapshot())


def test_pressure_steal_interrupts_and_quota_are_counted_by_name() -> None:
    files = {
        "/proc/stat": "cpu  1 0 2 3 4 0 0 5 0 0\nctxt 7\nintr 100 1 2\nsoftirq 60 1 2 3 4 50\n",
        "/proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 total=500\n",
        "/proc/vmstat": "pgpgin 5\nnr_dirty 3\nunheard_of 9\n",
        "/sys/class/block/sda/device/../../msi_irqs/41": "",
        "/sys/class/block/sda/device/../../msi_irqs/40": "",
        "/sys/kernel/irq/40/per_cpu_count": "1,2\n",
        "/sys/kernel/irq/41/per_cpu_count": "3,4\n",
        "/proc/self/cgroup": "0::/user/session\n",
        "/sys/fs/cgroup/user/session/cpu.stat": "usage_usec 9\nnr_throttled 1\nthrottled_usec 2000\n",
    }
    counters, machine = counters_of(files, "sda")
    before = counters.snapshot()
    machine.files |= {
        "/proc/stat": "cpu  1 0 2 3 4 0 0 25 0 0\nctxt 9\nintr 130 1 2\nsoftirq 70 1 2 3 4 55\n",
        "/proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=4000\nfull avg10=0.00 total=500\n",
        "/proc/vmstat": "pgpgin 15\nnr_dirty 1\nunheard_of 10\n",
        "/sys/kernel/irq/41/per_cpu_count": "3,14\n",
        "/sys/fs/cgroup/user/session/cpu.stat": "usage_usec 9\nnr_throttled 2\nthrottled_usec 5000\n",
    }
    found = counters.difference(before, counters.snapshot())
    assert found["cpu.steal_ms"] == 200  # 20 ticks of 10 ms
    assert (found["cpu.context_switches"], found["cpu.interrupts"], found["cpu.block_softirqs"]) == (2, 30, 5)
    assert (found["pressure.io_some_ms"], found["pressure.io_full_ms"]) == (3, 0)
    assert (found["vm.pgpgin"], found["vm.nr_dirty"]) == (10, 1)  # a level is reported, not a difference
    assert "vm.unheard_of" not in found
    assert found["irq.sda"] == 10
    assert (found["cgroup.throttles"], found["cgroup.throttled_ms"]) == (1, 3)


def test_threads_of_one_core_count_its_throttling_once() -> None:
    files: dict[str, str] = {}
    for cpu, core in ((0, 0), (1, 1), (2, 0), (3, 1)):
        base = f"/sys/devices/system/cpu/cpu{cpu}"
        files |= {
            f"{base}/topology/core_id": str(core),
            f"{base}/topology/physical_package_id": "0",
            f"{base}/thermal_throttle/core_throttle_count": f"{10 * (core + 1)}",
            f"{base}/thermal_throttle/package_throttle_count": "5",
        }
    counters, _ = counters_of(files)
    assert {name: value for name, value in counters.snapshot().counters.items() if "thermal" in name} == {
        "thermal.core_throttles": 30,
        "thermal.package_throttles": 5,
    }


OLD_FIELDS = """cumulative ios 100 wait 5000 avg 50 checkpoint ios 10 wait 400 avg 40 age -3 count 2 ignored 17
"""
OLD_FIELDS_IN_LINES = """cumulative ios 100
cumulative wait 5000
cumulative avg 50
checkpoint ios 10
checkpoint wait 400
checkpoint avg 40
age -3
count 2
ignored 17
"""
NEW_FIELDS = "ios 100 wait 5000 avg 50 age 4 ignored 17\nhealth avg 45 ago 2\nscore: 111\nvetoed=3 overflow 1\n"


@pytest.mark.parametrize("text", [OLD_FIELDS, OLD_FIELDS_IN_LINES, OLD_FIELDS.replace(" ", ": ")])
def test_read_statistics_of_the_checkpoint_layout(text: str) -> None:
    assert parse_read_stats(text) == {
        "cumulative_ios": 100,
        "cumulative_wait": 5000,
        "cumulative_avg": 50,
        "checkpoint_ios": 10,
        "checkpoint_wait": 400,
        "checkpoint_avg": 40,
        "age": -3,
        "count": 2,
        "ignored": 17,
    }


def test_read_statistics_of_the_health_layout() -> None:
    assert parse_read_stats(NEW_FIELDS) == {
        "ios": 100,
        "wait": 5000,
        "avg": 50,
        "age": 4,
        "ignored": 17,
        "health_avg": 45,
        "ago": 2,
        "score": 111,
        "vetoed": 3,
        "overflow": 1,
    }


@pytest.mark.parametrize("text", ["", "not supported\n", "12 34\n", "ios\n"])
def test_read_statistics_that_are_not_understood_are_none(text: str) -> None:
    assert parse_read_stats(text) == {}


def test_what_grows_in_read_statistics_is_a_difference_and_the_rest_a_level() -> None:
    base = "/sys/fs/btrfs/1234"
    path = f"{base}/devinfo/1/read_stats"
    counters, machine = counters_of({f"{base}/devices/sda": "", path: OLD_FIELDS}, "sda", fstype="btrfs")
    before = counters.snapshot()
    machine.files[path] = OLD_FIELDS.replace("100", "160").replace("-3", "8").replace("17", "20")
    found = counters.difference(before, counters.snapshot())
    assert found["btrfs.devid1.cumulative_ios"] == 60
    assert found["btrfs.devid1.ignored"] == 3
    assert found["btrfs.devid1.age"] == 8
    assert found["btrfs.devid1.checkpoint_avg"] == 40
