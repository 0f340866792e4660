"""A workload against itself, then against known slow-downs; every later report on that disk quotes what came of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .stand import GOOD, Stand, kinds

pytestmark = [pytest.mark.root, pytest.mark.beside]

FIO = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=2", "--thinktime=1ms")
SHORT = ("--trial", "200ms", "--ramp", "0", "--seed", "1")


@pytest.mark.night
def test_a_calibration_bounds_false_alarms_names_the_noise_and_is_quoted_by_the_next_report(stand: Stand) -> None:
    node = stand.loop()
    done = stand.run("calibrate", "--target", node, "--budget", "3m", *SHORT, "--folder", "folder", "--", *FIO)
    assert done.code == 0, done
    said = " ".join(done.out.split())
    assert "comparisons of a variant with itself" in said
    assert "smallest change seen in that time (90 % power, in %)" in said
    assert " A slow-down of 3.5 % was called" in said, "the kernel's throttle gives the truth"
    assert f"Carry-over Not measured: it needs trials that write; --destroy {node} allows them" in said
    assert "System: kernel " in said
    assert f" To do it again iodelta calibrate --target {node} --trial 200ms" in said
    (known,) = json.loads((stand.state / "calibration.json").read_text()).values()
    assert known["comparisons"] >= 2
    assert {one["change"] for one in known["injections"]} == {-0.01, -0.02, -0.035}
    assert kinds(stand.place / "folder" / "a-against-a", "ended"), "the folders stay, to be looked at"

    how = ("--blocks", "1", "--variant", "a", "--variant", "b:fio.nice=1", "--folder", "quoting")
    done = stand.run("run", "--target", node, *SHORT, *how, "--", *FIO)
    assert done.code in GOOD, done
    report = stand.run("report", "quoting", "--verbose").out
    for said in (done.out, report):
        words = " ".join(said.split())
        assert f"in {known['comparisons']} A/A comparisons" in words
        assert f"{known['stalled']} of {known['trials']} trials stalled" in words


def test_what_writes_leave_is_measured_where_the_target_may_be_written_to(stand: Stand) -> None:
    """Of a scratch file nothing is asked; a device that only reads were asked of is read until --destroy names it."""
    node, good = stand.loop(), (0, 4)  # 4: no first look in so short a time
    before = Path(node).read_bytes()
    done = stand.run("calibrate", "--target", node, "--budget", "4s", *SHORT, "--folder", "reads", "--", *FIO)
    assert done.code in good, done
    assert not (stand.place / "reads" / "aftermath").exists()
    assert Path(node).read_bytes() == before
    how = ("--budget", "15s", *SHORT)
    done = stand.run("calibrate", "--target", node, "--destroy", node, *how, "--folder", "writes", "--", *FIO)
    assert done.code in good, done
    number = {event["trial"] for event in kinds(stand.place / "writes" / "aftermath", "finished")}
    wrote = [e for e in kinds(stand.place / "writes" / "aftermath", "started") if e["variant"] == "writer"]
    assert (Path(node).read_bytes() != before) == bool({event["trial"] for event in wrote} & number)
    place = ("--target", str(stand.filesystem(32)), "--size", "4m")
    done = stand.run("calibrate", *place, "--budget", "4s", *SHORT, "--folder", "scratch", "--", *FIO)
    assert done.code in good, done
    assert kinds(stand.place / "scratch" / "aftermath", "ended")


def test_a_placebo_is_one_more_arm_that_differs_in_nothing(stand: Stand) -> None:
    how = ("--blocks", "2", "--placebo", "--variant", "a:fio.nice=0", "--variant", "b:fio.nice=1", "--folder", "folder")
    done = stand.run("run", "--target", stand.loop(), *SHORT, *how, "--", *FIO)
    assert done.code in GOOD, done
    arms = {event["variant"] for event in kinds(stand.place / "folder", "started")}
    assert arms == {"a", "b", "placebo"}
    assert re.search(r"^placebo +IOPS +[\d,]", done.out, re.MULTILINE), done
