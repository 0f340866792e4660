"""The undo log: original knob values, on disk before the first write, put back on exit, signal and next start.

It lives on the machine that is changed, in the state directory of its user, apart from the experiment folder, so that
``iodelta restore`` finds it after a crash even when the folder was moved or deleted, and whoever comes to the machine
next puts it back, from wherever. One file per running experiment; its owner holds a lock on it, so a live run's
settings are never "restored" under its feet, and no other run sets what it has set. Only a log with nothing left to
undo is deleted. Beside it lies a script by which sh alone puts back what is kept. A damaged line keeps no other line
from being used; the script of such a log is never deleted or written anew, for it may know what the line said.
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

from iodelta.errors import LostError, MachineError, MeasureError, RequestError
from iodelta.knob import Restored, Saved, knob, restore_all
from iodelta.knob.script import restore_script
from iodelta.lab.journal import readable
from iodelta.lab.workdir import sweep
from iodelta.machine import LocalMachine, Lock, Machine, literal
from iodelta.probe.topology import Target
from iodelta.workload.leftovers import end_leftovers, marked

_REMEDY = "free some space there, or set IODELTA_STATE to another directory that you can write"

REBOOT = "kernel"
"""The knob that is a reboot: it changes everything on a machine."""

_TURN = 30.0
"""Seconds that another run may hold the directory while it begins."""


class Head(msgspec.Struct, frozen=True, tag="experiment"):
    """Whose log this is."""

    experiment: str
    folder: str


class Original(msgspec.Struct, frozen=True, tag="saved"):
    """One knob's original value."""

    saved: Saved
    digest: str = ""
    """Of ``saved``, so that a line in which a digit changed counts as damaged; empty in logs of before."""

    @property
    def sound(self) -> bool:
        """Whether it says what was written."""
        return not self.digest or self.digest == _digest(self.saved)


class Done(msgspec.Struct, frozen=True, tag="restored"):
    """An original that is back: from now on the setting is somebody else's."""

    saved: Saved


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
        """Whether nothing of it is left to do."""
        return not self.problem and not any(record.error for record in self.restored)


Entry = Head | Original | Done


class _Log(msgspec.Struct, frozen=True):
    """What can be read of an undo log."""

    head: Head
    originals: tuple[Saved, ...]
    """Those that are not back yet, in the order in which they were saved."""
    damaged: dict[int, str]
    """Line -> why it cannot be read."""


_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def state_directory() -> Path:
    """What this user keeps here, beyond any experiment."""
    return Path(LocalMachine().state)


class UndoLog:
    """The originals of one running experiment. ``keep`` before the first write to a knob; ``undo`` puts all back."""

    def __init__(self, machine: Machine, path: str, head: Head) -> None:
        """Of a new log, which is locked before it gets its name. Raises MachineError."""
        self._machine = machine
        self._path = path
        self._head = head
        self._held = _born(machine, path, _line(head))
        self._kept: list[Saved] = []

    def keep(self, read: Callable[[], Sequence[Saved]]) -> Sequence[Saved]:
        """Append the originals that ``read`` returns and sync them; after this returns them the knobs may be written.

        They are read while no other run can begin, so that a value which a live run has set is never taken for an
        original. Raises RequestError when a live run sets one of them, MeasureError when they cannot be kept.
        """
        with _locked(self._machine, posixpath.dirname(self._path)):
            others = _live_logs(self._machine, self._path)  # before the reading: one that ends meanwhile still counts
            records = read()
            _refuse_shared(records, [one for one in others if one.head.folder != self._head.folder])
            try:
                _write_script(self._machine, self._path, [*self._kept, *records])
                self._machine.append(self._path, b"".join(_line(Original(saved, _digest(saved))) for saved in records))
            except MachineError as error:
                raise _cannot("keep the originals of the knobs", error, self._path) from error
        self._kept += records
        return records

    def undo(self) -> list[Restored]:
        """Put everything back; what cannot be put back stays in the log, and the log on disk. Raises MeasureError."""
        restored = _put_back(self._machine, self._path, self._kept)
        self._kept = [record.saved for record in reversed(restored) if record.error]
        if not self._kept:
            _delete(self._machine, self._path)
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
    """The record of something that was made: ``words`` undo it, and do no harm when run twice or too early."""
    return knob("command", machine, target).save([json.dumps({"apply": ["true"], "restore": list(words)})])


@contextlib.contextmanager
def undo_log(machine: Machine, experiment: str, folder: Path) -> Iterator[UndoLog]:
    """Open the undo log of an experiment; leaving it undoes everything. Raises MeasureError, RequestError.

    What is started here meanwhile is found again and ended by ``restore_pending``, before anything is undone: a command
    that outlived us must not set what was put back.
    """
    path = f"{_pending(machine)}/{experiment}.jsonl"
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
        raise _cannot("keep an undo log", error, posixpath.dirname(path)) from error
    try:
        with machine.marking(marked(experiment)) if isinstance(machine, LocalMachine) else contextlib.nullcontext():
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
    pending = _pending(machine)
    for path in machine.glob(f"{literal(pending)}/*.jsonl"):
        patience = machine.patience if _stem(path).startswith(own) else 0.0
        try:
            held = machine.lock(path, wait=patience)
            if held is None:
                continue
            try:
                outcome = _restore_log(machine, path)
                if outcome.done:
                    _delete(machine, path)
            finally:
                held.release()
        except MachineError as error:
            outcome = Outcome(path, problem=f"cannot open or delete it: {error.what}", log=path)
        outcomes.append(outcome)
    with contextlib.suppress(MeasureError), _locked(machine, pending):  # who makes one holds the lock: dead runs'
        if unborn := machine.glob(f"{literal(pending)}/.*.unborn"):
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
            "another iodelta process holds it, so it was not given up", place=outcome.log, remedy="try again"
        )
    try:
        found = _read(machine.read_bytes(outcome.log))
        told = {record.saved for record in outcome.restored if record.error}
        if set(found.originals) - told or set(found.damaged) - set(outcome.damaged):
            raise MeasureError("it contains more than was shown, so it was not given up", place=outcome.log)
        kept = ""
        if found.damaged and machine.glob(literal(_script(outcome.log))):
            kept = f"{outcome.log.removesuffix('.jsonl')}.given-up.sh"
            _checked(machine, "mv", "-T", "--", _script(outcome.log), kept)
        _delete(machine, outcome.log)
    finally:
        held.release()
    return kept


def lost(outcome: Outcome) -> list[str]:
    """What giving up the rest of a log loses, a sentence each."""
    found = [_lost(record) for record in outcome.restored if record.error]
    found += [f"line {number} of {outcome.log}, which cannot be read, and what it kept" for number in outcome.damaged]
    if outcome.problem and not outcome.damaged:
        found.append(outcome.problem)
    return found


def _lost(record: Restored) -> str:
    saved = record.saved
    values = "; ".join(f"{key} = {value}" for key, value in saved.values)
    return f"the original of {saved.knob} of {saved.target}: {values}"


# ------------------------------------------------------------------------------------------------------- files


def _pending(machine: Machine) -> str:
    return f"{machine.state}/pending"


def _script(path: str) -> str:
    return f"{path.removesuffix('.jsonl')}.sh"


def _write_script(machine: Machine, path: str, records: Sequence[Saved]) -> None:
    """The script beside the log, whole at any moment. Raises MachineError."""
    script = _script(path)
    unborn = f"{posixpath.dirname(path)}/.{_stem(path)}.sh.unborn"
    _checked(machine, "rm", "-f", "--", unborn)
    machine.append(unborn, restore_script(records).encode())
    _checked(machine, "mv", "-T", "--", unborn, script)


def _stem(path: str) -> str:
    return posixpath.basename(path).removesuffix(".jsonl")


def _digest(saved: Saved) -> str:
    return hashlib.sha256(msgspec.json.encode(saved)).hexdigest()[:16]


def _line(entry: Entry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"


def _born(machine: Machine, path: str, head: bytes) -> Lock:
    """Make the log with its first line, locked before it gets its name: nobody can take it for a dead run's."""
    directory = posixpath.dirname(path)
    unborn = f"{directory}/.{_stem(path)}.unborn"
    _checked(machine, "mkdir", "-p", "--", directory)
    with _locked(machine, directory):
        _checked(machine, "rm", "-f", "--", unborn, _script(path))
        machine.append(unborn, head)
        held = machine.lock(unborn)
        if held is None:
            raise MachineError("another process holds it", place=unborn)
        try:
            _checked(machine, "mv", "-T", "--", unborn, path)
            _checked(machine, "sync", "--", directory)
        except BaseException:
            held.release()
            raise
    return held


def _delete(machine: Machine, path: str) -> None:
    try:
        _checked(machine, "rm", "-f", "--", path, _script(path))
    except MachineError as error:
        raise _cannot("delete the undo log, although everything is restored", error, path) from error


def _restore_log(machine: Machine, path: str) -> Outcome:
    found = _read(machine.read_bytes(path))
    problems = [_unreadable(machine, path, found.damaged)] if found.damaged else []
    ended: tuple[int, ...] = ()
    try:
        ended = end_leftovers(machine, _stem(path))
    except LostError:
        raise
    except MeasureError as error:  # what it changed comes back all the same, as far as it can
        problems.append(error.sentence)
    restored = _put_back(machine, path, found.originals, keep_script=bool(found.damaged))
    return Outcome(found.head.folder, tuple(restored), ended, "; ".join(problems), path, tuple(found.damaged))


def _unreadable(machine: Machine, path: str, damaged: Mapping[int, str]) -> str:
    """What to do about lines that cannot be read; the script may know what they said."""
    lines = f"line {', '.join(map(str, damaged))} of {path} cannot be read ({next(iter(damaged.values()))})"
    script = _script(path)
    if not machine.glob(literal(script)):
        return f"{lines}, and the script next to it is missing: the settings on that line are not restored"
    return (
        f"{lines}: what it kept is not put back. `sh {shlex.quote(script)}`, as root, sets every original of that run; "
        "`iodelta restore --forget` gives the line up afterwards"
    )


def _put_back(machine: Machine, path: str, originals: Sequence[Saved], *, keep_script: bool = False) -> list[Restored]:
    """Put them back; of each that is, the log at ``path`` says so before the next, so that none is written twice.

    The script is written anew for what is left, unless it is to be kept as it is.
    """
    restored = []
    sound = _cut(machine, path) if originals else False
    for record in restore_all(machine, originals):
        restored.append(record)
        if sound and not record.error:
            try:
                machine.append(path, _line(Done(record.saved)))
            except MeasureError:  # a full disk: it is written twice rather than not at all
                sound = False
    failed = [record.saved for record in reversed(restored) if record.error]
    if failed and not keep_script:
        with contextlib.suppress(MeasureError):
            _write_script(machine, path, failed)
    return restored


def _cut(machine: Machine, path: str) -> bool:
    """Cut a torn last line of the log, in which what is appended would go on; whether it is whole now."""
    try:
        data = machine.read_bytes(path)
        end = data.rfind(b"\n") + 1
        if end < len(data):
            _checked(machine, "truncate", "-s", str(end), "--", path)
    except MeasureError:
        return False
    return True


def _read(data: bytes) -> _Log:
    """Whose log it is, and the originals that are not back yet, as far as its lines can be read.

    A torn last line was never followed by a write to a knob. Without the first line, which was there before the log had
    its name, it is not the log that was written: then line 1 counts as damaged.
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
    return _Log(head, tuple(originals[::-1]), dict(sorted(damaged.items())))


def _live_logs(machine: Machine, own: str) -> list[_Log]:
    """The logs of the other runs that are alive."""
    found = []
    for path in machine.glob(f"{literal(posixpath.dirname(own))}/*.jsonl"):
        held = machine.lock(path) if path != own else None
        if held is not None:
            held.release()
        elif path != own:
            with contextlib.suppress(MachineError):  # it has just ended
                found.append(_read(machine.read_bytes(path)))
    return found


def _refuse_shared(records: Sequence[Saved], others: Sequence[_Log]) -> None:
    for log in others:
        head, theirs = log.head, log.originals
        for record in records:
            if record.knob == REBOOT:
                raise RequestError(
                    "a run that is alive would be ended by the reboots of this one",
                    place=head.folder,
                    remedy="wait for it to end",
                )
            if any(other.knob == REBOOT or _changes(record) & _changes(other) for other in theirs):
                raise RequestError(
                    f"a run that is alive sets {record.knob} of {record.target} too, or what it would change with it",
                    place=head.folder,
                    remedy="wait for it to end, or leave the knob out",
                )


def _changes(record: Saved) -> set[str]:
    """What a knob changes for everybody on the machine: files of the kernel, or a mount. Groups are a run's own."""
    files = {key for key, _ in record.values if key.startswith("/")}
    return files | {text for key, text in record.values if key == "point"}


@contextlib.contextmanager
def _locked(machine: Machine, directory: str) -> Iterator[None]:
    """Hold the directory of pending logs: one run at a time begins, reads and keeps originals."""
    held = machine.lock(directory, wait=_TURN)
    if held is None:
        raise MachineError(
            "does not exist, or another run that is starting holds it", place=directory, remedy="try again"
        )
    try:
        yield
    finally:
        held.release()


def _checked(machine: Machine, *words: str) -> None:
    done = machine.run(words, env={"LC_ALL": "C"})
    if done.returncode != 0:
        raise MachineError(done.stderr.decode(errors="replace").strip() or f"{words[0]} failed", place=words[-1])


def _cannot(what: str, error: MachineError, path: str) -> MeasureError:
    return MeasureError(f"cannot {what}: {error.what}", place=path, remedy=_REMEDY)
