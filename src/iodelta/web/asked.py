"""The form of an experiment: fields as they were sent, to the text of an experiment file, or to messages at fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from iodelta.bundle.dangers import MEMORY, SHAPES
from iodelta.errors import RequestError
from iodelta.experiment import seconds, size_bytes, toml_text
from iodelta.experiment.model import FIO_PREFIX, NAME, of_boot
from iodelta.experiment.shorthand import TAKES_COMMAS
from iodelta.experiment.values import fraction
from iodelta.jobfile import canonical
from iodelta.knob.registry import family
from iodelta.web.held import conditions
from iodelta.web.offers import Place
from iodelta.workload.engines import ENGINES

COLUMNS, ROWS = 4, 5
"""Variants, and settings in which they differ."""

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

VALUES: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("margin", fraction),
    ("size", size_bytes),
    ("trial", seconds),
    ("ramp", seconds),
    ("budget", seconds),
)
"""Fields with a parser of their own."""

LISTS = ("bs", "iodepth", "numjobs")
"""Options of the workload of which several values make several cells."""

WORKLOAD_KEYS = ("rw", *LISTS, "ioengine", "direct", "size", "offset")
"""Options that have a field, or that iodelta sets."""

LONGEST = 24 * 3600.0
"""Seconds of a budget that a page may ask for."""


class Composed(msgspec.Struct, frozen=True):
    """What the fields say."""

    text: str
    """An experiment file; empty where a message says why there is none."""
    problems: dict[str, str]
    """Field -> what is wrong with it, and what to write."""


def composed(fields: Mapping[str, str], offered: Sequence[Place]) -> Composed:
    """Read every field by the parser of the command line; all messages at once."""
    problems: dict[str, str] = {}
    _check_values(fields, problems)
    place = next((one for one in offered if one.path == fields.get("target", "")), None)
    if place is None:
        problems["target"] = "choose one of the list; this machine has no other now"
    elif fields.get("rw", "") not in MODES:
        problems["rw"] = f"choose one of {', '.join(MODES)}"
    elif place.is_disk and fields["rw"].removeprefix("rand") != "read":
        problems["rw"] = (
            "a page never overwrites a disk: choose read or randread, or a scratch file"
        )
    variants = _variants(fields, problems)
    workload = _workload(fields, problems)
    held = conditions(
        fields,
        place,
        problems,
        option=_why_not_allowed,
        setting=lambda name, _: _why_no_knob(name),
        modes=MODES,
    )
    if problems or place is None:
        return Composed("", problems)
    data = {
        "question": fields.get("question", ""),
        "margin": fields["margin"],
        "target": {"path": place.path, **_size(fields, place)},
        "workload": workload,
        "variant": variants,
        "condition": held,
        "design": _design(fields),
    }
    return Composed(
        toml_text(
            {name: value for name, value in data.items() if value not in ("", {})}
        ),
        {},
    )


def _size(fields: Mapping[str, str], place: Place) -> dict[str, str]:
    return {"size": fields["size"]} if fields.get("size") else {}


def _design(fields: Mapping[str, str]) -> dict[str, object]:
    given: dict[str, object] = {
        name: fields[name] for name in ("trial", "ramp", "budget") if fields.get(name)
    }
    if fields.get("blocks"):
        given["blocks"] = int(fields["blocks"])
    return given


def _check_values(fields: Mapping[str, str], problems: dict[str, str]) -> None:
    for name, parse in VALUES:
        text = fields.get(name, "")
        try:
            found = parse(text) if text else None
        except ValueError as error:
            problems[name] = str(error)
            continue
        if name == "budget" and isinstance(found, float) and found > LONGEST:
            problems[name] = "a day at most from a page; `iodelta run` has no limit"
    if not fields.get("margin"):
        problems["margin"] = "say which change matters to you, such as 1%"
    if not re.fullmatch(r"\d{0,4}", fields.get("blocks", "")):
        problems["blocks"] = "a whole number, or nothing"
    if not fields.get("question", "").isprintable():
        problems["question"] = "one line of text"


def _workload(fields: Mapping[str, str], problems: dict[str, str]) -> dict[str, object]:
    made: dict[str, object] = {"rw": fields.get("rw", "")}
    for name in LISTS:
        pattern = r"\s+" if name in TAKES_COMMAS else r"[\s,]+"
        values = [word for word in re.split(pattern, fields.get(name, "")) if word]
        if values:
            made[name] = values if len(values) > 1 else values[0]
    if fields.get("ioengine"):
        made["ioengine"] = fields["ioengine"]
        if fields["ioengine"] not in ENGINES:
            problems["ioengine"] = "choose one of the list"
    if fields.get("direct") == "1":
        made["direct"] = "1"
    return {**made, **_options(fields.get("options", ""), problems)}


def _options(text: str, problems: dict[str, str]) -> dict[str, str]:
    """Further options of fio, one a line."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.strip().removeprefix("--").partition("=")
        if not line.strip():
            continue
        problem = _why_no_option(name.strip(), value.strip(), found)
        if problem:
            problems["options"] = f"{name.strip()}: {problem}"
        found[name.strip()] = value.strip() or "1"
    return found


def _why_no_option(name: str, value: str, known: Mapping[str, str]) -> str:
    first = canonical(name)
    if first in WORKLOAD_KEYS:
        return "it has a field of its own"
    if first in map(canonical, known):
        return "it is given twice"
    return _why_not_allowed(name, value)


def _why_not_allowed(name: str, value: str) -> str:
    """Why a page may not give fio this option: the rule of a stranger's bundle."""
    first = canonical(name)
    if first == "ioengine":
        return (
            ""
            if value in ENGINES
            else "not an engine that only reads and writes the target"
        )
    if first == "filesize":
        return "how much of the place is used has a field of its own"
    if first == "mem":
        return "" if value in MEMORY else "not known to be memory without a file"
    if first in SHAPES:
        return ""
    return "not known to change only how I/O is done; `iodelta run` takes it"


def _variants(
    fields: Mapping[str, str], problems: dict[str, str]
) -> dict[str, dict[str, str]]:
    rows = [
        (number, fields.get(f"setting-{number}", "").strip())
        for number in range(1, ROWS + 1)
    ]
    for number, setting in rows:
        _check_setting(fields, number, setting, rows, problems)
    found: dict[str, dict[str, str]] = {}
    for column in range(1, COLUMNS + 1):
        settings = {
            setting: fields.get(f"value-{number}-{column}", "").strip()
            for number, setting in rows
        }
        settings = {name: value for name, value in settings.items() if name and value}
        name = fields.get(f"name-{column}", "").strip() or _named(settings, column)
        if name:
            _add(found, name, settings, column, problems)
    if len(found) < 2 and not problems:
        problems["variants"] = "name two variants at least, and what differs"
    return found


def _named(settings: Mapping[str, str], column: int) -> str:
    """A variant without a name is called by its values; one without values is none."""
    parts = [
        f"{name.rpartition('.')[2]}-{value}" if value.isdecimal() else value
        for name, value in settings.items()
    ]
    joined = "-".join(parts)
    if not joined:
        return ""
    return joined if NAME.fullmatch(joined) else f"variant-{column}"


def _add(
    found: dict[str, dict[str, str]],
    name: str,
    settings: dict[str, str],
    column: int,
    problems: dict[str, str],
) -> None:
    field = f"name-{column}"
    if not NAME.fullmatch(name):
        problems[field] = (
            f"{name!r} cannot be a name: letters, digits and . _ + - only, 48 at most, a letter or digit first"
        )
    elif name in found:
        problems[field] = f"two variants are called {name}"
    found[name] = settings


def _check_setting(
    fields: Mapping[str, str],
    number: int,
    setting: str,
    rows: Sequence[tuple[int, str]],
    problems: dict[str, str],
) -> None:
    """The name of a setting; its values are checked on the machine."""
    columns = range(1, COLUMNS + 1)
    values = [fields.get(f"value-{number}-{column}", "").strip() for column in columns]
    given = [value for value in values if value]
    field = f"setting-{number}"
    if not setting:
        if given:
            problems[field] = "which setting has these values?"
        return
    if any(own == setting and before < number for before, own in rows):
        problems[field] = f"{setting} is given twice"
    elif setting.startswith(FIO_PREFIX):
        reasons = (
            _why_not_allowed(setting.removeprefix(FIO_PREFIX), value) for value in given
        )
        why = next(filter(None, reasons), "")
        if why:
            problems[field] = why
    else:
        why = _why_no_knob(setting)
        if why and given:
            problems[field] = why


def _why_no_knob(name: str) -> str:
    try:
        kind = family(name)
    except RequestError as error:
        return error.sentence
    if of_boot(name):
        return "it needs a reboot for every variant, which only `iodelta run` does"
    why = kind.danger(name)
    return f"{why}; from a page it cannot be set, `iodelta run` sets it" if why else ""
