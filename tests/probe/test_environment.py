"""The environment says what a machine was, why something is missing, and what differs between two of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fakes import PaperMachine, block_device, partition
from knob.rooted import target
from workshop import Workshop

from iodelta.machine import LocalMachine
from iodelta.probe.environment import Environment, environment
from iodelta.probe.topology import resolve
from iodelta.study.confounders import flat

HERE = LocalMachine()


def differences(one: Environment, other: Environment) -> dict[str, tuple[str | None, str | None]]:
    """Of two environments as they are recorded: what one side does not have is None."""
    a, b = flat(msgspec.to_builtins(one)), flat(msgspec.to_builtins(other))
    return {path: (a.get(path), b.get(path)) for path in {**a, **b} if a.get(path) != b.get(path)}


def paper(files: dict[str, str], commands: dict[str, str] | None = None, device: str = "") -> Environment:
    """The environment of a paper machine, with a block device as target or a directory on nothing."""
    return environment(PaperMachine(files, commands), target(*([device] if device else [])))


@pytest.mark.root
def test_a_changed_scheduler_is_the_only_difference(workshop: Workshop) -> None:
    node = workshop.loop(8)
    scheduler = Path(f"/sys/block/{node.removeprefix('/dev/')}/queue/scheduler")
    target = resolve(HERE, node)
    scheduler.write_text("none")
    before = environment(HERE, target)
    assert differences(before, environment(HERE, target)) == {}
    scheduler.write_text("mq-deadline")
    found = differences(before, environment(HERE, target))
    was, now = found["devices.0.queue.scheduler"]
    assert was is not None
    assert now is not None
    assert "[none]" in was
    assert "[mq-deadline]" in now
    assert found["devices.0.queue.iosched.fifo_batch"][0] is None
    assert all(path.startswith("devices.0.queue.") for path in found)


@pytest.mark.root
def test_the_layout_of_a_btrfs_and_all_its_members_are_recorded(workshop: Workshop) -> None:
    pair = workshop.loop(128), workshop.loop(128)
    workshop.run("mkfs.btrfs", "--quiet", "-d", "single", "-m", "raid1", *pair)
    point = workshop.mount(pair[0], "-o", "noatime,compress=zstd")
    found = environment(HERE, resolve(HERE, str(point)))
    assert (found.filesystem["btrfs.data"], found.filesystem["btrfs.metadata"]) == ("single", "raid1")
    assert {"noatime", "compress=zstd:3"} <= set(found.filesystem["options"].split(","))
    names = [section["name"] for section in found.devices]
    assert {node.removeprefix("/dev/") for node in pair} <= set(names)
    assert "pid" in found.filesystem["btrfs.read_policy"]


def test_this_machine_is_recorded_and_survives_its_json(tmp_path: Path) -> None:
    found = environment(HERE, resolve(HERE, str(tmp_path)))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Environment) == found
    assert found.kernel["release"] == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert int(found.cpu["threads"]) >= int(found.cpu["cores"]) >= int(found.cpu["sockets"]) >= 1
    assert found.target["real_path"] == str(tmp_path)
    assert found.now["boot_id"]


@pytest.mark.fio
def test_fio_is_recorded_with_its_path_version_and_engines(tmp_path: Path) -> None:
    fio = environment(HERE, resolve(HERE, str(tmp_path))).fio
    assert fio["version"].startswith("fio-")
    assert Path(fio["path"]).exists()
    assert "psync" in fio["engines"].split()
    assert fio["build"] in ("distribution", "not of a dpkg or rpm package")


def test_a_machine_that_tells_nothing_gives_reasons_and_no_exception() -> None:
    found = paper({})
    assert found.fio == found.mitigations == found.numa == {}
    assert found.devices == ()
    assert found.absent["fio.path"] == "no fio on PATH"
    assert "ENOENT" in found.absent["kernel.release"]
    assert "policy*" in found.absent["cpu.governor"]
    assert "no mounted filesystem" in found.absent["filesystem"] or "ENOENT" in found.absent["filesystem"]
    assert all(found.absent.values())


def test_driver_parameters_a_tuning_profile_and_irqbalance_are_recorded() -> None:
    files = {
        "/sys/module/nvme/parameters/poll_queues": "4",
        "/sys/module/sound/parameters/volume": "11",
        "/etc/tuned/active_profile": "throughput-performance",
        "/run/irqbalance/irqbalance1.sock": "",
        "/sys/kernel/security/lsm": "capability,selinux",
    }
    found = paper(files)
    assert found.modules == {"nvme.poll_queues": "4"}
    assert (found.host["tuned_profile"], found.host["irqbalance"]) == ("throughput-performance", "runs")
    assert found.kernel["security_modules"] == "capability,selinux"


CPUFREQ = "/sys/devices/system/cpu/cpufreq/policy{}/{}"


def test_a_governor_that_differs_between_cpus_is_seen() -> None:
    files = {CPUFREQ.format(n, "scaling_governor"): "powersave\n" for n in range(3)}
    files[CPUFREQ.format(3, "scaling_governor")] = "performance\n"
    files |= {CPUFREQ.format(n, "scaling_driver"): "intel_pstate\n" for n in range(4)}
    cpu = paper(files).cpu
    assert cpu["governor"] == "powersave (3), performance (1)"
    assert cpu["driver"] == "intel_pstate"


def test_taint_bits_are_told_by_letter() -> None:
    assert paper({"/proc/sys/kernel/tainted": "0"}).kernel["tainted"] == "0"
    assert paper({"/proc/sys/kernel/tainted": str(1 | 1 << 12 | 1 << 13)}).kernel["tainted"] == "12289 POE"


def test_of_the_configuration_only_what_matters_for_io_is_kept() -> None:
    config = "CONFIG_PSI=y\nCONFIG_SOUND=m\nCONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_KASAN=y\n"
    found = paper({"/proc/sys/kernel/osrelease": "6.1", "/boot/config-6.1": config})
    kept = {key: text for key, text in found.kernel.items() if key.startswith("config.")}
    assert kept == {"config.PSI": "y", "config.HZ": "250", "config.KASAN": "y"}
    assert "kernel.config" not in found.absent


def test_a_compressed_configuration_in_proc_is_read_where_boot_has_none() -> None:
    found = paper({}, {"gzip -dc /proc/config.gz": "CONFIG_HZ=1000\n"})
    assert found.kernel["config.HZ"] == "1000"


def test_limits_are_recorded_for_every_level_of_the_control_groups() -> None:
    limits = paper(
        {
            "/proc/self/cgroup": "0::/a/b\n",
            "/sys/fs/cgroup/a/cpu.max": "200000 100000\n",
            "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "/sys/fs/cgroup/a/b/io.max": "8:0 rbps=max wbps=max riops=5000 wiops=max\n",
            "/proc/self/status": "Cpus_allowed_list:\t0-3\n",
        }
    ).limits
    assert limits["cpu.max"] == "200000 100000 > max 100000"
    assert "riops=5000" in limits["io.max"]
    assert limits["cpus"] == "0-3"


def test_an_array_is_recorded_with_its_layout_members_and_their_disks() -> None:
    files = {
        **block_device("sda", "8:0", queue__scheduler="[none] mq-deadline\n", queue__rotational="0\n"),
        **partition("sda", 1, "8:1"),
        **block_device("sdb", "8:16", queue__scheduler="none [mq-deadline]\n"),
        **partition("sdb", 1, "8:17"),
        **block_device(
            "md0",
            "9:0",
            md__level="raid10\n",
            md__layout="near=2\n",
            md__chunk_size="32768\n",
            md__sync_action="idle\n",
            md__bitmap__location="none\n",
            slaves__sda1="",
            slaves__sdb1="",
        ),
        "/sys/class/block/md0/md/dev-sda1/slot": "0\n",
        "/sys/class/block/md0/md/dev-sda1/state": "in_sync\n",
        "/sys/class/block/md0/md/dev-sda1": "",
        "/sys/class/block/sdb/device": "",
        "/sys/class/block/sdb/device/model": "Samsung SSD 850\n",
        "/sys/class/block/sdb/device/rev": "2B6Q\n",
        "/sys/bus/pci/devices/0000:00:17.0/current_link_speed": "8.0 GT/s PCIe\n",
    }
    real = "/sys/devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0"
    found = paper(files, {"readlink -f -- /sys/class/block/sdb/device": real}, device="md0")
    array, first, *_ = found.devices
    assert (array["md.level"], array["md.layout"], array["md.chunk_size"]) == ("raid10", "near=2", "32768")
    assert (array["md.sync_action"], array["md.bitmap_location"]) == ("idle", "none")
    assert array["md.member.sda1"] == "slot 0, in_sync"
    assert array["members"] == "sda1 sdb1"
    assert first["partition_of"] == "sda"
    disks = {section["name"]: section for section in found.devices}
    assert list(disks) == ["md0", "sda1", "sdb1", "sda", "sdb"]
    assert disks["sda"]["queue.scheduler"] == "[none] mq-deadline"
    assert found.absent["sda.hardware"] == "a virtual device"
    sdb = disks["sdb"]
    assert (sdb["model"], sdb["firmware"], sdb["transport"]) == ("Samsung SSD 850", "2B6Q", "ata")
    assert (sdb["pci"], sdb["link_speed"]) == ("0000:00:17.0", "8.0 GT/s PCIe")


def test_of_a_device_mapper_table_only_the_types_are_kept() -> None:
    table = "0 2048 crypt aes-xts-plain64 0123456789abcdef 0 8:0 4096\n2048 2048 linear 8:16 0\n"
    found = paper(
        block_device("dm-0", "253:0", dm__name="secret\n", dm__uuid="CRYPT-LUKS2-1\n"),
        {"dmsetup table -- secret": table},
        device="dm-0",
    )
    assert found.devices[0]["dm.targets"] == "crypt (1), linear (1)"
    assert "0123456789abcdef" not in str(found)


def test_a_guest_and_a_container_are_told() -> None:
    host = paper({"/proc/cpuinfo": "processor : 0\nflags : fpu hypervisor\n", "/run/systemd/container": "lxc\n"}).host
    assert (host["virtual"], host["container"]) == ("yes", "lxc")
    assert paper({"/proc/cpuinfo": "flags : fpu\n"}).host["virtual"] == "not seen"
