"""Differences between two environments, likely confounders first, each with the reason why it matters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from iodelta.grouping import grouped
from iodelta.study.words import inert


class Confounder(msgspec.Struct, frozen=True):
    """A group of names (``pattern`` matches a dotted path of the environment), and why they matter.

    ``likely``: it changes by itself what fio measures, so it alone may explain a difference between results.
    """

    group: str
    pattern: str
    why: str
    likely: bool = True


_DEVICE = r"devices\.\d+\."

CONFOUNDERS = (
    Confounder(
        "fio",
        r"fio\.(version|path|build|package)|fio",
        "versions of fio differ in offsets, defaults and how latency is counted; compare with one binary",
    ),
    Confounder(
        "engines",
        r"fio\.engines",
        "an engine that one side lacks is replaced or refused",
        likely=False,
    ),
    Confounder(
        "clock",
        r"kernel\.clocksource|clocksource",
        "fio reads the clock several times per I/O; hpet or acpi_pm cost about a microsecond each time, tsc 20 ns",
    ),
    Confounder(
        "kernel",
        r"kernel\.(release|version)",
        "a different kernel has a different block layer, driver and scheduler: only one thing should change",
    ),
    Confounder(
        "mitigations",
        r"mitigations\..+",
        "protections against CPU vulnerabilities make every system call and interrupt more expensive, most at small I/Os",
    ),
    Confounder(
        "CPU frequency",
        r"cpu\.(governor|driver|epp|boost|pstate|khz_\w+)",
        "a slower clock adds to every I/O's path; a governor may not see that I/O waits for the CPU",
    ),
    Confounder(
        "idle states",
        r"cpu\.idle.*|memory\.haltpoll.*",
        "waking from a deep idle state adds up to 200 us to an I/O at a low depth",
    ),
    Confounder(
        "I/O scheduler",
        _DEVICE
        + r"queue\.(scheduler|nr_requests|iosched\..+|wbt_lat_usec|async_depth)",
        "the scheduler, its tunables and writeback throttling decide in which order and how many I/Os reach the device",
    ),
    Confounder(
        "queue settings",
        _DEVICE
        + r"queue\.(rq_affinity|nomerges|io_poll\w*|read_ahead_kb|max_sectors_kb|write_cache|fua|iostats|add_random)",
        "merging, polling, completion placement, read-ahead and the write cache change what an I/O costs",
    ),
    Confounder(
        "firmware",
        _DEVICE + r"firmware|host\.bios|cpu\.microcode",
        "firmware and microcode contain the caching, throttling and garbage collection of a device",
    ),
    Confounder(
        "mount options",
        r"filesystem\.(options|type|btrfs\..+)",
        "journalling, checksums, compression, access times and discard add or save I/O",
    ),
    Confounder(
        "device",
        _DEVICE
        + r"(model|vendor|transport|cache|queue_depth|link_\w+|queue\.(rotational|logical_block_size"
        r"|physical_block_size|optimal_io_size|minimum_io_size|nr_zones|zoned|max_hw_sectors_kb))",
        "another model, link or sector size has other speeds; only the relative change can be compared",
    ),
    Confounder(
        "member devices",
        _DEVICE + r"(name|members|md\..+|dm\..+|bcache\..+|loop\..+)|devices\.\d+",
        "layout, members and chunk size decide how many devices share the load, and a degraded array is another array",
    ),
    Confounder(
        "topology",
        r"cpu\.(model|family_model_stepping|threads|cores|sockets|online|smt)|numa\..+|limits\.(cpus|memory_nodes)",
        "cores, SMT and NUMA distance between CPU, memory and device change cost per I/O and how it scales",
    ),
    Confounder(
        "drivers",
        r"modules\..+",
        "parameters of a driver decide on queues, polling, power states and time-outs",
    ),
    Confounder(
        "power saving",
        _DEVICE + r"(power_control|wake_latency_us)|host\.tuned_profile",
        "a device that sleeps between I/Os answers the next one late; a tuning profile changes many settings at once",
    ),
    Confounder(
        "queues and interrupts",
        r"host\.irqbalance|"
        + _DEVICE
        + r"(mq\..+|interrupt\..+|hardware_queues|numa_node)",
        "which CPU serves which queue decides whether completions cross cores or nodes",
    ),
    Confounder(
        "virtual machine",
        r"host\.(virtual|hypervisor|container|vendor|product)",
        "a hypervisor adds exits, shares the device and may take the CPU away",
    ),
    Confounder(
        "limits",
        r"limits\.(?!cgroup$).+",
        "a control group or resource limit may hold the load back",
    ),
    Confounder(
        "memory",
        r"memory\.(MemTotal|thp\w*|HugePages_Total|zswap|swap)",
        "page cache size decides what buffered I/O measures; huge pages and swap change its cost",
    ),
    Confounder(
        "preemption and timers",
        r"kernel\.(preempt|command_line|security_modules|config\.(HZ\w*|PREEMPT\w*|NO_HZ\w*))",
        "preemption model, tick rate and boot parameters change latency under load",
    ),
    Confounder(
        "debugging",
        r"kernel\.(tainted|config\.(KASAN|KCSAN|KMSAN|UBSAN|LOCKDEP|PROVE_LOCKING|DEBUG_\w+|SLUB_DEBUG_ON|FAULT_INJECTION"
        r"|LATENCYTOP|BTRFS_\w+|XFS_\w+))",
        "debugging options make some paths several times slower",
    ),
    Confounder(
        "kernel options",
        r"kernel\.config\..+",
        "options of the kernel's configuration",
        likely=False,
    ),
    Confounder(
        "settings",
        r"sysctl\..+",
        "writeback, watchdogs and NUMA balancing run during I/O or delay it",
        likely=False,
    ),
    Confounder(
        "identity",
        r"host\..+|target\..+|kernel\..+|filesystem\..+|cpu\..+",
        "names, sizes and places",
        likely=False,
    ),
    Confounder(
        "device details",
        _DEVICE + r".+",
        "other attributes of the devices",
        likely=False,
    ),
    Confounder(group="other", pattern=r".*", why="", likely=False),
)
"""In the order in which they are shown."""

OPTIONS = (
    Confounder(
        "workload",
        r"rw|bs|iodepth|numjobs|size|offset\w*|norandommap|random\w*",
        "another workload",
    ),
    Confounder(
        "engine",
        r"ioengine|direct|sync|fsync|fdatasync|thread|hipri\w*",
        "another way to submit, or the page cache",
    ),
    Confounder("pace", r"rate\w*|thinktime\w*|latency\w*", "the load was throttled"),
    Confounder(
        "length",
        r"runtime|ramp_time|loops|time_based",
        "a longer run is warmer and covers more of the device",
    ),
    Confounder(
        "time",
        r"interval between sides|run at .*",
        "the machine may have changed between the sides",
        likely=True,
    ),
    Confounder(
        "host",
        r"host|devices|filename",
        "another machine, device or file",
        likely=False,
    ),
)
"""The same for what foreign results say of themselves: fio's options."""


class Differing(msgspec.Struct, frozen=True):
    """One difference between two sides; an empty text means that a side does not have it, or did not record it."""

    what: str
    baseline: str
    variant: str
    group: str
    why: str
    likely: bool


def explained(
    pairs: Mapping[str, tuple[str | None, str | None]],
) -> tuple[Differing, ...]:
    """Dotted path -> values of both sides, as differences; the most important groups first."""
    differing = []
    ranks = {
        path: (
            next(
                number
                for number, confounder in enumerate(CONFOUNDERS)
                if re.fullmatch(confounder.pattern, path)
            )
        )
        for path in pairs
    }
    for path in sorted(pairs, key=ranks.__getitem__):
        before, after = pairs[path]
        confounder = CONFOUNDERS[ranks[path]]
        difference = Differing(
            what=path,
            baseline=before or "",
            variant=after or "",
            group=confounder.group,
            why=confounder.why,
            likely=confounder.likely,
        )
        differing.append(difference)
    return tuple(differing)


def option_of(what: str, *, grave: bool) -> tuple[str, str, bool]:
    """Return the group of an option or fact of a foreign result, its reason, and whether it is a likely confounder."""
    for confounder in (*OPTIONS, *CONFOUNDERS[:3]):
        if re.fullmatch(confounder.pattern, what):
            return confounder.group, confounder.why, confounder.likely or grave
    return "other options of fio", "", grave


def flat(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return a recorded environment by dotted path, without what holds for one moment only.

    It is plain data of any shape: another version of iodelta, or a stranger, may have written it.
    """
    texts: dict[str, str] = {}
    for name, section in environment.items():
        if name in ("schema", "now", "absent"):
            continue
        # A section by its name; the members of a list by number: ``devices.0``.
        if not isinstance(section, list | tuple):
            parts = [(name, section)]
        else:
            parts = [
                (f"{name}.{number}", member) for number, member in enumerate(section)
            ]
        for prefix, part in parts:
            if isinstance(part, dict):
                texts |= {f"{prefix}.{key}": str(text) for key, text in part.items()}
    return texts


def differences(
    first: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[Differing, ...]:
    """Return what differs between two recorded environments; names do not count if one side has had them removed."""
    from iodelta.bundle.pseudonyms import is_nameless, nameless

    if is_nameless(first) or is_nameless(other):
        first, other = nameless(first), nameless(other)
    before, after = _comparable(first, other), _comparable(other, first)
    pairs = {path: (before.get(path), after.get(path)) for path in before | after}
    return explained({path: pair for path, pair in pairs.items() if pair[0] != pair[1]})


def _comparable(
    environment: Mapping[str, Any], other: Mapping[str, Any]
) -> dict[str, str]:
    """Return the texts that can be compared: a device that the other side lacks is one difference, not one per
    attribute.
    """
    devices = other.get("devices")
    shared = len(devices) if isinstance(devices, list | tuple) else 0
    texts = {}
    for path, text in flat(environment).items():
        # An older version did not record every section.
        if path.partition(".")[0] not in other:
            continue
        number = re.match(r"devices\.(\d+)\.", path)
        if number is None or int(number[1]) < shared:
            texts[path] = text
        elif path.endswith(".name"):
            texts[path.removesuffix(".name")] = text
    return texts


MOST = 4
"""Differences of one group that are shown; the rest is only counted."""

LONG = 48
"""Characters of a value that are shown; of a longer value, the part around the first difference."""


def said(
    facts: Iterable[Differing], *, whole: bool = False
) -> list[tuple[str, str, list[str]]]:
    """Return each group, why it matters, and its lines ``what: before | after``; beyond ``MOST`` they are only counted."""
    sections = []
    for group, of_group in grouped(facts, lambda fact: fact.group).items():
        lines = list(map(line_of, of_group))
        # The line that counts the rest takes the place of one difference.
        if not whole and len(lines) > MOST + 1:
            rest = f"and {len(lines) - MOST} more of them (--format json lists all)"
            lines[MOST:] = [rest]
        sections.append((group, of_group[0].why, lines))
    return sections


def line_of(fact: Differing) -> str:
    """``kernel.release: 6.12.0 | 6.18.1``."""
    # Two values, each cut to ``LONG`` characters around the first difference.
    first = inert(fact.baseline)
    other = inert(fact.variant)
    pairs = enumerate(zip(first, other, strict=False))
    # If one value continues the other, the beginning of both is shown.
    same = next((place for place, (a, b) in pairs if a != b), 0)
    before, after = (_window(first, same), _window(other, same))
    return f"{inert(fact.what)}: {before} | {after}"


def _window(text: str, place: int) -> str:
    if not text:
        return "not recorded"
    start = max(0, min(place - LONG // 3, len(text) - LONG))
    end = start + LONG
    before = ".." if start else ""
    after = ".." if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
