"""Kernels from the system's package manager: lists them, and fetches, verifies and unpacks one without installing it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from iodelta.errors import MeasureError
from iodelta.tools.cache import cache, held
from iodelta.vm.kernels import KERNELS, Kernel, find, matches, order, recorded, within

TIMEOUT = 900.0
_IMAGE = re.compile(r"Package: (linux-image-(\d+\.\d+\.\d+[\w.+~-]*?))\n")
"""A name that is only a series is not a kernel."""

_NO_IMAGE = ("-dbg", "-unsigned", "-dbgsym")


class Package(msgspec.Struct, frozen=True):
    """A kernel that can be fetched."""

    package: str
    """Its package."""
    release: str
    """`uname -r`."""
    version: str
    """Version of the package."""


def available() -> list[Package]:
    """Return the kernels that the system's package manager knows, by version. Raises MeasureError without apt."""
    packages: dict[str, Package] = {}
    for stanza in _run(["apt-cache", "dumpavail"]).split("\n\n"):
        image = _IMAGE.match(stanza)
        version = re.search(r"^Version: (\S+)$", stanza, re.MULTILINE)
        if image and version and not image[2].endswith(_NO_IMAGE):
            newest = packages.get(image[2])
            if newest is None or order(newest.version) < order(version[1]):
                packages[image[2]] = Package(image[1], image[2], version[1])
    return sorted(packages.values(), key=lambda package: order(package.version))


def for_guests(packages: Sequence[Package]) -> list[Package]:
    """Return those made for virtual machines (Debian's ``cloud`` flavour: small, with every block driver that a guest
    needs), or all where a distribution has none."""
    return [package for package in packages if "-cloud-" in package.release] or list(
        packages
    )


def left_out(packages: Sequence[Package]) -> str:
    """Return the sentence about the packages that a version does not choose, and how to get them; empty without any."""
    rest = [package for package in packages if package not in for_guests(packages)]
    if not rest:
        return ""
    return (
        f"a version chooses the small kernels for guests (cloud); {len(rest)} others (generic, rt) are fetched by their "
        f"whole release, as in `iodelta kernel fetch {rest[-1].release}`"
    )


def choose(name: str, packages: Sequence[Package]) -> Package:
    """Return the newest package whose release or version is ``name`` or begins so; of those for guests, unless the
    whole release is given. Raises MeasureError."""
    exact = [package for package in packages if package.release == name]
    packages = for_guests(packages)
    fitting = exact or [
        package
        for package in packages
        if matches(name, package.release, package.version)
    ]
    if not fitting:
        known = ", ".join(package.version for package in packages) or "none"
        raise MeasureError(
            f"the package manager has no kernel {name!r}; it has {known}",
            remedy="`apt-get update` renews its list; or unpack a kernel package yourself and give its directory",
        )
    return fitting[-1]


def between(first: str, last: str, packages: Sequence[Package]) -> list[Package]:
    """Return the packages from ``first`` to ``last``, both included, by version. Raises MeasureError when there is
    none.
    """
    packages = for_guests(packages)
    chosen = [
        package
        for package in packages
        if within(order(package.version), order(first), order(last))
    ]
    if not chosen:
        known = ", ".join(package.version for package in packages) or "none"
        raise MeasureError(
            f"the package manager has no kernel from {first} to {last}; it has {known}",
            remedy="`apt-get update` renews its list; older packages leave a distribution's archive",
        )
    return chosen


def fetch(package: Package) -> Kernel:
    """Download, verify by the package list's checksum and unpack into the cache; at once when it is there already."""
    place = cache(KERNELS, package.release)
    place.parent.mkdir(parents=True, exist_ok=True)
    with held(place.parent):
        if recorded(place / "package.json") != f"{package.package} {package.version}":
            _download(package, place)
    return find(str(place))


def _download(package: Package, place: Path) -> None:
    shown = _run(["apt-cache", "show", f"{package.package}={package.version}"])
    wanted = re.search(r"^SHA256: ([0-9a-f]{64})$", shown, re.MULTILINE)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetch-") as work:
        if os.geteuid() == 0:  # apt drops to its own user to download
            os.chmod(work, 0o755)
        _run(
            ["apt-get", "-q", "download", f"{package.package}={package.version}"],
            cwd=work,
        )
        files = list(Path(work).glob("*.deb"))
        if len(files) != 1:
            raise MeasureError(
                "the package manager did not download a package", place=package.package
            )
        digest = hashlib.sha256(files[0].read_bytes()).hexdigest()
        if wanted is None or wanted[1] != digest:
            raise MeasureError(
                "the downloaded package does not match the package list: refused",
                place=f"{package.package} {package.version}, sha256 {digest}",
                remedy="`apt-get update`, then fetch it again",
            )
        unpacked = Path(work) / "unpacked"
        _run(["dpkg-deb", "-x", str(files[0]), str(unpacked)])
        (unpacked / "package.json").write_bytes(
            msgspec.json.encode(
                {
                    "package": package.package,
                    "version": package.version,
                    "sha256": digest,
                }
            )
        )
        if place.exists():
            shutil.rmtree(place)
        unpacked.rename(place)


def _run(args: Sequence[str], cwd: str | None = None) -> str:
    program = shutil.which(args[0])
    if program is None:
        raise MeasureError(
            f"{args[0]} is not here: kernels are fetched with apt on Debian and Ubuntu",
            place="iodelta kernel",
            remedy="unpack a kernel package of this distribution into a directory and give that as the kernel",
        )
    try:
        done = subprocess.run(
            [program, *args[1:]],
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasureError(
            f"did not end within {TIMEOUT:.0f} s", place=" ".join(args)
        ) from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise MeasureError(
            f"failed: {lines[-1] if lines else f'exit {done.returncode}'}",
            place=" ".join(args[:3]),
            remedy="`apt-get update` renews the package list; then try again",
        )
    return done.stdout.decode("utf-8", "replace")
