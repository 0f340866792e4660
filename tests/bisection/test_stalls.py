"""A search compares typical runs: which items stalled now and then is said all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iodelta.bisect.model import Answer
from iodelta.bisect.store import Store

from .toy import bisect

BENCH = """
import os, pathlib, sys
place, item = pathlib.Path(sys.argv[1]), os.environ["IODELTA_ITEM"]
count = place / f"runs-{item}"
made = int(count.read_text()) if count.exists() else 0
count.write_text(str(made + 1))
speed = (1000 if item < "d" else 900) * (1 + ((7 * made + ord(item)) % 11 - 5) / 1000)
print(speed * (0.1 if item == "c" and made == 2 else 1))
"""
"""Noise of half a percent. The third run of c, the last good item, loses 90 %."""


def test_a_good_item_that_stalled_once_is_named_with_its_runs(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(BENCH)
    items = [word for item in "abcdef" for word in ("--item", item)]
    measure = f"python3 -I -S {tmp_path}/bench.py {tmp_path}"
    how = ("--better", "higher", "--margin", "5%", "--seed", "1", "--folder", tmp_path / "out")
    done = bisect(*items, "--measure", measure, *how)
    assert done.code == 1
    assert "One culprit of 5 candidates: d" in done.out, "by typical runs c is good"
    runs = int((tmp_path / "runs-c").read_text())
    assert f"c: 1 of {runs} runs far worse than its others." in done.out
    assert "an item that stalls only now and then counts as good" in " ".join(done.out.split())
    (stalled,) = bisect(tmp_path / "out", "--show", "--format", "json").json["stalled"]
    assert (stalled["item"], stalled["runs"], stalled["stalled"]) == ("c", runs, 1)


@pytest.mark.parametrize("seed", range(5))
def test_normal_noise_a_fast_run_and_a_small_slip_are_no_stalls(seed: int) -> None:
    """Log-ratios, positive = worse."""
    rng = np.random.default_rng(seed)
    store = Store()
    for run in range(60):
        more = {20: -2.0, 40: 0.04}.get(run, 0.0)
        store.add(f"item {run % 3}", Answer(more + 0.004 * float(rng.standard_normal())))
    assert store.stalled() == {}
    store.add("item 1", Answer(0.3))
    assert store.stalled() == {"item 1": 1}
