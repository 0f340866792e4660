"""iodelta over SSH as its user meets it: measured, cut off, gone on with, refused; and the host as it was, always."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from acceptance.stand import GOOD, Stand, finished, kinds, queue, set_queue, shell
from processes import alive, paused
from waiting import until

from .host import COREUTILS, Host

pytestmark = [pytest.mark.root, pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("ssh")]


def pending(host: Host) -> list[str]:
    """What undo logs there are on the host."""
    return sorted(path.name for path in (host.state / "pending").glob("*"))


def measuring(place: str) -> list[int]:
    """Every fio that works on this device, or on a file below this directory."""
    mark = f"--filename={place}".encode()
    fio = [(pid, words) for pid, words in alive() if words[0].endswith(b"fio")]
    return [pid for pid, words in fio if any(word.startswith(mark) for word in words)]


def begun(stand: Stand, folder: str, trials: int) -> None:
    """Wait until so many trials are finished and the next one runs."""
    until(lambda: len(kinds(stand.place / folder, "finished")) >= trials)
    until(lambda: len(kinds(stand.place / folder, "started")) > trials)


def test_a_host_with_sh_coreutils_flock_and_fio_and_nothing_else_is_measured_like_this_one(
    stand: Stand, host: Host
) -> None:
    poor = host.programs("sh", "flock", "fio", *COREUTILS.split())
    host.serve(2202, f"SetEnv PATH={poor} IODELTA_STATE={host.state}")
    host.alias("poor", port=2202)
    node = stand.loop()
    set_queue(node, "scheduler", "kyber")
    slow = ("--variant", "new:block.scheduler=mq-deadline,cgroup.io_max=riops=100")
    variants = ("--variant", "old:block.scheduler=none", *slow, "--condition", "load:sleep 7654321")
    done = stand.run(*stand.quick(node, "--machine", "ssh:poor", *variants, blocks=1))
    assert done.code in GOOD, done
    assert "Machine   ssh:poor" in done.out
    assert json.loads((stand.place / "folder/environment.json").read_text())["host"]["machine"] == "ssh:poor"
    variant = {one["trial"]: one["variant"] for one in kinds(stand.place / "folder", "started")}
    rates = finished(stand.place / "folder")
    assert len(rates) >= 2
    assert all(rate < 250 for number, rate in rates.items() if variant[number] == "new"), (rates, variant)
    assert queue(node, "scheduler") == "kyber"
    assert not pending(host)
    until(lambda: not measuring(node))
    until(lambda: not [pid for pid, words in alive() if words[:2] == [b"sleep", b"7654321"]])


def test_a_pulled_cable_costs_the_trial_in_flight_and_nothing_more(stand: Stand, host: Host) -> None:
    node = stand.loop()
    set_queue(node, "scheduler", "kyber")
    with host.hurry():
        running = stand.start(*stand.quick(node, "--machine", "ssh:there", "--trial", "1500ms", blocks=2))
        begun(stand, "folder", 1)
    until(lambda: measuring(node))
    try:
        with paused(running.pid):  # else it may end before, on a machine that starts programs slowly
            host.cable("down")
        done = running.wait()
        until(lambda: not measuring(node))  # the host ends it by itself: nobody can tell it to
    finally:
        host.cable("up")
    assert done.code == 4, done
    assert "ssh:there: the connection is lost" in done.err
    assert "iodelta run folder` restores what was set there and continues" in done.err
    kept = finished(stand.place / "folder")
    assert kept
    assert pending(host)
    until(lambda: stand.run("knobs", "--machine", "ssh:there", "--target", node).code == 0)
    assert queue(node, "scheduler") == "kyber", "whoever comes to the host next puts it back first"
    on = stand.run("run", "folder")
    assert on.code in GOOD, on
    after = finished(stand.place / "folder")
    assert kept.items() <= after.items()
    assert len(after) >= 4
    assert queue(node, "scheduler") == "kyber"
    assert not pending(host)


def test_a_kill_of_iodelta_leaves_nothing_running_and_restore_puts_back_what_it_set(stand: Stand, host: Host) -> None:
    node = stand.loop()
    set_queue(node, "scheduler", "kyber")
    running = stand.start(*stand.quick(node, "--machine", "ssh:there", "--trial", "5s", blocks=2))
    begun(stand, "folder", 0)
    until(lambda: measuring(node))
    running.signal(signal.SIGKILL)
    running.wait()
    until(lambda: not measuring(node))
    assert queue(node, "scheduler") != "kyber"
    (script,) = (host.state / "pending").glob("*.sh")
    done = stand.run("restore", "--machine", "ssh:there")
    assert done.code == 0, done
    assert "block.scheduler" in done.out
    assert queue(node, "scheduler") == "kyber"
    assert not script.exists()


@pytest.mark.night
def test_the_end_of_the_session_there_is_no_end_of_the_experiment(stand: Stand, host: Host) -> None:
    point = stand.filesystem(64)
    node = shell("findmnt", "-n", "-o", "SOURCE", str(point)).strip()
    set_queue(node, "scheduler", "kyber")
    options = ("--machine", "ssh:there", "--size", "16m", "--trial", "1s")
    running = stand.start(*stand.quick(str(point), *options, blocks=2))
    begun(stand, "folder", 1)
    until(lambda: measuring(f"{point}/iodelta-scratch"))
    with paused(running.pid):  # else it may end before, on a machine that starts programs slowly
        (script,) = (host.state / "pending").glob("*.sh")
        host.cut()
    done = running.wait()
    assert done.code == 4, done
    assert "the connection is lost" in done.err
    until(lambda: not measuring(str(point)))
    assert queue(node, "scheduler") != "kyber"
    shell("sh", str(script))  # as somebody does who stands before the host, without iodelta
    assert queue(node, "scheduler") == "kyber"
    assert stand.run("run", "folder").code in GOOD
    assert len(finished(stand.place / "folder")) >= 4
    assert queue(node, "scheduler") == "kyber"
    assert not pending(host)
    assert not (point / "iodelta-scratch").exists()


def test_what_keeps_a_host_from_being_measured_is_said_and_nothing_is_left(stand: Stand, host: Host) -> None:
    node = stand.loop()
    set_queue(node, "scheduler", "kyber")
    (host.place / "known-other").write_text(f"{host.far} {(host.place / 'other.pub').read_text()}")
    full = host.place / "full"
    full.mkdir(exist_ok=True)
    shell("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full))
    stand.undo(lambda: shell("umount", "--lazy", str(full)))
    with contextlib.suppress(OSError):
        (full / "filling").write_bytes(bytes(1 << 20))
    bare = host.programs("sh", "flock", *COREUTILS.split())
    host.alias("another-key", f"UserKnownHostsFile {host.place}/known-other", "StrictHostKeyChecking yes")
    host.alias("unknown", "UserKnownHostsFile /dev/null", "StrictHostKeyChecking yes")
    host.alias("stranger", key="other")
    for port, name, option in (
        (2211, "full", f"SetEnv IODELTA_STATE={full}"),
        (2212, "bare", f"SetEnv PATH={bare}"),
        (2213, "nologin", "ForceCommand echo 'This account is currently not available.'; exit 1"),
    ):
        host.serve(port, option)
        host.alias(name, port=port)
    host.alias("closed", port=2299)
    cases = {
        "ssh:another-key": f"Host key verification failed.*ssh-keygen -f .{host.place}/known-other. -R .{host.far}",
        "ssh:unknown": "Host key verification failed.*`ssh -o StrictHostKeyChecking=ask unknown` once",
        "ssh:stranger": "Permission denied.*without asking",
        "ssh:full": "No space left on device",
        "ssh:bare": "fio not found.*apt install fio",
        "ssh:nologin": "starts no shell; it printed: This account is currently not available",
        "ssh:closed": "Connection refused.*`ssh closed true` must work",
    }

    def one(name: str) -> None:
        folder = name.removeprefix("ssh:")
        measured = stand.quick(node, "--machine", name, folder=folder)
        done = stand.run(*(measured if folder in ("full", "bare") else ("restore", "--machine", name)))
        assert done.code == 4, done
        assert re.search(cases[name], done.err, re.DOTALL), done
        assert not kinds(stand.place / folder, "started"), done

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, cases)) == [None] * len(cases)
    assert queue(node, "scheduler") == "kyber"
    assert not pending(host)


@pytest.mark.night
def test_a_talkative_login_is_listened_past_and_a_disk_in_use_there_is_refused(stand: Stand, host: Host) -> None:
    banner = host.place / "banner"
    banner.write_text("Authorised use only!\n" * 5)
    chatty = host.place / "chatty"
    chatty.write_text("#!/bin/sh\necho 'Welcome! You have mail.'; echo oops >&2; eval \"$SSH_ORIGINAL_COMMAND\"\n")
    chatty.chmod(0o755)
    host.serve(2221, f"Banner {banner}", f"ForceCommand {chatty}")
    host.alias("chatty", port=2221)
    point = stand.filesystem(32)
    node = shell("findmnt", "-n", "-o", "SOURCE", str(point)).strip()
    done = stand.run(
        *("run", "--machine", "ssh:chatty", "--target", node, "--destroy", node, "--variant", "a:cpus=0"),
        *("--variant", "b:cpus=0", "--folder", "folder", "--", "--rw=randwrite", "--bs=4k"),
    )
    assert done.code == 2, done
    assert f"is mounted on {point}" in done.err
    assert "Welcome" not in done.out + done.err
