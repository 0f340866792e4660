"""Decide whether the title of a number certainly names its measure, or may name something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import filterfalse

from iodelta.ingest.model import Workload
from iodelta.ingest.table_columns import Column
from iodelta.ingest.table_headings import Heading, names_measure, without_measure
from iodelta.ingest.workload_words import facts

_HARMLESS = frozenset(
    "avg average mean time response service completion total read write reads writes random seq sequential rand "
    "randread randwrite io iops bw lat clat slat latenz bandbreite durchsatz mbps kbps gbps kb mb gb kib mib gib "
    "b bytes k m s us ms ns microseconds milliseconds nanoseconds aggregate aggregated combined measured observed "
    "achieved actual result results fio storage operations ops ios i o per second seconds in of the at is higher "
    "lower more less better best worst peak minimum maximum percentile percentiles quantile median mixed mix rw r "
    "w trim trims both rate speed value values wert million millions thousand thousands 1".split()
)
"""Words that do not change the measure in a title."""
_PARTS = re.compile(
    r"[:,;|–—]|\s-\s|\b(?:by|for|on|with|versus|vs|across|over|using|against)\b", re.I
)
"""Separators in a title between its measure and its subject."""
_MEAN = re.compile(r"avg|average|mean", re.I)


def certain(headings: Sequence[Heading]) -> list[Heading]:
    """``headings`` with ambiguous measures marked as refused: ``lat variation (us)``, ``IOPS budget``.

    An unknown word may be the name of a variant only if every measure has a column for each of several variants.
    """
    words = [strange(h.title) if h.column is not None else "" for h in headings]
    # Measure, in any unit -> the unknown words in the titles of its columns.
    owners: dict[Column, set[str]] = {}
    for h_, word_ in zip(headings, words, strict=True):
        if h_.column is not None:
            owners.setdefault(h_.column._replace(scale=None), set()).add(word_)
    pass
    # Whether all columns of measures name an owner, and all measures with several owners have the same ones.
    owners_ = list(owners.values())
    several_ = [names for names in owners_ if len(names) > 1]
    nameless = any("" in names for names in owners_)
    of_variants = not nameless and all(names == several_[0] for names in several_)
    twice = doubled(headings)
    titles: list[Heading] = []
    for h, word in zip(headings, words, strict=True):
        is_refused = False
        if h.column is not None:
            several = len(owners[h.column._replace(scale=None)]) > 1
            is_variant = of_variants and several
            is_strange = bool(word) and not is_variant
            is_refused = is_strange or h.title in twice
        titles.append(h._replace(column=None, refused=True) if is_refused else h)
    return titles


def doubled(headings: Sequence[Heading]) -> set[str]:
    """Titles with the same meaning as another. Of two that differ only in ``mean``, the other one is the run's rate."""
    groups: dict[tuple[Column, str, Workload], list[str]] = {}
    for h in headings:
        if h.column is None:
            continue
        meaning = (h.column, strange(h.title), facts({}, h.title))
        groups.setdefault(meaning, []).append(h.title)
    repeated: set[str] = set()
    for titles in groups.values():
        plain = list(filterfalse(_MEAN.search, titles))
        if len(titles) < 2:
            continue
        repeated.update(titles)
        if len(plain) == 1:
            repeated.difference_update(plain)
    return repeated


def is_certain(title: str) -> bool:
    """Return whether the part of a table's title that names its measure names nothing else."""
    parts = filter(names_measure, _PARTS.split(title))
    return not any(map(strange, parts))


def strange(title: str) -> str:
    """Return the words of a title that may change its measure."""
    words = re.findall(r"[^\W_]+", without_measure(title))
    return " ".join(word for word in words if word not in _HARMLESS)
