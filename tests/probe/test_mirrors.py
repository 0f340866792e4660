"""Which members of a btrfs a policy may choose from, and what the pids of the readers make of that."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import PaperMachine, block_device
from knob.rooted import target
from workshop import Workshop

from iodelta.machine import LocalMachine
from iodelta.probe.caches import CacheBelow, cache_findings, caches_below
from iodelta.probe.mirrors import Chunk, Mirrors, chunks_of, copies_of, extents_of, pid_shares
from iodelta.probe.topology import resolve

MIB = 1 << 20
UUID = "cbac7df1-9550-4c0f-b1db-c5caeb878cca"


def item(start: int, kind: str, devids: tuple[int, ...], sub: int = 1, length: int = MIB) -> str:
    """A chunk as btrfs-progs prints it."""
    stripes = "".join(
        f"\t\t\tstripe {n} devid {devid} offset {n}\n\t\t\tdev_uuid {UUID}\n" for n, devid in enumerate(devids)
    )
    return (
        f"\titem 2 key (FIRST_CHUNK_TREE CHUNK_ITEM {start}) itemoff 15975 itemsize 112\n"
        f"\t\tlength {length} owner 2 stripe_len 65536 type {kind}\n"
        "\t\tio_align 65536 io_width 65536 sector_size 4096\n"
        f"\t\tnum_stripes {len(devids)} sub_stripes {sub}\n{stripes}"
    )


def test_each_profile_says_which_devices_hold_the_same_bytes() -> None:
    text = "chunk tree\n" + "".join(
        (
            item(1 * MIB, "METADATA|RAID1C3", (3, 1, 2)),
            item(2 * MIB, "DATA|RAID1", (2, 1)),
            item(3 * MIB, "DATA|RAID10", (1, 4, 2, 3), sub=2),
            item(4 * MIB, "DATA|single", (1,)),
            item(5 * MIB, "DATA|DUP", (1, 1)),
        )
    )
    assert chunks_of(text) == (
        Chunk(1 * MIB, MIB, ((3, 1, 2),)),
        Chunk(2 * MIB, MIB, ((2, 1),)),
        Chunk(3 * MIB, MIB, ((1, 4), (2, 3))),
    )
    assert chunks_of("ERROR: cannot open\n") == ()


def test_extents_that_are_on_no_device_are_left_out() -> None:
    text = """Filesystem type is: 9123683e
File size of f is 100663296 (24576 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..   12287:      21520..     33807:  12288:
   1:    12288..   12300:          0..        12:     13:             unknown_loc,delalloc
   2:    12301..   24575:      34048..     46322:  12275:      33808: last,eof
"""
    assert extents_of(text) == ((21520 * 4096, 12288 * 4096), (34048 * 4096, 12275 * 4096))


def test_an_extent_is_dealt_to_the_chunks_that_it_lies_in() -> None:
    chunks = [Chunk(0, 10, ((1, 2),)), Chunk(10, 10, ((2, 1),)), Chunk(20, 40, ((1, 3), (2, 4)))]
    assert copies_of(chunks, [(5, 10), (20, 40)]) == {(1, 2): 5, (1, 3): 20, (2, 1): 5, (2, 4): 20}


def test_one_reader_in_one_chunk_is_a_lottery_and_both_parities_are_none() -> None:
    assert pid_shares({(1, 2): 8}, [1001]) == {1: 0.0, 2: 1.0}
    assert pid_shares({(1, 2): 8}, [1000, 1001]) == {1: 0.5, 2: 0.5}
    assert pid_shares({(1, 2): 4, (2, 1): 4}, [1000]) == {1: 0.5, 2: 0.5}, "the order of the stripes counts"
    assert pid_shares({(3, 1, 2): 9}, [1000]) == {1: 1.0, 2: 0.0, 3: 0.0}
    assert pid_shares({(1, 2): 8}, []) == {}


@pytest.mark.root
def test_the_map_of_a_real_mirror_holds_every_byte_of_the_file(workshop: Workshop) -> None:
    pair = workshop.loop(160), workshop.loop(160)
    workshop.run("mkfs.btrfs", "--quiet", "-d", "raid1", "-m", "raid1", *pair)
    point = workshop.mount(pair[0])
    file = point / "file"
    file.write_bytes(b"x" * (8 * MIB))
    mirrors = Mirrors(LocalMachine(), resolve(LocalMachine(), str(file)))
    mirrors.sample(1000)
    found = mirrors.account()
    held = {name: size for name, size in found.items() if name.startswith("btrfs.copies.")}
    assert held.pop("btrfs.copies.bytes") == 8 * MIB
    assert set(held) <= {"btrfs.copies.1+2.bytes", "btrfs.copies.2+1.bytes"}
    assert sum(held.values()) == 8 * MIB
    assert (found["btrfs.pids_mod2.0"], found["btrfs.pids_mod2.1"]) == (1, 0)
    assert found["btrfs.devid1.pid_share"] + found["btrfs.devid2.pid_share"] == pytest.approx(1)
    if len(held) == 1:
        assert [one.rule for one in mirrors.findings(found)] == ["btrfs.pid-lottery"]
    assert "btrfs.pids_mod2.0" not in mirrors.account(), "another trial, other readers"


@pytest.mark.root
def test_without_the_programs_that_know_the_map_the_trial_goes_on_and_a_note_says_so(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = workshop.loop(160), workshop.loop(160)
    workshop.run("mkfs.btrfs", "--quiet", "-d", "raid1", "-m", "raid1", *pair)
    file = workshop.mount(pair[0]) / "file"
    file.write_bytes(b"x" * MIB)
    mirrors = Mirrors(LocalMachine(), resolve(LocalMachine(), str(file)))
    monkeypatch.setenv("PATH", "/nowhere")
    account = mirrors.account()
    assert account == {"btrfs.copies.bytes": 0}
    assert [one.rule for one in mirrors.findings(account)] == ["btrfs.no-chunk-map"]


def test_what_is_no_mirrored_btrfs_has_no_account(tmp_path: Path) -> None:
    mirrors = Mirrors(LocalMachine(), resolve(LocalMachine(), str(tmp_path)))
    mirrors.sample(1)
    assert mirrors.account() == {}
    assert mirrors.findings({}) == ()


def caching(mode: str, state: str = "clean") -> PaperMachine:
    """A btrfs member that is a bcache, over a disk and a quick device."""
    return PaperMachine(
        {
            **block_device("sda", "8:0"),
            **block_device("nvme0n1", "259:0"),
            **block_device("bcache0", "252:0", slaves__sda="", slaves__nvme0n1=""),
            "/sys/class/block/bcache0/bcache/cache_mode": mode,
            "/sys/class/block/bcache0/bcache/state": state,
        }
    )


def test_a_bcache_below_is_named_with_its_mode_and_one_without_a_cache_is_not() -> None:
    modes = "writethrough [writeback] writearound none"
    assert caches_below(caching(modes), target("bcache0")) == (CacheBelow("bcache0", "bcache", "writeback"),)
    (finding,) = cache_findings(caching(modes), target("bcache0"))
    assert (finding.rule, finding.place) == ("cache.below", "bcache0")
    assert "drop_caches does not empty it" in finding.remedy
    assert caches_below(caching(modes, "no cache"), target("bcache0")) == ()
    assert caches_below(caching(modes), target("sda")) == ()


@pytest.mark.parametrize(("kind", "found"), [("cache", True), ("writecache", True), ("linear", False)])
def test_a_device_mapper_cache_is_found_through_whatever_lies_on_it(kind: str, found: bool) -> None:
    machine = PaperMachine(
        {
            **block_device("sda", "8:0"),
            **block_device("dm-0", "253:0", slaves__sda="", dm__name="vg-slow"),
            **block_device("dm-1", "253:1", dm__name="crypt"),
            "/sys/class/block/dm-1/slaves/dm-0": "",
        },
        {"dmsetup table -- vg-slow": f"0 2048 {kind} 253:2 253:3", "dmsetup table -- crypt": "0 2048 crypt aes"},
    )
    assert bool(caches_below(machine, target("dm-1"))) is found
