"""The order of cells in every list, table and chart: as they were written, but numbers by their size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?(?!\w)", re.IGNORECASE)
"""A number by itself or with fio's unit of sizes: ``32``, ``4k``, ``1m``; not the digits in a name such as ``sda1``."""


def place_of(names: Iterable[str]) -> Callable[[str], tuple[int, tuple[float, ...]]]:
    """Return a sort key: names that differ only in numbers are adjacent, smaller numbers first; others in the order of
    ``names``."""
    forms: dict[str, int] = {}
    for name in names:
        forms.setdefault(_form(name), len(forms))
    return lambda name: (forms.get(_form(name), len(forms)), _numbers(name))


def in_order(names: Iterable[str]) -> list[str]:
    """Return the distinct ``names`` in the one order."""
    distinct = list(dict.fromkeys(names))
    return sorted(distinct, key=place_of(distinct))


def _form(name: str) -> str:
    return NUMBER.sub("0", name)


def _numbers(name: str) -> tuple[float, ...]:
    return tuple(
        float(value) * 1024.0 ** " kmgt".index(unit.lower() or " ")
        for value, unit in NUMBER.findall(name)
    )
