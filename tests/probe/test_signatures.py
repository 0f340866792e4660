"""Partition tables, filesystems and RAID metadata are recognised by their bytes, wherever on the device they stand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.probe.contents import MAGICS, STEP, detect, ranges

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(("name", "magic", "places"), MAGICS, ids=[name for name, _, _ in MAGICS])
def test_each_known_magic_is_seen_at_each_of_its_places(name: str, magic: bytes, places: tuple[int, ...]) -> None:
    size = 300 * GIB
    for place in places:
        start = place if place >= 0 else size + place

        def piece(offset: int, length: int, start: int = start) -> bytes:
            content = bytearray(length)
            if offset <= start < offset + length:
                content[start - offset : start - offset + len(magic)] = magic
            return bytes(content)

        assert name in detect({offset: piece(offset, length) for offset, length in ranges(size)}, size)


@given(st.integers(min_value=0, max_value=20 * 1024 * GIB).map(lambda size: size // 512 * 512))
def test_what_is_read_lies_on_the_device_once_and_aligned(size: int) -> None:
    found = ranges(size)
    end = 0
    for offset, length in found:
        assert offset >= end
        assert offset % STEP == 0
        end = offset + length
    assert end == size  # the very end is always read: backup GPT, md 0.90 and 1.0, ZFS
    assert sum(length for _, length in found) <= 7 * MIB


@given(
    st.integers(min_value=0, max_value=4 * MIB // 512).map(lambda sectors: sectors * 512), st.sampled_from((64, 262144))
)
def test_each_superblock_copy_of_btrfs_that_fits_is_read(beyond: int, mib: int) -> None:
    copy = mib * MIB
    size = copy + 4096 + beyond
    assert any(offset <= copy and copy + 4096 <= offset + length for offset, length in ranges(size))


@given(st.binary(max_size=8192), st.integers(min_value=0, max_value=1 << 50))
def test_no_bytes_make_detection_fail(content: bytes, size: int) -> None:
    assert isinstance(detect({0: content}, size), tuple)


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\xaa"])
def test_a_device_of_one_repeated_byte_is_empty(fill: bytes) -> None:
    size = 64 * MIB
    assert detect({offset: fill * length for offset, length in ranges(size)}, size) == ()


def superblock(place: Callable[[int], int]) -> Callable[[int], bool]:
    def seen(size: int) -> bool:
        magic = bytes.fromhex("fc4e2ba9")
        pieces = {}
        for offset, length in ranges(size):
            content = bytearray(length)
            inside = place(size) - offset
            if 0 <= inside < length:
                content[inside : inside + 4] = magic
            pieces[offset] = bytes(content)
        return "md RAID member" in detect(pieces, size)

    return seen


@given(st.integers(min_value=1 << 11, max_value=1 << 40))
def test_md_superblocks_at_the_end_are_found_on_devices_of_any_size(sectors: int) -> None:
    # md_p.h: MD_NEW_SIZE_SECTORS for 0.90; md.c: 8 KiB before the end, down to 4 KiB, for 1.0.
    assert superblock(lambda size: size // 65536 * 65536 - 65536)(sectors * 512)
    assert superblock(lambda size: (size - 8192) // 4096 * 4096)(sectors * 512)
