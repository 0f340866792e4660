"""The contents of a device or file that may be overwritten: by name of its format, else by appearance."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from itertools import product

import msgspec

from iodelta.errors import MachineError
from iodelta.machine import Machine
from iodelta.plural import plural
from iodelta.probe.topology import Target

KIB = 1024
MIB = 1024 * KIB
STEP = 64 * KIB
"""Reads start at and are made of multiples of this: aligned for O_DIRECT on any logical block size."""

HEAD = 5 * MIB
TAIL = 1 * MIB
BTRFS_COPIES = (64 * MIB, 256 * 1024 * MIB)
EXT_COPIES = (8 * MIB, 32 * MIB, 128 * MIB)
"""The second superblock of ext2/3/4 with blocks of 1, 2 and 4 KiB: what is left when the beginning was overwritten."""

MAGICS: tuple[tuple[str, bytes, tuple[int, ...]], ...] = tuple(
    (
        name,
        magic.encode().decode("unicode_escape").encode("latin-1"),
        tuple(map(int, places.split())),
    )
    for name, magic, places in re.findall(
        r"(.+): (\S+)  (.+)",
        r"""
GPT partition table: EFI\x20PART  512 4096 -512 -4096
boot sector or MBR partition table: U\xaa  510
BSD disk label: WEV\x82  0 64 512
Sun disk label: \xda\xbe  508
SGI disk label: \x0b\xe5\xa9A  0
Mac partition map: PM\x00\x00  512
ext2/3/4: S\xef  1080 8389688 33554488 134217784
XFS: XFSB  0
btrfs: _BHRfS_M  65600 67108928 274877907008
bcache: \xc6\x85s\xf6N\x1aE\xca\x82e\xf5\x7fH\xbam\x81  4120
bcachefs: \xc6\x85s\xf6f\xce\x90\xa9\xd9j`\xcf\x80=\xf7\xef  4120 2097176
LVM physical volume: LABELONE  0 512 1024 1536
LVM1 physical volume: HM\x01\x00  0
LUKS: LUKS\xba\xbe  0
LUKS: SKUL\xba\xbe  16384 32768 65536 131072 262144 524288 1048576 2097152 4194304
swap: SWAPSPACE2  4086 8182 16374 32758 65526
swap: SWAP-SPACE  4086 8182 16374 32758 65526
hibernation image: S1SUSPEND  4086 8182 16374 32758 65526
hibernation image: LINHIB0001  4086 8182 16374 32758 65526
f2fs: \x10\x20\xf5\xf2  1024 5120
erofs: \xe2\xe1\xf5\xe0  1024
squashfs: hsqs  0
NTFS: NTFS\x20\x20\x20\x20  3
exFAT: EXFAT\x20\x20\x20  3
BitLocker: -FVE-FS-  3
FAT: FAT32\x20\x20\x20  82
FAT: FAT1  54
HFS+: H+  1024
HFS+: HX  1024
APFS: NXSB  32
ISO 9660: CD001  32769
UDF: BEA01  32769
JFS: JFS1  32768
ReiserFS: ReIsEr  65588 8244
Reiser4: ReIsEr4  65536
NILFS2: 44  1030
GFS2: \x01\x16\x19p  65536
OCFS2: OCFSV2  1024 2048 4096 8192
zonefs: SFOZ  0
VMFS: \x0d\xd0\x01\xc0  1048576
VMFS: ^\xf1\xab/  2097152
Ceph BlueStore: bluestore\x20block\x20device  0
Oracle ASM: ORCLDISK  32
Stratis: !Stra0tis\x86\xff\x02^Arh  516 4612
VDO: dmvdo001  0
dm-integrity: integrt\x00  0
dm-verity: verity\x00\x00  0
dm snapshot store: SnAp  0
DDF RAID member: \xde\x11\xde\x11  -512
Intel RAID member: Intel\x20Raid\x20ISM\x20Cfg\x20Sig.\x20  -1024
DRBD: \x83t\x02k  -4036
DRBD: \x83t\x02l  -4036
DRBD: \x83t\x02m  -4036
dm-thin metadata: \xbaR\x9c\x01\x00\x00\x00\x00  32
dm-cache metadata: 3\xb8]\x00\x00\x00\x00\x00  32
dm-era metadata: {\x07\xc1~\x00\x00\x00\x00  32
dm-writecache: !\x93H#  0
qcow2: QFI\xfb  0
VMDK: KDMV  0
VMDK: #\x20Disk\x20DescriptorFile  0
VDI: \x7f\x10\xda\xbe  64
VHDX: vhdxfile  0
VHD: conectix  0 -512
tar archive: ustar  257
cpio archive: 070701  0
zip archive: PK\x03\x04  0
7z archive: 7z\xbc\xaf'\x1c  0
gzip: \x1f\x8b\x08  0
xz: \xfd7zXZ\x00  0
zstd: (\xb5/\xfd  0
bzip2: BZh  0
LZ4: \x04"M\x18  0
SQLite database: SQLite\x20format\x203\x00  0
""",
    )
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
    # Superblocks 0.90, 1.0, 1.1, 1.2 (md.c `super_90_load`, `super_1_load`)
    sectors = size // 512
    if _holds(
        at,
        (0, 4096, (size & ~(STEP - 1)) - STEP, ((sectors - 16) & ~7) * 512),
        4,
        (MD_MAGIC,),
    ):
        names.append("md RAID member")
    # In each of the four labels: all uberblock slots, and the checksum's magic that ends the name-value area
    end = size // ZFS_LABEL * ZFS_LABEL
    labels = (0, ZFS_LABEL, end - 2 * ZFS_LABEL, end - ZFS_LABEL)
    slots = range(128 * KIB, ZFS_LABEL, KIB)
    present = [label for label in labels if label >= 0]
    if _holds(
        at,
        tuple(
            label + place for label, place in product(present, (*slots, 128 * KIB - 40))
        ),
        8,
        (ZFS_UBERBLOCK, ZFS_CHECKSUM),
    ):
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


PLACES = 64
"""Blocks, evenly spread, that are searched for data."""

BLOCK = 4096
"""Bytes of such a block."""

_READ = (
    'for at do dd if="$0" bs=4096 skip="$at" count=1 iflag=direct 2>/dev/null '
    '|| dd if="$0" bs=4096 skip="$at" count=1 2>/dev/null || exit 1; done'
)
"""For sh, with the path and block numbers as arguments: one round trip over a network."""


ENOUGH = 1 << 18
"""Bytes from which the kind of data is judged."""


class Contents(msgspec.Struct, frozen=True):
    """What was found. Finding nothing does not prove that it is empty."""

    signatures: tuple[str, ...]
    looks: str
    """``text``, ``random bytes``, ``data``; empty where every byte that was read is zero."""
    places: int
    """Blocks that were read, besides those with signatures."""

    @property
    def said(self) -> str:
        if self.signatures:
            return f"signature: {', '.join(self.signatures)}"
        if self.looks:
            return f"not empty: {self.looks}"
        if not self.places:
            return "an empty file"
        return f"all zero in {plural(self.places, 'sampled place')}"


def look(machine: Machine, target: Target) -> Contents:
    """Read the contents of a block device or file; writes nothing. Raises MachineError when it cannot be read."""
    if not target.size_bytes:
        return Contents((), "", 0)
    # What the device node or file `path` of `size` bytes holds, by its bytes and by blkid(8) where there is one; and
    # these bytes
    pieces = {
        offset: read_bytes(machine, target.real_path, offset, length)
        for offset, length in ranges(target.size_bytes)
    }
    signatures, ends = (
        detect(pieces, target.size_bytes) or _blkid(machine, target.real_path),
        b"".join(pieces.values()),
    )
    blocks = -(-target.size_bytes // BLOCK)
    places = sorted(
        {number * (blocks - 1) // max(1, PLACES - 1) for number in range(PLACES)}
    )
    done = machine.run(
        ["sh", "-c", _READ, target.real_path, *map(str, places)], timeout=120
    )
    if done.returncode != 0:
        raise MachineError(
            f"not all of {plural(len(places), 'place')} could be read",
            place=target.real_path,
        )
    return Contents(signatures, looks_of(ends + done.stdout), len(places))


def looks_of(sample: bytes) -> str:
    """Return the kind of data, ignoring zeros; empty for zeros alone."""
    data = sample.replace(b"\0", b"")[:ENOUGH]
    if not data:
        return ""
    if _is_text(data):
        return "text"
    if _is_random(data):
        return "random bytes, as encrypted or compressed data are"
    return "data"


def _is_text(data: bytes) -> bool:
    """Return whether it is ASCII, or UTF-8 with some ASCII in it."""
    other = data.translate(None, _PRINTED)
    if not other:
        return True
    if (min(other) < 0x80) or len(other) >= 0.9 * len(data):
        return False
    return len(data.decode(errors="ignore").encode()) > 0.99 * len(data)


def _is_random(data: bytes) -> bool:
    """Return whether every byte but zero is about as frequent as any other."""
    if len(data) < BLOCK / 2:
        return False
    mean = len(data) / 255
    return all(mean / 3 < count < 3 * mean for count in map(data.count, range(1, 256)))


_PRINTED = bytes(range(32, 127)) + b"\t\n\r\f"
