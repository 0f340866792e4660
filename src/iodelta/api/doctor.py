"""What is missing on this machine, for what, and what installs it: all of it at once, with nothing changed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import msgspec

from iodelta import __version__, plugins
from iodelta.audit import engine
from iodelta.ingest import reading
from iodelta.knob import registry
from iodelta.machine import unusable as unusable_machine
from iodelta.vm.builds import NEEDS
from iodelta.vm.guest import PACKAGES

MANAGERS = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "pacman": "pacman -S",
}
"""Program that installs packages -> its command, the first that is here counts."""

PROGRAMS = (
    ("fio", "fio", "fio", "workloads of fio, which are the default"),
    ("git", "git", "git", "bisect, attribute, and the commit that was measured"),
    ("ssh", "openssh-client", "openssh-clients", "--machine ssh:HOST, and fleets"),
    (
        "qemu-system-x86_64",
        "qemu-system-x86",
        "qemu-system-x86-core",
        "guests: --machine vm",
    ),
    ("busybox", "busybox-static", "busybox", "guests: --machine vm"),
    ("perf", "linux-perf", "perf", "[instrument] perf"),
    ("nvme", "nvme-cli", "nvme-cli", 'prepare with purge = "nvme-format"'),
    (
        "mkfs.btrfs",
        "btrfs-progs",
        "btrfs-progs",
        "scenarios and read policies of btrfs",
    ),
    ("mdadm", "mdadm", "mdadm", "scenarios of md RAID"),
    ("cc", "gcc", "gcc", "fio build: t/io_uring, and fio for guests"),
    *(
        (name, package, package, "guests: programs and targets in them")
        for name, package in PACKAGES.items()
        if name
        not in (
            "fio",
            "gcc",
            "qemu-system-x86_64",
            "busybox",
            "mkfs.btrfs",
            "btrfs",
            "mdadm",
        )
    ),
    *(
        (name, package, package, "kernel build")
        for name, package in (("make", "make"), *NEEDS.values())
    ),
)
"""Program, its package in Debian and in Fedora, and what needs it."""

EXTRAS = (
    ("sqlalchemy", "history", "history"),
    ("distributed", "fleet", "fleet run"),
    ("polars", "frames", "trials.parquet, and data frames for Python"),
    ("vl-convert-python", "pictures", "report --charts"),
    ("deltalake", "lake", "history export --to delta"),
    ("starlette", "web", "serve"),
    (
        "iodelta-native",
        "native",
        "policy simulate and mirror, and quick readers of long results",
    ),
)
"""Distribution of Python, the extra of iodelta that brings it, and what needs it."""

OLDEST_FIO = (3, 16)


class Missing(msgspec.Struct, frozen=True):
    """One thing that is not here."""

    what: str
    needed_for: str
    """What cannot be done without it."""
    remedy: str
    """What installs it, or makes it possible."""


class Component(msgspec.Struct, frozen=True):
    """A part of iodelta, or a program that it uses."""

    name: str
    version: str
    """As it says itself."""


class DoctorAnswer(msgspec.Struct, frozen=True):
    """What iodelta finds on this machine, and what it lacks."""

    here: tuple[Component, ...]
    """What is here, with versions."""
    missing: tuple[Missing, ...]
    """What is not; nothing of it is needed by all commands."""
    install: tuple[str, ...] = ()
    """Commands that install all of it, as far as packages do."""
    schema: str = "iodelta.doctor/1"


def doctor() -> DoctorAnswer:
    """Look at this machine. Changes nothing."""
    programs = [
        (name, *_packages(debian, fedora), use)
        for name, debian, fedora, use in PROGRAMS
    ]
    absent = [
        program
        for program in programs
        if shutil.which(program[0], path=_path()) is None
    ]
    lacking = [one for one in EXTRAS if _version(one[0]) is None]
    missing = [
        Missing(name, use, _with_manager(package)) for name, package, use in absent
    ]
    missing += [
        Missing(what, use, f"pip install 'iodelta[{extra}]'")
        for what, extra, use in lacking
    ]
    missing += [*_old_fio(), *_rights(), *_broken()]
    return DoctorAnswer(
        components(),
        tuple(missing),
        tuple(_install([program[1] for program in absent], lacking)),
    )


def components() -> tuple[Component, ...]:
    """iodelta and what it stands on, with versions; what is not here is left out."""
    versions: dict[str, str | None] = {
        "iodelta": __version__,
        "Python": platform.python_version(),
        "kernel": platform.release(),
        "fio": _fio(),
    }
    for package in ("numpy", *(extra[0] for extra in EXTRAS)):
        versions[package] = _version(package)
    return tuple(
        Component(name, version) for name, version in versions.items() if version
    )


def _path() -> str:
    """Programs of the administrator too, which the path of others lacks."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _manager() -> str:
    return next((name for name in MANAGERS if shutil.which(name)), "")


def _packages(debian: str, fedora: str) -> tuple[str]:
    return (debian if _manager() == "apt-get" else fedora,)


def _with_manager(package: str) -> str:
    manager = _manager()
    if manager:
        return f"{MANAGERS[manager]} {package}"
    return f"install the package {package}"


def _install(packages: list[str], lacking: list[tuple[str, str, str]]) -> Iterator[str]:
    if packages:
        yield _with_manager(" ".join(dict.fromkeys(packages)))
    if lacking:
        yield f"pip install 'iodelta[{','.join(extra for _, extra, _ in lacking)}]'"


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _fio() -> str | None:
    program = shutil.which("fio")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().removeprefix("fio-") or None


def _old_fio() -> Iterator[Missing]:
    found = re.match(r"(\d+)\.(\d+)", _fio() or "")
    if found and (int(found[1]), int(found[2])) < OLDEST_FIO:
        yield Missing(
            f"fio {OLDEST_FIO[0]}.{OLDEST_FIO[1]}",
            "workloads of fio",
            f"fio {found[0]} is too old: update it",
        )


def _rights() -> Iterator[Missing]:
    if os.geteuid() != 0:
        yield Missing(
            "root",
            "knobs, whole devices, cgroups and scenarios",
            "run those commands as root",
        )
    if shutil.which("qemu-system-x86_64") and not os.access(
        "/dev/kvm", os.R_OK | os.W_OK
    ):
        yield Missing(
            "/dev/kvm",
            "quick guests; without it they are emulated, ten times as slow",
            "enable KVM here",
        )


def _broken() -> Iterator[Missing]:
    """Plugins that cannot be used."""
    checks = {
        "knob": registry.unusable,
        "rule": engine.unusable,
        "reader": reading.unusable,
        "machine": unusable_machine,
    }
    for kind, check in checks.items():
        for plugin in plugins.plugins(kind, check):
            if plugin.trouble:
                yield Missing(
                    f"plugin {plugin.name}",
                    plugin.trouble,
                    f"pip uninstall {plugin.package}, or mend it",
                )
