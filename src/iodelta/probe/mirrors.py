"""Which members of a mirrored btrfs hold the target's bytes, and the pids that read them: a read policy depends on both.

The mirror that ``pid`` reads from is the submitter's pid modulo the copies, over the stripes of the chunk in their own
order (find_live_mirror in fs/btrfs/volumes.c). So each trial records both: where the target's extents lie by FIEMAP
(filefrag of e2fsprogs; on btrfs its "physical" addresses are those of the chunk tree) and the chunk tree itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec

from iodelta.errors import LostError, MachineError
from iodelta.machine import Machine
from iodelta.probe.devices import btrfs_of
from iodelta.probe.processes import children
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target
from iodelta.trial import Finding

TIMEOUT = 20.0
"""Seconds for one look at the extents or at the chunk tree."""

ONE_SIDED = 0.9
"""Part of the reads from one member that is worth a note."""

_CHUNK = re.compile(
    r"CHUNK_ITEM (?P<start>\d+)\) itemoff.*?length (?P<length>\d+) .*? type (?P<type>[\w|]+)"
    r".*?sub_stripes (?P<sub>\d+)(?P<stripes>(?:\s+stripe \d+ devid \d+ offset \d+\s+dev_uuid \S+)+)",
    re.DOTALL,
)
_EXTENT = re.compile(r"\s*\d+:\s*\d+\.\.\s*\d+:\s*(\d+)\.\.\s*\d+:\s*(\d+):(.*)")
_NOWHERE = re.compile(r"inline|unknown|delalloc")


class Chunk(msgspec.Struct, frozen=True):
    """Logical bytes from ``start``, and the devids that hold them: one group for raid1, several for raid10."""

    start: int
    length: int
    groups: tuple[tuple[int, ...], ...]
    """Devids with the same bytes, in the order of the chunk's stripes."""


class Mirrors:
    """The copies of one target, looked up for each trial: writes, defragmentation and balance move them."""

    def __init__(self, machine: Machine, target: Target) -> None:
        """Raises MachineError when the target's devices have vanished."""
        self._machine = machine
        self._target = target
        self._pids: set[int] = set()
        fsid = (
            btrfs_of(machine, target.devices[0])
            if target.fstype == "btrfs" and target.devices
            else None
        )
        # Reads of a block device bypass the filesystem on it, and with it the read policy.
        mirrored = (
            fsid
            and target.kind == "file"
            and machine.glob(f"/sys/fs/btrfs/{fsid}/allocation/data/raid1*")
        )
        self._policy = f"/sys/fs/btrfs/{fsid}/read_policy" if mirrored else ""

    def sample(self, pid: int) -> None:
        """Note who reads now: the children of the load's process ``pid``, or it alone."""
        if self._policy:
            self._pids.update(children(self._machine, pid) or (pid,))

    def account(self) -> dict[str, float]:
        """By dotted name, of the readers seen since the last account; empty unless it is a mirrored btrfs.

        ``btrfs.copies.2+1.bytes``: bytes of the target in chunks whose stripes are devids 2 and 1, in this order;
        ``btrfs.copies.bytes``: of all, 0 when it cannot be known.
        ``btrfs.pids_mod2.1``: readers with an odd pid. ``btrfs.devid1.pid_share``: the part of evenly spread reads
        that the policy ``pid`` takes from devid 1 with these pids.
        """
        pids, self._pids = frozenset(self._pids), set()
        if not self._policy:
            return {}
        # btrfs does not write through the block device's page cache, which may still hold an old tree.
        node = f"/dev/{self._target.devices[0]}"
        self._output("blockdev", "--flushbufs", node)
        chunks = chunks_of(
            self._output("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", node)
        )
        extents = extents_of(
            self._output("filefrag", "-v", "--", self._target.real_path)
        )
        bytes_of_group = copies_of(chunks, extents)
        counters = {
            f"btrfs.copies.{'+'.join(map(str, group))}.bytes": float(size)
            for group, size in bytes_of_group.items()
        }
        counters["btrfs.copies.bytes"] = float(sum(bytes_of_group.values()))
        for copies in sorted({len(group) for group in bytes_of_group}):
            parities = Counter(pid % copies for pid in pids)
            counters |= {
                f"btrfs.pids_mod{copies}.{rest}": float(parities[rest])
                for rest in range(copies)
                if pids
            }
        shares = pid_shares(bytes_of_group, pids)
        return counters | {
            f"btrfs.devid{devid}.pid_share": share for devid, share in shares.items()
        }

    def findings(self, account: Mapping[str, float]) -> tuple[Finding, ...]:
        """Notes: the place of the bytes is unknown; ``pid`` is active and takes nearly all reads from one member."""
        if account.get("btrfs.copies.bytes") == 0:
            text = "it is not known which members hold its data: filefrag or btrfs inspect-internal printed nothing"
            remedy = "install e2fsprogs and btrfs-progs, and run as root"
            return (
                Finding("btrfs.no-chunk-map", "note", self._target.path, text, remedy),
            )
        active = (
            re.search(r"\[(.*?)\]", attribute(self._machine, self._policy) or "")
            if self._policy
            else None
        )
        parts = {
            name.split(".")[1]: part
            for name, part in account.items()
            if name.endswith(".pid_share")
        }
        most = max(parts, key=parts.__getitem__, default="")
        if (
            active is None
            or active[1] != "pid"
            or len(parts) < 2
            or parts[most] < ONE_SIDED
        ):
            return ()
        share = f"{100 * parts[most]:.0f} % of the reads from one member: {most}"
        text = f"by the pids of its readers, the policy pid takes {share}"
        remedy = (
            "another trial draws another pid: compare over blocks, or use more jobs"
        )
        return (Finding("btrfs.pid-lottery", "note", self._target.path, text, remedy),)

    def _output(self, *words: str) -> str:
        try:
            return self._machine.run(words, timeout=TIMEOUT, env={"LC_ALL": "C"}).text
        except LostError:
            raise
        except MachineError:  # the program does not exist
            return ""


def chunks_of(text: str) -> tuple[Chunk, ...]:
    """Return the mirrored chunks in the output of ``btrfs inspect-internal dump-tree -t chunk``."""
    chunks = []
    for item in _CHUNK.finditer(text):
        profile = item["type"].rpartition("|")[2]
        devids = [int(devid) for devid in re.findall(r"devid (\d+)", item["stripes"])]
        if not profile.startswith("RAID1"):
            continue
        width = int(item["sub"]) if profile == "RAID10" else len(devids)
        groups = tuple(
            tuple(devids[at : at + width])
            for at in range(0, len(devids), max(1, width))
        )
        chunks.append(Chunk(int(item["start"]), int(item["length"]), groups))
    return tuple(chunks)


def extents_of(text: str) -> tuple[tuple[int, int], ...]:
    """Logical address and length in bytes of each extent that ``filefrag -v`` prints, without those on no device."""
    unit = re.search(r"blocks? of (\d+) bytes", text)
    rows = (_EXTENT.fullmatch(line) for line in text.splitlines())
    size = int(unit[1]) if unit else 1
    return tuple(
        (size * int(row[1]), size * int(row[2]))
        for row in rows
        if row and not _NOWHERE.search(row[3])
    )


def copies_of(
    chunks: Iterable[Chunk], extents: Iterable[tuple[int, int]]
) -> dict[tuple[int, ...], int]:
    """Group of devids -> bytes of the extents that they hold; the groups of a raid10 chunk have the same each."""
    bytes_of_group: Counter[tuple[int, ...]] = Counter()
    known = list(chunks)
    for start, length in extents:
        for chunk in known:
            inside = min(start + length, chunk.start + chunk.length) - max(
                start, chunk.start
            )
            if inside > 0:
                for group in chunk.groups:
                    bytes_of_group[group] += inside // len(chunk.groups)
    return dict(sorted(bytes_of_group.items()))


def pid_shares(
    held: Mapping[tuple[int, ...], int], pids: Iterable[int]
) -> dict[int, float]:
    """Devid -> part of evenly spread reads that ``pid`` takes from it; empty without readers."""
    readers = list(pids)
    shares = dict.fromkeys(sorted(set(chain.from_iterable(held))), 0.0)
    whole = sum(held.values()) * len(readers)
    for group, size in held.items():
        for pid in readers:
            shares[group[pid % len(group)]] += size / whole
    if whole:
        return shares
    return {}
