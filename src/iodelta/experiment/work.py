"""What a cell does, in two words: the kind of its I/Os and their size, as far as no variant changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
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
    given = {**defaults, **{canonical(name): value for name, value in options if value}}
    differing = chain.from_iterable(variant.options for variant in variants)
    varied = {canonical(name) for name, _ in differing}
    kind = "" if "rw" in varied else given.get("rw", "")
    name = next((name for name in SIZES if name in given), "")
    if varied.intersection(SIZES) or not name:
        return kind, ""
    return kind, given[name] if name == "bs" else f"{name}={given[name]}"
