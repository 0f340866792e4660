"""An experiment is measured, packed, sent, read, doubted and measured again elsewhere, as a sceptic would."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import LIMIT

from .stand import IODELTA, Stand, finished, verdict

pytestmark = [pytest.mark.root, pytest.mark.beside]

EXPERIMENT = """
question = "Is a limit of 500 reads/s slower than one of 5000?"
baseline = "fast"
[target]
path = "{node}"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 4
[variant.fast]
"cgroup.io_max" = "riops=5000"
[variant.slow]
"cgroup.io_max" = "riops=500"
[design]
trial = "200ms"
ramp = 0
blocks = 6
budget = "5m"
metrics = ["read.iops", "read.lat.mean"]
"""


def test_a_bundle_is_carried_to_a_machine_that_knows_nothing_of_it_and_measured_there(tmp_path: Path) -> None:
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    with Stand(tmp_path / "there") as stand:
        theirs = stand.loop()
        (stand.place / "question.toml").write_text(EXPERIMENT.format(node=theirs))
        assert stand.run("run", "question.toml", "--folder", "folder").code in (0, 1, 3)
        assert stand.run("pack", "folder", "-o", "one.iodelta.tar.zst").code == 0
        sent = (stand.place / "one.iodelta.tar.zst").read_bytes()
        told = verdict(stand.place / "folder")["account"]["judgement"]
        measured = finished(stand.place / "folder")
    shutil.rmtree(tmp_path / "there")
    with Stand(tmp_path / "here") as stand:
        (stand.place / "theirs.iodelta.tar.zst").write_bytes(sent)
        read_and_left_alone(stand, told)
        node = next(node for node in (stand.loop(), stand.loop()) if node != theirs)
        asked_and_nothing_done(stand, node)
        done = stand.run("reproduce", "theirs.iodelta.tar.zst", "--target", node, "--yes", "--folder", "mine")
        assert done.code in (0, 1, 3), done
        origin = json.loads((stand.place / "mine" / "reproduction.json").read_text())
        assert origin["there"]["digest"] in done.out
        assert len(origin["there"]["digest"]) == 64
        assert node in (stand.place / "mine" / "experiment.toml").read_text()
        assert measured
        assert len(finished(stand.place / "mine")) >= 12
        again = stand.run("reproduce", "theirs.iodelta.tar.zst", "--against", "mine", "--format", "json")
        matched = json.loads(again.out)["matched"]
        # A tenth of the rate: no stall of a busy machine hides that; the interval of its size may still miss.
        words = [one["found"]["word"] for one in matched]
        assert len(words) == 2
        assert all(word == "reproduced" or word.startswith("same direction") for word in words), done
        assert f"Different from the original: target: {theirs} there, {node} here\n" in done.out
        assert done.out.endswith("iodelta reproduce theirs.iodelta.tar.zst --against mine\n")
        assert stand.pending() == []


def read_and_left_alone(stand: Stand, told: object) -> None:
    """report, show, audit, compare and env read the bundle; nothing appears beside it."""
    file = "theirs.iodelta.tar.zst"
    asked = (("report", file, "--format", "json"), ("show", file), ("audit", file), ("env", file), ("compare", file))
    with ThreadPoolExecutor(len(asked)) as pool:
        report, show, audit, env, compare = pool.map(lambda words: stand.run(*words), asked)
    assert json.loads(report.out)["account"]["judgement"] == told
    assert "slow" in show.out
    assert audit.code in (0, 1)
    assert "fio.version" in env.out
    assert "already has verdicts" in compare.err
    assert [path.name for path in stand.place.iterdir()] == ["theirs.iodelta.tar.zst"]


def asked_and_nothing_done(stand: Stand, node: str) -> None:
    """Without a target, without a word, with a no, with Ctrl-C, killed while it asks: nothing was run or made."""
    before = sorted(path.name for path in stand.place.iterdir())
    ask = ("reproduce", "theirs.iodelta.tar.zst", "--target", node, "--folder", "mine")
    without = stand.run("reproduce", "theirs.iodelta.tar.zst")
    assert without.code == 2
    assert "--target" in without.err
    unasked = stand.run(*ask)
    assert unasked.code == 2
    assert "not accepted, nothing was run, set or written" in unasked.err
    assert "cgroup.io_max" in unasked.out
    assert f"--filename={node}" in unasked.out
    answers: tuple[bytes | signal.Signals, ...] = (b"n\n", b"\x03", signal.SIGKILL)
    with ThreadPoolExecutor(len(answers)) as pool:
        no, interrupted, killed = pool.map(lambda answer: at_the_question(stand, ask, answer), answers)
    for code, said in (no, interrupted):
        assert code == 2, said
        assert "not accepted, nothing was run, set or written" in said
    assert killed[0] == -signal.SIGKILL
    assert sorted(path.name for path in stand.place.iterdir()) == before
    assert stand.processes() == []


def at_the_question(stand: Stand, args: tuple[str, ...], answer: bytes | signal.Signals) -> tuple[int, str]:
    """How iodelta ends on a terminal where somebody answers so."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", IODELTA, *args], env=stand.env, cwd=stand.place, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said, answered, end = b"", False, time.monotonic() + LIMIT
    try:
        while (part := _read(ours)) != b"":
            assert time.monotonic() < end, "it says and does no more"
            said += part or b""
            # A Ctrl-C between Python's look for signals and its wait for a line is seen after the line: press it again.
            if b"[y/N]" in said and (not answered or (part is None and answer == b"\x03")):
                answered = True
                if isinstance(answer, bytes):
                    os.write(ours, answer)
                else:
                    process.send_signal(answer)
        return process.wait(timeout=max(0.0, end - time.monotonic())), " ".join(said.decode(errors="replace").split())
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(terminal: int) -> bytes | None:
    """What a terminal shows, None for nothing within ten seconds; empty when its last user has closed it."""
    if not select.select([terminal], [], [], 10)[0]:
        return None
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
