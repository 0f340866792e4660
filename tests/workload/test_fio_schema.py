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

from iodelta.probe.native import native, quick
from iodelta.trial import BINS, bin_edges
from iodelta.workload import fio_schema
from iodelta.workload.fio_schema import RawDocument, document

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
    assert outcome(document, text) == outcome(plain, text)


def test_damaged_json_plus_is_read_alike() -> None:
    rng = random.Random(1)
    text = json_plus("3.33")
    at_bins = [found.start() for found in re.finditer(rb'"bins"', text)]
    different = 0
    for _ in range(3000):
        changed = bytearray(text)
        for _ in range(rng.randrange(1, 4)):
            at = min(rng.choice(at_bins) + rng.randrange(-40, 400), len(changed) - 1)
            width = rng.randrange(3)
            changed[at : at + width] = rng.choice(
                [b"", b'"', b"0", b"}", b"{", b":", b",", b"-", b"\\", b" ", b"1e3", b'"bins":']
            )
        damaged = bytes(changed)
        expected = outcome(plain, damaged)
        assert outcome(document, damaged) == expected, damaged
        different += not isinstance(expected, str)
    assert different > 300, "most of the damage was more than the format bears"


CENTRES = [str((low + high) // 2) for low, high in map(bin_edges, range(BINS))]
KEYS = st.sampled_from(CENTRES) | st.integers(-5, 2**70).map(str) | st.text(max_size=3)
COUNTS = st.integers(0, 10**6) | st.integers() | st.none() | st.floats(allow_nan=False) | st.text(max_size=2)


@given(
    st.lists(st.dictionaries(KEYS, COUNTS) | st.dictionaries(st.sampled_from(CENTRES), st.integers(0)) | COUNTS),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([(",", ":"), (", ", " : "), ("\t,\r\n", "\n:")]),
    st.booleans(),
)
def test_any_bins_are_read_alike(
    histograms: list[object], indent: int | None, separators: tuple[str, str], ordered: bool
) -> None:
    prios = [{"clat_ns": {"N": 1, "bins": bins}} for bins in histograms]
    whole = {"jobs": [{"read": {"prios": prios}, "job options": {"name": '"bins" : {"1" : 2}'}}]}
    text = json.dumps(whole, indent=indent, separators=separators, sort_keys=ordered).encode()
    assert outcome(document, text) == outcome(plain, text)


def test_a_core_of_another_version_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodelta.probe.native.native", lambda: object())
    quick.cache_clear()
    try:
        text = json_plus("3.33")
        assert outcome(document, text) == outcome(plain, text)
    finally:
        quick.cache_clear()
