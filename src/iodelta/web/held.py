"""The conditions of the form: a name, a background load of fio, settings that stay the same; or messages at fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from iodelta.experiment.model import NAME
from iodelta.jobfile import canonical
from iodelta.web.offers import Place

ROWS = 3
"""Conditions that the form has room for."""

GROWS = frozenset({"size", "filesize"})
"""Options by which a load that writes would make a scratch file larger than was planned."""

Why = Callable[[str, str], str]
"""Why a page may not give a name this value; empty where it may."""


def conditions(
    fields: Mapping[str, str],
    place: Place | None,
    problems: dict[str, str],
    *,
    option: Why,
    setting: Why,
    modes: tuple[str, ...],
) -> dict[str, dict[str, object]]:
    """Return the ``[condition.NAME]`` tables. A load is a table of fio options, never a command, so that it is on the
    target.

    ``option`` and ``setting`` judge an option of fio and a knob; a load does to the target what ``modes`` name.
    """
    made: dict[str, dict[str, object]] = {}
    for row in range(1, ROWS + 1):
        name, load, held = (
            fields.get(f"{part}-{row}", "").strip()
            for part in ("condition", "load", "held")
        )
        if not (name or load or held):
            continue
        name = name or f"condition-{row}"
        check_name(name, made, "conditions", f"condition-{row}", problems)
        options = dict(_pairs(load, f"load-{row}", problems, option))
        _check_mode(options, place, f"load-{row}", problems, modes)
        background = {"background": options} if options else {}
        made[name] = {**_pairs(held, f"held-{row}", problems, setting), **background}
    return made


def check_name(
    name: str,
    known: Mapping[str, object],
    what: str,
    field: str,
    problems: dict[str, str],
) -> None:
    """Note at a field that ``name`` cannot be a name, or is one of the ``known`` ones; ``what`` is their plural."""
    if not NAME.fullmatch(name):
        problems[field] = (
            f"{name!r} cannot be a name: letters, digits and . _ + - only, 48 at most, a letter or digit first"
        )
    elif name in known:
        problems[field] = f"two {what} are called {name}"


def _pairs(text: str, field: str, problems: dict[str, str], why: Why) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for name, value in _words(text):
        problem = why(name, value)
        if canonical(name) in map(canonical, pairs):
            problem = "it is given twice"
        elif canonical(name) in GROWS:
            problem = "a load is on as much of the place as is measured"
        elif not value:
            problem = problem or "write NAME=VALUE, without spaces in it"
        if problem:
            problems[field] = f"{name}: {problem}"
        pairs[name] = value
    return pairs


def _words(text: str) -> Iterator[tuple[str, str]]:
    for word in text.split():
        name, _, value = word.removeprefix("--").partition("=")
        yield name, value


def _check_mode(
    options: Mapping[str, str],
    place: Place | None,
    field: str,
    problems: dict[str, str],
    modes: tuple[str, ...],
) -> None:
    """A load says whether it reads or writes, so that it is not mistaken for another one."""
    if not options or field in problems:
        return
    mode = options.get("rw", "")
    if mode not in modes:
        problems[field] = f"say what it does: rw= one of {', '.join(modes)}"
    elif place is not None and place.is_disk and mode.removeprefix("rand") != "read":
        problems[field] = "a page never overwrites a disk: rw=read or rw=randread"
