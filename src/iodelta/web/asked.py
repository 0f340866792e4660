"""The form of an experiment: its fields become the text of an experiment file, or messages at the fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from iodelta.bundle.dangers import ALLOWED_VALUES, SHAPES
from iodelta.errors import IodeltaError, MachineError, RequestError
from iodelta.experiment import seconds, size_bytes, toml_text
from iodelta.experiment.model import FIO_PREFIX, NAME, of_boot
from iodelta.experiment.shorthand import TAKES_COMMAS
from iodelta.experiment.values import fraction
from iodelta.jobfile import canonical
from iodelta.knob import KnobInfo, catalogue
from iodelta.knob.registry import family
from iodelta.lab.guard import KERNEL_FILESYSTEMS
from iodelta.machine import Machine
from iodelta.probe.mounts import mounts
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import resolve
from iodelta.study.words import size
from iodelta.workload.engines import ENGINES, engines

SECTOR = 512
"""Bytes of the unit of sizes in sysfs, whatever the disk's own sector size is."""

NO_DISKS = ("ram", "zram", "sr", "fd", "nbd")
"""Beginnings of the names of block devices that are not offered: RAM disks, optical and floppy drives, network disks."""

IN_MEMORY = frozenset(
    "tmpfs ramfs squashfs iso9660 overlay autofs nsfs rpc_pipefs".split()
)
"""Filesystems without a disk of their own. The directory that is served is offered even on one of these."""


class Place(msgspec.Struct, frozen=True):
    """Something that can be measured."""

    path: str
    label: str
    is_disk: bool
    """A disk is only read; in a directory iodelta makes a scratch file, which may be written to."""


def places(machine: Machine, own: Path) -> tuple[Place, ...]:
    """Return the directory ``own``, filesystems, then disks and partitions. A request names one of them, and no other
    path.
    """
    return (
        Place(str(own), f"a scratch file in {own}", False),
        *_filesystems(machine, own),
        *_disks(machine),
    )


def _filesystems(machine: Machine, own: Path) -> Iterator[Place]:
    try:
        table = mounts(machine)
    except MachineError:
        return
    seen: set[str] = set()
    for mount in table:
        # Whether a scratch file there lies on a disk. The mount point may be a single file, too.
        without_disk = KERNEL_FILESYSTEMS | IN_MEMORY
        writable = "ro" not in mount.options
        if (
            (
                writable
                and mount.fstype not in without_disk
                and Path(mount.point).is_dir()
            )
            and mount.devno not in seen
            and mount.point != str(own)
        ):
            seen.add(mount.devno)
            said = f"a scratch file in {mount.point} ({mount.fstype} on {mount.source})"
            yield Place(mount.point, said, False)


def _disks(machine: Machine) -> Iterator[Place]:
    for path in sorted(machine.glob("/sys/class/block/*")):
        name = PurePath(path).name
        sectors = attribute(machine, f"{path}/size") or "0"
        if name.startswith(NO_DISKS) or not sectors.isdecimal() or sectors == "0":
            continue
        about = [size(int(sectors) * SECTOR), _about(machine, path)]
        said = ", ".join(filter(None, about))
        yield Place(f"/dev/{name.replace('!', '/')}", f"/dev/{name}, {said}", True)


def _about(machine: Machine, path: str) -> str:
    """Return the model of a disk, or what a loop, device-mapper or md device is made of; empty where neither is known."""
    files = ("device/model", "loop/backing_file", "dm/name", "md/level")
    texts = (attribute(machine, f"{path}/{file}") for file in files)
    return next(filter(None, texts), "")


def knobs(machine: Machine, place: Place) -> tuple[KnobInfo, ...]:
    """Settings that a page may turn for a place: those that only change how I/O is done, and can be set here."""
    try:
        known = catalogue(machine, resolve(machine, place.path))
    except IodeltaError:
        return ()
    here = [info for info in known if not info.reason]
    return tuple(info for info in here if not family(info.name).danger(info.name))


def engines_here(machine: Machine) -> tuple[str, ...]:
    """Engines of fio that read and write the target and do nothing else."""
    try:
        return tuple(name for name in engines(machine) if name in ENGINES)
    except MachineError:
        return ()


COLUMNS, ROWS = 4, 5
"""Variants, and settings in which they differ."""

CONDITIONS = 3
"""Conditions that the form has room for."""

MODES = ("randread", "read", "randwrite", "write", "randrw", "readwrite")

DEFAULTS: Mapping[str, str] = {
    "rw": "randread",
    "bs": "4k",
    "iodepth": "1 32",
    "direct": "1",
    "size": "1g",
    "margin": "1%",
    "trial": "5s",
    "ramp": "1s",
    "budget": "30m",
    "setting-1": "block.scheduler",
}
"""What the form holds when it is opened."""

VALUES: Mapping[str, Callable[[str], object]] = {
    "margin": fraction,
    "size": size_bytes,
    "trial": seconds,
    "ramp": seconds,
    "budget": seconds,
}
"""Fields with a parser of their own."""

LISTS = ("bs", "iodepth", "numjobs")
"""Options of the workload whose values make a cell each."""

WORKLOAD_KEYS = ("rw", *LISTS, "ioengine", "direct", "size", "offset")
"""Options that have a field, or that iodelta sets."""

MOST = {"iodepth": 4096, "numjobs": 256}
"""The largest number in each value: every job is a process, and a page may not exhaust the machine."""

LONGEST = 24 * 3600.0
"""The largest budget that a page may ask for, in seconds."""


class Composed(msgspec.Struct, frozen=True):
    """What the fields say."""

    text: str
    """An experiment file; empty where a message says why there is none."""
    problems: dict[str, str]
    """Field -> what is wrong with it, and what to write."""


def composed(fields: Mapping[str, str], offered: Sequence[Place]) -> Composed:
    """Read every field by the parser of the command line; all messages at once."""
    problems: dict[str, str] = {}
    for name, parse in VALUES.items():
        text = fields.get(name, "")
        try:
            value = parse(text) if text else None
        except ValueError as error:
            problems[name] = str(error)
            continue
        if name == "budget" and isinstance(value, float) and value > LONGEST:
            problems[name] = "a day at most from a page; `iodelta run` has no limit"
    if not fields.get("margin"):
        problems["margin"] = "say which change matters to you, such as 1%"
    if not re.fullmatch("[0-9]{0,4}", fields.get("blocks", "")):
        problems["blocks"] = "a whole number, or nothing"
    if not fields.get("question", "").isprintable():
        problems["question"] = "one line of text"
    place = {offer.path: offer for offer in offered}.get(fields.get("target", ""))
    mode = fields.get("rw", "")
    if place is None:
        problems["target"] = "choose one of the list; this machine has no other now"
    elif mode not in MODES:
        problems["rw"] = f"choose one of {', '.join(MODES)}"
    elif _overwrites(place, mode):
        problems["rw"] = (
            "a page never overwrites a disk: choose read or randread, or a scratch file"
        )
    variants = _variants(fields, problems)
    workload = _workload(fields, problems)
    held = _conditions(fields, place, problems)
    if problems or place is None:
        return Composed("", problems)
    design: dict[str, object] = {
        name: fields[name] for name in ("trial", "ramp", "budget") if fields.get(name)
    }
    if fields.get("blocks"):
        design["blocks"] = int(fields["blocks"])
    size = {"size": fields["size"]} if fields.get("size") else {}
    data = {
        "question": fields.get("question", ""),
        "margin": fields["margin"],
        "target": {"path": place.path, **size},
        "workload": workload,
        "variant": variants,
        "condition": held,
        "design": design,
    }
    return Composed(
        toml_text(
            {name: value for name, value in data.items() if value not in ("", {})}
        ),
        {},
    )


def _overwrites(place: Place, mode: str) -> bool:
    return place.is_disk and mode.removeprefix("rand") != "read"


def _workload(fields: Mapping[str, str], problems: dict[str, str]) -> dict[str, object]:
    workload: dict[str, object] = {"rw": fields.get("rw", "")}
    for name in LISTS:
        pattern = r"\s+" if name in TAKES_COMMAS else r"[\s,]+"
        values = list(filter(None, re.split(pattern, fields.get(name, ""))))
        if values:
            workload[name] = values if len(values) > 1 else values[0]
        for problem in filter(None, (_beyond(name, value) for value in values)):
            problems[name] = problem
    engine = fields.get("ioengine", "")
    if engine:
        workload["ioengine"] = engine
    if engine and engine not in ENGINES:
        problems["ioengine"] = "choose one of the list"
    if fields.get("direct") == "1":
        workload["direct"] = "1"

    def why(name: str, value: str) -> str:
        return (
            "it has a field of its own"
            if canonical(name) in WORKLOAD_KEYS
            else _why_not_allowed(name, value)
        )

    lines = fields.get("options", "").splitlines()
    options = _pairs(lines, "options", problems, why)
    return {**workload, **{name: value or "1" for name, value in options.items()}}


def _pairs(
    words: Sequence[str],
    field: str,
    problems: dict[str, str],
    why: Callable[[str, str], str],
) -> dict[str, str]:
    """Return ``NAME=VALUE`` as pairs; ``why`` says why a page may not give a name this value, empty where it may."""
    pairs: dict[str, str] = {}
    for word in filter(None, map(str.strip, words)):
        name, _, value = map(str.strip, word.removeprefix("--").partition("="))
        problem = (
            "it is given twice"
            if canonical(name) in map(canonical, pairs)
            else why(name, value)
        )
        if problem:
            problems[field] = f"{name}: {problem}"
        pairs[name] = value
    return pairs


def _beyond(name: str, value: str) -> str:
    """Return why a number is more than a page may ask for; empty where it is not."""
    most = MOST.get(name)
    if most is None or (re.fullmatch("[0-9]{1,6}", value) and 1 <= int(value) <= most):
        return ""
    return f"whole numbers from 1 to {most}; `iodelta run` has no limit"


def _why_not_allowed(name: str, value: str) -> str:
    """Return why a page may not give fio this option: the rules are those for a stranger's bundle."""
    first = canonical(name)
    if first == "filesize":
        return "how much of the place is used has a field of its own"
    if first in ALLOWED_VALUES:
        values, why = ALLOWED_VALUES[first]
        return "" if value in values else why
    if first in SHAPES:
        return _beyond(first, value)
    return "not known to change only how I/O is done; `iodelta run` takes it"


def _why_no_knob(name: str) -> str:
    """Return why a page may not set this knob."""
    try:
        kind = family(name)
    except RequestError as error:
        return error.sentence
    if of_boot(name):
        return "it needs a reboot for every variant, which only `iodelta run` does"
    why = kind.danger(name)
    return f"{why}; from a page it cannot be set, `iodelta run` sets it" if why else ""


def _variants(
    fields: Mapping[str, str], problems: dict[str, str]
) -> dict[str, dict[str, str]]:
    columns = range(1, COLUMNS + 1)
    table: dict[str, list[str]] = {}
    for row in range(1, ROWS + 1):
        field = f"setting-{row}"
        setting = fields.get(field, "").strip()
        values = [fields.get(f"value-{row}-{column}", "").strip() for column in columns]
        why = ""
        if not setting:
            why = "which setting has these values?" if any(values) else ""
        elif setting in table:
            why = f"{setting} is given twice"
        else:
            given = filter(None, values)
            if setting.startswith(FIO_PREFIX):
                whys = [
                    _why_not_allowed(setting.removeprefix(FIO_PREFIX), value)
                    for value in given
                ]
            else:
                whys = [_why_no_knob(setting) for _ in given]
            why = next(filter(None, whys), "")
            table[setting] = values
        if why:
            problems[field] = why
    variants: dict[str, dict[str, str]] = {}
    for column in columns:
        settings = {
            name: values[column - 1]
            for name, values in table.items()
            if values[column - 1]
        }
        field = f"name-{column}"
        # One that has no name is called after its values.
        parts = [
            f"{name.rpartition('.')[2]}-{value}" if value.isdecimal() else value
            for name, value in settings.items()
        ]
        joined = "-".join(parts)
        name = fields.get(field, "").strip() or (
            joined if NAME.fullmatch(joined) or not joined else f"variant-{column}"
        )
        if name:
            _check_name(name, variants, "variants", field, problems)
            variants[name] = settings
    if len(variants) < 2 and not problems:
        problems["variants"] = "name two variants at least, and what differs"
    return variants


def _conditions(
    fields: Mapping[str, str], place: Place | None, problems: dict[str, str]
) -> dict[str, dict[str, object]]:
    """Return the ``[condition.NAME]`` tables. A load is a table of fio options, never a command, so that it is on the
    target."""

    def load_why(name: str, value: str) -> str:
        # Options by which a load that writes would make a scratch file larger than was planned.
        if canonical(name) in ("size", "filesize"):
            return "a load is on as much of the place as is measured"
        return _why_not_allowed(name, value) or unless(value)

    def held_why(name: str, value: str) -> str:
        return _why_no_knob(name) or unless(value)

    def unless(value: str) -> str:
        return "" if value else "write NAME=VALUE, without spaces in it"

    made: dict[str, dict[str, object]] = {}
    for row in range(1, CONDITIONS + 1):
        parts = ("condition", "load", "held")
        name, load, held = (fields.get(f"{part}-{row}", "").strip() for part in parts)
        if not (name or load or held):
            continue
        name, field = name or f"condition-{row}", f"load-{row}"
        _check_name(name, made, "conditions", f"condition-{row}", problems)
        options = _pairs(load.split(), field, problems, load_why)
        # A load says whether it reads or writes, so that it is not mistaken for another one.
        mode = options.get("rw", "")
        if options and field not in problems and mode not in MODES:
            problems[field] = f"say what it does: rw= one of {', '.join(MODES)}"
        elif (
            options
            and field not in problems
            and place is not None
            and _overwrites(place, mode)
        ):
            problems[field] = "a page never overwrites a disk: rw=read or rw=randread"
        background = {"background": options} if options else {}
        made[name] = {
            **_pairs(held.split(), f"held-{row}", problems, held_why),
            **background,
        }
    return made


def _check_name(
    name: str, known: Container[str], what: str, field: str, problems: dict[str, str]
) -> None:
    """Note at a field that ``name`` cannot be a name, or is one of the ``known`` ones; ``what`` is their plural."""
    if not NAME.fullmatch(name):
        problems[field] = (
            f"{name!r} cannot be a name: letters, digits and . _ + - only, 48 at most, a letter or digit first"
        )
    elif name in known:
        problems[field] = f"two {what} are called {name}"
