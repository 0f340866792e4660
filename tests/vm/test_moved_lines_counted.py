"""Moved cache lines with real guests: programs whose moves are known, disks that two CPUs share, a qemu that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.errors import MeasureError
from iodelta.experiment import parse
from iodelta.lab.folder import Folder
from iodelta.path import functions, run, sharing_job
from iodelta.path.functions import compiled
from iodelta.path.moved import phases
from iodelta.path.plan import make_plan
from iodelta.path.sharing import sharing
from iodelta.path.sharing_build import broken, build
from iodelta.vm import boot, guest, kernels

ROUNDS = 500

KNOWN = "".join(f"alternate 90{n} {ROUNDS} 0 {what}\n" for n, what in enumerate(("false", "own", "word")))
"""Phases 900, 901 and 902, before any cell."""


@pytest.fixture(scope="module")
def kernel() -> kernels.Kernel:
    """One that boots with two CPUs: 6.1 hangs."""
    try:
        boot.available()
        guest.find_program("busybox")
        return kernels.find("6.12")
    except MeasureError as error:
        pytest.skip(f"needs a guest: {error}")


@pytest.mark.night
def test_lines_that_move_are_counted_as_the_programs_and_disks_of_one_boot_move_them(
    kernel: kernels.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sharing_job._RUN
    assert script.count("for cell in /job/cells/*") == 1
    monkeypatch.setattr(sharing_job, "_RUN", script.replace("for cell in /job", f"{KNOWN}for cell in /job"))
    text = f"""
        machine = "vm"
        clock = "instructions"
        anatomy = "sharing"
        [workload]
        rw = "randread"
        bs = "4k"
        direct = 1
        number_ios = 200
        [condition.one-disk]
        [condition.two-disks]
        "vm.devices" = "2"
        [condition.without-wbt]
        "block.wbt_lat_usec" = "0"
        [condition.one-tag]
        "null_blk.hw_queue_depth" = "1"
        "block.wbt_lat_usec" = "0"
        [condition.one-tag-each]
        "null_blk.hw_queue_depth" = "1"
        "null_blk.submit_queues" = "2"
        "block.wbt_lat_usec" = "0"
        [variant.a]
        kernel = "{kernel.release}"
        [variant.b]
        kernel = "{kernel.release}"
    """
    made = make_plan(parse(text))
    folder = Folder.begin(tmp_path / "folder", text, made)
    place = tmp_path / "guest"
    place.mkdir()
    for _ in range(run.ATTEMPTS):
        with run.started(made, made.boots[0], place) as running:
            ended = running.wait(0.5)
        if not run.mishap(made, ended, running.output):
            break
    assert ended.problem == ""
    counts = (place / "counts").read_bytes()
    with folder.writing():
        folder.write_raw(0, {"out": running.output, "console": b"", "counts": counts})

    false, own, word = (phases(counts, "boot 0")[number] for number in (900, 901, 902))
    (line,) = [line for line in false.lines if line.moved > ROUNDS]
    assert (line.moved - line.shared) / ROUNDS == pytest.approx(2, abs=0.002)
    assert sum(line.moved for line in own.lines if line.address < 1 << 47) == 0
    (line,) = [line for line in word.lines if line.moved > ROUNDS]
    assert (line.moved - line.shared) / ROUNDS == pytest.approx(0, abs=0.002)

    cells = {one.cell.partition(":")[0]: one for one in sharing(folder, made, [made.boots[0]]).cells}
    medians = {name: cell.median for name, cell in cells.items()}
    one_tag = medians.pop("one-tag")
    assert medians == {"one-disk": 1, "two-disks": 0, "without-wbt": 0, "one-tag-each": 0}
    assert one_tag >= 3
    assert {cell.tags for cell in cells.values()} == {"apart"}
    assert sum(moved.name == "request" for moved in cells["one-tag"].lines) >= 3, "pages of requests have a name"
    (moved,) = [moved for moved in cells["one-disk"].lines if moved.ios > 0.9]
    assert (moved.name, moved.born) == ("rq_wb", "wbt_init")
    assert {"wbt_issue", "wbt_done"} <= set(moved.writers)


def test_a_plugin_that_qemu_shows_the_wrong_cpu_is_refused(tmp_path: Path) -> None:
    """As qemu 10.0 does under thread=single: its translation keeps the number of the CPU that it was made for."""
    sound = Path(build().plugin)
    firmware = sound.with_name("selftest.bin")
    assert broken(sound, firmware) == ""
    source = (functions.SOURCES / "moved.c").read_text()
    line = "    if (!armed || cpu >= CPUS)\n"
    assert source.count(line) == 1
    (tmp_path / "qemu.h").write_text((functions.SOURCES / "qemu.h").read_text())
    (tmp_path / "moved.c").write_text(source.replace(line, f"    cpu = 0;\n{line}"))
    api = sound.stem.rpartition("-")[2]
    compiled(tmp_path / "moved.so", tmp_path / "moved.c", "-shared", "-fPIC", f"-DAPI={api}")
    assert "not one line that moves in each round" in broken(tmp_path / "moved.so", firmware)
