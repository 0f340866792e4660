"""The file of an undo log on the machine that is changed, and the script next to it: made, read and deleted."""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
from collections.abc import Iterator, Sequence

import msgspec

from iodelta.decoding import decoder
from iodelta.errors import MachineError, MeasureError
from iodelta.knob import Saved
from iodelta.knob.script import restore_script
from iodelta.lab.journal import readable
from iodelta.machine import Lock, Machine, throw_away

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
        raise MachineError(
            "does not exist, or another run that is starting holds it",
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
            done.stderr.decode(errors="replace").strip() or f"{words[0]} failed",
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
