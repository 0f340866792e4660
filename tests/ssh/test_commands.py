"""A command as the workload over SSH: it runs on the host, and what it printed, used and left behind is from there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from acceptance.stand import GOOD, Stand, kinds
from processes import alive
from waiting import until

from iodelta.lab.folder import Folder
from iodelta.lab.record import RECORD, Record
from iodelta.workload.model import OUTPUTS

from .host import COREUTILS, Host

pytestmark = [pytest.mark.root, pytest.mark.beside, pytest.mark.xdist_group("ssh")]

MIB = 96

BENCH = f"""
import os, subprocess, sys, time
mode, mark, _arm = sys.argv[1:]
if mode == "hangs":
    subprocess.Popen(["sleep", mark])
    time.sleep(3600)
if mode == "survives":
    subprocess.Popen(["sleep", mark], start_new_session=True)
held = bytearray({MIB} << 20)
print("rate 1000 in", os.readlink("/proc/self/ns/net"))
"""

FILE = """
machine = "ssh:there"
margin = "10%"
[workload]
command = ["/usr/bin/python3", "-I", "-S", "{here}/bench.py", "{mode}", "{mark}", "{arm}"]
mark = "MARK"
arm = "one"
ONLY
MODES
[metric.rate]
pattern = 'rate (\\d+)'
unit = "1/s"
better = "higher"
[variant.one]
[variant.other]
"workload.arm" = "other"
[design]
metrics = ["rate", "memory"]
trial = "200ms"
blocks = 1
carry-over = "tested"
"""


def _asked(place: Path, mark: str, *modes: str, limit: str = "10m", only: str = "only_reads = true") -> str:
    """The file, with a cell for each of ``modes``; ``limit`` is for the one that hangs."""
    limits = {"hangs": f"timeout = '{limit}'"}
    tables = "\n".join(f"[workload.{mode}]\nmode = '{mode}'\n{limits.get(mode, '')}" for mode in modes)
    (place / "bench.py").write_text(BENCH)
    (place / "ask.toml").write_text(FILE.replace("MARK", mark).replace("MODES", tables).replace("ONLY", only))
    return "ask.toml"


def _alive(mark: str) -> list[str]:
    """Processes with this word among theirs."""
    return [str(pid) for pid, words in alive() if mark.encode() in words]


def _net(host: Host) -> str:
    """The network namespace of the host, by which it can be told from this machine."""
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{host.name}", "readlink", "/proc/self/ns/net"], capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def _first(path: Path, cell: str) -> tuple[str, Record]:
    """What the first trial of a cell printed, and its record."""
    folder = Folder.open(path)
    trial = next(one["trial"] for one in kinds(path, "started") if one["cell"] == cell)
    return (
        folder.read_raw(trial, OUTPUTS["command"]).decode(),
        msgspec.json.decode(folder.read_raw(trial, RECORD), type=Record),
    )


def test_a_command_runs_on_the_host_and_is_limited_and_measured_and_cleaned_up_there(stand: Stand, host: Host) -> None:
    mark = f"76{os.getpid()}"
    file = _asked(stand.place, mark, "good", "survives", "hangs", limit="1s")
    done = stand.run("run", file, "--folder", "folder")
    assert done.code in GOOD, done
    printed, record = _first(stand.place / "folder", "good")
    assert printed == f"rate 1000 in {_net(host)}\n"
    assert record.measured["memory"].value > MIB << 20
    assert not [one for one in record.said if one.rule.startswith("command.")]
    printed, record = _first(stand.place / "folder", "survives")
    assert ["sleep" in one.explanation for one in record.said if one.rule == "command.survivors"] == [True]
    assert record.measured["rate"].value == 1000, "the trial counts"
    printed, record = _first(stand.place / "folder", "hangs")
    assert "command.timeout" in [one.rule for one in record.said]
    said = " ".join(done.out.split())
    assert re.search("hangs could not be measured: (one|other): it was still running after 1 s", said), done
    until(lambda: not _alive(mark))  # nothing of it is left on the host


@pytest.mark.night
def test_a_command_that_runs_when_the_host_is_lost_is_ended_there(stand: Stand, host: Host) -> None:
    mark = f"77{os.getpid()}"
    running = stand.start("run", _asked(stand.place, mark, "hangs"), "--folder", "folder")
    until(lambda: _alive(mark))
    host.cut()
    done = running.wait()
    assert done.code == 4, done
    until(lambda: not _alive(mark))
    assert stand.run("restore", "--machine", "ssh:there").code == 0


@pytest.mark.night
def test_a_strangers_command_is_shown_and_asked_for_before_it_runs_on_the_host(stand: Stand, host: Host) -> None:
    mark = f"78{os.getpid()}"
    assert stand.run("run", _asked(stand.place, mark, "good"), "--folder", "folder").code in GOOD
    assert stand.run("pack", "folder", "-o", "theirs.iodelta.tar.zst", "--keep-identity").code == 0
    there = ("reproduce", "theirs.iodelta.tar.zst", "--machine", "ssh:there", "--folder", "again")
    refused = stand.run(*there, "--yes")
    assert refused.code == 2, refused
    assert f"bench.py good {mark}" in " ".join(refused.out.split())
    assert not (stand.place / "again").exists()
    done = stand.run(*there, "--yes", "--allow-commands")
    assert done.code in GOOD, done
    [session] = kinds(stand.place / "again", "session")
    assert session["machine"] == "ssh:there"


def test_a_command_that_may_write_is_asked_for_and_a_host_without_python_says_so(stand: Stand, host: Host) -> None:
    file = _asked(stand.place, "1", "good", only="")
    refused = stand.run("run", file, "--folder", "folder")
    assert refused.code == 2, refused
    assert "--allow-commands" in refused.err
    poor = host.programs("sh", "flock", *COREUTILS.split())
    host.serve(2207, f"SetEnv PATH={poor} IODELTA_STATE={host.state}")
    host.alias("snakeless", port=2207)
    done = stand.run("run", file, "--machine", "ssh:snakeless", "--allow-commands", "--folder", "folder")
    assert done.code == 4, done
    assert "needs python3 3.9 or later on that machine" in " ".join(done.err.split())
    assert not (stand.place / "folder").exists()
