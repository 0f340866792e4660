"""What a device or file can hold, each built as its own tool does, or byte by byte after its specification."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20

Build = Callable[[Path], None]


def put(*pieces: tuple[int, bytes], mib: int = 16) -> Build:
    """A file of zeros but for these bytes; negative offsets count from its end."""

    def build(path: Path) -> None:
        with open(path, "wb") as file:
            file.truncate(mib * MIB)
            for offset, content in pieces:
                file.seek(offset if offset >= 0 else mib * MIB + offset)
                file.write(content)

    return build


def tool(*words: str, mib: int = 16, then: Build | None = None, otherwise: Build | None = None) -> Build:
    """What a program makes of a file of zeros; ``otherwise`` where it is not installed, ``then`` changes the result."""

    def build(path: Path) -> None:
        if otherwise is not None and shutil.which(words[0]) is None:
            otherwise(path)
        else:
            put(mib=mib)(path)
            subprocess.run([*words, str(path)], check=True, capture_output=True, input=b"password")
        if then is not None:
            then(path)

    return build


def over(*pieces: tuple[int, bytes]) -> Build:
    """Overwrite parts of what is there."""

    def build(path: Path) -> None:
        with open(path, "r+b") as file:
            for offset, content in pieces:
                file.seek(offset)
                file.write(content)

    return build


def wiped(mib: int) -> Build:
    return over((0, bytes(mib * MIB)))


def padded(path: Path) -> None:
    """Whole MiB, as a device is."""
    size = path.stat().st_size
    os.truncate(path, -(-size // MIB) * MIB)


def tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        archive.add(__file__, "records")
    padded(path)


def compressed(path: Path) -> None:
    path.write_bytes(gzip.compress(b"records" * 10000))
    padded(path)


def sqlite(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("create table records (one text)")
        base.execute("insert into records values ('precious')")
    base.close()
    padded(path)


def random_bytes(path: Path) -> None:
    """As plain dm-crypt leaves a device that was filled through it."""
    path.write_bytes(random.Random(1).randbytes(4 * MIB))


def image(kind: str, magic: bytes, at: int = 0) -> Build:
    def build(path: Path) -> None:
        if shutil.which("qemu-img") is None:
            put((at, magic))(path)
            return
        subprocess.run(["qemu-img", "create", "-q", "-f", kind, str(path), "8M"], check=True)
        padded(path)

    return build


def heap_pages() -> bytes:
    """Three pages of a PostgreSQL table (``bufpage.h``): LSN, checksum, flags, lower, upper, special, size, xid."""
    header = struct.pack("<QHHHHHHI", 0x1500028, 0, 0, 28, 8152, 8192, 8192 | 4, 0)
    return b"".join((header + bytes(8124) + b"a record of an application ".ljust(44)) for _ in range(3))


def innodb_pages() -> bytes:
    """The first pages of a tablespace (``fil0types.h``): checksum, number, neighbours, LSN, type."""
    kinds = (8, 5, 3)  # FSP_HDR, IBUF_BITMAP, INODE
    heads = [struct.pack(">IIIIQH", 0x1234, n, 0, 0, 99, kind) for n, kind in enumerate(kinds)]
    return b"".join(head.ljust(16384, b"\0") for head in heads)


def vfat() -> bytes:
    return b"\xeb\x58\x90mkfs.fat".ljust(82, b"\x02") + b"FAT32   ".ljust(428, b"\0") + b"\x55\xaa"


MD = bytes.fromhex("fc4e2ba9")
ZFS = struct.pack("<Q", 0x00BAB10C)
BCACHE = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
LUKS = ("cryptsetup", "-q", "luksFormat", "--pbkdf-force-iterations", "1000", "--key-file", "-")
QUIET_EXT = ("-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")

IMAGES: dict[str, tuple[Build, str]] = {
    "all zero": (put(), "all zero in 64 sampled places"),
    "tar": (tar, "signature: tar archive"),
    "gzip": (compressed, "signature: gzip"),
    "sqlite": (sqlite, "signature: SQLite database"),
    "PostgreSQL heap": (put((0, heap_pages())), "signature: PostgreSQL pages"),
    "MySQL tablespace": (put((0, innodb_pages())), "signature: InnoDB tablespace"),
    "qcow2": (image("qcow2", b"QFI\xfb"), "signature: qcow2"),
    "vmdk": (image("vmdk", b"KDMV"), "signature: VMDK"),
    "vdi": (image("vdi", b"\x7f\x10\xda\xbe", 64), "signature: VDI"),
    "vhdx": (image("vhdx", b"vhdxfile"), "signature: VHDX"),
    "vhd": (put((-512, b"conectix")), "signature: VHD"),
    "zip": (put((0, b"PK\x03\x04records")), "signature: zip archive"),
    "xz": (put((0, b"\xfd7zXZ\0\0")), "signature: xz"),
    "zstd": (put((0, b"\x28\xb5\x2f\xfd")), "signature: zstd"),
    "LUKS1": (tool(*LUKS, "--type", "luks1"), "signature: LUKS"),
    "LUKS2": (tool(*LUKS, "--type", "luks2", "--pbkdf", "pbkdf2", mib=32), "signature: LUKS"),
    "plain dm-crypt": (random_bytes, "not empty: random bytes"),
    "DRBD 8, at the end": (put((-4096 + 60, struct.pack(">I", 0x8374026B))), "signature: DRBD"),
    "DRBD 9, at the end": (put((-4096 + 60, struct.pack(">I", 0x8374026D))), "signature: DRBD"),
    "dm-thin metadata": (put((32, struct.pack("<Q", 27022010))), "signature: dm-thin metadata"),
    "dm-cache metadata": (put((32, struct.pack("<Q", 6142003))), "signature: dm-cache metadata"),
    "ext2": (tool("mkfs.ext2", *QUIET_EXT), "ext2/3/4"),
    "ext3": (tool("mkfs.ext3", *QUIET_EXT), "ext2/3/4"),
    "ext4": (tool("mkfs.ext4", *QUIET_EXT), "ext2/3/4"),
    "ext4, first MiB wiped": (tool("mkfs.ext4", *QUIET_EXT, "-b", "1024", then=wiped(1)), "ext2/3/4"),
    "ext4 of 4k blocks, first 16 MiB wiped": (
        tool("mkfs.ext4", *QUIET_EXT, "-b", "4096", mib=256, then=wiped(16)),
        "ext2/3/4",
    ),
    "xfs": (tool("mkfs.xfs", "-q", mib=320), "signature: XFS"),
    "btrfs": (tool("mkfs.btrfs", "--quiet", mib=128), "signature: btrfs"),
    "btrfs, only the second superblock": (tool("mkfs.btrfs", "--quiet", mib=128, then=wiped(1)), "signature: btrfs"),
    "f2fs": (put((1024, b"\x10\x20\xf5\xf2"), (5120, b"\x10\x20\xf5\xf2")), "signature: f2fs"),
    "ntfs": (put((0, b"\xebR\x90NTFS    "), (510, b"\x55\xaa")), "NTFS"),
    "vfat": (put((0, vfat())), "FAT"),
    "exfat": (put((0, b"\xebv\x90EXFAT   "), (510, b"\x55\xaa")), "exFAT"),
    "ISO 9660": (put((32768, b"\x01CD001\x01")), "signature: ISO 9660"),
    "squashfs": (put((0, b"hsqs")), "signature: squashfs"),
    "swap": (tool("mkswap"), "signature: swap"),
    "swap of 64 KiB pages": (tool("mkswap", "--pagesize", "65536"), "signature: swap"),
    "md 0.90": (put((-65536, MD)), "signature: md RAID member"),
    "md 0.90 of a big-endian machine": (put((-65536, MD[::-1])), "signature: md RAID member"),
    "md 1.0": (put((-8192, MD)), "signature: md RAID member"),
    "md 1.1": (put((0, MD)), "signature: md RAID member"),
    "md 1.2": (put((4096, MD)), "signature: md RAID member"),
    "LVM2": (put((512, b"LABELONE"), (512 + 24, b"LVM2 001")), "signature: LVM physical volume"),
    "bcache": (tool("make-bcache", "-B", otherwise=put((4120, BCACHE))), "signature: bcache"),
    "ZFS, first label": (put((128 << 10, ZFS)), "signature: ZFS"),
    "ZFS, labels at the end": (put((-(128 << 10), ZFS)), "signature: ZFS"),
    "ZFS, last label, big-endian": (put((-(128 << 10) + 1024 * 5, ZFS[::-1])), "signature: ZFS"),
    "LUKS2, only the second header": (put((16 << 10, b"SKUL\xba\xbe")), "signature: LUKS"),
    "DDF RAID": (put((-512, bytes.fromhex("de11de11"))), "signature: DDF RAID member"),
    "GPT at the end only": (put((-512, b"EFI PART")), "signature: GPT partition table"),
    "GPT": (put((512, b"EFI PART"), (-512, b"EFI PART")), "signature: GPT partition table"),
    "MBR": (put((446, b"\x80" + bytes(3) + b"\x83"), (510, b"\x55\xaa")), "boot sector or MBR partition table"),
    "Ceph BlueStore": (put((0, b"bluestore block device\n")), "signature: Ceph BlueStore"),
    "Oracle ASM": (put((32, b"ORCLDISK")), "signature: Oracle ASM"),
    "VDO": (put((0, b"dmvdo001")), "signature: VDO"),
    "text at the start": (put((0, b"account;balance\n")), "not empty: text"),
    "text of other alphabets": (put((0, "Konto; Größe; 口座\n".encode() * 99)), "not empty: text"),
    "text in the middle": (put((8 * MIB, b"a precious line\n" * 32768)), "not empty: text"),
    "text at the end": (put((-512, b"the last line\n")), "not empty: text"),
    "application records": (put((4096, struct.pack("<IQ", 7, 1 << 40) * 2000)), "not empty: data"),
    "one byte at the start": (put((0, b"\1")), "not empty: data"),
    "one byte at the end": (put((-1, b"\1")), "not empty: data"),
    "one byte nobody looks at": (put((9 * MIB + 4097, b"\1")), "all zero in 64 sampled places"),
    "erased flash": (put((0, b"\xff" * MIB)), "not empty"),
}
"""Name -> how it is built, and what the plan says of it."""
