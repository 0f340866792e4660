"""The command-line shorthand: words become the text of an experiment file, so one parser reads both."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType

from iodelta.errors import RequestError
from iodelta.experiment.model import NAME
from iodelta.experiment.source import COMMAND_LINE

TAKES_COMMAS = frozenset(
    "bs blocksize bsrange blocksize_range bssplit ba blockalign cpus_allowed log_compression_cpus rate rate_min "
    "rate_iops rate_iops_min numa_cpu_nodes numa_mem_policy random_distribution cmdprio_percentage cmdprio_class "
    "cmdprio cmdprio_bssplit".split()
)
"""Options in which a comma has a meaning for fio (read,write,trim; CPU lists): they are not split here.

fio 3.33 HOWTO. ``--bs=4k,8k`` means 4k reads and 8k writes; two cells are ``--bs=4k --bs=8k``.
"""

CONDITION_FORMS = "--condition NAME, --condition NAME:knob=value or --condition 'NAME:COMMAND ARG ...'"

_BARE_KNOBS = ("cpus", "numa", "kernel")


Table = Mapping[str, str | int | float | bool | list[str] | None]
_NONE: Table = MappingProxyType({})


def shorthand(
    *,
    variants: Sequence[str],
    fio: Sequence[str],
    conditions: Sequence[str] = (),
    top: Table = _NONE,
    target: Table = _NONE,
    design: Table = _NONE,
    subject: Table = _NONE,
) -> str:
    """Return the experiment file that ``iodelta run --variant ... -- fio options`` stands for, as TOML text.

    ``variants`` are ``NAME:knob=value,knob=value``, ``conditions`` the same or ``NAME:COMMAND ARG ...``. A repeated fio
    option, or a comma in an option to which fio gives commas no meaning, is a list. Empty values are left out. Raises
    RequestError.
    """
    data: dict[str, object] = {
        **_given(top),
        "target": _given(target),
        "workload": _workload(fio),
        "variant": _variants(variants),
        "condition": _conditions(conditions),
        "design": _given(design),
        "subject": _given(subject),
    }
    return toml_text(data)


def disk_text(
    *, machine: str, target: Table, prepare: Table, fio: Sequence[str]
) -> str:
    """Return the file that ``iodelta prepare TARGET ... -- fio options`` stands for, as TOML text. Raises RequestError."""
    workload = {"workload": _workload(fio)} if fio else {}
    data: dict[str, object] = {
        **_given({"machine": machine}),
        "target": _given(target),
        "prepare": {**_given(prepare), **workload},
    }
    return toml_text(data)


def overridden(
    text: str,
    *,
    top: Table = _NONE,
    target: Table = _NONE,
    design: Table = _NONE,
    subject: Table = _NONE,
) -> str | None:
    """Return an experiment file's text with the values of the command line; None if the command line has none.

    Comments are lost. Raises RequestError for a text that is not TOML.
    """
    if not any(map(_given, (top, target, design, subject))):
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(
            f"not valid TOML: {error}", place="experiment file"
        ) from error
    data.update(_given(top))
    for name, table in (("target", target), ("design", design), ("subject", subject)):
        data[name] = {**data.get(name, {}), **_given(table)}
    return toml_text(data)


def _given(table: Table) -> dict[str, object]:
    return {key: value for key, value in table.items() if value not in ("", None, [])}


def _workload(words: Sequence[str]) -> dict[str, object]:
    options: dict[str, list[str]] = {}
    for word in words:
        match = re.fullmatch(r"--([A-Za-z0-9_]+)(?:=(.*))?", word)
        if not match:
            raise RequestError(
                f"{word!r} is not a fio option",
                place=COMMAND_LINE,
                remedy="after --, give fio options as in --rw=randread --bs=4k --iodepth=1,32",
            )
        key = match[1]
        value = "1" if match[2] is None else match[2]
        values = [value] if key in TAKES_COMMAS else value.split(",")
        options.setdefault(key, []).extend(values)
    if not options:
        raise RequestError(
            "there is no workload",
            place=COMMAND_LINE,
            remedy="add fio options after --, as in -- --rw=randread --bs=4k",
        )
    workload: dict[str, object] = {}
    for key, values in options.items():
        workload[key] = values[0] if len(values) == 1 else values
    return workload


def _variants(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    variants: dict[str, dict[str, str]] = {}
    for text in texts:
        name, _, rest = text.partition(":")
        _name(name, text, "--variant NAME:knob=value,knob=value")
        _check_new(name, variants, "--variant")
        variants[name] = _settings(rest, f"--variant {text!r}")
    return variants


def _check_new(name: str, known: Container[str], option: str) -> None:
    """Refuse a second one of the same name: it would replace or change the first."""
    if name in known:
        raise RequestError(
            f"{name!r} is given twice",
            place=option,
            remedy="give each its own name, and all its settings in one place",
        )


def _settings(text: str, option: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    if not text:
        return settings
    last = ""
    for part in text.split(","):
        key, equals, value = part.partition("=")
        # A comma starts a new setting only before a knob's name: cpus=0,2 and noatime,commit=5 stay whole.
        if equals and (key in _BARE_KNOBS or "." in key or key.startswith("sysfs:")):
            _check_new(key, settings, option)
            last = key
            settings[key] = value
        elif last:
            settings[last] += "," + part
        else:
            raise RequestError(
                f"{option}: {part!r} is not knob=value",
                place=COMMAND_LINE,
                remedy="iodelta knobs lists what can be set here; fio.NAME=VALUE sets a fio option",
            )
    return settings


def _is_setting(text: str) -> bool:
    """Return whether the text after a condition's name sets a knob: no command has such a name."""
    key, equals, _ = text.partition("=")
    if not equals:
        return False
    return key in _BARE_KNOBS or bool(re.fullmatch(r"[a-z_]+\.[\w.]+|sysfs:\S+", key))


def _conditions(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    conditions: dict[str, dict[str, str]] = {}
    for text in texts:
        name, _, rest = text.partition(":")
        _name(name, text, CONDITION_FORMS)
        _check_new(name, conditions, "--condition")
        conditions[name] = {}
        if _is_setting(rest):
            conditions[name] = _settings(rest, f"--condition {text!r}")
        elif rest.strip():
            conditions[name] = {"background": rest.strip()}
    return conditions


def _name(name: str, text: str, form: str) -> str:
    if not NAME.fullmatch(name):
        raise RequestError(
            f"{text!r}: {name!r} cannot be a name", place=COMMAND_LINE, remedy=form
        )
    return name


def toml_text(data: Mapping[str, object], path: str = "") -> str:
    """Plain data without None as the TOML text of the table ``path``, or of a whole file: values first, then tables."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in data.items():
        if not isinstance(value, Mapping):
            lines.append(f"{_key(key)} = {_value(value)}")
            continue
        inner = f"{path}.{_key(key)}" if path else _key(key)
        # An empty table means something within another ([variant.plain]), and nothing by itself.
        if value or path:
            tables.append(toml_text(value, inner))
    # A table that has only tables needs no heading of its own.
    has_heading = path and (lines or not tables)
    if has_heading:
        lines.insert(0, f"[{path}]")
    if lines:
        lines.append("")
    return "\n".join(lines + tables)


def _key(name: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return _value(name)


def _value(value: object) -> str:
    """JSON is valid TOML for texts, numbers, booleans and lists, except for DEL, which TOML requires to be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
