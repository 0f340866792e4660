"""What a variant does to a disk's request queue, on real loop devices."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from waiting import until

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop, mounted, run
from .rooted import Rooted, target

pytestmark = pytest.mark.root

State = dict[str, str]


def state_of(loop: Loop) -> State:
    """All that the knobs may change, and what these changes change."""
    names = ["scheduler", "nr_requests", "wbt_lat_usec", "read_ahead_kb", "rq_affinity", "nomerges", "io_poll"]
    names += [f"iosched/{path.name}" for path in loop.queue.glob("iosched/*")]
    return {name: loop[name] for name in names}


def knob_of(loop: Loop, name: str) -> knob.Knob:
    machine = LocalMachine()
    return knob.knob(name, machine, resolve(machine, loop.path))


@pytest.mark.parametrize(
    "found",
    [
        {"scheduler": "none", "nr_requests": "64"},
        {"scheduler": "mq-deadline", "nr_requests": "100", "iosched/async_depth": "20", "iosched/fifo_batch": "3"},
        {"scheduler": "mq-deadline", "iosched/async_depth": "20", "wbt_lat_usec": "5000"},
        {"scheduler": "kyber", "nr_requests": "512", "iosched/read_lat_nsec": "1000000"},
        {"scheduler": "bfq", "iosched/slice_idle_us": "8500", "iosched/low_latency": "0", "wbt_lat_usec": "3000"},
    ],
    ids=lambda found: "-".join(found.values()),
)
@pytest.mark.parametrize("variant", ["none", "mq-deadline", "kyber", "bfq"])
def test_a_scheduler_switch_gives_back_all_that_it_reset(
    loop: Loop, machine: LocalMachine, found: State, variant: str
) -> None:
    for name, value in found.items():
        loop[name] = value
    before = state_of(loop)
    scheduler = knob_of(loop, "block.scheduler")
    saved = scheduler.save()
    scheduler.apply(variant)
    scheduler.verify(variant)
    assert f"[{variant}]" in loop["scheduler"]
    knob.restore(machine, saved)
    assert state_of(loop) == before
    assert knob.restore(machine, saved) == "is at its original value"


VARIANTS: dict[str, dict[str, State]] = {
    "schedulers, tunables and depth": {
        "as it is": {},
        "none": {"block.scheduler": "none"},
        "none, shallow": {"block.scheduler": "none", "block.nr_requests": "32"},
        "deadline": {"block.scheduler": "mq-deadline"},
        "deadline, batch": {"block.scheduler": "mq-deadline", "block.iosched.fifo_batch": "40"},
        "deadline, deep": {"block.scheduler": "mq-deadline", "block.nr_requests": "512"},
        "deadline, async": {"block.scheduler": "mq-deadline", "block.iosched.async_depth": "7"},
        "bfq": {"block.scheduler": "bfq"},
        "bfq, no idling": {"block.scheduler": "bfq", "block.iosched.slice_idle": "0"},
    },
    "writeback throttling beside schedulers": {
        "as it is": {},
        "bfq": {"block.scheduler": "bfq"},
        "none": {"block.scheduler": "none"},
        "none, off": {"block.scheduler": "none", "block.wbt_lat_usec": "0"},
        "off": {"block.wbt_lat_usec": "0"},
        "bfq, on": {"block.scheduler": "bfq", "block.wbt_lat_usec": "4000"},
    },
    "depth of the present scheduler": {
        "as it is": {},
        "shallow": {"block.nr_requests": "64"},
        "deep": {"block.nr_requests": "300"},
        "async": {"block.iosched.async_depth": "9"},
        "shallow, async": {"block.nr_requests": "64", "block.iosched.async_depth": "9"},
    },
    "attributes without side effects": {
        "as it is": {},
        "read ahead": {"block.read_ahead_kb": "512"},
        "completion": {"block.rq_affinity": "2", "block.nomerges": "2"},
        "default throttle": {"block.wbt_lat_usec": "-1"},
    },
}


@pytest.mark.parametrize("experiment", VARIANTS)
@pytest.mark.parametrize("found", ["none", "mq-deadline"])
def test_a_variant_means_the_same_in_every_block(
    loop: Loop, machine: LocalMachine, experiment: str, found: str
) -> None:
    loop["scheduler"] = found
    if found == "mq-deadline":
        loop["iosched/fifo_batch"] = "5"
        loop["iosched/async_depth"] = "11"
    elif experiment == "depth of the present scheduler":
        loop["scheduler"] = found = "mq-deadline"
    before = state_of(loop)
    variants = VARIANTS[experiment]
    knobs = {name: knob_of(loop, name) for settings in variants.values() for name in settings}
    saved = {name: one.save() for name, one in knobs.items()}
    seen: dict[str, State] = {}
    order = random.Random(experiment)
    for _ in range(5):
        for name in order.sample(sorted(variants), len(variants)):
            knob.turn(knobs, saved, variants[name])
            state = state_of(loop)
            assert seen.setdefault(name, state) == state, name
    assert {name: text for name, text in seen["as it is"].items() if before[name] != text} == {}
    list(knob.restore_all(machine, saved.values()))
    assert state_of(loop) == before


@pytest.mark.parametrize(
    ("name", "asked", "shown"),
    [
        ("block.nr_requests", "1", "4"),  # raised to BLKDEV_MIN_RQ
        ("block.read_ahead_kb", "5", "4"),  # rounded to pages
        ("block.nomerges", "7", "1"),
        ("block.rq_affinity", "9", "1"),  # ignored
    ],
)
def test_a_value_that_the_kernel_takes_but_changes_is_caught(loop: Loop, name: str, asked: str, shown: str) -> None:
    one = knob_of(loop, name)
    one.apply(asked)
    with pytest.raises(KnobError, match=f"requested '{asked}'; .* shows '{shown}'"):
        one.verify(asked)
    with pytest.raises(RequestError, match="allowed"):
        one.check(asked)


@pytest.mark.parametrize(("name", "value"), [("block.nr_requests", "100000"), ("block.io_poll", "1")])
def test_a_value_that_the_kernel_refuses_is_named_with_path_and_allowed_values(
    loop: Loop, name: str, value: str
) -> None:
    with pytest.raises(KnobError) as caught:
        knob_of(loop, name).apply(value)
    told = str(caught.value)
    assert str(loop.queue / name.removeprefix("block.")) in told
    assert f"'{value}'" in told
    assert "EINVAL" in told
    assert "allowed: " in told


def test_minus_one_is_the_default_throttle_of_the_disk(loop: Loop) -> None:
    loop["wbt_lat_usec"] = "12345"
    throttle = knob_of(loop, "block.wbt_lat_usec")
    throttle.check("-1")
    throttle.apply("-1")
    throttle.verify("-1")
    assert loop["wbt_lat_usec"] == ("75000" if loop["rotational"] == "1" else "2000")
    with pytest.raises(RequestError):
        throttle.check("-2")


def test_the_queue_of_a_partition_is_that_of_its_disk(loop: Loop, machine: LocalMachine) -> None:
    run("sh", "-c", 'echo "start=2048" | sfdisk --quiet "$0"', loop.path)
    run("partx", "--update", loop.path)
    until(Path(f"{loop.path}p1").exists)
    depth = knob.knob("block.nr_requests", machine, resolve(machine, f"{loop.path}p1"))
    saved = depth.save()
    depth.apply("48")
    assert loop["nr_requests"] == "48"
    knob.restore(machine, saved)
    assert loop["nr_requests"] == "128"


def test_scheduler_names_are_those_the_disk_offers(loop: Loop) -> None:
    scheduler = knob_of(loop, "block.scheduler")
    assert scheduler.allowed() == ("none", "mq-deadline", "kyber", "bfq")
    with pytest.raises(RequestError, match="none, mq-deadline, kyber, bfq"):
        scheduler.check("deadline")


@pytest.mark.parametrize("value", ["", " ", "none\nbfq", "none\0", "none\r"])
def test_a_value_is_one_line_of_text(loop: Loop, value: str) -> None:
    with pytest.raises(RequestError, match="one line"):
        knob_of(loop, "block.scheduler").check(value)


def test_a_tunable_goes_with_the_scheduler_of_its_variant(loop: Loop) -> None:
    batch = knob_of(loop, "block.iosched.fifo_batch")
    assert batch.available() is None
    batch.check("8", {"block.scheduler": "mq-deadline", "block.iosched.fifo_batch": "8"})
    with pytest.raises(RequestError, match=r"none has no such tunable"):
        batch.check("8")
    with pytest.raises(RequestError, match=r"kyber has no such tunable[^$]*read_lat_nsec"):
        batch.check("8", {"block.scheduler": "kyber"})
    assert "neither a known scheduler nor the active one" in str(knob_of(loop, "block.iosched.fifo_bacth").available())


def test_a_disk_that_is_gone_took_its_settings_with_it(loop: Loop, machine: LocalMachine) -> None:
    scheduler = knob_of(loop, "block.scheduler")
    saved = scheduler.save()
    scheduler.apply("bfq")
    loop.remove()
    assert "no longer exists, nor does its setting" in knob.restore(machine, saved)
    with pytest.raises(KnobError, match="did the device"):
        scheduler.apply("none")


def test_a_record_never_touches_another_disk_of_the_same_name(
    loop: Loop, machine: LocalMachine, tmp_path: Path
) -> None:
    depth = knob_of(loop, "block.nr_requests")
    saved = depth.save()
    depth.apply("48")
    loop.detach()
    loop.attach(tmp_path / "other.img")
    with pytest.raises(KnobError, match="another disk now"):
        depth.apply("32")
    account = knob.restore(machine, saved)
    assert "left as it is: " in account
    assert f"{loop.name} is another disk now" in account
    assert loop["nr_requests"] == "48"


def test_after_a_reboot_nothing_needs_to_be_written(loop: Loop, machine: LocalMachine) -> None:
    depth = knob_of(loop, "block.nr_requests")
    saved = depth.save()
    depth.apply("48")
    account = knob.restore(machine, msgspec.structs.replace(saved, boot="00000000-0000-0000-0000-000000000000"))
    assert "rebooted since" in account
    assert loop["nr_requests"] == "48"


def test_files_on_btrfs_are_read_ahead_by_the_filesystems_own_setting(
    loop: Loop, machine: LocalMachine, tmp_path: Path
) -> None:
    run("mkfs.btrfs", "--quiet", "--force", "--mixed", loop.path)
    with mounted(loop.path, tmp_path / "mnt") as point:
        ahead = knob.knob("block.read_ahead_kb", machine, resolve(machine, str(point)))
        before, disk = ahead.read(), loop["read_ahead_kb"]
        saved = ahead.save()
        ahead.apply("256")
        ahead.verify("256")
        assert loop["read_ahead_kb"] == disk
        assert [path for path, _ in saved.values if path.startswith("/sys/fs/btrfs/")]
        knob.restore(machine, saved)
        assert ahead.read() == before


def test_a_bio_based_device_is_scheduled_by_its_members(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for disk in ("md0", "sda", "sdb"):
        files |= {f"/sys/class/block/{disk}/{name}": "8" for name in ("dev", "size")}
    files |= {"/sys/class/block/md0/slaves/sda/x": "", "/sys/class/block/md0/slaves/sdb/x": ""}
    files |= {"/sys/block/md0/queue/scheduler": "none", "/sys/block/md0/queue/read_ahead_kb": "1024"}
    files |= {
        "/sys/block/sda/queue/scheduler": "[none] bfq",
        "/sys/block/sdb/queue/scheduler": "none mq-deadline [bfq]",
    }
    machine = Rooted(tmp_path, files)
    scheduler = knob.knob("block.scheduler", machine, target("md0"))
    assert scheduler.read() == "none | bfq"
    assert scheduler.allowed() == ("none", "bfq")
    scheduler.apply("none")
    assert machine.writes == [("/sys/block/sdb/queue/scheduler", "none")]
    ahead = knob.knob("block.read_ahead_kb", machine, target("md0"))
    assert ahead.read() == "1024"
