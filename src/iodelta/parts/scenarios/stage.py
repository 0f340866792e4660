"""What a scenario makes on a machine: each thing is in the undo log before it is made, and gone in the end.

Files, loop devices, partitions, arrays on them and mounts all belong to one directory, so one record, written before
the directory is made, undoes them all: what is mounted below it is unmounted, arrays on and partitions of the loop
devices over its files go, then these devices, then the directory. Anything else is made by ``make``, which is given
what undoes it. The undo log (``iodelta.lab.undo``) puts back on success, failure, signal, and after a kill.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from iodelta.errors import MeasureError, RefusedError
from iodelta.lab.guard import MARK, MARK_TEXT
from iodelta.lab.progress import Watcher
from iodelta.lab.undo import UndoLog, undo_by, undo_log
from iodelta.lab.workdir import workdir
from iodelta.machine import Machine, throw_away
from iodelta.machine.held import Way, way_inside
from iodelta.machine.vm import VmMachine
from iodelta.probe.made import record
from iodelta.probe.topology import Target, resolve
from iodelta.vm.disks import nodes
from iodelta.workload.layout import Progress, prepare, prepare_directory
from iodelta.workload.leftovers import marked

PREFIX = "iodelta-scenario-"

PATIENCE = 120
"""Seconds that one step may take."""

TEARDOWN = r"""
case $1 in */iodelta-scenario-????????????????) ;; *) echo "$1 is not the directory of a scenario" >&2; exit 1 ;; esac
for point in "$1"/mounts/*; do
  [ -d "$point" ] || continue
  tries=0
  until umount -- "$point" 2>/dev/null; rmdir -- "$point" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || { echo "$point is in use" >&2; exit 1; }
    sleep 0.1
  done
done
for file in /sys/block/loop*/loop/backing_file; do
  case $(cat "$file" 2>/dev/null) in "$1"/*) ;; *) continue ;; esac
  queue=${file%/loop/backing_file}
  name=${queue##*/}
  for array in "$queue"/holders/md* "$queue"/"$name"p*/holders/md*; do
    [ ! -e "$array" ] || mdadm --quiet --stop "/dev/${array##*/}"
  done
  for part in "$queue"/"$name"p*/partition; do
    [ ! -e "$part" ] || delpart "/dev/$name" "$(cat "$part")"
  done
  losetup -d "/dev/$name"
  tries=0
  while case $(cat "$file" 2>/dev/null) in "$1"/*) true ;; *) false ;; esac; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || { echo "/dev/$name is in use" >&2; exit 1; }
    sleep 0.1
  done
done
rm -rf -- "$1"
"""
"""For sh, the directory as its argument; run twice it does nothing the second time."""


class Laying(TypedDict):
    """How a layout is watched and stopped, and its processes marked."""

    env: Mapping[str, str]
    on_progress: Progress
    stop: Callable[[], bool]


class Stage:
    """A directory on a machine, and what one scenario makes in it and next to it."""

    def __init__(
        self,
        machine: Machine,
        directory: str,
        log: UndoLog,
        watcher: Watcher,
        *,
        identifier: str,
        full: bool,
        target: Target | None,
        stop: Callable[[], bool],
        asked: str = "",
    ) -> None:
        self.machine = machine
        self.directory = directory
        """Exists once something was made in it."""
        self.token = directory.rsplit("-", 1)[1]
        """16 random hexadecimal digits, this stage's alone: for the names of what is made next to the directory."""
        self.full = full
        self.target = target
        """What the user wants measured instead of what the scenario would make; None for the latter."""
        self.asked = asked
        """The experiment file of the folder that is continued; empty the first time."""
        self.watcher = watcher
        self.stop = stop
        self.environment = marked(identifier)
        """Of every process that shall be ended with the stage."""
        self._log = log
        self._home = resolve(machine, directory.rsplit("/", 1)[0])
        self._begun = False
        self._disks = list(guest_disks(machine))

    def make(
        self, make: Sequence[str], undo: Sequence[str], *, stdin: bytes = b""
    ) -> str:
        """Keep ``undo`` on disk, then run ``make``; its output. Both are argument lists.

        ``undo`` must do no harm when run twice, or when nothing was made. Raises MeasureError.
        """
        self._log.keep(lambda: [undo_by(self.machine, self._home, undo)])
        return self.run(make, stdin=stdin)

    def run(self, words: Sequence[str], *, stdin: bytes = b"") -> str:
        """Output of a command that must succeed; it makes nothing that is not undone already. Raises MeasureError."""
        if self.stop():
            raise MeasureError("stopped before the first trial")
        done = self.machine.run(
            words,
            stdin=stdin,
            timeout=PATIENCE,
            env={"LC_ALL": "C", **self.environment},
        )
        if done.returncode != 0:
            message = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise MeasureError(
                f"{words[0]} ended with {done.returncode}: {message or 'it printed nothing'}",
                place=words[-1],
                remedy="everything created so far was removed",
            )
        return done.text

    def place(self, name: str = "") -> str:
        """Return a directory in the stage's own, made. Everything in it may be overwritten."""
        if not self._begun:
            self.make(
                ["mkdir", "-m", "700", "--", self.directory],
                ["sh", "-c", TEARDOWN, "sh", self.directory],
            )
            self._begun = True
        path = f"{self.directory}/{name}" if name else self.directory
        if name:
            self.run(["mkdir", "-p", "--", path])
        return path

    def room(self, size: int) -> None:
        """Whether ``size`` bytes can be written below the stage's directory: sparse files would find out too late.

        Raises MeasureError.
        """
        if self._disks:
            return
        home = self.directory.rsplit("/", 1)[0] or "/"
        blocks, each = self.run(["stat", "-f", "-c", "%a %S", "--", home]).split()
        if int(blocks) * int(each) < size:
            raise MeasureError(
                f"{size / 2**30:.1f} GiB are needed, {int(blocks) * int(each) / 2**30:.1f} GiB are free",
                place=home,
                remedy="--target DIRECTORY makes everything elsewhere; a run without --full needs less",
            )

    def file(self, name: str, size: int, *, filled: bool = False) -> str:
        """Return a file of ``size`` bytes: of zeros that take no room, or ``filled`` with data that cannot be
        compressed.
        """
        path = f"{self.place('disks')}/{name}"
        if filled:
            with workdir(self.machine) as work:
                prepare(
                    self.machine, path, size, workdir=work, **self._laying(path, size)
                )
        else:
            self.run(["truncate", "-s", str(size), "--", path])
            record(self.machine, path)
        return path

    def files(self, directory: str, count: int, size: int) -> str:
        """``count`` files of ``size`` bytes, really written, in a directory of the stage.

        What they are called there, as fio's ``filename_format`` spells it.
        """
        with workdir(self.machine) as work:
            options = [("nrfiles", str(count))]
            laying = self._laying(directory, count * size)
            prepare_directory(
                self.machine, directory, options, count * size, workdir=work, **laying
            )
        return "iodelta.0.$filenum"

    def _laying(self, path: str, size: int) -> Laying:
        def on_progress(done: int, total: int) -> None:
            self.watcher.preparing(f"writing {path}", min(1.0, done / size))

        return {"env": self.environment, "on_progress": on_progress, "stop": self.stop}

    def disk(
        self, name: str, size: int, *, filled: bool = False, parts: int = 0
    ) -> str:
        """Return a loop device over a new file, read past the page cache where the filesystem below allows it; in a
        guest that has disks its next one.

        ``parts`` are equal partitions (``part_of``), made known to the kernel without a table. A kernel needs no
        partition support for that.
        """
        disk = (
            self._disks.pop(0)
            if self._disks
            else self._loop(self.file(name, size, filled=filled), parts)
        )
        sectors = size // max(1, parts) // 2**20 * 2048  # each begins at a whole MiB
        for number in range(parts):
            self.run(
                ["addpart", disk, str(number + 1), str(number * sectors), str(sectors)]
            )
        return disk

    def steady(self, path: str, name: str = "target") -> str:
        """Return a path in the stage for a device that was made: a new device gets the same path, whatever its number."""
        if path.startswith(f"{self.directory}/"):
            return path
        link = f"{self.place()}/{name}"
        self.run(["ln", "-s", "--", path, link])
        return link

    def _loop(self, path: str, parts: int) -> str:
        words = ["losetup", "--find", "--show", *(["--partscan"] if parts else [])]
        try:
            return self.run([*words, "--direct-io=on", "--", path]).strip()
        except MeasureError:  # a filesystem in memory has no direct I/O
            return self.run([*words, "--", path]).strip()

    def mount(
        self, device: str, name: str, *, kind: str = "ext4", options: str = ""
    ) -> str:
        """Return a new filesystem on a device of the stage, mounted; the directory."""
        self.run([f"mkfs.{kind}", "-q", device])
        point = self.place(f"mounts/{name}")
        self.run(["mount", *(["-o", options] if options else []), "--", device, point])
        return point

    def tree(self, name: str = "tree") -> str:
        """Return a directory marked as one whose files may be overwritten by a workload."""
        path = self.place(name)
        self.run(["tee", "--", f"{path}/{MARK}"], stdin=MARK_TEXT.encode())
        return path


def guest_disks(machine: Machine) -> tuple[str, ...]:
    """Return the disks that a guest was given, as it calls them; none of any other machine."""
    if not isinstance(machine, VmMachine):
        return ()
    return nodes(machine.spec.disks)


def part_of(disk: str, number: int) -> str:
    """Return the node of a disk's partition; the first is 1."""
    return f"{disk}{'p' if disk[-1].isdigit() else ''}{number}"


@contextlib.contextmanager
def staged(
    machine: Machine,
    watcher: Watcher,
    *,
    full: bool,
    target: Target | None,
    home: str,
    stop: Callable[[], bool],
    identifier: str = "",
    asked: str = "",
) -> Iterator[Stage]:
    """A stage with its directory in ``home``; leaving removes all that was made.

    ``identifier`` is that of an earlier one whose place it takes, ``asked`` the experiment file that was made
    there. Raises MeasureError. The watcher is told what cannot be removed; it stays pending for
    ``iodelta restore``.
    """
    identifier = identifier or f"{random.SystemRandom().getrandbits(64):016x}"
    way = Way(home) if throw_away(machine) else way_inside(machine, home)
    if way.exposed:
        raise RefusedError(
            f"another user may exchange what a scenario makes in it: {way.exposed}",
            place=home,
            remedy="--target DIRECTORY makes everything elsewhere, where only you and root may rename anything",
        )
    directory = f"{home.rstrip('/')}/{PREFIX}{identifier}"
    # Settled after the experiment itself, whose processes may still use what was made: logs go by name.
    with undo_log(machine, f"scenario-{identifier}", Path(directory)) as log:
        stage = Stage(
            machine,
            directory,
            log,
            watcher,
            identifier=f"scenario-{identifier}",
            full=full,
            target=target,
            stop=stop,
            asked=asked,
        )
        try:
            yield stage
        finally:
            for restored in log.undo():
                if restored.error:
                    watcher.note(
                        f"not removed: {restored.error}; `iodelta restore` tries again"
                    )
