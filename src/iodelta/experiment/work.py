"""The work of a cell in two words: the kind and the size of its I/Os, unless variants change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType

from iodelta.experiment.model import Option, Variant
from iodelta.jobfile import canonical

SIZES = ("bssplit", "bsrange", "bs")
"""fio's options of block sizes; the first that is given counts."""

_NONE: Mapping[str, str] = MappingProxyType({})


def kind_and_size(
    options: Iterable[Option],
    variants: Iterable[Variant],
    defaults: Mapping[str, str] = _NONE,
) -> tuple[str, str]:
    """``randread`` and ``4k``, or ``bsrange=4k-64k``; each empty where it is not known or differs between variants."""
    given = dict(defaults)
    given |= {canonical(name): value for name, value in options if value}
    of_variants = chain.from_iterable(variant.options for variant in variants)
    varied = {canonical(name) for name, _ in of_variants}
    kind = "" if "rw" in varied else given.get("rw", "")
    size = "" if varied.intersection(SIZES) else _size(given)
    return kind, size


def _size(given: Mapping[str, str]) -> str:
    """Return the size of the blocks, with the name of its option unless that is ``bs``; empty where none is given."""
    for option in ("bssplit", "bsrange"):
        if option in given:
            return f"{option}={given[option]}"
    return given.get("bs", "")
