"""A search meets a kernel that panics, in a real guest: it is skipped, named with the kernel's own words, and blamed
for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.bisect.counted import Counted
from iodelta.bisect.measure import Reading
from iodelta.cli.main import cli
from iodelta.errors import MeasureError
from iodelta.vm import boot, guest, kernels

ITEMS = ("note=before", "rdinit=/nothing-of-that-name", "note=after")
COUNTS = {ITEMS[0]: 7470.0, ITEMS[2]: 7700.0}
"""Instructions of the kernels that boot; their guests are looked at elsewhere."""


@pytest.fixture
def needs_guest() -> None:
    try:
        boot.available()
        guest.find_program("busybox")
        kernels.find("6.1")
    except MeasureError as error:
        pytest.skip(f"needs a guest: {error}")


@pytest.mark.night
@pytest.mark.usefixtures("needs_guest")
@pytest.mark.parametrize("wrong", ["rdinit=/nothing-of-that-name", "rdinit=/bin/false"])
def test_a_kernel_that_panics_at_boot_is_skipped_and_named_with_its_last_words(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, booted = Counted.read, list[str]()

    def healthy_ones_are_known(self: Counted, item: str, number: int, values: dict[str, str]) -> Reading:
        if item in COUNTS:
            return Reading(COUNTS[item], 0.0)
        booted.append(item)
        return read(self, item, number, values)

    monkeypatch.setattr(Counted, "read", healthy_ones_are_known)
    items = [word for item in (ITEMS[0], wrong, ITEMS[2]) for word in ("--item", item)]
    knobs = ("--set", "kernel=6.1", "--set", "kernel.cmdline={item}", "--machine", "vm", "--clock", "instructions")
    folder = str(tmp_path / "search")
    fio = ("--", "--rw=randread", "--bs=4k", "--ioengine=libaio", "--direct=1")
    done = CliRunner().invoke(cli, ["bisect", *items, *knobs, "--seed", "1", "--folder", folder, *fio])
    assert done.exit_code == 1, done.output
    assert booted == [wrong]
    text = " ".join(done.stdout.split())
    assert "One culprit of 2 candidates: note=after" in text
    assert f"or one of 1 before it that could not be tested: {wrong}" in text
    assert f"Skipped, never called bad {wrong}: the guest's kernel panicked: Kernel panic - not syncing: " in text
    [console] = Path(folder, "output").glob("*.console")
    assert b"Kernel panic" in console.read_bytes()
