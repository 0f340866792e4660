"""The safety guard: iodelta writes only to a target that the user named, and never to one that is in use.

A write workload needs a ``WritePermit``. What is in use now is refused whatever the user says. Every other device or
file needs ``--destroy`` with its name, even if it appears empty: a disk without a known signature may still hold data.
Only what iodelta made itself needs none (``iodelta.probe.made``).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType

from msgspec.structs import replace

from iodelta.errors import MachineError, RefusedError, RequestError, pasted
from iodelta.experiment import Experiment
from iodelta.experiment.command import unseen
from iodelta.machine import LocalMachine, Machine, literal, throw_away
from iodelta.machine.held import Way, kept_open, way_to
from iodelta.probe.contents import look
from iodelta.probe.made import made
from iodelta.probe.mounts import mount_of
from iodelta.probe.sysfs import no_stat, sysfs_name
from iodelta.probe.topology import Stat, Target, attribute, below, resolve, status
from iodelta.probe.usage import Reason, current_uses, device_reasons, file_reasons

SCRATCH = "iodelta-scratch"
MARK = "IODELTA-SCRATCH.txt"
MARK_TEXT = "iodelta made this directory. Everything in it may be overwritten or deleted at any time.\n"

NOTHING: Mapping[str, str] = MappingProxyType({})

KERNEL_FILESYSTEMS = frozenset(
    "binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl hugetlbfs mqueue proc pstore "
    "securityfs selinuxfs sysfs tracefs".split()
)


class WritePermit:
    """Permission to write to one target, for as long as it stays the device or file it was.

    On this machine the permit of a block device also holds it opened with O_EXCL: the kernel then refuses to mount
    it, swap on it, or give it to md, dm or btrfs, while fio can still open it. Close it, or use it in ``with``.
    """

    def __init__(
        self,
        machine: Machine,
        target: Target,
        lifted: tuple[Reason, ...],
        held: contextlib.ExitStack,
        opened: str,
    ) -> None:
        self.target = target
        self.opened = opened
        """The path to write to: one that nobody can lead to another file while the permit is held."""
        self.lifted = lifted
        """Reasons for a refusal that the user lifted by naming the target: shown before anything starts."""
        self._machine = machine
        self._held = held

    def recheck(self) -> None:
        """Before each write trial (some 5 ms): still the same device, still unused. Raises RefusedError."""
        with self._machine.together("recheck"):
            try:
                target = resolve(self._machine, self.target.path)
            except RequestError as error:
                raise RefusedError(
                    "the target has vanished since the run began",
                    place=self.target.path,
                    remedy="reconnect it and run the same command again",
                ) from error
            _same(self.target, target)
            refuse_at_once(refuse_reasons(self._machine, target))

    def close(self) -> None:
        """Let go of the device."""
        self._held.close()

    def __enter__(self) -> WritePermit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def refuse_reasons(
    machine: Machine, target: Target, size: int | None = None
) -> tuple[Reason, ...]:
    """Reasons against writing, as far as they can be known without opening the target: for plans and dry runs.

    ``size`` is how many bytes a file will have; for a directory, whether it has room for a scratch file of that size is
    checked. The contents are not among the reasons, because they have to be read (``held_by``).
    """
    uses = current_uses(machine)
    if target.kind == "block":
        return (
            *device_reasons(machine, target.device or "", uses),
            *read_only(machine, target),
        )
    path, stat = target.real_path, status(machine, target.real_path)
    if stat is None:
        return (Reason(path, "has vanished", "run the same command again", True),)
    mount = mount_of(path, uses.mounts)
    reasons = []
    if (mount and mount.fstype in KERNEL_FILESYSTEMS) or path.startswith(
        ("/proc/", "/sys/")
    ):
        reasons.append(
            Reason(
                path,
                "is an interface of the kernel, not a stored file",
                "choose another target",
                True,
            )
        )
    if mount and mount.point == "/dev":
        reasons.append(
            Reason(
                path,
                "is a plain file below /dev",
                "is the device name spelt correctly?",
                True,
            )
        )
    if mount and "ro" in mount.options:
        reasons.append(
            Reason(
                path,
                f"is on {mount.point}, mounted read-only",
                "choose another directory",
                True,
            )
        )
    reasons += _space_reasons(machine, target, stat, size)
    if not reasons:
        reasons += read_only(machine, target)
    if target.kind == "file":
        reasons += file_reasons(machine, path, stat, uses)
        if stat.links > 1:
            what = f"has {stat.links - 1} other names (hard links)"
            reasons.append(Reason(path, what, "name a file of its own", False))
    return tuple(reasons)


def refuse_at_once(reasons: Sequence[Reason]) -> None:
    """Refuse what no consent lifts. Raises RefusedError."""
    for reason in reasons:
        if reason.absolute:
            raise _refused(reason)


def check_commands(experiment: Experiment, allowed: bool) -> None:
    """Raises RefusedError for a workload of commands without permission: only its owner knows what it writes."""
    commands = () if allowed else unseen(experiment)
    if commands:
        raise RefusedError(
            "this command may write anywhere you can, and iodelta guards only the target",
            place=commands[-1],
            remedy="if it may run here, say --allow-commands; if it only reads, say only_reads = true in [workload]",
        )


def held_by(machine: Machine, target: Target) -> str:
    """Return what a write to ``target`` would destroy, for the plan; empty for a directory and for what iodelta made."""
    if target.kind == "directory" or made(machine, target):
        return ""
    try:
        return look(machine, target).said
    except MachineError as error:
        return f"it cannot be read: {error.what}"


def check_write(
    machine: Machine,
    target: Target,
    destroy: Sequence[str] = (),
    size: int | None = None,
    *,
    place: str = "",
    env: Mapping[str, str] = NOTHING,
) -> WritePermit:
    """Permission to write to ``target``, looked up just now. Raises RefusedError with the reason and the remedy.

    ``destroy`` are the paths of ``--destroy``; one of them must lead to the target itself unless iodelta made it.
    ``size`` is how many bytes a file will have. The target is read; nothing is written. With a directory of ours,
    ``place``, a file that others can exchange is kept open, and written to as ``opened``; without, it is refused.
    """
    if target.kind == "directory" and not is_scratch(machine, target.real_path):
        what = (
            "is a directory, in which iodelta writes only to scratch files of its own"
        )
        raise RefusedError(
            what, place=target.path, remedy="name a file or a block device"
        )
    named = _named(machine, target, destroy)
    reasons = refuse_reasons(machine, target, size)
    refuse_at_once(reasons)
    with contextlib.ExitStack() as stack:
        # Keep the device open exclusively where that is possible: only in our own process, so only on this machine
        if target.kind != "block" or not isinstance(machine, LocalMachine):
            exclusive = False
        else:
            try:
                descriptor = os.open(
                    target.real_path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC
                )
            except OSError as error:
                if error.errno == errno.EBUSY:
                    what = "another program has opened it for itself: a mount, a volume or a pool"
                    raise RefusedError(
                        what,
                        place=target.path,
                        remedy="stop what uses it, or choose another device",
                    ) from error
                raise RefusedError(
                    f"cannot be opened: {error.strerror}",
                    place=target.path,
                    remedy="run as root",
                ) from error
            stack.callback(os.close, descriptor)
            number = os.fstat(descriptor).st_rdev
            if f"{os.major(number)}:{os.minor(number)}" != target.devno:
                raise _replaced(target)
            exclusive = True
        opened = _opened(machine, target, place, env, stack)
        # Between the check and the open another device may have taken the path: check, hold and read must mean one.
        _same(target, resolve(machine, target.path))
        if target.kind != "directory" and not made(machine, target):
            # Reasons in the contents
            try:
                contents = look(machine, replace(target, real_path=opened))
            except MachineError as error:
                raise RefusedError(
                    f"cannot be read, so its contents are unknown: {error.what}",
                    place=target.path,
                    remedy="run as root; if the device is failing, write nothing to it",
                ) from error
            remedy = "choose one whose contents may be lost"
            if target.kind == "file":
                # Open a file for writing and write nothing: append-only files and running programs show only then
                # On overlayfs opening it for writing copies it to the upper layer.
                if target.fstype != "overlay":
                    words = [
                        "dd",
                        "if=/dev/null",
                        f"of={opened}",
                        "conv=notrunc,nocreat",
                        "count=0",
                        "status=none",
                    ]
                    done = machine.run(words, env={"LC_ALL": "C"})
                    if done.returncode != 0:
                        message = done.error_text.rpartition(": ")[2]
                        raise RefusedError(
                            f"cannot be opened for writing: {message}",
                            place=target.path,
                            remedy="choose another file",
                        )
                remedy = "name a directory instead, iodelta makes a scratch file there"
            found = [
                Reason(
                    target.path,
                    f"was not made by iodelta ({contents.said})",
                    remedy,
                    False,
                )
            ]
            if (
                "ZFS" in contents.signatures
                and not exclusive
                and machine.glob("/proc/spl/kstat/zfs/*/state")
            ):
                what = "has a ZFS label, and pools are imported here"
                found.append(
                    Reason(
                        target.path,
                        what,
                        "`zpool export` it and unload zfs first",
                        True,
                    )
                )
            reasons += tuple(found)
        for reason in reasons:
            if reason.absolute or not named:
                raise _refused(reason, f"--destroy {_stable_path(target)}", destroy)
        return WritePermit(machine, target, reasons, stack.pop_all(), opened)
    raise AssertionError("no context of the stack suppresses an exception")


def _opened(
    machine: Machine,
    target: Target,
    place: str,
    env: Mapping[str, str],
    stack: contextlib.ExitStack,
) -> str:
    """Return the path by which the target is written, of the very object that was looked up. Raises RefusedError."""
    if throw_away(machine):
        return target.real_path
    way = way_to(machine, target.path)
    if way.path != target.real_path:
        raise _replaced(target)
    if target.kind == "directory":  # its entries may be links to directories elsewhere
        listed = machine.run(
            ["stat", "-c", "%F/%n", "--", *machine.glob(f"{literal(way.path)}/*")],
            env={"LC_ALL": "C"},
        )
        links = [
            line.partition("/")[2]
            for line in listed.text.splitlines()
            if line.startswith("symbolic link/")
        ]
        way = next(
            (
                one
                for one in (way, *(way_to(machine, link) for link in links))
                if one.exposed
            ),
            way,
        )
    if way.exposed and (target.kind != "file" or not place):
        raise RefusedError(
            f"another user may exchange it while it is written to: {way.exposed}",
            place=target.path,
            remedy="name a path on which only you and root may rename anything, or run as that user",
        )
    path_held = stack.enter_context(kept_open(machine, way, place, env))
    found = status(machine, path_held) if way.exposed else None
    if found is not None and f"{found.devno} {found.inode}" != target.identity.backing:
        raise _replaced(target)
    if found is not None and found.links > 1:
        raise RefusedError(
            f"has {found.links - 1} other names (hard links) and {way.exposed}, who may have made it one of these",
            place=target.path,
            remedy="name a file of its own",
        )
    return path_held


@contextlib.contextmanager
def scratch_directory(
    machine: Machine, parent: str, place: str, env: Mapping[str, str]
) -> Iterator[str]:
    """A marked directory for scratch files in ``parent``, by a path that nobody can lead elsewhere meanwhile.

    The one of an earlier run is used again; at the end an empty one is removed. ``place`` and ``env`` as for
    ``kept_open``. Raises RefusedError when something of that name is there that iodelta did not make, or that others
    can exchange; MachineError when it cannot be made.
    """
    with contextlib.ExitStack() as stack:
        way = Way(parent) if throw_away(machine) else way_to(machine, parent)
        above = f"{stack.enter_context(kept_open(machine, way, place, env)).rstrip('/')}/{SCRATCH}"
        made = machine.run(["mkdir", "-m", "700", "--", above])
        if made.returncode != 0:
            _is_marked(machine, above)  # refuses a link, and what is another user's
        path = f"{way.path.rstrip('/')}/{SCRATCH}"
        if made.returncode != 0 and status(machine, above) is None:
            raise _no_scratch(path, made.error_text)
        way = Way(path) if throw_away(machine) else way_to(machine, path)
        inside = stack.enter_context(kept_open(machine, way, place, env))
        if not _is_marked(machine, f"{inside}/.", path):
            listed = machine.run(["ls", "-A", "--", f"{inside}/."])
            if not (listed.returncode == 0 and not listed.stdout.strip()):
                raise RefusedError(
                    "exists already, and iodelta did not make it",
                    place=path,
                    remedy="move it away, or choose another directory for the scratch file",
                )
            marked = machine.run(
                ["tee", "--", f"{inside}/{MARK}"], stdin=MARK_TEXT.encode()
            )
            if marked.returncode != 0:
                raise _no_scratch(path, marked.error_text)
            # Checked once more: a network filesystem may give root's files to another user (root_squash).
            _is_marked(machine, f"{inside}/.", path)
        yield inside
        if all(
            name.endswith(f"/{MARK}") for name in machine.glob(f"{literal(inside)}/*")
        ):
            machine.run(["rm", "-f", "--", f"{inside}/{MARK}"])
            machine.run(["rmdir", "--", above])


def _no_scratch(path: str, why: str) -> MachineError:
    return MachineError(
        f"cannot make a scratch directory: {why}",
        place=path,
        remedy="choose a directory that you may write to",
    )


def is_scratch(machine: Machine, directory: str) -> bool:
    """Return whether iodelta made and marked this directory, as the user that we are on that machine.

    Anybody can write the text of the mark, so directory and mark must be ours and not links.
    """
    try:
        return _is_marked(machine, directory)
    except (MachineError, RefusedError):
        return False


def _is_marked(machine: Machine, directory: str, shown: str = "") -> bool:
    """As ``is_scratch``; raises RefusedError when directory or mark are there and a link, or others may change them."""
    shown = shown or directory
    # stat does not follow links, and /proc/self/ belongs to the user who runs it.
    asked = machine.run(
        [
            "stat",
            "-c",
            "%u %a %F",
            "--",
            "/proc/self/",
            directory,
            f"{directory}/{MARK}",
        ],
        env={"LC_ALL": "C"},
    )
    (user, *_), *owners = (
        line.split(" ", 2) for line in asked.text.splitlines() or [""]
    )
    for path, wanted, (owner, mode, kind) in zip(
        (shown, f"{shown}/{MARK}"), ("directory", "regular file"), owners, strict=False
    ):
        if kind.replace(" empty", "") != wanted:
            raise RefusedError(
                f"is a {kind}, where iodelta makes a {wanted}",
                place=path,
                remedy="delete it, or choose another directory for the scratch file",
            )
        if owner != user:
            raise RefusedError(
                f"belongs to user {owner} and you are user {user}: its owner can exchange what is in it",
                place=path,
                remedy=f"delete {shown}, run as that user, or choose another directory for the scratch file",
            )
        if wanted == "directory" and int(mode, 8) & 0o022:
            raise RefusedError(
                f"others may write to it (mode {mode})",
                place=path,
                remedy=f"say `chmod go-w {pasted(path)}`",
            )
    return asked.returncode == 0 and machine.read(f"{directory}/{MARK}") == MARK_TEXT


def read_only(machine: Machine, target: Target) -> tuple[Reason, ...]:
    """Return what cannot be written at all, found out without opening it."""
    if target.kind == "block":
        name = target.device or ""
        for device in (name, *below(machine, name)):
            if attribute(machine, f"/sys/class/block/{sysfs_name(device)}/ro") == "1":
                return (
                    Reason(
                        f"/dev/{device}",
                        "is read-only",
                        f"`blockdev --setrw /dev/{device}`, if that is intended",
                        True,
                    ),
                )
    path = target.real_path
    if target.kind == "directory" and is_scratch(
        machine, f"{path.rstrip('/')}/{SCRATCH}"
    ):
        path = f"{path.rstrip('/')}/{SCRATCH}"
    if machine.run(["test", "-w", path]).returncode == 0:
        return ()
    remedy = "run as its owner or as root; `lsattr -d` shows whether it is immutable"
    return (
        Reason(
            target.real_path, "may not be written by you, or by anybody", remedy, True
        ),
    )


def _space_reasons(
    machine: Machine, target: Target, stat: Stat, size: int | None
) -> tuple[Reason, ...]:
    """Return a reason when space is short: fio would stop with ENOSPC in the middle of a trial, and so would every
    other program that writes to that filesystem."""
    done = machine.run(["stat", "-f", "-c", "%a %S", "--", target.real_path])
    if done.returncode != 0 or size is None:
        return ()
    try:
        blocks, each = map(int, done.text.split())
    except ValueError as error:
        raise no_stat(machine, done.text.strip(), target.real_path) from error
    free, needed = (
        blocks * each,
        size - (stat.allocated if target.kind == "file" else 0),
    )
    if needed <= free:
        return ()
    place = target.mount or "its filesystem"
    shortage = f"{needed / 2**20:,.0f} MiB are needed and {free / 2**20:,.0f} MiB are free on {place}"
    return (
        Reason(
            target.real_path,
            shortage,
            "free some space or give a smaller [target] size",
            True,
        ),
    )


def _named(machine: Machine, target: Target, destroy: Sequence[str]) -> bool:
    """Return whether ``--destroy`` names this very device or file, by whatever path."""
    wanted = target.devno if target.kind == "block" else target.real_path
    named = False
    for path in destroy:
        try:
            other = resolve(machine, path)
        except RequestError as error:
            raise RequestError(
                f"--destroy: {error.what}",
                place=path,
                remedy="name the device or file whose contents may be lost",
            ) from error
        named |= other.kind == target.kind and wanted == (
            other.devno if other.kind == "block" else other.real_path
        )
    return named


def _same(target: Target, found: Target) -> None:
    """The path still leads to the device or file that was looked up. Raises RefusedError."""
    same = (target.kind, target.real_path) == (found.kind, found.real_path)
    if target.kind == "block":
        # Of the links some name the contents (lvm-pv-uuid-...), which our own writes change.
        before, now = (
            replace(resolved.identity, by_id=()) for resolved in (target, found)
        )
        same = same and before == now
    else:
        # fio replaces a file that it lays out, so the inode may change; the place may not.
        same = same and (target.mount, target.fstype) == (found.mount, found.fstype)
    if not same:
        raise _replaced(target)


def _replaced(target: Target) -> RefusedError:
    return RefusedError(
        "this path leads to another device or file than when the run began",
        place=target.path,
        remedy="name the target by its stable path (/dev/disk/by-id/...) and run the same command again",
    )


def _stable_path(target: Target) -> str:
    return target.identity.by_id[0] if target.identity.by_id else target.path


def _refused(
    reason: Reason, consent: str = "", destroy: Sequence[str] = ()
) -> RefusedError:
    remedy = reason.remedy
    if consent and not reason.absolute:
        remedy += f"; or, if its contents may be destroyed, say {consent}"
        if destroy:
            remedy += f" (given: {', '.join(destroy)}, which is not the target)"
    return RefusedError(
        f"{reason.what}; iodelta does not write to it",
        place=reason.place,
        remedy=remedy,
    )
