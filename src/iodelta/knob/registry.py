"""All knobs by name, and what is done with several of them: check them, turn to a variant, restore all."""

from __future__ import annotations

import difflib
import functools
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from iodelta import plugins
from iodelta.errors import IodeltaError, KnobError, RequestError
from iodelta.knob.affinity import Cpus, Numa
from iodelta.knob.base import Knob, KnobInfo, Saved
from iodelta.knob.block import (
    IrqAffinity,
    NrRequests,
    QueueAttribute,
    ReadAhead,
    ReadPolicy,
    Scheduler,
    SchedulerTunable,
    StripeCacheSize,
    WritebackThrottle,
)
from iodelta.knob.cgroup import IoMax
from iodelta.knob.command import Command
from iodelta.knob.files import FileKnob
from iodelta.knob.kernel import Kernel
from iodelta.knob.memory import DropCaches
from iodelta.knob.mirror import MirrorPolicy
from iodelta.knob.mount import MountOptions
from iodelta.knob.shell import Line, Shell, line_text
from iodelta.knob.sysctl import Boost, EnergyPreference, Governor, Sysctl, Sysfs
from iodelta.machine import Machine
from iodelta.probe.sysfs import boot_id, sysfs_name
from iodelta.probe.topology import Target

FAMILIES: tuple[type[Knob], ...] = (
    Kernel,
    Command,
    MountOptions,
    Sysctl,
    Sysfs,
    StripeCacheSize,
    ReadPolicy,
    Governor,
    EnergyPreference,
    Boost,
    Scheduler,
    NrRequests,
    ReadAhead,
    WritebackThrottle,
    QueueAttribute,
    SchedulerTunable,
    IrqAffinity,
    IoMax,
    Numa,
    Cpus,
    MirrorPolicy,
    DropCaches,
)
"""In the order in which they must be applied and restored: a knob that may reset others comes before them."""


def families() -> tuple[type[Knob], ...]:
    """Return all families, those of plugins last."""
    return (*FAMILIES, *_of_plugins())


@functools.cache
def _of_plugins() -> tuple[type[Knob], ...]:
    return tuple(
        guarded(plugin.title, plugin.made) for plugin in plugins.sound("knob", unusable)
    )


def unusable(name: str, made: object) -> str:
    """Return why a plugin's knob cannot be used; empty where it can."""
    if not (isinstance(made, type) and issubclass(made, Knob)):
        return "it is not a class that derives from iodelta.knob.base.Knob"
    if made.__abstractmethods__:
        return f"it lacks {', '.join(sorted(made.__abstractmethods__))}"
    for attribute, hint in (("names", tuple[str, ...]), ("harmless", bool)):
        if wrong := plugins.misfit(getattr(made, attribute, None), hint):
            return f"its {attribute} are {wrong}"
    for knob_name in made.names:
        if _matching(FAMILIES, knob_name):
            return f"{knob_name} is a knob of iodelta"
    return ""


def guarded(title: str, made: type[Knob]) -> type[Knob]:
    """Return a subclass of a plugin's class: what its methods raise and return is checked, and errors have ``title``."""
    methods: dict[str, object] = {"__init__": plugins.guarded(title, made.__init__)}
    for name, own in vars(Knob).items():
        if name.startswith("_") or not callable(getattr(Knob, name)):
            continue
        function = getattr(made, name)
        returns = typing.get_type_hints(getattr(Knob, name)).get("return", Any)
        checked = plugins.guarded(
            title, getattr(function, "__func__", function), returns
        )
        methods[name] = (
            classmethod(checked) if isinstance(own, classmethod) else checked
        )
    methods["matches"] = vars(Knob)["matches"]  # by its names, which were checked
    subclass: type[Knob] = type(made.__name__, (made,), methods)
    return subclass


class Restored(msgspec.Struct, frozen=True):
    """What became of one record: ``account`` if it was restored, else ``error``."""

    saved: Saved
    account: str = ""
    error: str = ""


def knob(name: str, machine: Machine, target: Target) -> Knob:
    """Return the knob of that name. Raises RequestError with near matches for an unknown one."""
    return family(name)(machine, target, name)


def order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in the order in which they must be applied. Raises RequestError for an unknown one."""
    return tuple(sorted(names, key=_rank))


def catalogue(machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
    """Return what can be set on this machine for this target, and why the rest cannot."""
    return tuple(
        chain.from_iterable(kind.catalogue(machine, target) for kind in families())
    )


def check(knobs: Mapping[str, Knob], settings: Mapping[str, str]) -> None:
    """Check one variant's settings before anything is written. Raises RequestError."""
    for name in order(settings):
        reason = knobs[name].available()
        if reason:
            raise RequestError(
                reason, place=name, remedy="iodelta knobs lists what can be set here"
            )
        knobs[name].check(settings[name], settings)


def turn(
    knobs: Mapping[str, Knob], saved: Mapping[str, Saved], settings: Mapping[str, str]
) -> tuple[str, ...]:
    """Bring the machine from any variant to the one with ``settings``; return the words to put before the load.

    ``knobs`` are all those of the experiment; the record of each is in ``saved`` and already on disk. Knobs that the
    variant does not set get their original value; the others are applied and read back. Call it before every trial.
    Raises KnobError.
    """
    words: tuple[str, ...] = ()
    # Knobs whose state is settled; they may settle that of others.
    deciding = [knobs[name] for name in settings]
    for name in order(knobs):
        setting = knobs[name]
        if name in settings:
            setting.apply(settings[name])
            words += setting.launcher(settings[name])
        elif not _covered(setting, name, deciding):
            setting.release(saved[name])
            deciding.append(setting)
    # Only after all are applied, since one may undo another.
    for name in order(settings):
        knobs[name].verify(settings[name])
    return words


def _covered(setting: Knob, name: str, deciding: Iterable[Knob]) -> bool:
    """Return whether another knob already settles the state of this one."""
    others = [other for other in deciding if other is not setting]
    return any(other.covers(other.name, name) for other in others)


def restore(machine: Machine, saved: Saved) -> str:
    """Restore one original from its record alone and return what was done. Idempotent. Raises KnobError."""
    if not known(saved.knob):
        raise KnobError(
            "this version of iodelta does not know the knob",
            place=saved.knob,
            remedy=f"by hand: {saved.values}",
        )
    if saved.volatile and saved.boot != boot_id(machine):
        return "nothing to do: the machine was rebooted since, which undid the setting"
    return family(saved.knob).restore(machine, saved)


def restore_all(machine: Machine, records: Iterable[Saved]) -> Iterator[Restored]:
    """Restore all originals; ``records`` are in the order in which they were saved. A failure does not stop the others.

    Of several records of one knob the first holds the original, so it is restored last.
    """
    for record in latest_first(records):
        try:
            yield Restored(record, account=restore(machine, record))
        except IodeltaError as error:
            yield Restored(record, error=error.sentence)


def latest_first(records: Iterable[Saved]) -> list[Saved]:
    """``records``, as they were saved, in the order in which they must be restored."""
    latest = list(records)[::-1]
    # The sort is stable: of several records of one knob the latest stays first.
    latest.sort(key=_restore_rank)
    return latest


def known(name: str) -> bool:
    """Return whether there is a knob of that name."""
    return _class_of(name) is not None


def family(name: str) -> type[Knob]:
    """Return the class of the knob of that name. Raises RequestError with near matches for an unknown one."""
    kind = _class_of(name)
    if kind is None:
        # The error for an unknown name, with the names that are spelled like it
        names = list(chain.from_iterable(kind.names for kind in families()))
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        remedy = f"did you mean {', '.join(near or names)}?"
        broken_plugins = plugins.troubles("knob", unusable)
        if broken_plugins:
            remedy = f"{broken_plugins}; {remedy}"
        raise RequestError("there is no such knob", place=name, remedy=remedy)
    return kind


def _class_of(name: str) -> type[Knob] | None:
    # Plugins are imported only for a name that no family here has.
    return _matching(FAMILIES, name) or _matching(_of_plugins(), name)


def _matching(kinds: Iterable[type[Knob]], name: str) -> type[Knob] | None:
    return next((kind for kind in kinds if kind.matches(name)), None)


def _rank(name: str) -> int:
    return families().index(family(name))


def _restore_rank(record: Saved) -> int:
    """Return the place of its knob in the order of restoring; a knob that this version does not know comes last."""
    if known(record.knob):
        return _rank(record.knob)
    return len(families())


HEAD = """#!/bin/sh
# iodelta was cut off while it had these settings changed. `iodelta restore` puts them back and checks them, also from
# another machine (--machine ssh:THIS); so does the next run that comes here. Without iodelta: run this as root.
boot=$(cat /proc/sys/kernel/random/boot_id)
"""


def restore_script(records: Sequence[Saved]) -> str:
    """Return the script for all ``records``, in the order of ``restore_all``. It skips what a reboot has undone."""
    lines: list[str] = []
    for record in latest_first(records):
        lines.append(f"# {record.knob}".replace("\n", " "))
        # Tests that must succeed before the record is restored: the same boot, and the same disks by their names
        tests: list[Line] = []
        if record.volatile:
            tests.append((Shell('[ "$boot" ='), record.boot, Shell("]")))
        for disk, attached in record.disks:
            how, _, number = attached.partition(" ")
            # Another disk may have this name by now.
            if how == "attachment":
                file = f"/sys/block/{sysfs_name(disk)}/diskseq"
                present = (Shell('[ "$(cat'), file, Shell('2>/dev/null)" ='))
                tests.append((*present, number, Shell("]")))
        conditions = [line_text(test) for test in tests]
        # The record of a knob that this version does not know still says which files held what.
        kind = family(record.knob) if known(record.knob) else FileKnob
        for line in kind.undo_lines(record):
            lines.append(" && ".join([*conditions, line_text(line)]))
    return HEAD + "".join(f"{line}\n" for line in lines)
