"""The numbers in what a command printed: exactly one for every metric, with the interval that its digits allow."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from iodelta.experiment.command import in_unit, json_path
from iodelta.experiment.model import Measure
from iodelta.trial import Quantity

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
)
"""What terminals take for colours, titles and movements (ECMA-48)."""

UP = re.compile(r"\x1b\[(\d{0,3})[AF]")
"""The cursor goes up so many lines, which are then written again."""

NUMBER = re.compile(r"[-+]?(?:\d[\d_']*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")

LONGEST = 4096
"""Characters of a line that are looked at."""

SHOWN = 80


class UnreadError(Exception):
    """Why a metric has no value."""


def lines_of(*outputs: bytes) -> list[str]:
    """Return the lines of the outputs that a terminal shows in the end: without colours, and without what was written
    over by a carriage return, a backspace, or after the cursor went up. Empty ones are left out."""
    lines: list[str] = []
    for output in outputs:
        shown: list[str] = []
        for line in output.decode(errors="replace").split("\n"):
            for up in UP.findall(line):
                del shown[-int(up or 1) :]
            parts = [part for part in ESCAPES.sub("", line).split("\r") if part.strip()]
            text = parts[-1][: 4 * LONGEST] if parts else ""
            seen: list[str] = []
            for letter in text:
                if letter != "\b":
                    seen.append(letter)
                elif seen:
                    seen.pop()
            shown.append("".join(seen)[:LONGEST].rstrip())
        lines += filter(None, shown)
    return lines


def read(measure: Measure, stdout: bytes, stderr: bytes) -> Quantity:
    """Return the value of ``measure``. Raises UnreadError when there is none, or more than one."""
    if measure.json:
        text, unit = _in_json(measure, stdout), measure.unit
    elif measure.pattern:
        # The number, and its unit: the pattern's own where it has one.
        lines = lines_of(stdout, stderr)
        if not lines:
            raise UnreadError("the command printed nothing")
        pattern = re.compile(measure.pattern)
        searched = lines[-1:] if measure.last_line else lines
        matches = list(_matches(pattern, searched))
        if not matches:
            raise UnreadError(
                f"no line matches {measure.pattern!r}; its last line is {_shown(lines[-1])}"
            )
        if len(matches) > 1:
            places = " and ".join(
                f"line {number}: {_shown(match.string)}"
                for number, match in matches[:2]
            )
            raise UnreadError(
                f"{len(matches)} places match {measure.pattern!r}, and it is not clear which one counts: {places}"
            )
        match = matches[0][1]
        place = pattern.groupindex.get("unit", 0)
        number = next(group for group in range(1, pattern.groups + 1) if group != place)
        text, unit = (
            match[number] or "",
            (match["unit"] or "") if place else measure.unit,
        )
    else:
        text, unit = _of_last_line(lines_of(stdout)), measure.unit
    # A printed number in the unit of its metric.
    if not NUMBER.fullmatch(text):
        raise UnreadError(f"{_shown(text)} is not a number")
    digits = re.sub(r"[_']", "", text)
    value = float(digits)
    # Changes are ratios. A rate of 0 is a stall, the worst result; a time of 0 would be infinitely good.
    endless = value == 0 and measure.better == "lower"
    if not math.isfinite(value) or value < 0 or endless:
        raise UnreadError(f"{text} is not a number that can be compared as a ratio")
    half = _half_digit(digits) if value else 0.0
    ends = (value, max(0.0, value - half), value + half)
    kept, low, high = (in_unit(end, unit, measure.unit) for end in ends)
    if math.isnan(kept):
        raise UnreadError(
            f"it printed {text} {_shown(unit)}, and the metric is in {measure.unit}"
        )
    return Quantity(kept, low, high, measure.unit)


def _matches(
    pattern: re.Pattern[str], lines: Sequence[str]
) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(lines, 1):
        for match in pattern.finditer(line):
            yield number, match


def _of_last_line(lines: Sequence[str]) -> str:
    if not lines:
        raise UnreadError("the command printed nothing")
    numbers = NUMBER.findall(lines[-1])
    if len(numbers) != 1:
        how = f"{len(numbers)} numbers" if numbers else "no number"
        raise UnreadError(f"its last line has {how}: {_shown(lines[-1])}")
    return str(numbers[0])


def _in_json(measure: Measure, stdout: bytes) -> str:
    """Return the number as it is spelt there."""
    text = stdout.decode(errors="replace").strip()
    if measure.last_line:
        text = next(reversed(lines_of(stdout)), "")
    if not text:
        raise UnreadError("the command printed nothing")
    try:
        value = json.loads(
            text,
            parse_int=_Spelt,
            parse_float=_Spelt,
            parse_constant=str,
            object_pairs_hook=_once,
        )
    except (ValueError, RecursionError) as error:
        raise UnreadError(f"its output is not JSON: {error}") from error
    for step in json_path(measure.json) or ():
        value = _inside(value, step, measure)
    if not isinstance(value, _Spelt):
        raise UnreadError(f"{measure.json} is not a number in what it printed")
    return str(value)


class _Spelt(str):
    """A number of a JSON document as it stands there: its digits say how finely it is known."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises ValueError for a key that appears twice: it is not clear which one counts."""
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} appears twice")
    return table


def _inside(value: Any, step: str | int, measure: Measure) -> Any:
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return value[step]
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    raise UnreadError(f"{measure.json} is not in what it printed: there is no {step!r}")


def _half_digit(digits: str) -> float:
    """Half of what the last printed digit stands for; nothing for a whole number, which may be a count."""
    mantissa, _, exponent = digits.lower().partition("e")
    _, point, decimals = mantissa.partition(".")
    if point or exponent:
        return 0.5 * 10.0 ** (int(exponent or 0) - len(decimals))
    return 0.0


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
