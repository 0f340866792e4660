"""The plugin of an anatomy is tested with the qemu that is here, on a firmware whose calls and accesses are known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iodelta.errors import MeasureError
from iodelta.path import treetest
from iodelta.path.functions import PLUGIN, SOURCES, build, compiled
from iodelta.path.sharing_build import FIRMWARE
from iodelta.vm import boot


@pytest.fixture
def firmware(tmp_path: Path) -> Path:
    try:
        boot.available()
    except MeasureError as error:
        pytest.skip(f"needs qemu: {error}")
    made = tmp_path / "firmware"
    compiled(made, SOURCES / "treetest.S", *FIRMWARE)
    return made


def test_this_qemu_shows_the_plugin_what_a_firmware_calls_and_touches(firmware: Path) -> None:
    assert treetest.broken(Path(build().plugin), firmware) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        # What is registered for reads alone, qemu 7.2 forgets.
        (("READS_AND_WRITES = 3", "READS_AND_WRITES = 1"), " where "),
        (("return FENCE;", "return CLASSES;"), "0 fence where 1 are"),
    ],
    ids=["accesses", "classes"],
)
def test_a_plugin_that_misses_something_is_refused(
    firmware: Path, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    for name in (*PLUGIN, "plugin.h", "qemu.h"):
        (tmp_path / name).write_text((SOURCES / name).read_text().replace(*change))
    api = Path(build().plugin).stem.rpartition("-")[2]
    made, sources = tmp_path / "plugin.so", [str(tmp_path / name) for name in PLUGIN]
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-DAPI={api}", "-o", made, *sources], check=True)
    assert why in treetest.broken(made, firmware)


def test_an_anatomy_is_not_planned_with_such_a_plugin(firmware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(treetest, "broken", lambda *_: "3 loads where 4 are")
    treetest.check_anatomy.cache_clear()
    with pytest.raises(MeasureError, match="no anatomy: the self-test of the plugin failed: 3 loads where 4 are"):
        treetest.check_anatomy()


TREE = """\
n 4 2 f002c f0080
n 5 4 f0080 f2000
n 6 5 f2011 f2040
r 1 101 0
r 2 201 0
"""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("r 2 201 0", "r 2 201 7"), "201 returns, 7 of them of no call, where 201 are"),
        (("n 6 5 f2011", "n 6 4 f2011"), "not which function calls which"),
        (("n 6 5 f2011 f2040\n", ""), "not which function calls which"),
    ],
)
def test_a_tree_that_is_not_the_firmwares_is_refused(
    change: tuple[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(treetest, "emulated", lambda *_: ([TREE.replace(*change), "1 0"], ""))
    assert treetest.broken(Path(), Path()) == why
