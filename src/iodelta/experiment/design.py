"""``[design]``: the amount of measurement, and the rules of judgement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from iodelta.decoding import converted
from iodelta.experiment.model import Design
from iodelta.experiment.source import Source, check_keys, number_value
from iodelta.experiment.values import fraction, seconds

_CONVERSIONS = dict.fromkeys(("trial", "ramp", "budget", "boot", "settle"), seconds) | {
    "level": fraction,
    "stalls": fraction,
}
"""Keys of ``[design]`` that are durations or shares."""

_LIMITS = {
    "trial": (0.2, 86400),
    "blocks": (1, 2000),
    "budget": (1, 30 * 86400),
    "ramp": (0, 86400),
    "boot": (1, 86400),
    "conditioning": (1, 50),
    "seed": (0, 2**63 - 1),
}
"""Keys of ``[design]`` with their least and greatest value."""


def parse_design(source: Source, table: Mapping[str, Any]) -> Design:
    """Return the table ``[design]``. Refuses with the key."""
    check_keys(source.refuse, table, ("design",), Design.__struct_encode_fields__)
    values: dict[str, Any] = {}
    for key, value in table.items():
        convert = _CONVERSIONS.get(key)
        if convert:
            value = number_value(source, value, convert, "design", key)
        values[key] = value
    if values.get("family") == "each":
        source.refuse(
            'family "each" does not correct for several comparisons: their false alarms add up',
            "design",
            "family",
            remedy='leave family out, or say "holm" or "screen"',
        )
    try:
        design = converted(values, Design)
    except msgspec.ValidationError as error:
        # msgspec ends its message with the place: `... - at `$.blocks``.
        what = str(error).partition(" - at")[0]
        key_in_error = re.search(r"\$\.([\w-]+)", str(error))
        if not key_in_error:
            source.refuse(what, "design")
        key = key_in_error[1]
        source.refuse(f"{key}: {what}", "design", key)
    _check_limits(source, design)
    return design


def _check_limits(source: Source, design: Design) -> None:
    for key, (least, most) in _LIMITS.items():
        value = getattr(design, key)
        if value is not None and not least <= value <= most:
            source.refuse(f"{key} must lie between {least} and {most}", "design", key)
    if not 0.01 <= design.stalls <= 0.5:
        source.refuse(
            "stalls must lie between 1 % and 50 %, as in 10 %", "design", "stalls"
        )
    if not 0.5 < design.level < 1:
        source.refuse(
            "level must lie between 50 % and 100 %, as in 95 %", "design", "level"
        )
    for cell, weight in design.weights.items():
        if not 0 <= weight <= 1e6:
            source.refuse(
                f"a weight is between 0 and a million, not {weight:g}",
                "design",
                "weights",
                cell,
            )
