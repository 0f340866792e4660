"""The form of an experiment: its fields become the text of an experiment file, or messages at the fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from iodelta.bundle.dangers import ALLOWED_VALUES, SHAPES
from iodelta.errors import RequestError
from iodelta.experiment import seconds, size_bytes, toml_text
from iodelta.experiment.model import FIO_PREFIX, NAME, of_boot
from iodelta.experiment.shorthand import TAKES_COMMAS
from iodelta.experiment.values import fraction
from iodelta.jobfile import canonical
from iodelta.knob.registry import family
from iodelta.web.held import check_name, conditions
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
    _check_values(fields, problems)
    by_path = {offer.path: offer for offer in offered}
    place = by_path.get(fields.get("target", ""))
    mode = fields.get("rw", "")
    if place is None:
        problems["target"] = "choose one of the list; this machine has no other now"
    elif mode not in MODES:
        problems["rw"] = f"choose one of {', '.join(MODES)}"
    elif place.is_disk and mode.removeprefix("rand") != "read":
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
        "target": {"path": place.path, **_given(fields, "size")},
        "workload": workload,
        "variant": variants,
        "condition": held,
        "design": _design(fields),
    }
    given = {name: value for name, value in data.items() if value not in ("", {})}
    return Composed(toml_text(given), {})


def _given(fields: Mapping[str, str], *names: str) -> dict[str, object]:
    """Return the fields of these names that are not empty."""
    return {name: fields[name] for name in names if fields.get(name)}


def _design(fields: Mapping[str, str]) -> dict[str, object]:
    design = _given(fields, "trial", "ramp", "budget")
    if fields.get("blocks"):
        design["blocks"] = int(fields["blocks"])
    return design


def _check_values(fields: Mapping[str, str], problems: dict[str, str]) -> None:
    for name, parse in VALUES:
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


def _workload(fields: Mapping[str, str], problems: dict[str, str]) -> dict[str, object]:
    workload: dict[str, object] = {"rw": fields.get("rw", "")}
    for name in LISTS:
        pattern = r"\s+" if name in TAKES_COMMAS else r"[\s,]+"
        values = list(filter(None, re.split(pattern, fields.get(name, ""))))
        if values:
            workload[name] = values if len(values) > 1 else values[0]
        most = MOST.get(name)
        if most and not all(
            re.fullmatch("[0-9]{1,6}", value) and 1 <= int(value) <= most
            for value in values
        ):
            problems[name] = (
                f"whole numbers from 1 to {most}; `iodelta run` has no limit"
            )
    engine = fields.get("ioengine", "")
    if engine:
        workload["ioengine"] = engine
    if engine and engine not in ENGINES:
        problems["ioengine"] = "choose one of the list"
    if fields.get("direct") == "1":
        workload["direct"] = "1"
    return {**workload, **_options(fields.get("options", ""), problems)}


def _options(text: str, problems: dict[str, str]) -> dict[str, str]:
    """Further options of fio, one a line."""
    options: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, value = map(str.strip, line.removeprefix("--").partition("="))
        problem = _why_no_option(name, value, options)
        if problem:
            problems["options"] = f"{name}: {problem}"
        options[name] = value or "1"
    return options


def _why_no_option(name: str, value: str, known: Mapping[str, str]) -> str:
    first = canonical(name)
    if first in WORKLOAD_KEYS:
        return "it has a field of its own"
    if first in map(canonical, known):
        return "it is given twice"
    return _why_not_allowed(name, value)


def _why_not_allowed(name: str, value: str) -> str:
    """Return why a page may not give fio this option: the rules are those for a stranger's bundle."""
    first = canonical(name)
    if first == "filesize":
        return "how much of the place is used has a field of its own"
    if first in ALLOWED_VALUES:
        values, why = ALLOWED_VALUES[first]
        return "" if value in values else why
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
    variants: dict[str, dict[str, str]] = {}
    for column in range(1, COLUMNS + 1):
        settings = {
            setting: fields.get(f"value-{number}-{column}", "").strip()
            for number, setting in rows
        }
        settings = {name: value for name, value in settings.items() if name and value}
        field = f"name-{column}"
        name = fields.get(field, "").strip() or _named(settings, column)
        if name:
            check_name(name, variants, "variants", field, problems)
            variants[name] = settings
    if len(variants) < 2 and not problems:
        problems["variants"] = "name two variants at least, and what differs"
    return variants


def _named(settings: Mapping[str, str], column: int) -> str:
    """Return a name from the values of a variant that has no name; empty where it has no values either."""
    parts = [
        f"{name.rpartition('.')[2]}-{value}" if value.isdecimal() else value
        for name, value in settings.items()
    ]
    joined = "-".join(parts)
    if not joined:
        return ""
    return joined if NAME.fullmatch(joined) else f"variant-{column}"


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
    given = list(filter(None, values))
    field = f"setting-{number}"
    if not setting:
        if given:
            problems[field] = "which setting has these values?"
        return
    if any(earlier == setting for _, earlier in rows[: number - 1]):
        problems[field] = f"{setting} is given twice"
        return
    reasons = (_why_no_setting(setting, value) for value in given)
    why = next(filter(None, reasons), "")
    if why:
        problems[field] = why


def _why_no_setting(name: str, value: str) -> str:
    """Return why a page may not set this option of fio or this knob."""
    if name.startswith(FIO_PREFIX):
        return _why_not_allowed(name.removeprefix(FIO_PREFIX), value)
    return _why_no_knob(name)


def _why_no_knob(name: str) -> str:
    try:
        kind = family(name)
    except RequestError as error:
        return error.sentence
    if of_boot(name):
        return "it needs a reboot for every variant, which only `iodelta run` does"
    why = kind.danger(name)
    if not why:
        return ""
    return f"{why}; from a page it cannot be set, `iodelta run` sets it"
