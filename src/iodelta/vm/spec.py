"""A guest as a user writes it after ``vm:``: its kernel, its size, its disks, and the target that is made in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

import msgspec

from iodelta.errors import RequestError

MEMORY = 384
"""Default MiB: ten boots in a row stay below half a GiB at a time."""

FORM = (
    "vm[:KERNEL][,memory=MIB][,cpus=N][,nodes=N][,wait=SECONDS][,cpufreq=MHZ:MHZ...][,cmdline=WORDS][,modules=NAME:...]"
    "[,programs=NAME:...][,disk=SIZE|PATH[:OPTION...]][,target=KIND[:OPTION...]]"
)


class Disk(msgspec.Struct, frozen=True):
    """One disk of the guest. Sizes in bytes, rates per second."""

    bus: str = "virtio"
    path: str = ""
    """File or device of this machine; empty for an emulated one."""
    size: int = 0
    kept: bool = False
    """An emulated disk that keeps what is written; others read as zeros."""
    options: tuple[tuple[str, str], ...] = ()


class Spec(msgspec.Struct, frozen=True):
    """What is booted."""

    kernel: str = ""
    memory: int = MEMORY
    cpus: int = 1
    nodes: int = 1
    """NUMA nodes that CPUs and memory are spread over."""
    wait: int = 0
    """Seconds that the guest may take to start, or to answer; 0: by its CPUs and the load of this machine."""
    budget: float = 0.0
    """Seconds that the whole experiment may take: no wait is longer; 0 for no such limit."""
    cpufreq: tuple[int, ...] = ()
    """Frequencies of every CPU in MHz, falling, that cpufreq can choose from; they do not change the speed."""
    cmdline: str = ""
    modules: tuple[str, ...] = ()
    """Loaded in addition to the modules of disks and target."""
    programs: tuple[str, ...] = ()
    """Programs of this machine, in addition to those of every guest."""
    disks: tuple[Disk, ...] = ()
    target: str = ""
    """Kind of the target that is made in the guest; empty for none."""
    options: tuple[tuple[str, str], ...] = ()
    """Of the target."""


BUSES = ("virtio", "nvme", "scsi")
LIMITS = ("iops", "read-iops", "write-iops", "bps", "read-bps", "write-bps")
"""Throttles of a disk, as qemu's ``throttling.iops-total`` and so on."""

UNITS = ("", "k", "m", "g", "t")
LARGEST = 1 << 50
"""Bytes of an emulated disk: far beyond what any filesystem holds, and what qemu and the kernel can still count."""


def parse(text: str) -> Spec:
    """Return the text after ``vm:``. Raises RequestError with the form."""
    spec = _parsed(text)
    _check(spec)
    return spec


def _parsed(text: str) -> Spec:
    """Parse part by part; ``_check`` checks whether the parts fit together."""
    kernel, *parts = text.split(",")
    if "=" in kernel:
        kernel, parts = "", [kernel, *parts]
    values: dict[str, object] = {}
    disks: list[Disk] = []
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not value or not value.isprintable():
            raise _refuse(f"{part!r} says nothing")
        if key in NUMBERS:
            values[key] = _whole(key, value)
        elif key in READERS:
            values[key] = READERS[key](value)
        elif key == "disk":
            disks.append(_disk(value))
        elif key == "target":
            kind, *options = value.split(":")
            values["target"] = kind
            values["options"] = tuple(map(_option, options))
        else:
            raise _refuse(f"a guest has no {key!r}")
    return Spec(kernel=kernel, disks=tuple(disks), **values)  # type: ignore[arg-type]


def changed(spec: Spec, settings: Mapping[str, str]) -> Spec:
    """``spec`` with a variant's ``kernel``, ``kernel.cmdline`` and ``vm.NAME``: a disk or target takes the place of
    those it has. Raises RequestError."""
    given = {
        name.removeprefix("vm."): value
        for name, value in settings.items()
        if name.startswith("vm.")
    }
    of_variant = _parsed(
        ",".join(["", *(f"{name}={value}" for name, value in given.items())])
    )
    fields = {
        "disk": ("disks",),
        "target": ("target", "options"),
        **{name: (name,) for name in (*NUMBERS, "cpufreq")},
    }
    taken = [
        field for name, of_name in fields.items() if name in given for field in of_name
    ]
    values: dict[str, object] = {field: getattr(of_variant, field) for field in taken}
    if "kernel" in settings:
        values["kernel"] = settings["kernel"]
    if cmdline := settings.get("kernel.cmdline"):
        values["cmdline"] = f"{spec.cmdline} {cmdline}".strip()
    whole = msgspec.structs.replace(spec, **values)
    _check(whole)
    return whole


def _check(spec: Spec) -> None:
    """Raises RequestError for parts that do not fit together."""
    if not 128 <= spec.memory <= 1 << 16 or not 1 <= spec.cpus <= 64:
        raise _refuse("memory is 128 to 65536 MiB, cpus 1 to 64")
    if not 1 <= spec.nodes <= spec.cpus:
        raise _refuse("every NUMA node needs a CPU: nodes is at most cpus")
    # The kernel gives a device at most one queue per CPU: null_blk then fails, and ublk silently makes fewer.
    for name, value in spec.options:
        is_queues = name in ("queues", "submit_queues") and value.isdigit()
        if is_queues and int(value) > spec.cpus:
            count = f"{spec.cpus} CPU{'s' * (spec.cpus != 1)}"
            raise _refuse(
                f"{spec.target} cannot have {value} queues in a guest of {count}: give cpus={value}, or fewer"
            )


def _disk(text: str) -> Disk:
    what, *options = text.split(":")
    flags = [option for option in options if option in BUSES or option == "kept"]
    named = tuple(_option(option) for option in options if option not in flags)
    for name, value in named:
        if name in (*LIMITS, "error"):
            _whole(name, value)
        elif name != "latency" or not re.fullmatch(r"\d+(us|ms)", value):
            raise _refuse(f"a disk has no {name}={value}")
    bus = next((flag for flag in reversed(flags) if flag in BUSES), "virtio")
    kept = "kept" in flags
    if match := re.fullmatch(r"(\d+)([kmgt]?)", what, re.IGNORECASE):
        size = int(match[1]) << (10 * UNITS.index(match[2].lower()))
        if size < 1 << 20 or size % 512:
            raise _refuse(
                f"a disk of {what} is too small, or not a whole number of sectors"
            )
        if size > LARGEST:
            raise _refuse(
                f"a disk of {what} is too large: {LARGEST >> 40}t is the most"
            )
        return Disk(bus, "", size, kept, named)
    if kept or any(name == "latency" for name, _ in named):
        raise _refuse(
            "kept and latency are for emulated disks, which are given by a size"
        )
    if not os.path.exists(what):
        raise RequestError(
            "there is no such file or device",
            place=f"disk={what}",
            remedy="name an existing file or device, or give a size",
        )
    if "," in what:
        raise _refuse("a disk's path must be without a comma")
    return Disk(bus, os.path.abspath(what), 0, False, named)


def _clocks(text: str) -> tuple[int, ...]:
    """Return the clocks of a guest's CPUs in MHz. Raises RequestError."""
    megahertz = tuple(_whole("cpufreq", word) for word in text.split(":"))
    fastest_first = list(megahertz) == sorted(set(megahertz), reverse=True)
    if not 2 <= len(megahertz) <= 16 or not fastest_first or megahertz[-1] < 1:
        raise _refuse(
            "cpufreq is 2 to 16 clocks in MHz, the fastest first, as in 3000:1000"
        )
    return megahertz


def _names(text: str) -> tuple[str, ...]:
    """Modules or programs. Raises RequestError."""
    for name in text.split(":"):
        if not re.fullmatch(r"[\w./+-]+", name):
            raise _refuse(f"{name!r} is neither a module nor a program")
    return tuple(text.split(":"))


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if (
        not equals
        or not re.fullmatch(r"[\w.-]+", value)
        or not re.fullmatch(r"[\w-]+", name)
    ):
        raise _refuse(f"{text!r} is not OPTION=VALUE")
    return name, value


def _whole(name: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,12}", value):
        raise _refuse(f"{name} is a whole number, not {value!r}")
    return int(value)


def _refuse(what: str) -> RequestError:
    return RequestError(what, place="machine", remedy=f"as in {FORM}")


NUMBERS = ("memory", "cpus", "nodes", "wait")
READERS: dict[str, Callable[[str], object]] = {
    "cpufreq": _clocks,
    "cmdline": str,
    "modules": _names,
    "programs": _names,
}
"""Other parts with one value -> what reads it."""
