"""Signatures of what a device or file holds: filesystems, RAID, LVM, LUKS, swap, images, archives, databases.

Signatures only give names: data without one is data, too. ``ranges`` gives the bytes to read, ``detect`` recognises
them; both are pure. blkid(8) knows more formats but may be missing and calls some of these ambivalent, so it comes
second. Layouts: util-linux ``libblkid/src``, the kernel's ``include/uapi/linux/raid/md_p.h``,
``drivers/md/bcache/super.c`` and ``drivers/md/dm-*metadata.c``, OpenZFS ``vdev_label.c``, the LUKS2 on-disk format,
LVM2 ``lib/label/label.h``, DRBD ``drbd_meta_data.h``; of files their own specifications.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from itertools import product

from iodelta.errors import MachineError
from iodelta.machine import Machine

KIB = 1024
MIB = 1024 * KIB
STEP = 64 * KIB
"""Reads start at and are made of multiples of this: aligned for O_DIRECT on any logical block size."""

HEAD = 5 * MIB
TAIL = 1 * MIB
BTRFS_COPIES = (64 * MIB, 256 * 1024 * MIB)
EXT_COPIES = (8 * MIB, 32 * MIB, 128 * MIB)
"""The second superblock of ext2/3/4 with blocks of 1, 2 and 4 KiB: what is left when the beginning was overwritten."""

MAGICS: tuple[tuple[str, bytes, tuple[int, ...]], ...] = (
    ("GPT partition table", b"EFI PART", (512, 4096, -512, -4096)),
    ("boot sector or MBR partition table", b"\x55\xaa", (510,)),
    ("BSD disk label", b"\x57\x45\x56\x82", (0, 64, 512)),
    ("Sun disk label", b"\xda\xbe", (508,)),
    ("SGI disk label", b"\x0b\xe5\xa9\x41", (0,)),
    ("Mac partition map", b"PM\x00\x00", (512,)),
    (
        "ext2/3/4",
        b"\x53\xef",
        (1080, 8 * MIB + KIB + 56, 32 * MIB + 56, 128 * MIB + 56),
    ),
    ("XFS", b"XFSB", (0,)),
    ("btrfs", b"_BHRfS_M", tuple(copy + 64 for copy in (64 * KIB, *BTRFS_COPIES))),
    ("bcache", bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), (4096 + 24,)),
    (
        "bcachefs",
        bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef"),
        (4096 + 24, 2 * MIB + 24),
    ),
    ("LVM physical volume", b"LABELONE", (0, 512, 1024, 1536)),
    ("LVM1 physical volume", b"HM\x01\x00", (0,)),
    ("LUKS", b"LUKS\xba\xbe", (0,)),
    ("LUKS", b"SKUL\xba\xbe", tuple(16 * KIB << n for n in range(9))),
    ("swap", b"SWAPSPACE2", tuple((4 * KIB << n) - 10 for n in range(5))),
    ("swap", b"SWAP-SPACE", tuple((4 * KIB << n) - 10 for n in range(5))),
    ("hibernation image", b"S1SUSPEND", tuple((4 * KIB << n) - 10 for n in range(5))),
    ("hibernation image", b"LINHIB0001", tuple((4 * KIB << n) - 10 for n in range(5))),
    ("f2fs", b"\x10\x20\xf5\xf2", (1024, 5120)),
    ("erofs", b"\xe2\xe1\xf5\xe0", (1024,)),
    ("squashfs", b"hsqs", (0,)),
    ("NTFS", b"NTFS    ", (3,)),
    ("exFAT", b"EXFAT   ", (3,)),
    ("BitLocker", b"-FVE-FS-", (3,)),
    ("FAT", b"FAT32   ", (82,)),
    ("FAT", b"FAT1", (54,)),
    ("HFS+", b"H+", (1024,)),
    ("HFS+", b"HX", (1024,)),
    ("APFS", b"NXSB", (32,)),
    ("ISO 9660", b"CD001", (32769,)),
    ("UDF", b"BEA01", (32769,)),
    ("JFS", b"JFS1", (32768,)),
    ("ReiserFS", b"ReIsEr", (64 * KIB + 52, 8 * KIB + 52)),
    ("Reiser4", b"ReIsEr4", (64 * KIB,)),
    ("NILFS2", b"\x34\x34", (1030,)),
    ("GFS2", b"\x01\x16\x19\x70", (64 * KIB,)),
    ("OCFS2", b"OCFSV2", (1024, 2048, 4096, 8192)),
    ("zonefs", b"SFOZ", (0,)),
    ("VMFS", b"\x0d\xd0\x01\xc0", (1 * MIB,)),
    ("VMFS", b"\x5e\xf1\xab\x2f", (2 * MIB,)),
    ("Ceph BlueStore", b"bluestore block device", (0,)),
    ("Oracle ASM", b"ORCLDISK", (32,)),
    ("Stratis", b"!Stra0tis\x86\xff\x02^\x41rh", (516, 4612)),
    ("VDO", b"dmvdo001", (0,)),
    ("dm-integrity", b"integrt\x00", (0,)),
    ("dm-verity", b"verity\x00\x00", (0,)),
    ("dm snapshot store", b"SnAp", (0,)),
    ("DDF RAID member", b"\xde\x11\xde\x11", (-512,)),
    ("Intel RAID member", b"Intel Raid ISM Cfg Sig. ", (-1024,)),
    ("DRBD", b"\x83\x74\x02\x6b", (-4096 + 60,)),
    ("DRBD", b"\x83\x74\x02\x6c", (-4096 + 60,)),
    ("DRBD", b"\x83\x74\x02\x6d", (-4096 + 60,)),
    ("dm-thin metadata", (27022010).to_bytes(8, "little"), (32,)),
    ("dm-cache metadata", (6142003).to_bytes(8, "little"), (32,)),
    ("dm-era metadata", (2126579579).to_bytes(8, "little"), (32,)),
    ("dm-writecache", (0x23489321).to_bytes(4, "little"), (0,)),
    ("qcow2", b"QFI\xfb", (0,)),
    ("VMDK", b"KDMV", (0,)),
    ("VMDK", b"# Disk DescriptorFile", (0,)),
    ("VDI", b"\x7f\x10\xda\xbe", (64,)),
    ("VHDX", b"vhdxfile", (0,)),
    ("VHD", b"conectix", (0, -512)),
    ("tar archive", b"ustar", (257,)),
    ("cpio archive", b"070701", (0,)),
    ("zip archive", b"PK\x03\x04", (0,)),
    ("7z archive", b"7z\xbc\xaf\x27\x1c", (0,)),
    ("gzip", b"\x1f\x8b\x08", (0,)),
    ("xz", b"\xfd7zXZ\x00", (0,)),
    ("zstd", b"\x28\xb5\x2f\xfd", (0,)),
    ("bzip2", b"BZh", (0,)),
    ("LZ4", b"\x04\x22\x4d\x18", (0,)),
    ("SQLite database", b"SQLite format 3\x00", (0,)),
)
"""Name, bytes, and their offset; negative offsets count from the end of the device."""

At = Callable[[int, int], bytes]
"""A number of bytes at an offset."""


def _is_postgres(at: At) -> bool:
    """Return the first page's header (``bufpage.h``): size and version, and lower <= upper <= special <= size."""
    header = at(12, 8)
    if len(header) < 8 or header[6:] != b"\x04\x20":
        return False
    low, high, special = struct.unpack("<3H", header[:6])
    return bool(24 <= low <= high <= special <= 8 * KIB)


def _is_innodb(at: At) -> bool:
    """Return the first page (``fil0types.h``) has number 0 and is the header of a file space; the second has number 1."""
    return (
        at(4, 4) == bytes(4)
        and at(24, 2) == b"\0\x08"
        and at(16 * KIB + 4, 4) == b"\0\0\0\1"
    )


PAGES: Mapping[str, Callable[[At], bool]] = {
    "PostgreSQL pages": _is_postgres,
    "InnoDB tablespace": _is_innodb,
}
"""Formats whose signature is too short to rely on -> a test of their pages."""

MD_MAGIC = 0xA92B4EFC
ZFS_UBERBLOCK = 0x00BAB10C
ZFS_CHECKSUM = 0x0210DA7AB10C7A11
ZFS_LABEL = 256 * KIB


def ranges(size: int) -> tuple[tuple[int, int], ...]:
    """Offset and length in bytes of all ranges that ``detect`` needs of a device of ``size`` bytes, without overlap."""
    head = min(size, HEAD)
    tail = max((size - TAIL) // STEP * STEP, head)
    copies = [
        (copy, STEP)
        for copy in sorted((*BTRFS_COPIES, *EXT_COPIES))
        if head <= copy < tail
    ]
    spans = [(0, head), *copies, (tail, size - tail)]
    return tuple((offset, length) for offset, length in spans if length)


def detect(pieces: Mapping[int, bytes], size: int) -> tuple[str, ...]:
    """Return names of what is recognised in ``pieces`` (offset -> bytes, as ``ranges`` asks) of a device of ``size``
    bytes.

    Each name appears once. Recognising nothing does not prove that it is empty.
    """

    def at(offset: int, length: int) -> bytes:
        for start, piece in pieces.items():
            if start <= offset < start + len(piece):
                return piece[offset - start : offset - start + length]
        return b""

    names: list[str] = []
    for name, magic, places in MAGICS:
        for place in places:
            # A negative place counts from the end.
            offset = place if place >= 0 else size + place
            if at(offset, len(magic)) == magic:
                names.append(name)
    names += [name for name, holds in PAGES.items() if holds(at)]
    if _holds(at, _md_places(size), 4, (MD_MAGIC,)):
        names.append("md RAID member")
    if _holds(at, _zfs_places(size), 8, (ZFS_UBERBLOCK, ZFS_CHECKSUM)):
        names.append("ZFS")
    return tuple(dict.fromkeys(names))


def _holds(
    at: Callable[[int, int], bytes],
    places: Iterable[int],
    width: int,
    magics: Iterable[int],
) -> bool:
    """Return whether one of these numbers of ``width`` bytes stands at one of the places, in either byte order."""
    wanted: set[bytes] = set()
    for magic in magics:
        wanted.update((magic.to_bytes(width, "little"), magic.to_bytes(width, "big")))
    return any(at(place, width) in wanted for place in places)


def read_signatures(
    machine: Machine, path: str, size: int
) -> tuple[tuple[str, ...], bytes]:
    """Return what the device node or file ``path`` of ``size`` bytes holds, by its bytes and by blkid(8) where there
    is one; and these bytes.

    Reads some 6 MiB past the page cache; never opens for writing. Raises MachineError when a byte cannot be read.
    """
    pieces = {
        offset: read_bytes(machine, path, offset, length)
        for offset, length in ranges(size)
    }
    return detect(pieces, size) or _blkid(machine, path), b"".join(pieces.values())


def read_bytes(machine: Machine, path: str, offset: int, length: int) -> bytes:
    """``length`` bytes at ``offset`` (a multiple of ``STEP``) of a device. Raises MachineError when fewer come."""
    count = -(-length // STEP)
    words = [
        "dd",
        f"if={path}",
        f"bs={STEP}",
        f"skip={offset // STEP}",
        f"count={count}",
    ]
    # A filesystem writes past the block device's page cache, which may therefore be stale: read the medium.
    done = machine.run([*words, "iflag=direct"], timeout=60)
    if done.returncode != 0:
        done = machine.run(words, timeout=60)
    if done.returncode != 0 or len(done.stdout) < length:
        what = f"only {len(done.stdout)} of {length} bytes at {offset} could be read"
        lines = done.error_text.splitlines()
        if lines:
            what = f"{what}: {lines[0]}"
        raise MachineError(what, place=path)
    return done.stdout[:length]


def _md_places(size: int) -> tuple[int, ...]:
    """Superblocks 0.90, 1.0, 1.1, 1.2 (md.c ``super_90_load``, ``super_1_load``)."""
    sectors = size // 512
    return 0, 4096, (size & ~(STEP - 1)) - STEP, ((sectors - 16) & ~7) * 512


def _zfs_places(size: int) -> tuple[int, ...]:
    """In each of the four labels: all uberblock slots, and the checksum's magic that ends the name-value area."""
    end = size // ZFS_LABEL * ZFS_LABEL
    labels = (0, ZFS_LABEL, end - 2 * ZFS_LABEL, end - ZFS_LABEL)
    slots = range(128 * KIB, ZFS_LABEL, KIB)
    present = [label for label in labels if label >= 0]
    return tuple(
        label + place for label, place in product(present, (*slots, 128 * KIB - 40))
    )


def _blkid(machine: Machine, path: str) -> tuple[str, ...]:
    """Return what blkid's low-level probe says (it neither caches nor writes); nothing where it is not installed."""
    try:
        done = machine.run(["blkid", "--probe", "--output", "export", path], timeout=60)
    except MachineError:
        return ()
    if done.returncode == 8:
        return ("several signatures that contradict one another (blkid)",)
    pairs = dict(line.partition("=")[::2] for line in done.text.splitlines())
    kinds = (pairs.get("TYPE"), pairs.get("PTTYPE"))
    return tuple(f"{kind} (blkid)" for kind in kinds if kind)
