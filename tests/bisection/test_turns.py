"""A search has its disk to itself from its first commit to its last, also while it builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from .toy import bisect

PUT = """\
for file in "$IODELTA_STATE"/devices/iodelta-*; do
    if flock -n "$file" true; then echo free; else echo held; fi
done >>@LOG@
"""


@pytest.mark.fio
def test_nobody_else_measures_on_the_disk_between_two_visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "put.sh").write_text(PUT.replace("@LOG@", str(tmp_path / "seen")))
    put = ("--put", f"sh {tmp_path / 'put.sh'}", "--trial", "200ms", "--ramp", "0s", "--size", "1m")
    items = ("--item", "one", "--item", "two", "--runs", "4", "--folder", "search", "--seed", "1")
    done = bisect(*items, *put, "--", "--rw=randread", "--bs=4k", "--ioengine=psync")
    assert done.error is None
    seen = (tmp_path / "seen").read_text().split()
    assert len(seen) >= 4
    assert set(seen) == {"held"}
