"""The files a trial reads and writes: laid out before the first trial with real, incompressible data.

Left to itself fio lays files out inside the run, and with ``fallocate=native`` reserves extents that read back as
zeros without any device I/O (fio #719, #1473): a fast result about nothing.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, starmap
from pathlib import Path

import msgspec

from iodelta.errors import MachineError, MeasureError, RequestError
from iodelta.experiment.model import option_word
from iodelta.jobfile import canonical
from iodelta.machine import Machine, literal
from iodelta.probe.made import made_file, record
from iodelta.trial import Finding
from iodelta.workload.naming import named

_FILE_OPTIONS = (
    "nrfiles",
    "filesize",
    "size",
    "numjobs",
    "offset",
    "offset_increment",
    "file_service_type",
)
"""Options that decide which files of a directory fio uses, and how large they are."""

_WRITE = 1 << 20
"""Bytes of one write of a layout; fio does not write a shorter rest at the end."""


class Layout(msgspec.Struct, frozen=True):
    """The files are there. ``made`` says whether they had to be written now, ``ours`` whether iodelta made them."""

    path: str
    size: int
    made: bool
    ours: bool
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()


class _Stat(msgspec.Struct, frozen=True):
    kind: str
    size: int
    allocated: int


Progress = Callable[[int, int], None]
"""Called about once a second with bytes written and bytes to write."""


def prepare(
    machine: Machine,
    path: str,
    size: int,
    *,
    workdir: str,
    fio: str = "fio",
    env: Mapping[str, str] | None = None,
    on_progress: Progress = lambda done, total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Layout:
    """Have a file of at least ``size`` bytes at ``path``; a file that is large enough is used as it is.

    A new one is a whole number of MiB, written next to it and renamed when complete and synced, so a half-made one is
    never measured; a small record next to it (``.NAME.iodelta``) lets iodelta replace its own file later, and nobody
    else's. ``size`` must be the largest that any cell uses. Raises RequestError (not a regular file; too small and not
    made by iodelta; not enough space), MeasureError (no space left meanwhile, stopped, fio failed).
    """
    named(path)  # here, so that a refusal names the user's path and not the draft's
    folder, name = posixpath.split(path)
    draft = f"{folder}/.{name}.iodelta-layout"
    existing = _stat(machine, path)
    ours = made_file(machine, path)
    if existing is not None:
        if existing.kind != "regular file":
            raise RequestError(
                f"is a {existing.kind}, not a file",
                place=path,
                remedy="give a file's path, or a device's",
            )
        if existing.size >= size:
            return Layout(
                path,
                existing.size,
                made=False,
                ours=ours,
                findings=_holes(path, existing),
            )
        if not ours:
            raise RequestError(
                f"has {existing.size} bytes, but {size} are needed",
                place=path,
                remedy="iodelta extends only files it made: give another path, or a smaller [target] size",
            )
    size = -(-size // _WRITE) * _WRITE
    machine.run(["rm", "-f", "--", draft])  # of a run that was killed
    needed = size - (existing.allocated if existing else 0)
    output = _checked(machine, ["stat", "-f", "-c", "%a %S", "--", folder or "/"])
    blocks, block = output.split()
    free = int(blocks) * int(block)
    if free < needed:
        raise RequestError(
            f"{needed / 2**20:,.0f} MiB are needed and {free / 2**20:,.0f} MiB are free",
            place=folder,
            remedy="free some space, give another path, or say a smaller [target] size",
        )
    if existing is not None:
        machine.run(["rm", "-f", "--", path])
    begun = time.monotonic()
    options = [
        "--rw=write",
        f"--bs={_WRITE}",
        # fio would write one buffer again and again, which a filesystem or a drive may compress.
        "--refill_buffers=1",
        "--end_fsync=1",
        f"--size={size}",
    ]
    command = [fio, *_common(workdir), f"--filename={named(draft)}", *options]
    try:
        _write(machine, command, workdir, size, path, env, on_progress, stop)
        made = _stat(machine, draft)
        if made is None or made.size < size:
            raise MeasureError(f"fio did not lay out {size} bytes", place=path)
        # The record comes first: a kill between the two must not leave a file that iodelta may never replace.
        # -T: onto the name, never into a directory of that name.
        record(machine, path, draft)
        _checked(machine, ["mv", "-T", "--", draft, path])
    except BaseException:
        machine.run(["rm", "-f", "--", draft])
        raise
    return Layout(
        path, made.size, made=True, ours=True, seconds=time.monotonic() - begun
    )


def prepare_directory(
    machine: Machine,
    path: str,
    options: Sequence[tuple[str, str | None]],
    size: int | None,
    *,
    workdir: str,
    fio: str = "fio",
    env: Mapping[str, str] | None = None,
    on_progress: Progress = lambda done, total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Layout:
    """Have the files that fio will use in the directory ``path`` under ``options`` (numjobs, nrfiles, sizes).

    fio's own file names are used (``iodelta.JOB.FILE``). A mark in the directory says that a layout is under way; one
    that is found at the start means the files are half made, and are written again. ``size`` is that of one job.
    Raises as ``prepare`` does.
    """
    there = _stat(machine, path)
    if there is None or there.kind != "directory":
        raise RequestError("is not a directory", place=path, remedy="make it first")
    file_options = [
        (name, value) for name, value in options if canonical(name) in _FILE_OPTIONS
    ]
    given = dict(file_options)
    if "size" not in given and "filesize" not in given:
        if size is None:
            raise RequestError(
                "the size of its files is missing",
                place=path,
                remedy="set [target] size, the bytes of each job",
            )
        file_options.append(("size", str(size)))
    mark = f"{path}/.iodelta-layout"
    if machine.glob(literal(mark)):
        machine.run(
            ["rm", "-f", "--", *machine.glob(f"{literal(path)}/iodelta.[0-9]*.[0-9]*")]
        )
    before = _files(machine, path)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="iodelta-") as here:
        local = Path(here, "file")
        local.write_text("")
        machine.put(str(local), mark)
    words = starmap(option_word, file_options)
    command = [
        fio,
        *_common(workdir),
        f"--directory={named(path)}",
        "--rw=read",
        "--create_only=1",
        *words,
    ]
    _write(machine, command, workdir, 0, path, env, on_progress, stop)
    machine.run(["rm", "-f", "--", mark])
    after = _files(machine, path)
    total = sum(stat.size for stat in after.values())
    holes = tuple(
        chain.from_iterable(_holes(name, stat) for name, stat in after.items())
    )
    return Layout(
        path,
        total,
        made=after != before,
        ours=True,
        seconds=time.monotonic() - begun,
        findings=holes,
    )


def _common(workdir: str) -> list[str]:
    return [
        *(
            f"--output={workdir}/layout.json",
            "--output-format=json",
            "--eta=never",
            "--name=iodelta",
        ),
        # psync in a thread: /proc/PID/io of the one process counts what was written.
        *("--ioengine=psync", "--thread=1", "--fallocate=none"),
    ]


def _write(
    machine: Machine,
    command: list[str],
    workdir: str,
    total: int,
    path: str,
    env: Mapping[str, str] | None,
    on_progress: Progress,
    stop: Callable[[], bool],
) -> None:
    """Run a fio that lays out files. Raises on any failure, so that incomplete files never pass for complete ones."""
    errors, output = f"{workdir}/layout.err", f"{workdir}/layout.json"
    machine.run(["rm", "-f", "--", errors, output])
    process = machine.start(
        command,
        env={"LC_ALL": "C", **(env or {})},
        cwd=workdir,
        stdout=errors,
        stderr=errors,
    )
    try:
        said_at = time.monotonic()
        while (code := process.wait(0.1)) is None:
            if stop():
                raise MeasureError("stopped while laying out the file", place=path)
            if time.monotonic() >= said_at + 1:
                said_at = time.monotonic()
                with contextlib.suppress(MachineError):  # it has just ended
                    counted = re.search(
                        r"^wchar: (\d+)",
                        machine.read(f"/proc/{process.pid}/io"),
                        re.MULTILINE,
                    )
                    on_progress(
                        min(int(counted[1]), total or int(counted[1]))
                        if counted
                        else 0,
                        total,
                    )
    except BaseException:
        process.stop(1.0)
        raise
    if code:
        message = "; ".join(
            chain.from_iterable(_errors(machine, file) for file in (errors, output))
        )
        raise MeasureError(
            f"cannot be laid out: {message or f'fio ended with {code}'}",
            place=path,
            remedy="free some space, or say a smaller [target] size"
            if "No space left" in message
            else "",
        )


def _errors(machine: Machine, file: str) -> list[str]:
    if not machine.glob(literal(file)):
        return []
    lines = machine.read(file).splitlines()
    return list(
        dict.fromkeys(line.strip() for line in lines if line.startswith("fio:"))
    )[:2]


def _holes(path: str, stat: _Stat) -> tuple[Finding, ...]:
    if stat.allocated >= stat.size:
        return ()
    share = 100 * (1 - stat.allocated / stat.size)
    return (
        Finding(
            "target.holes",
            "warning",
            path,
            f"{share:.0f} % of the file has no blocks: it is sparse or compressed, and reads of them do not reach the device",
            "let iodelta make the file: give a path that does not exist yet",
        ),
    )


def _stat(machine: Machine, path: str) -> _Stat | None:
    return _stats(machine, [path]).get(path)


def _files(machine: Machine, folder: str) -> dict[str, _Stat]:
    return _stats(machine, machine.glob(f"{literal(folder)}/iodelta.[0-9]*.[0-9]*"))


def _stats(machine: Machine, paths: Sequence[str]) -> dict[str, _Stat]:
    """Return what exists of ``paths``; symbolic links are followed."""
    if not paths:
        return {}
    listing = machine.run(
        ["stat", "-L", "-c", "%F|%s|%b|%B|%n", "--", *paths], env={"LC_ALL": "C"}
    )
    stats = {}
    for line in listing.text.splitlines():
        kind, size, blocks, block, name = line.split("|", 4)
        kind = "regular file" if kind == "regular empty file" else kind
        stats[name] = _Stat(kind, int(size), int(blocks) * int(block))
    return stats


def _checked(machine: Machine, args: list[str]) -> str:
    done = machine.run(args, env={"LC_ALL": "C"})
    if done.returncode:
        raise MachineError(
            done.stderr.decode(errors="replace").strip(), place=machine.name
        )
    return done.text
