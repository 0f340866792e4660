"""Whatever goes wrong: one clear message, the right exit code, finished trials kept, every setting put back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import LIMIT, until
from workshop import attach, no_other_takes_loops

from .stand import GOOD, IODELTA, Done, Gate, Stand, finished, kinds, queue, set_queue, shell, side_by_side

pytestmark = [pytest.mark.root, pytest.mark.beside]

ORIGINAL = "kyber"


@pytest.fixture
def node(stand: Stand) -> str:
    """A loop device whose scheduler is none of those that the experiments set."""
    made = stand.loop()
    set_queue(made, "scheduler", ORIGINAL)
    return made


def nothing_left(stand: Stand, node: str) -> None:
    """Every setting is back, nothing runs on, and nothing is left to put back."""
    assert queue(node, "scheduler") == ORIGINAL
    assert stand.pending() == []
    assert stand.processes() == []


def says(done: Done, code: int, *texts: str) -> None:
    """The exit code, and one message with what happened, where and what to do."""
    assert done.code == code, done
    for text in texts:
        assert text in done.err, done
    assert done.err.count("iodelta: ") == 1, done


def fill(place: Path, leave_kib: int = 0) -> Path:
    """Take what is free of a filesystem, but for a little."""
    path = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        os.posix_fallocate(file.fileno(), 0, max(4096, free - leave_kib * 1024))
        while not leave_kib:  # somebody else may be writing, too
            file.write(bytes(4096))
    return path


# ------------------------------------------------------------------------------------------------------ a full disk


def test_a_disk_that_fills_up_in_the_middle_keeps_every_finished_trial_and_goes_on_when_there_is_room(
    stand: Stand, node: str
) -> None:
    place, gate = stand.filesystem(16), stand.gate(3)
    running = stand.start(*stand.quick(node, blocks=4), cwd=place, env=gate.env)
    gate.wait()
    filler = fill(place)
    gate.open()
    done = running.wait()
    says(done, 4, "No space left on device", "free some space, then `iodelta run")
    nothing_left(stand, node)
    kept = finished(place / "folder")
    assert len(kept) >= 2
    filler.unlink()
    assert stand.run("run", "folder", cwd=place).code in GOOD
    assert kept.items() <= finished(place / "folder").items()
    nothing_left(stand, node)


# ---------------------------------------------------------------------------------------------------------- fio


@pytest.fixture
def tools(stand: Stand) -> Path:
    """Every program of this machine in one directory, to take some away."""
    place = stand.place / "tools"
    place.mkdir()
    for directory in ("/usr/sbin", "/usr/bin"):
        for path in Path(directory).iterdir():
            link = place / path.name
            link.unlink(missing_ok=True)
            link.symlink_to(path)
    return place


def test_a_fio_that_goes_missing_in_the_middle_ends_the_run_and_it_goes_on_when_it_is_back(
    stand: Stand, node: str, tools: Path
) -> None:
    gate = Gate(tools, 3)
    running = stand.start(*stand.quick(node, blocks=4), env={"PATH": str(tools)})
    gate.wait()
    (tools / "fio").unlink()
    gate.open()
    says(running.wait(), 4, "cannot start fio")
    nothing_left(stand, node)
    kept = finished(stand.place / "folder")
    assert stand.run("run", "folder").code in GOOD
    assert kept.items() <= finished(stand.place / "folder").items()


def test_a_fio_that_is_killed_has_its_whole_block_made_again_and_is_counted(stand: Stand, node: str) -> None:
    gate = stand.gate(2, then="killed")
    done = stand.run(*stand.quick(node), env=gate.env)
    assert done.code in GOOD, done
    folder = stand.place / "folder"
    (repeat,) = (event for event in kinds(folder, "repeated") if event["why"] == "spoilt")
    assert "SIGKILL" in repeat["reason"]
    attempts = [event["attempt"] for event in kinds(folder, "started") if event["block"] == repeat["block"]]
    assert attempts.count(1) == 2, "both variants again, in a new attempt"
    assert "the block was repeated" in " ".join(stand.run("report", "folder", "--verbose").out.split())
    nothing_left(stand, node)


# ------------------------------------------------------------------------------------------------------ the target


def test_a_device_that_is_taken_away_ends_the_run_and_another_in_its_place_is_never_measured_or_set(
    stand: Stand, node: str
) -> None:
    gate = stand.gate(3)
    running = stand.start(*stand.quick(node, blocks=4), env=gate.env)
    gate.wait()
    other = stand.place / "other.img"
    other.write_bytes(bytes(8 << 20))
    with no_other_takes_loops():
        shell("losetup", "--detach", node)
        gate.open()
        done = running.wait()
        assert done.code == 4, done
        assert node in done.err
        assert stand.pending() == []
        attach(node, other)
    stand.undo(lambda: shell("losetup", "--detach", node))
    set_queue(node, "scheduler", "bfq")
    done = stand.run("run", "folder")
    says(done, 2, "not the device or file that the earlier trials", "begin a new experiment")
    assert queue(node, "scheduler") == "bfq"
    assert len(finished(stand.place / "folder")) >= 2


def test_a_file_that_is_removed_ends_the_run_and_is_not_made_anew_by_fio(stand: Stand) -> None:
    path = stand.place / "target.dat"
    path.write_bytes(os.urandom(16 << 20))
    variants = ("--variant", "a:fio.nice=0", "--variant", "b:fio.nice=1")
    gate = stand.gate(3)
    running = stand.start(*stand.quick(str(path), *variants, blocks=4), env=gate.env)
    gate.wait()
    path.unlink()
    gate.open()
    says(running.wait(), 4, "target has vanished", str(path), "iodelta run")
    assert not path.exists()
    assert len(finished(stand.place / "folder")) >= 2


# ------------------------------------------------------------------------------------------------------- the knobs


@pytest.mark.night
def test_where_sysfs_is_read_only_no_knob_is_promised(stand: Stand, node: str) -> None:
    command = 'mount -o remount,ro,bind /sys && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", command, "-", IODELTA, *stand.quick(node)]
    found = subprocess.run(words, env=stand.env, cwd=stand.place, capture_output=True, text=True, check=False)
    done = Done(words, found.returncode, found.stdout, found.stderr)
    says(done, 2, "read-only filesystem", "block.scheduler")
    nothing_left(stand, node)


def test_without_a_place_for_its_state_nothing_is_changed(stand: Stand, node: str) -> None:
    done = stand.run(*stand.quick(node), env={"IODELTA_STATE": "/proc/iodelta"})
    says(done, 4, "cannot lock the device", "/proc/iodelta", "IODELTA_STATE")
    nothing_left(stand, node)


# -------------------------------------------------------------------------------------------------------- the user


def test_a_user_who_stops_it_gets_the_account_so_far_and_the_machine_as_it_was(tmp_path: Path) -> None:
    def stop(stand: Stand, signals: list[signal.Signals]) -> None:
        node, folder = stand.loop(), stand.place / "folder"
        set_queue(node, "scheduler", ORIGINAL)
        running = stand.start(*stand.quick(node, blocks=40))
        until(lambda: len(kinds(folder, "finished")) >= 3)
        for number in signals:
            running.signal(number, group=True)
        done = running.wait()
        assert done.code in (3, 4), done
        assert kinds(folder, "ended")[-1]["reason"] == "interrupted"
        nothing_left(stand, node)
        account = stand.run("report", "folder").out
        assert "Interrupted" in account
        assert done.out.endswith(account), "the same account, after the plan"
        kept = finished(folder)
        assert len(kept) >= 3
        again = stand.start("run", "folder")
        until(lambda: len(kinds(folder, "finished")) > len(kept))
        again.signal(signal.SIGINT)
        assert again.wait().code in (*GOOD, 4)
        assert kept.items() <= finished(folder).items()
        nothing_left(stand, node)

    ctrl_c = signal.SIGINT
    side_by_side(tmp_path, stop, [[ctrl_c], [ctrl_c] * 2, [ctrl_c] * 9, [signal.SIGTERM], [signal.SIGHUP]])


@pytest.mark.night
def test_nohup_means_that_a_hangup_does_not_stop_it(stand: Stand, node: str) -> None:
    words = ["nohup", IODELTA, *stand.quick(node)]
    with subprocess.Popen(
        words, env=stand.env, cwd=stand.place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        until(lambda: kinds(stand.place / "folder", "finished"))
        os.kill(running.pid, signal.SIGHUP)
        out, err = running.communicate(timeout=LIMIT)
    assert Done(words, running.returncode, out, err).code in GOOD
    assert kinds(stand.place / "folder", "ended")[-1]["reason"] == "complete"


@pytest.mark.night
def test_whoever_stops_reading_does_not_stop_the_measurement(stand: Stand, node: str) -> None:
    """``iodelta run ... 2>&1 | head``, or a terminal that is closed."""
    words = [IODELTA, *stand.quick(node)]
    with subprocess.Popen(
        words, env=stand.env, cwd=stand.place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        assert running.stdout is not None
        while not running.stdout.readline().startswith(b"measuring"):
            pass
        running.stdout.close()
        running.wait(LIMIT)
    assert kinds(stand.place / "folder", "ended")[-1]["reason"] == "complete"
    nothing_left(stand, node)


# ------------------------------------------------------------------------------------------------------ the folder


@pytest.mark.night
def test_a_folder_that_became_read_only_can_be_read_and_says_why_it_cannot_go_on(stand: Stand, node: str) -> None:
    place = stand.filesystem(16)
    running = stand.start(*stand.quick(node, blocks=20), cwd=place)
    until(lambda: len(kinds(place / "folder", "finished")) >= 2)
    running.signal(signal.SIGINT)
    running.wait()
    shell("mount", "-o", "remount,ro", str(place))
    says(stand.run("run", "folder", cwd=place), 4, "Read-only file system")
    assert stand.run("report", "folder", cwd=place).code in (*GOOD, 4)
    nothing_left(stand, node)
