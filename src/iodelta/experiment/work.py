"""What a cell does, in two words: the kind of its I/Os and their size, as far as no variant changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from iodelta.experiment.model import Option, Variant
from iodelta.jobfile import canonical

SIZES = ("bssplit", "bsrange", "bs")
"""fio's options of block sizes; the first that is given holds."""

_NONE: Mapping[str, str] = MappingProxyType({})


def kind_and_size(
    options: Iterable[Option],
    variants: Iterable[Variant],
    defaults: Mapping[str, str] = _NONE,
) -> tuple[str, str]:
    """``randread`` and ``4k``, or ``bsrange=4k-64k``; each empty where it is not known or differs between variants."""
    given = dict(defaults)
    for name, value in options:
        if value:
            given[canonical(name)] = value
    varied: set[str] = set()
    for variant in variants:
        varied.update(canonical(name) for name, _ in variant.options)
    kind = "" if "rw" in varied else given.get("rw", "")
    size = "" if varied.intersection(SIZES) else _size(given)
    return kind, size


def _size(given: Mapping[str, str]) -> str:
    """The size of the blocks, with the name of its option unless that is ``bs``; empty where none is given."""
    if "bssplit" in given:
        return f"bssplit={given['bssplit']}"
    if "bsrange" in given:
        return f"bsrange={given['bsrange']}"
    return given.get("bs", "")
