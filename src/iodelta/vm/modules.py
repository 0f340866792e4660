"""The modules that a kernel can load: by name, their dependencies, and the reason why one is unavailable."""

from __future__ import annotations

import lzma
import re
import zlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec
import zstandard

from iodelta.errors import MeasureError

LARGEST = 256 << 20
_SUFFIX = re.compile(r"\.ko(\.(xz|zst|gz))?$")


class Needed(msgspec.Struct, frozen=True):
    """What loading some modules takes."""

    load: tuple[str, ...] = ()
    """Files to insert, in this order."""
    missing: dict[str, str] = {}
    """Requested module -> why it is unavailable."""


class Modules:
    """The modules below one directory: an installed ``/lib/modules/RELEASE``, or a build tree."""

    def __init__(self, directory: str, config: dict[str, str]) -> None:
        self._config = config
        self._files: dict[str, Path] = {}
        self._builtin: set[str] = set()
        root = Path(directory) if directory else None
        if root is None or not root.is_dir():
            return
        for path in sorted(root.rglob("*.ko*")):
            if _SUFFIX.search(path.name):
                self._files.setdefault(_name(path.name), path)
        for listed in (
            root / "modules.builtin",
            *root.glob("lib/modules/*/modules.builtin"),
        ):
            if listed.is_file():
                self._builtin |= {
                    _name(Path(line).name) for line in listed.read_text().split()
                }

    def needed(self, names: Sequence[str]) -> Needed:
        """Return the files to insert for ``names``, dependencies first; those it has built in need none."""
        load: list[str] = []
        missing: dict[str, str] = {}
        for name in names:
            try:
                load += [path for path in self._closure(name, ()) if path not in load]
            except KeyError as error:
                # Built in, and where only the running kernel knows, is not missing.
                option = OPTIONS.get(name, "")
                if self._config.get(option) != "y" and (self._config or self._files):
                    lacks = f"module {error.args[0]}"
                    if option and self._config and option not in self._config:
                        lacks = f"CONFIG_{option}"
                    missing[name] = f"needs {name}: kernel has no {lacks}"
        return Needed(tuple(load), missing)

    def _closure(self, name: str, above: tuple[str, ...]) -> list[str]:
        """Files in order of loading. Raises KeyError naming the module that is not there."""
        name = _name(name)
        if name in self._builtin or name in above:
            return []
        if name not in self._files:
            raise KeyError(name)
        path = self._files[name]
        depends, before = requirements(unpacked(path))
        files: list[str] = []
        for other in before:
            # A soft dependency names an algorithm: ``crc32c`` comes from crc32c_generic, ``blake2b-256`` from
            # blake2b_generic (``MODULE_ALIAS_CRYPTO`` in the kernel's crypto/).
            plain = _name(other)
            providers = (
                plain,
                f"{plain}_generic",
                re.sub(r"_?\d+$", "", plain) + "_generic",
            )
            known = next(
                (provider for provider in providers if provider in self._files), None
            )
            files += self._closure(known, (*above, name)) if known else []
        for other in depends:
            files += self._closure(other, (*above, name))
        return [*dict.fromkeys(files), str(path)]


OPTIONS = {
    "null_blk": "BLK_DEV_NULL_BLK",
    "brd": "BLK_DEV_RAM",
    "loop": "BLK_DEV_LOOP",
    "scsi_debug": "SCSI_DEBUG",
    "ublk_drv": "BLK_DEV_UBLK",
    "configfs": "CONFIGFS_FS",
    "raid0": "MD_RAID0",
    "raid1": "MD_RAID1",
    "raid10": "MD_RAID10",
    "btrfs": "BTRFS_FS",
    "ext4": "EXT4_FS",
    "xfs": "XFS_FS",
    "dm-mod": "BLK_DEV_DM",
    "dm-delay": "DM_DELAY",
    "dm-flakey": "DM_FLAKEY",
    "mq-deadline": "MQ_IOSCHED_DEADLINE",
    "kyber-iosched": "MQ_IOSCHED_KYBER",
    "bfq": "IOSCHED_BFQ",
    "acpi-cpufreq": "X86_ACPI_CPUFREQ",
    "virtio_blk": "VIRTIO_BLK",
    "virtio_pci": "VIRTIO_PCI",
    "virtio_console": "VIRTIO_CONSOLE",
    "virtio_scsi": "SCSI_VIRTIO",
    "nvme": "BLK_DEV_NVME",
}
"""Module -> its option in the kernel's configuration: to give reasons, and to recognise what is built in."""


def requirements(module: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """From a module's ``.modinfo``: its dependencies, and the modules to load before it (soft dependencies)."""
    depends = re.search(rb"\0depends=([^\0]*)", module)
    soft = re.findall(rb"\0softdep=pre:\s*([^\0]*)", module)
    names = depends[1].decode().split(",") if depends else []
    before = chain.from_iterable(
        text.decode().partition("post:")[0].split() for text in soft
    )
    return tuple(name for name in names if name), tuple(
        word for word in before if word != "pre:"
    )


def unpacked(path: Path) -> bytes:
    """Return a module without compression, as busybox's insmod needs it. Raises MeasureError."""
    try:
        data = path.read_bytes()
        if path.suffix == ".xz":
            return lzma.decompress(data)
        if path.suffix == ".zst":
            return zstandard.ZstdDecompressor().decompress(
                data, max_output_size=LARGEST
            )
        if path.suffix != ".gz":
            return data
        return zlib.decompress(data, 31)
    except (OSError, lzma.LZMAError, zstandard.ZstdError, zlib.error) as error:
        raise MeasureError(
            f"cannot read the kernel module: {error}", place=str(path)
        ) from error


def _name(file: str) -> str:
    """Return a module's name: the kernel does not distinguish ``-`` and ``_``."""
    return _SUFFIX.sub("", file).replace("-", "_")
