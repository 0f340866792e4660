"""Bins are the same whether the native core reads them or Python does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_core import needs_native_core

from iodelta.probe.native import native, native_function
from iodelta.trial import BINS, bin_edges
from iodelta.workload import fio_schema
from iodelta.workload.fio_schema import RawDocument, decoded

SAME_RUN = Path(__file__).parents[1] / "data" / "same-run"

pytestmark = needs_native_core


def json_plus(version: str) -> bytes:
    found = re.search(r"^\{$.*?^\}$", (SAME_RUN / f"fio-{version}.out").read_text(), re.M | re.S)
    assert found is not None
    return found[0].encode()


def outcome(read: Callable[[bytes], RawDocument], text: bytes) -> object:
    """The document and its histograms, or the error."""
    try:
        raw = read(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return str(error)
    found: list[object] = []
    for part in fio_schema._latencies(raw):
        try:
            found.append((part.binned, part.histogram))
        except ValueError as error:
            found.append(str(error))
        part.bins = msgspec.Raw(b"")
    return found, msgspec.json.encode(raw)


def plain(text: bytes) -> RawDocument:
    return fio_schema._decoder.decode(text)


@pytest.mark.parametrize("version", ["3.1", "3.7", "3.16", "3.33", "3.42"])
def test_json_plus_of_every_version_is_taken_by_the_core(version: str) -> None:
    text = json_plus(version)
    _, taken = native().take_bins(text)
    assert len(taken) >= 3
    assert outcome(decoded, text) == outcome(plain, text)


def small(histograms: int) -> bytes:
    """A document of so many short histograms, in priorities, as fio spells it."""
    prios = [{"clat_ns": {"N": 3, "bins": {str(number): 1, "868": 2}}} for number in range(histograms)]
    document = {"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"total_ios": 1, "prios": prios}}]}
    return json.dumps(document, indent=2, separators=(",", " : ")).encode()


def test_damaged_json_plus_is_read_alike() -> None:
    rng = random.Random(1)
    parts = [b"", b'"', b"0", b"5", b"}", b"{", b":", b",", b"-", b"\\", b" ", b"1e3", b".5", b'"bins":', b"\\u0062"]
    for text, least in ((json_plus("3.33"), 300), (small(13), 100)):
        ends = [found.start() for found in re.finditer(rb'"bins"|\}', text)]
        taken = 0
        for _ in range(1500):
            changed = bytearray(text)
            for _ in range(rng.randrange(1, 4)):
                at = min(max(rng.choice(ends) + rng.randrange(-20, 60), 0), len(changed) - 1)
                changed[at : at + rng.randrange(3)] = rng.choice(parts)
            damaged = bytes(changed)
            assert outcome(decoded, damaged) == outcome(plain, damaged), damaged
            taken += native().take_bins(damaged) is not None
        assert taken > least, "most of the damage was more than the core takes"


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b'"1" : 1,', b'"1" : 1, '),
        (b'"868" : 2\n              }', b'"868" : 2\n              }0'),
        (b'"868" : 2\n              }', b'"868" : 2\n              }.5'),
        (b'"868" : 2\n              }', b'"868" : 2\n              }e1'),
        (b'"jobname" : "a"', b'"iodepth_level" : {"bins" : {"1" : 1}}'),
        (b'"jobname" : "a"', b'"read" : {"lat_ns" : {"N" : 1, "b\\u0069ns" : [0]}}'),
        (b'"jobname" : "a"', b'"read" : {"lat_ns" : {"N" : 1, "bins" : [0]}}'),
        (b'"jobname" : "a"', b'"job options" : {"bins" : {"1" : 1}}'),
        (b'"jobname" : "a"', b'"jobname" : {"bins" : {"1" : 1}}'),
    ],
)
def test_what_the_core_puts_in_the_place_of_bins_is_never_taken_for_something_else(
    written: bytes, instead: bytes
) -> None:
    text = small(13)
    assert written in text
    changed = text.replace(written, instead, 1)
    assert outcome(decoded, changed) == outcome(plain, changed)


CENTRES = [str((low + high) // 2) for low, high in map(bin_edges, range(BINS))]
KEYS = st.sampled_from(CENTRES) | st.integers(-5, 2**70).map(str) | st.text(max_size=3)
COUNTS = st.integers(0, 10**6) | st.integers() | st.none() | st.floats(allow_nan=False) | st.text(max_size=2)
SOUND = st.lists(st.tuples(st.integers(0, BINS - 1), st.integers(0, 10**18 - 1)), unique_by=lambda one: one[0]).map(
    lambda bins: {CENTRES[index]: count for index, count in sorted(bins)}
)


def spelt(histograms: list[object], indent: int | None, separators: tuple[str, str]) -> bytes:
    prios = [{"clat_ns": {"N": 1, "bins": bins}} for bins in histograms]
    whole = {"jobs": [{"read": {"prios": prios}, "job options": {"name": '"bins" : {"1" : 2}'}}]}
    return json.dumps(whole, indent=indent, separators=separators).encode()


SPELLINGS = (st.sampled_from([None, 0, 2]), st.sampled_from([(",", ":"), (", ", " : "), ("\t,\r\n", "\n:")]))


@given(st.lists(SOUND | st.dictionaries(KEYS, COUNTS) | COUNTS), *SPELLINGS)
def test_any_bins_are_read_alike(histograms: list[object], indent: int | None, separators: tuple[str, str]) -> None:
    text = spelt(histograms, indent, separators)
    assert outcome(decoded, text) == outcome(plain, text)


def test_a_core_of_another_version_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodelta.probe.native.native", lambda: object())
    native_function.cache_clear()
    try:
        assert native_function("take_bins") is None
        text = json_plus("3.33")
        assert outcome(decoded, text) == outcome(plain, text)
    finally:
        native_function.cache_clear()
