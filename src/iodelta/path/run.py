"""Run the boots of a path experiment: at most two guests at a time, each on disk and in the journal when it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from iodelta.errors import MeasureError, RequestError
from iodelta.lab.folder import Booted, Ended, Event, Folder, now
from iodelta.path.functions import build
from iodelta.path.plan import BootPlan, PathPlan, initrd
from iodelta.path.sharing_build import build as sharing_build
from iodelta.path.sharing_job import CPUS
from iodelta.vm import boot

TOGETHER = 2
"""Guests at a time: each takes a CPU, and some 220 MiB."""

SECONDS, CELL_SECONDS = 180.0, 30.0
"""CPU time a guest may take, and for every cell in it: some ten times what it needs. A guest skips its idle time, so one
that goes on computes: a limit in wall time lost kernels on a busy machine (measured)."""

WALL = 20
"""Wall time a guest may take, for each second of its CPU time: one that waits for ever computes nothing."""

CODE = 512
"""MiB for the translated code of a guest whose every access is followed. qemu 7.2 may not throw any of it away: it would
go on to call what it threw away (moved.c)."""

SILENT = 20.0
"""Seconds of qemu's CPU time without a byte from a guest of two CPUs, after which it hangs (6.1 does, measured)."""

ATTEMPTS = 4
"""Boots of a guest of two CPUs whose kernel panics before it begins its work: under qemu 7.2 one in some twenty did, with
nonsense in the flags (boot.EMULATED says the same of another CPU model), and the variant booted well later."""

WORK = ".guests"
"""In the folder, while guests run."""

LOCKS = "noreplace-smp"
"""Boot parameter: on one CPU Linux patches its LOCK prefixes away (arch/x86/kernel/alternative.c)."""

FLAT = (("out", "counts"),)
PLUGGED: dict[str, tuple[tuple[str, str], ...]] = {
    "functions": FLAT,
    "anatomy": (*FLAT, ("tree", "tree"), ("epochs", "epochs")),
}
"""Purpose of a boot with the plugin -> the plugin's options, and the files that they fill."""

SWEPT = (("out", "/dev/null"), ("tree", "/dev/null"), ("epochs", "epochs"))
"""The same of a boot of which only the footprint is read, as with another address layout."""

COMPLETE, INTERRUPTED, REFUSED = "complete", "interrupted", "refused"


def mishap(plan: PathPlan, ended: boot.Ended, output: bytes) -> bool:
    """Return whether a fault of qemu ended a boot, not one of the booted kernel."""
    return plan.sharing and "panicked" in ended.problem and b"@boot" not in output


class Watcher(Protocol):
    """Called for each boot."""

    def begin(self, plan: PathPlan, folder: str, done: int) -> None:
        """``done`` boots were made before."""

    def booted(self, one: BootPlan, event: Booted, done: int) -> None:
        """One more is on disk, ``done`` in all."""


def booted(events: list[Event]) -> dict[int, Booted]:
    """Return the boots that were made, by number."""
    return {event.boot: event for event in events if isinstance(event, Booted)}


def alike(folder: Folder, plan: PathPlan, done: dict[int, Booted]) -> bool | None:
    """Return whether the boot that is repeated gave the same bytes twice; None before both have ended."""
    twice = [boot.number for boot in plan.boots if boot.purpose in ("exact", "again")]
    first, second = (done.get(number) for number in twice[:2])
    if first is None or second is None:
        return None
    if first.problem or second.problem:
        return first.problem == second.problem
    kinds = ("out", "counts") if plan.sharing else ("out",)
    return all(
        folder.read_raw(first.boot, kind) == folder.read_raw(second.boot, kind)
        for kind in kinds
    )


def go(folder: Folder, watcher: Watcher, *, stop: Callable[[], bool]) -> str:
    """Make the boots that are left; how it ended. Raises IodeltaError; boots on disk are always kept."""
    plan = folder.read_plan(PathPlan)
    if boot.available() != plan.qemu:
        raise RequestError(
            f"the plan was made with {plan.qemu}, and this is {boot.available()}",
            place=str(folder.path),
            remedy="begin a new experiment: boots under two versions of qemu are not compared",
        )
    with folder.writing(), _work(folder.path / WORK) as work:
        done = booted(folder.events())
        watcher.begin(plan, str(folder.path), len(done))
        running: list[tuple[BootPlan, boot.Guest]] = []
        try:
            reason = _boots(folder, plan, watcher, work, done, running, stop)
        finally:
            for _, guest in running:
                guest.stop()
        folder.append(Ended(now(), reason))
    return reason


def _boots(
    folder: Folder,
    plan: PathPlan,
    watcher: Watcher,
    work: Path,
    done: dict[int, Booted],
    running: list[tuple[BootPlan, boot.Guest]],
    stop: Callable[[], bool],
) -> str:
    """Make all boots that are left; return how that ended."""
    panics: dict[int, list[bytes]] = {}
    pending = [each for each in plan.boots if each.number not in done]

    def start(boot_plan: BootPlan) -> None:
        place = work / str(boot_plan.number)
        place.mkdir(exist_ok=True)
        running.append((boot_plan, started(plan, boot_plan, place)))

    while pending or running:
        if alike(folder, plan, done) is False:
            return REFUSED
        # A variant whose first boot failed is not booted again.
        lost = {
            each.variant
            for each in plan.boots
            if each.purpose == "exact"
            and each.number in done
            and done[each.number].problem
        }
        pending = [
            each
            for each in pending
            if each.variant not in lost or each.purpose == "again"
        ]
        while pending and len(running) < min(TOGETHER, os.cpu_count() or 1):
            start(pending.pop(0))
        if stop():
            return INTERRUPTED
        time.sleep(0.05)
        for boot_plan, guest in list(running):
            ended = guest.poll()
            if ended is None:
                continue
            running.remove((boot_plan, guest))
            number, place = boot_plan.number, work / str(boot_plan.number)
            raw = {"out": guest.output, "console": guest.console}
            again = False
            if mishap(plan, ended, guest.output):
                panics.setdefault(number, []).append(guest.console)
                again = len(panics[number]) < ATTEMPTS
            if not again:
                for name in ("counts", "tree", "epochs"):
                    if (place / name).is_file():
                        raw[name] = (place / name).read_bytes()
                if number in panics:
                    raw["panics"] = b"\n".join(panics[number])
                folder.write_raw(number, raw)
            for file in place.iterdir():
                file.unlink()
            if again:
                start(boot_plan)
                continue
            event = Booted(now(), number, ended.seconds, ended.problem, ended.console)
            folder.append(event)
            done[number] = event
            watcher.booted(boot_plan, event, len(done))
    return COMPLETE


def started(plan: PathPlan, boot_plan: BootPlan, place: Path) -> boot.Guest:
    """Return one of the plan's guests, running; ``place`` is an empty directory for what it says. Raises MeasureError."""
    asked, limits = prepared(plan, boot_plan, place)
    return boot.Guest(asked, str(place), limits)


def prepared(
    plan: PathPlan, boot_plan: BootPlan, place: Path
) -> tuple[boot.Boot, boot.Limits]:
    """Return what qemu is asked for one of the plan's guests, whose initramfs is now in ``place``. Raises MeasureError."""
    arm = plan.arm(boot_plan.variant)
    watched = boot_plan.purpose in PLUGGED
    initrd(plan, arm, place / "initrd", functions=watched)
    devices: tuple[str, ...] = ()
    cmdline = arm.cmdline
    if plan.sharing:
        devices = ("-plugin", f"{sharing_build().plugin},out=counts")
    elif watched:
        # In a row of kernels only footprints are read, as with another address layout.
        swept = boot_plan.purpose == "anatomy" and (boot_plan.seed or plan.row)
        files = SWEPT if swept else PLUGGED[boot_plan.purpose]
        words = ",".join(f"{option}={file}" for option, file in files)
        devices = ("-plugin", f"{build().plugin},{words}")
        cmdline = f"{cmdline} {LOCKS}"
    asked = boot.Boot(
        image=arm.kernel.image,
        initrd=str(place / "initrd"),
        cmdline=cmdline,
        memory=arm.memory,
        cpus=CPUS if plan.sharing else 1,
        clock="instructions",
        code=CODE if plan.sharing else boot.CODE,
        seed=boot_plan.seed,
        devices=devices,
    )
    seconds = SECONDS + CELL_SECONDS * len(plan.experiment.cells)
    # With the plugin every cell runs three times, and the plugin is called at each block of code.
    if devices:
        seconds *= 3 * len(PLUGGED.get(boot_plan.purpose, FLAT))
    silent = SILENT if plan.sharing else 0.0
    return asked, boot.Limits(seconds=WALL * seconds, cpu=seconds, silent=silent)


@contextlib.contextmanager
def _work(place: Path) -> Iterator[Path]:
    """An empty directory for running guests, also after a run that was killed."""
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir()
        yield place.absolute()
    except OSError as error:
        raise MeasureError(
            f"cannot write: {error.strerror}",
            place=str(place),
            remedy="free some space there",
        ) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
