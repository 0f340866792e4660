"""What is known of the state of a disk: how it was prepared, when, and how much was written to it since.

The record lies in the state directory of the machine that has the disk. It is deleted before a preparation begins (a
kill must not leave the old state on record), and holds only for the device that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MachineError
from iodelta.machine import Machine, literal, throw_away
from iodelta.plural import plural
from iodelta.probe.counters import SECTOR
from iodelta.probe.identity import Identity, same_device
from iodelta.probe.sysfs import attribute, boot_id, sysfs_name
from iodelta.probe.topology import Target
from iodelta.trial import Finding

MUCH = 0.1
"""Share of a prepared disk that may be written before its state counts as that of the later writes."""

WRITTEN = 6
"""Place of the sectors written in a device's ``stat`` (Documentation/block/stat.rst)."""


class Prepared(msgspec.Struct, frozen=True):
    """How a disk was prepared. Bytes and seconds."""

    identity: Identity
    at: float
    """Unix seconds at which its preparation ended."""
    steady: bool
    """Whether it was steady then."""
    how: str
    """The preparation in a line of words."""
    size: int
    """Bytes from its beginning that were prepared."""
    rounds: int
    """Rounds that it took."""
    rate: float
    """Bytes per second of the writes in sequence; 0 where there were none."""
    folder: str
    """Folder with its rounds, on the machine that ran iodelta."""
    boot: str
    """The boot in which it ended."""
    counter: int | None
    """Bytes written to the device in that boot, as the kernel counts; None where it does not say."""


class Known(msgspec.Struct, frozen=True):
    """What is known of a disk now."""

    prepared: Prepared | None
    """None: nothing."""
    since: int | None = None
    """Bytes written since then; None where that is not known, as after a reboot."""
    rotational: bool = False
    """Whether the kernel calls it rotational, as it does many a virtual disk."""


def known(machine: Machine, target: Target) -> Known:
    """Return what is known of the disk that ``target`` is. Reads only."""
    disk = sysfs_name(target.disk or target.device or "")
    rotational = attribute(machine, f"/sys/class/block/{disk}/queue/rotational") == "1"
    for path in machine.glob(f"{literal(_directory(machine))}/*.json"):
        state = _read(machine, path)
        if state is not None and same_device(state.identity, target.identity):
            return Known(state, _since(machine, target, state), rotational)
    return Known(None, None, rotational)


def state_known(machine: Machine, target: Target) -> Known | None:
    """Return what is known of a disk that is to be written to; None for files, and for disks that end with their guest."""
    if target.kind == "block" and not throw_away(machine):
        return known(machine, target)
    return None


def findings(disk: Known | None, path: str) -> Iterator[Finding]:
    """Yield what a reader must know of the state of a disk that is written to."""
    if disk is None:
        return
    remedy = f"`iodelta prepare {path} --destroy {path}` brings it to a known state, or [prepare] in the experiment file"
    if disk.prepared is None:
        flash = (
            "the kernel calls it rotational; if there is flash behind it, "
            if disk.rotational
            else ""
        )
        text = f"{flash}how fast it writes depends on what was written to it before, and those writes are unknown"
        yield Finding(
            "disk.unknown", "note" if disk.rotational else "warning", path, text, remedy
        )
    elif not disk.prepared.steady:
        text = f"it was prepared, and was not steady after {plural(disk.prepared.rounds, 'round')}"
        yield Finding("disk.not-steady", "warning", path, text, remedy)
    elif disk.since is None:
        text = (
            "it was prepared in an earlier boot, and the writes since then are unknown"
        )
        yield Finding("disk.rebooted", "note", path, text, remedy)
    elif disk.since > MUCH * disk.prepared.size:
        share = 100 * disk.since / disk.prepared.size
        text = f"{share:.0f} % of its size were written to it since it was prepared"
        yield Finding("disk.written", "note", path, text, remedy)


def written_since(
    disk: Known | None, *, target: Target, counters: Mapping[str, float]
) -> dict[str, float]:
    """Return a trial's counter of the bytes written between the preparation of its disk and the trial.

    ``counters`` are those of a snapshot before the trial. Empty where either is not known.
    """
    sectors = counters.get(f"disk.{target.device}.write_bytes")
    if (
        disk is None
        or disk.prepared is None
        or disk.since is None
        or disk.prepared.counter is None
        or sectors is None
    ):
        return {}
    return {"prepared.written_since_bytes": sectors * SECTOR - disk.prepared.counter}


def counted(machine: Machine, target: Target) -> int | None:
    """Bytes written to a block device in this boot; None where the kernel does not say."""
    fields = (
        attribute(machine, f"/sys/class/block/{sysfs_name(target.device or '')}/stat")
        or ""
    ).split()
    if len(fields) > WRITTEN:
        return int(fields[WRITTEN]) * SECTOR
    return None


def forget(machine: Machine, target: Target) -> None:
    """Delete what was known of this disk."""
    for path in machine.glob(f"{literal(_directory(machine))}/*.json"):
        state = _read(machine, path)
        if state is None or same_device(state.identity, target.identity):
            machine.run(["rm", "-f", "--", path])


def remember(machine: Machine, target: Target, prepared: Prepared) -> None:
    """Keep the state for later runs. Raises MachineError."""
    directory = _directory(machine)
    path = f"{directory}/{sysfs_name(target.device or '')}.json"
    machine.run(["mkdir", "-p", "--", directory])
    done = machine.run(["tee", "--", path], stdin=msgspec.json.encode(prepared))
    if done.returncode != 0:
        raise MachineError(
            f"cannot write: {done.stderr.decode(errors='replace').strip()}", place=path
        )


def _directory(machine: Machine) -> str:
    return f"{machine.state}/prepared"


def _read(machine: Machine, path: str) -> Prepared | None:
    try:
        return from_json(machine.read_bytes(path), Prepared)
    except (MachineError, msgspec.MsgspecError):
        return None


def _since(machine: Machine, target: Target, prepared: Prepared) -> int | None:
    now = counted(machine, target)
    if (
        prepared.boot != boot_id(machine)
        or now is None
        or prepared.counter is None
        or now < prepared.counter
    ):
        return None
    return now - prepared.counter
