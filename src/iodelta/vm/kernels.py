"""A kernel by name: a fetched or installed release, a build tree, an unpacked package or a bzImage."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.tools.cache import cache
from iodelta.vm.modules import Modules

KERNELS = "kernels"
BUILDS = "kernel-builds"
"""Directories in the cache: kernels that were fetched, and kernels that were built here."""


class Kernel(msgspec.Struct, frozen=True):
    """A kernel that qemu can boot."""

    name: str
    """The name by which it was requested."""
    release: str
    """``uname -r``."""
    image: str
    """Path of the bzImage."""
    modules: str = ""
    """Directory with its modules, ``""`` when there are none."""
    config: str = ""
    """Its configuration file, ``""`` when it is not known."""
    package: str = ""
    """Name and version of the package it came in."""
    sha256: str = ""
    """Of the image."""

    def options(self) -> dict[str, str]:
        """``BLK_DEV_NULL_BLK`` -> ``m``; empty when the configuration is not known. Raises MeasureError."""
        if not self.config:
            return {}
        try:
            text = Path(self.config).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise MeasureError(
                f"cannot read the kernel's configuration: {error}", place=self.config
            ) from error
        return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", text, re.MULTILINE))

    def lacks(self, cpus: int, nodes: int) -> list[str]:
        """Return why a guest would come up with fewer CPUs or NUMA nodes than these; empty where that is not known."""
        options = self.options()
        asked = {"SMP": ("cpus", cpus), "ACPI_NUMA": ("nodes", nodes)}
        absent = [
            name
            for name, (_, count) in asked.items()
            if options and count > 1 and options.get(name) != "y"
        ]
        return [
            f"needs {asked[name][0]}={asked[name][1]}: kernel has no CONFIG_{name}"
            for name in absent
        ]

    def loadable(self) -> Modules:
        """Return what it can load."""
        return Modules(self.modules, self.options())


def find(name: str) -> Kernel:
    """Return the kernel called ``name``.

    A path: a bzImage, ``bzImage:MODULES`` with the directory of its modules, a build tree or an unpacked package.
    Else a release or its beginning (``6.12``, ``6.1.0-56-cloud-amd64``): of those fetched or installed in /boot, the
    newest that begins so. One that was built here goes by its whole name alone.
    Raises RequestError for a path that holds none, MeasureError for one that is not here.
    """
    if "/" in name or Path(name).exists():
        return _at(name)
    own = [kernel for kernel in built() if kernel.name == name]
    if own:
        return own[0]
    matching = [
        kernel for kernel in here() if matches(name, kernel.release, kernel.package)
    ]
    if not matching:
        known = (
            ", ".join(
                [
                    *(kernel.release for kernel in here()),
                    *(kernel.name for kernel in built()),
                ]
            )
            or "none"
        )
        raise MeasureError(
            f"there is no kernel {name!r} on this machine; there are: {known}",
            remedy=how_to_get([name]),
        )
    return msgspec.structs.replace(
        max(matching, key=lambda kernel: order(kernel.package or kernel.release)),
        name=name,
    )


def how_to_get(names: Sequence[str]) -> str:
    """Return one command for all kernels that are not here."""
    names = list(dict.fromkeys(names))
    what = "it" if len(names) == 1 else "them"
    path = "the path of a bzImage" if len(names) == 1 else "paths of bzImages"
    return f"`iodelta kernel fetch {' '.join(names)}` gets {what} from the system's packages; or give {path}"


def is_absent(name: str) -> bool:
    """Return whether no kernel of this name is here; no kernel at all for an empty one. Raises RequestError for a path."""
    if not name:
        return not here()
    try:
        find(name)
    except MeasureError:
        return True
    return False


def here() -> list[Kernel]:
    """Kernels that were fetched, and readable ones of /boot, by version."""
    kernels = list(_fetched())
    known = {kernel.release for kernel in kernels}
    for image in sorted(Path("/boot").glob("vmlinuz-*")):
        if os.access(image, os.R_OK):
            kernel = _image(str(image), str(image), "")
            if kernel.release not in known:
                kernels.append(kernel)
    return sorted(kernels, key=lambda kernel: order(kernel.package or kernel.release))


def built() -> list[Kernel]:
    """Kernels that ``iodelta kernel build`` made, by name."""
    return [
        _tree(place.parent, place.parent.name)
        for place in sorted(cache(BUILDS).glob("*/built.json"))
    ]


def matches(name: str, release: str, package: str = "") -> bool:
    """Return whether ``name`` is this release or package version, or a prefix that ends with a number: 6.1 is not 6.12."""
    texts = (release, *package.split())
    return any(
        text == name or re.match(re.escape(name) + r"(?![0-9])", text) is not None
        for text in texts
        if text
    )


def order(text: str) -> tuple[int, ...]:
    """Versions sort by their numbers."""
    return tuple(map(int, re.findall(r"\d+", text.partition(" ")[2] or text)))


def within(
    version: tuple[int, ...], first: tuple[int, ...], last: tuple[int, ...]
) -> bool:
    """Return whether a version is in a range; its ends may leave out numbers: 6.12.117-1 is in 6.12.100..6.12.117."""
    return first <= version[: len(first)] and version[: len(last)] <= last


def digest(path: str) -> str:
    """sha256 of a file. Raises MeasureError."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise MeasureError(f"cannot read: {error.strerror}", place=path) from error


def _fetched() -> Iterator[Kernel]:
    for place in sorted(cache(KERNELS).glob("*/package.json")):
        yield _tree(place.parent, str(place.parent))


def _at(name: str) -> Kernel:
    path, _, modules = name.partition(":")
    place = Path(path).absolute()
    if place.is_dir():
        return _tree(place, name)
    if not place.is_file():
        raise RequestError(
            "there is no kernel here",
            place=path,
            remedy="give a bzImage, a build tree, or a release",
        )
    return _image(str(place), name, modules)


def _tree(place: Path, name: str) -> Kernel:
    """Return a build tree, or what a package unpacks to."""
    built = place / "arch/x86/boot/bzImage"
    images = (
        [built]
        if built.is_file()
        else [*sorted(place.glob("boot/vmlinuz-*")), *sorted(place.glob("bzImage"))]
    )
    if not images:
        raise RequestError(
            "no kernel in this directory",
            place=str(place),
            remedy="build one there (make bzImage modules), or name the bzImage itself",
        )
    installed = [
        *sorted(place.glob("lib/modules/*")),
        *sorted(place.glob("usr/lib/modules/*")),
    ]
    kernel = _image(str(images[-1]), name, str(installed[-1] if installed else place))
    configs = [
        place / ".config",
        *sorted(place.glob("boot/config-*")),
        *sorted(place.glob("config")),
    ]
    config = next((str(path) for path in configs if path.is_file()), "")
    return msgspec.structs.replace(
        kernel, config=config or kernel.config, package=recorded(place / "package.json")
    )


def recorded(place: Path) -> str:
    """Name and version from the record of ``fetch`` next to a kernel; empty without one. Raises MeasureError."""
    if not place.is_file():
        return ""
    try:
        package = from_json(place.read_bytes(), dict[str, str])
        return f"{package['package']} {package['version']}"
    except (OSError, KeyError, msgspec.MsgspecError) as error:
        raise MeasureError(
            f"damaged: {error}",
            place=str(place),
            remedy=f"remove {place.parent} and fetch the kernel again",
        ) from error


def _image(path: str, name: str, modules: str) -> Kernel:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise RequestError(
            f"cannot read the kernel: {error.strerror}", place=path
        ) from error
    release = version(data, path).partition(" ")[0]
    if not modules and Path(f"/lib/modules/{release}").is_dir():
        modules = f"/lib/modules/{release}"
    if not modules:
        # A bare image of a kernel that was fetched or built: its modules are in the cache.
        for place in (*cache(KERNELS).glob("*"), *cache(BUILDS).glob("*")):
            for tree in (
                *place.glob(f"lib/modules/{release}"),
                *place.glob(f"usr/lib/modules/{release}"),
            ):
                modules = str(tree)
    beside = Path(path).with_name(f"config-{release}")
    config = str(beside) if beside.is_file() else ""
    return Kernel(
        name, release, path, modules, config, sha256=hashlib.sha256(data).hexdigest()
    )


def version(data: bytes, path: str) -> str:
    """Return the version string in a bzImage's setup header (Documentation/arch/x86/boot.rst): release, builder and
    ``uname -v``. Raises RequestError for another file.

    The first 66048 bytes of it are enough.
    """
    if data[0x202:0x206] != b"HdrS":
        raise RequestError(
            "not a bzImage for x86",
            place=path,
            remedy="give arch/x86/boot/bzImage of a build, or a vmlinuz of a package",
        )
    at = int.from_bytes(data[0x20E:0x210], "little") + 0x200
    text = data[at : at + 256].split(b"\0")[0].decode("ascii", "replace")
    if not re.match(r"[0-9][\w.+~-]*( |$)", text):
        raise RequestError("the kernel image does not contain its release", place=path)
    return text
