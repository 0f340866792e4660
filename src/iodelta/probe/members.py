"""The members of a mirror, checked before a measurement: whether they can form a mirror and hold the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.errors import RequestError
from iodelta.machine import LocalMachine, Machine
from iodelta.probe.native import native
from iodelta.probe.topology import Target, resolve
from iodelta.trial import Finding

SAMPLE = 64
"""Random MiB that are compared before a run, besides both ends."""


def inspect(
    members: Sequence[str],
    *,
    pieces: int = SAMPLE,
    size: int | None = None,
    seed: int = 1,
) -> tuple[int, tuple[Finding, ...]]:
    """Return the size that all members have in common, and findings about unequal sizes or contents. Reads only.

    Compares ``pieces`` random MiB and both ends, or everything with 0. Raises RequestError for members that cannot be
    one mirror or cannot be read.
    """
    targets = targets_of(members, LocalMachine())
    core = native()
    try:
        sizes = core.sizes([target.real_path for target in targets])
    except OSError as error:
        raise RequestError(
            str(error), place="mirror", remedy="run as root, or name readable members"
        ) from error
    least = min(sizes)
    if least == 0:
        raise RequestError(
            "has no bytes",
            place=members[sizes.index(0)],
            remedy="name a block device or a file with contents",
        )
    findings = []
    if max(sizes) != least:
        listed = ", ".join(
            f"{path}: {member_size}"
            for path, member_size in zip(members, sizes, strict=True)
        )
        text = f"the members have unequal sizes ({listed}); the first {least} bytes are used"
        findings.append(Finding("mirror.sizes", "note", members[0], text))
    used = least if size is None else min(size, least)
    try:
        compared, difference = core.compare(
            [target.real_path for target in targets], used, pieces, seed
        )
    except OSError as error:
        raise RequestError(
            str(error),
            place="mirror",
            remedy="is the member failing? see the kernel's log",
        ) from error
    if difference:
        text = f"{difference[0]} differs from {targets[0].real_path} at byte {difference[1]}: they are not a mirror"
        remedy = (
            "timings are still correct; copy one to the other if the contents matter"
        )
        findings.append(
            Finding("mirror.content", "warning", difference[0], text, remedy)
        )
    elif pieces and compared < used:
        text = f"{compared >> 20} MiB of {used >> 20} MiB were compared and are equal"
        remedy = "`iodelta policy mirror --compare-all` compares all"
        findings.append(Finding("mirror.sampled", "note", members[0], text, remedy))
    return least, tuple(findings)


def targets_of(members: Sequence[str], machine: Machine) -> tuple[Target, ...]:
    """Return what the paths lead to: each a block device or a file, and none twice. Raises RequestError."""
    if not members:
        raise RequestError(
            "a mirror needs members",
            place="mirror",
            remedy="name block devices or files",
        )
    targets = tuple(resolve(machine, path) for path in members)
    seen: dict[str, str] = {}
    for target in targets:
        if target.kind == "directory":
            raise RequestError(
                "is a directory",
                place=target.path,
                remedy="name block devices or files",
            )
        key = target.devno if target.kind == "block" else target.real_path
        if key in seen:
            raise RequestError(
                f"is the same as {seen[key]}",
                place=target.path,
                remedy="the members of a mirror must be different devices",
            )
        seen[key] = target.path
    return targets
