"""The undo log: original knob values, on disk before the first write, put back on exit, signal and next start.

It lives on the machine that is changed, in the state directory of its user, apart from the experiment folder:
``iodelta restore`` finds it after a crash even when the folder was moved or deleted, and so does the next run on that
machine, from wherever it is started. There is one file per running experiment; its owner holds a lock on it, so a live
run's settings are never restored under its feet, and no other run sets what it has set. Only a log with nothing left to
undo is deleted. Next to it lies a script that restores everything with sh alone. A damaged line does not keep the
others from being used; the script of such a log is never deleted or rewritten, because it may know the lost setting.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from iodelta.decoding import decoder
from iodelta.errors import LostError, MachineError, MeasureError, RequestError
from iodelta.knob import Restored, Saved, knob, restore_all
from iodelta.knob.registry import restore_script
from iodelta.lab.journal import readable
from iodelta.lab.workdir import sweep
from iodelta.machine import LocalMachine, Lock, Machine, literal, throw_away
from iodelta.machine.held import locker
from iodelta.probe.topology import Target
from iodelta.workload.leftovers import end_leftovers, marked

_REMEDY = "free some space there, or set IODELTA_STATE to another directory that you can write"

_TURN = 30.0
"""Seconds that another run may hold the directory while it begins."""


def digest_of(saved: Saved) -> str:
    return hashlib.sha256(msgspec.json.encode(saved)).hexdigest()[:16]


class Head(msgspec.Struct, frozen=True, tag="experiment"):
    """Whose log this is."""

    experiment: str
    folder: str


class Original(msgspec.Struct, frozen=True, tag="saved"):
    """One knob's original value."""

    saved: Saved
    digest: str = ""
    """Of ``saved``, so that a line in which a digit changed counts as damaged; empty in older logs."""

    @property
    def sound(self) -> bool:
        """Return whether it says what was written."""
        return not self.digest or self.digest == digest_of(self.saved)


class Done(msgspec.Struct, frozen=True, tag="restored"):
    """An original that is back: from now on the setting is somebody else's."""

    saved: Saved


Entry = Head | Original | Done


class UndoFile(msgspec.Struct, frozen=True):
    """What can be read of an undo log."""

    head: Head
    originals: tuple[Saved, ...]
    """Those that are not back yet, in the order in which they were saved."""
    damaged: dict[int, str]
    """Line -> why it cannot be read."""


_decoder: msgspec.json.Decoder[Entry] = decoder(Entry)


def pending_in(machine: Machine) -> str:
    return f"{machine.state}/pending"


def script_of(path: str) -> str:
    return f"{path.removesuffix('.jsonl')}.sh"


def write_script(machine: Machine, path: str, records: Sequence[Saved]) -> None:
    """The script next to the log; it is whole at any moment. Raises MachineError."""
    script = script_of(path)
    unborn = f"{posixpath.dirname(path)}/.{stem(path)}.sh.unborn"
    checked(machine, "rm", "-f", "--", unborn)
    machine.append(unborn, restore_script(records).encode())
    checked(machine, "mv", "-T", "--", unborn, script)


def stem(path: str) -> str:
    return posixpath.basename(path).removesuffix(".jsonl")


def line_of(entry: Entry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"


def born(machine: Machine, path: str, head: bytes) -> Lock:
    """Make the log with its first line, locked before it gets its name, so that no run takes it for a dead run's."""
    directory = posixpath.dirname(path)
    unborn = f"{directory}/.{stem(path)}.unborn"
    checked(machine, "mkdir", "-p", "--", directory)
    with locked(machine, directory):
        checked(machine, "rm", "-f", "--", unborn, script_of(path))
        machine.append(unborn, head)
        held = machine.lock(unborn)
        if held is None:
            raise MachineError("another process holds it", place=unborn)
        try:
            checked(machine, "mv", "-T", "--", unborn, path)
            checked(machine, "sync", "--", directory)
        except BaseException:
            held.release()
            raise
    return held


def delete(machine: Machine, path: str) -> None:
    try:
        checked(machine, "rm", "-f", "--", path, script_of(path))
    except MachineError as error:
        raise cannot(
            "delete the undo log, although everything is restored", error, path
        ) from error


def cut(machine: Machine, path: str) -> bool:
    """Cut a torn last line of the log, which an appended line would continue; whether the log is whole now."""
    try:
        data = machine.read_bytes(path)
        end = data.rfind(b"\n") + 1
        if end < len(data):
            checked(machine, "truncate", "-s", str(end), "--", path)
    except MeasureError:
        return False
    return True


def parsed(data: bytes) -> UndoFile:
    """Whose log it is, and the originals that are not back yet, as far as its lines can be read.

    A torn last line was never followed by a write to a knob, so it is ignored. The first line was there before the log
    got its name; without it line 1 counts as damaged.
    """
    entries, damaged = readable(data, _decoder)
    head = entries.get(1)
    if not isinstance(head, Head):
        damaged.setdefault(1, "it does not say which run this log belongs to")
        head = Head("", "?")
    for number, entry in entries.items():
        if isinstance(entry, Original) and not entry.sound:
            damaged[number] = "its digest does not fit: something changed it"
    kept = [entry for number, entry in entries.items() if number not in damaged]
    originals = [entry.saved for entry in kept if isinstance(entry, Original)][::-1]
    for entry in entries.values():
        if isinstance(entry, Done) and entry.saved in originals:
            originals.remove(entry.saved)  # the latest of equal ones: restored first
    return UndoFile(head, tuple(originals[::-1]), dict(sorted(damaged.items())))


@contextlib.contextmanager
def locked(machine: Machine, directory: str) -> Iterator[None]:
    """Hold the directory of pending logs: one run at a time begins, reads and keeps originals."""
    held = machine.lock(directory, wait=_TURN)
    if held is None:
        inode = machine.run(["stat", "-c", "%i", "--", directory]).text.strip()
        holder = locker(machine, inode) if inode else 0
        raise MachineError(
            f"process {holder}, another run that is starting, holds it"
            if holder
            else "does not exist, or another run that is starting holds it",
            place=directory,
            remedy="try again",
        )
    try:
        yield
    finally:
        held.release()


def checked(machine: Machine, *words: str) -> None:
    done = machine.run(words, env={"LC_ALL": "C"})
    if done.returncode != 0:
        raise MachineError(
            done.error_text or f"{words[0]} failed",
            place=words[-1],
        )


def cannot(what: str, error: MachineError, path: str) -> MeasureError:
    return MeasureError(f"cannot {what}: {error.what}", place=path, remedy=_REMEDY)


NOTE = """
d=/dev
case $(grep ' /dev ' /proc/self/mounts | tail -n 1) in *' /dev devtmpfs '*) ;; *)
  mount -t devtmpfs iodelta /tmp 2>/dev/null || exit 0
  d=/tmp ;;
esac
if [ "$1" = drop ]; then
  for file in "$d"/.iodelta-*; do
    [ "$(head -n 1 "$file" 2>/dev/null)" != "$3" ] || rm -f "$file"
  done
  exit 0
fi
for name in $2; do
  file=$d/.iodelta-$name
  (umask 022; set -C; printf '%s\\n' "$3" >"$file") 2>/dev/null || [ "$(head -n 1 "$file" 2>/dev/null)" = "$3" ] || {
    [ ! -e "$file" ] || { echo "$name"; head -n 1 "$file"; exit 3; }
  }
done
"""
"""For sh: take or drop notes on settings of the whole kernel. The kernel has one devtmpfs, which every user and every
container that may set anything can see or mount, and which a reboot empties as it does the settings."""


def noted(machine: Machine, changed: Sequence[str], path: str) -> tuple[str, str]:
    """Note that the run with the log at ``path`` changes files of the kernel, without any to drop its notes.

    Returns a file that another run has noted, and the log of that run.
    """
    if throw_away(machine) or machine.run(["id", "-u"]).text.strip() != "0":
        return "", ""
    names = {hashlib.sha256(file.encode()).hexdigest()[:16]: file for file in changed}
    words = [
        "unshare",
        "-m",
        "sh",
        "-c",
        NOTE,
        "sh",
        "take" if changed else "drop",
        " ".join(names),
        path,
    ]
    try:
        done = machine.run(words)
    except (
        MachineError
    ):  # a machine without unshare has no containers to share its kernel with
        return "", ""
    if done.returncode != 3:
        return "", ""
    name, owner = done.text.splitlines()[:2]
    return names[name], owner


REBOOT = "kernel"
"""The knob that is a reboot: it changes everything on a machine."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of a dead run's undo log: records put back or not, processes ended."""

    folder: str
    restored: tuple[Restored, ...] = ()
    """What became of each record; empty when there was none."""
    ended: tuple[int, ...] = ()
    problem: str = ""
    """What of the log cannot be read, or what could not be ended."""
    log: str = ""
    """The path of the log."""
    damaged: tuple[int, ...] = ()
    """Lines of it that cannot be read."""

    @property
    def done(self) -> bool:
        """Return whether nothing of it is left to do."""
        return not self.problem and not any(record.error for record in self.restored)


def state_directory() -> Path:
    """Return the directory of what this user's runs keep on this machine, apart from experiments."""
    return Path(LocalMachine().state)


class UndoLog:
    """The originals of one running experiment. ``keep`` before the first write to a knob; ``undo`` puts all back."""

    def __init__(self, machine: Machine, path: str, head: Head) -> None:
        """Of a new log, which is locked before it gets its name. Raises MachineError."""
        self._machine = machine
        self._path = path
        self._head = head
        self._held = born(machine, path, line_of(head))
        self._kept: list[Saved] = []
        self._noted = False

    def keep(self, read: Callable[[], Sequence[Saved]]) -> Sequence[Saved]:
        """Append the originals that ``read`` returns and sync them; after this returns them the knobs may be written.

        They are read while no other run can begin, so that a value which a live run has set is never taken for an
        original. Raises RequestError when a live run sets one of them, MeasureError when they cannot be kept.
        """
        with locked(self._machine, posixpath.dirname(self._path)):
            # Listed before the originals are read: a run that ends in between may have set what is read.
            # The logs of the other runs that are alive
            logs = []
            for path in self._machine.glob(
                f"{literal(posixpath.dirname(self._path))}/*.jsonl"
            ):
                held = self._machine.lock(path) if path != self._path else None
                if held is not None:
                    held.release()
                elif path != self._path:
                    with contextlib.suppress(MachineError):  # it has just ended
                        logs.append(parsed(self._machine.read_bytes(path)))
            others = logs
            records = read()
            others = [
                record for record in others if record.head.folder != self._head.folder
            ]
            for log in others:
                head, theirs = log.head, log.originals
                for record in records:
                    if record.knob == REBOOT:
                        raise RequestError(
                            "the reboots of this run would end another run, which is still going on",
                            place=head.folder,
                            remedy="wait for it to end",
                        )
                    if any(
                        other.knob == REBOOT or _changes(record) & _changes(other)
                        for other in theirs
                    ):
                        raise RequestError(
                            f"another run, which is still going on, also sets {record.knob} of {record.target}, or something that this changes",
                            place=head.folder,
                            remedy="wait for it to end, or leave the knob out",
                        )
            changed = sorted(set().union(*map(_changes, records)))
            if changed:
                taken, owner = noted(self._machine, changed, self._path)
                self._noted = True
                if taken:
                    raise RequestError(
                        f"another run, by another user or state directory or in a container, has set {taken} and not restored it",
                        place=owner,
                        remedy="wait for it to end; after a crash its user's `iodelta restore` restores it. If its state is "
                        "lost, set the original yourself and delete that run's notes, /dev/.iodelta-*",
                    )
                records = read()  # what was read before the note may have been set by a run that has just ended
            try:
                write_script(self._machine, self._path, [*self._kept, *records])
                self._machine.append(
                    self._path,
                    b"".join(
                        line_of(Original(saved, digest_of(saved))) for saved in records
                    ),
                )
            except MachineError as error:
                raise cannot(
                    "keep the originals of the knobs", error, self._path
                ) from error
        self._kept += records
        return records

    def undo(self) -> list[Restored]:
        """Put everything back; what cannot be put back stays in the log, and the log on disk. Raises MeasureError."""
        restored = _put_back(self._machine, self._path, self._kept)
        self._kept = [record.saved for record in reversed(restored) if record.error]
        if not self._kept:
            if self._noted:
                noted(self._machine, (), self._path)
            delete(self._machine, self._path)
        return restored

    def hold(self) -> None:
        """Lock it again on a machine that was rebooted, which released it. Raises MeasureError."""
        held = self._machine.lock(self._path)
        if held is None:
            raise MeasureError(
                "is gone, or another process holds it: another run has used this machine since the reboot",
                place=f"{self._machine.name}: {self._path}",
                remedy="wait until they end; the same command continues",
            )
        self._held = held

    def release(self) -> None:
        """Let go of it."""
        self._held.release()


def undo_by(machine: Machine, target: Target, words: Sequence[str]) -> Saved:
    """Return the record of something that was made: ``words`` undo it, and do no harm when run twice or too early."""
    return knob("command", machine, target).save(
        [json.dumps({"apply": ["true"], "restore": list(words)})]
    )


@contextlib.contextmanager
def undo_log(machine: Machine, experiment: str, folder: Path) -> Iterator[UndoLog]:
    """Open the undo log of an experiment; leaving it undoes everything. Raises MeasureError, RequestError.

    After a crash ``restore_pending`` ends the processes that were started here before it undoes anything: a command
    that outlived us must not change a setting that was just restored.
    """
    path = f"{pending_in(machine)}/{experiment}.jsonl"
    if machine.glob(literal(path)):
        raise RequestError(
            "this experiment left settings that could not be restored",
            place=path,
            remedy="`iodelta restore` says why; `iodelta restore --forget` gives them up",
        )
    here = "" if isinstance(machine, LocalMachine) else f"{os.uname().nodename}:"
    try:
        log = UndoLog(machine, path, Head(experiment, f"{here}{folder.absolute()}"))
    except MachineError as error:
        raise cannot("keep an undo log", error, posixpath.dirname(path)) from error
    try:
        with (
            machine.marking(marked(experiment))
            if isinstance(machine, LocalMachine)
            else contextlib.nullcontext()
        ):
            try:
                yield log
            finally:
                log.undo()
    finally:
        log.release()


def restore_pending(machine: Machine, *, own: str = "") -> list[Outcome]:
    """Put back what runs that are no longer alive left changed, and end their left-over processes.

    Called by every start of a run and by ``iodelta restore``. What cannot be put back stays pending until ``give_up``.
    A log whose owner is alive is not touched. ``own`` is an experiment that is known to be dead; its log,
    or without one every log, is waited for: a machine may take a while to notice that we were cut off.
    """
    outcomes: list[Outcome] = []
    pending = pending_in(machine)
    for path in machine.glob(f"{literal(pending)}/*.jsonl"):
        patience = machine.patience if stem(path).startswith(own) else 0.0
        try:
            held = machine.lock(path, wait=patience)
            if held is None:
                continue
            try:
                log = parsed(machine.read_bytes(path))
                problems = (
                    [_unreadable(machine, path, log.damaged)] if log.damaged else []
                )
                ended: tuple[int, ...] = ()
                try:
                    ended = end_leftovers(machine, stem(path))
                except LostError:
                    raise
                except MeasureError as problem:  # what it changed comes back all the same, as far as it can
                    problems.append(problem.sentence)
                restored = _put_back(
                    machine, path, log.originals, keep_script=bool(log.damaged)
                )
                outcome = Outcome(
                    log.head.folder,
                    tuple(restored),
                    ended,
                    "; ".join(problems),
                    path,
                    tuple(log.damaged),
                )
                if outcome.done:
                    noted(machine, (), path)
                    delete(machine, path)
            finally:
                held.release()
        except MachineError as error:
            outcome = Outcome(
                path, problem=f"cannot open or delete it: {error.what}", log=path
            )
        outcomes.append(outcome)
    # Such a file exists only while its maker holds this lock, so those found here are of dead runs.
    with (
        contextlib.suppress(MeasureError),
        locked(machine, pending),
    ):
        unborn = machine.glob(f"{literal(pending)}/.*.unborn")
        if unborn:
            machine.run(["rm", "-f", "--", *unborn])
    sweep(machine)
    return outcomes


def give_up(machine: Machine, outcome: Outcome) -> str:
    """Give up what is left of a dead run's log, as its outcome says it; the log is deleted.

    Of a log with lines that cannot be read the script is kept, under the name that is returned; else an empty text.
    Raises MeasureError when there is more in it by now, or when it cannot be deleted.
    """
    held = machine.lock(outcome.log)
    if held is None:
        raise MeasureError(
            "another iodelta process holds it, so it was not given up",
            place=outcome.log,
            remedy="try again",
        )
    try:
        kept_log = parsed(machine.read_bytes(outcome.log))
        unrestored = {record.saved for record in outcome.restored if record.error}
        if set(kept_log.originals) - unrestored or set(kept_log.damaged) - set(
            outcome.damaged
        ):
            raise MeasureError(
                "it contains more than was shown, so it was not given up",
                place=outcome.log,
            )
        kept = ""
        if kept_log.damaged and machine.glob(literal(script_of(outcome.log))):
            kept = f"{outcome.log.removesuffix('.jsonl')}.given-up.sh"
            checked(machine, "mv", "-T", "--", script_of(outcome.log), kept)
        noted(machine, (), outcome.log)
        delete(machine, outcome.log)
    finally:
        held.release()
    return kept


def lost(outcome: Outcome) -> list[str]:
    """Return what is lost by giving up the rest of a log, a sentence each."""
    losses = [_lost(record) for record in outcome.restored if record.error]
    losses += [
        f"line {number} of {outcome.log}, which cannot be read, and the settings that it recorded"
        for number in outcome.damaged
    ]
    if outcome.problem and not outcome.damaged:
        losses.append(outcome.problem)
    return losses


def _lost(record: Restored) -> str:
    saved = record.saved
    values = "; ".join(f"{key} = {value}" for key, value in saved.values)
    return f"the original of {saved.knob} of {saved.target}: {values}"


def _unreadable(machine: Machine, path: str, damaged: Mapping[int, str]) -> str:
    """Return what to do about lines that cannot be read; the script may know what they said."""
    lines = f"line {', '.join(map(str, damaged))} of {path} cannot be read ({next(iter(damaged.values()))})"
    script = script_of(path)
    if not machine.glob(literal(script)):
        return f"{lines}, and the script next to it is missing: the settings on that line are not restored"
    return (
        f"{lines}: the settings that it recorded are not restored. `sh {shlex.quote(script)}`, as root, sets every original of that run; "
        "`iodelta restore --forget` gives the line up afterwards"
    )


def _put_back(
    machine: Machine,
    path: str,
    originals: Sequence[Saved],
    *,
    keep_script: bool = False,
) -> list[Restored]:
    """Restore the originals; each success is in the log at ``path`` before the next, so that none is written twice.

    The script is rewritten for what is left, unless ``keep_script``.
    """
    restored = []
    sound = cut(machine, path) if originals else False
    for record in restore_all(machine, originals):
        restored.append(record)
        if sound and not record.error:
            try:
                machine.append(path, line_of(Done(record.saved)))
            except (
                MeasureError
            ):  # a full disk: it is written twice rather than not at all
                sound = False
    failed = [record.saved for record in reversed(restored) if record.error]
    if failed and not keep_script:
        with contextlib.suppress(MeasureError):
            write_script(machine, path, failed)
    return restored


def _changes(record: Saved) -> set[str]:
    """Return what a knob changes for everybody on the machine: files of the kernel, or a mount. Groups are a run's own."""
    files = {key for key, _ in record.values if key.startswith("/")}
    return files | {text for key, text in record.values if key == "point"}
