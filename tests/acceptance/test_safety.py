"""No write without its name, no measurement beside another, nothing dropped in silence: as a user meets it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from iodelta.lab.turns import alone
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .stand import GOOD, Done, Stand, shell

pytestmark = [pytest.mark.root, pytest.mark.beside]

READ = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--rate_iops=500")
WRITE = ("--rw=randwrite", *READ[1:])
TWO = ("--variant", "a:fio.nice=0", "--variant", "b:fio.nice=1")


def short(target: str | Path, folder: str, *more: str, fio: tuple[str, ...] = READ, blocks: int = 3) -> tuple[str, ...]:
    words = ("--folder", folder, "--trial", "200ms", "--ramp", "0", "--blocks", str(blocks), "--seed", "1")
    return ("run", "--target", str(target), *words, *TWO, *more, "--", *fio)


def said(done: Done) -> str:
    """All of it on one line, without the plan's indents."""
    return " ".join((done.out + done.err).split())


def digest(path: str | Path) -> str:
    return shell("sha256sum", "--", str(path)).split()[0]


def test_records_of_an_application_survive_every_run_that_does_not_name_their_device(stand: Stand) -> None:
    node, other = stand.loop(), stand.loop()
    with open(node, "r+b") as device:
        device.seek(20 << 20)
        device.write(b"a record without any signature\n" * 60000)
        device.flush()
        os.fsync(device.fileno())
    before = digest(node)
    plan = stand.run(*short(node, "plan", "--dry-run", fio=WRITE))
    assert plan.code == 2, plan
    assert f"Holds not empty: text; only --destroy {node} lets it be overwritten" in said(plan)
    permitted = stand.run(*short(node, "plan", "--dry-run", "--destroy", node, fio=WRITE))
    assert permitted.code == 0, permitted
    assert f"Writes YES: {node} will be overwritten" in said(permitted)
    for more in ((), ("--destroy", other)):
        done = stand.run(*short(node, "folder", *more, fio=WRITE))
        assert done.code == 2, done
        assert "was not made by iodelta (not empty: text)" in done.err
        assert f"say --destroy {node}" in said(done)
    assert digest(node) == before
    assert not (stand.place / "folder").exists()
    assert stand.run(*short(node, "folder", "--destroy", node, fio=WRITE)).code in GOOD
    assert digest(node) != before


def test_a_file_whose_name_fio_cuts_does_not_lead_it_to_another(stand: Stand) -> None:
    (stand.place / "db.img").write_bytes(b"precious" * 4096)
    (stand.place / "db.img ").write_bytes(bytes(16 << 10))
    (stand.place / "harmless").symlink_to("db.img ")
    path = str(stand.place / "harmless")
    before = digest(stand.place / "db.img")
    done = stand.run(*short(path, "folder", "--size", "16k", "--destroy", path, fio=WRITE))
    assert done.code == 2, done
    assert "fio would open another file for this name" in done.err
    assert digest(stand.place / "db.img") == before


def test_a_read_only_device_is_refused_in_the_plan(stand: Stand) -> None:
    node = stand.loop()
    shell("blockdev", "--setro", node)
    stand.undo(lambda: shell("blockdev", "--setrw", node))
    for more in (("--dry-run",), ("--destroy", node)):
        done = stand.run(*short(node, "folder", *more, fio=WRITE))
        assert done.code == 2, done
        assert f"{node}: is read-only" in done.err
    assert not (stand.place / "folder").exists()
    assert stand.run(*short(node, "folder")).code in GOOD, "reads are allowed"


def test_a_directory_that_cannot_be_written_is_refused_in_the_plan(stand: Stand) -> None:
    place = stand.filesystem(16)
    shell("mount", "-o", "remount,ro", str(place))
    done = stand.run(*short(place, "folder", "--size", "1m"))
    assert done.code == 2, done
    assert "mounted read-only" in done.err
    words = ("--target", str(place), "--size", "1m", "--budget", "5m", "--folder", "calibration")
    done = stand.run("calibrate", *words)
    assert done.code == 2, done
    assert "may not be written by you" in done.err


SEARCH = (
    *("--item", "99", "--item", "100", "--item", "101", "--set", "sysctl.vm.vfs_cache_pressure={item}"),
    *("--runs", "4"),
)


@pytest.mark.night
def test_no_command_measures_a_device_that_another_run_has(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(stand.state))
    node = stand.loop()
    assert stand.run(*short(node, "measured")).code in GOOD
    assert stand.run("pack", "measured", "-o", "one.iodelta.tar.zst").code == 0
    target = ("--target", node)
    commands = (
        short(node, "new"),
        ("calibrate", *target, "--budget", "5s", "--folder", "new"),
        ("prepare", node, "--destroy", node, "--folder", "new"),
        ("bisect", *SEARCH, *target, "--trial", "200ms", "--ramp", "0", "--folder", "new", "--", *READ),
        ("scenario", "run", "queue-depth-sweep", *target, "--folder", "new"),
        ("reproduce", "one.iodelta.tar.zst", *target, "--yes", "--folder", "new"),
    )
    with alone(LocalMachine(), [resolve(LocalMachine(), node)], Path("/runs/first")):
        for words in commands:
            done = stand.run(*words)
            assert done.code == 2, done
            assert "/runs/first: this run is measuring on" in done.err, done
            assert f"process {os.getpid()}" in done.err
            shutil.rmtree(stand.place / "new", ignore_errors=True)
        waiting = stand.start(*commands[3][: -len(READ) - 1], "--wait", "--", *READ)
        waiting.says("waiting: /runs/first")
    assert waiting.wait().code in GOOD
