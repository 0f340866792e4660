"""The reports that iodelta was built after end with an answer on a small machine: one at every push, all at night."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.errors import MeasureError
from iodelta.vm import boot, guest, kernels

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def needs_guest() -> None:
    try:
        boot.available()
        for program in ("busybox", "mdadm"):
            guest.find_program(program)
        kernels.find("6.1")
        kernels.find("6.12")
    except MeasureError as error:
        pytest.skip(f"needs a guest: {error}")


def test_of_a_planted_history_of_mmap_readers_the_guilty_patches_and_the_cost_of_each_are_named(tmp_path: Path) -> None:
    """2010-01. With the clock of the readers replaced by what their commits make them wait: no disk, no chance."""
    script = (ROOT / "examples/three-guilty-patches.sh").read_text()
    begin, end = script.index("fio --minimal"), script.index("MEASURE\ncommit")
    quick = tmp_path / "quick.sh"
    # The seventh digit is noise that differs from run to run.
    quick.write_text(script[:begin] + 'echo "$((80000000 / wait + $$ % 20)).$(($$ % 97))"\n' + script[end:])
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(quick), str(tmp_path / "out")],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = " ".join(done.stdout.split())
    assert 'change preemption to 1"): the number -33' in said
    assert 'change idling to 1"): the number -33' in said
    assert "Skipped, never called bad" in said
    assert "Patch 1 costs 33" in said
    assert "patch 2 together with 3 costs another 33" in said


def counted(name: str, folder: Path, *kernels: str) -> dict[str, float]:
    """The change of every cell, in instructions per I/O."""
    words = [word for kernel in kernels for word in ("--kernel", kernel)]
    folder = folder / name
    done = CliRunner().invoke(
        cli, ["scenario", "run", name, "--vm", "--count", *words, "--folder", str(folder), "--format", "json"]
    )
    assert done.exit_code in (0, 1), done.output
    shifts = json.loads(done.stdout)["shifts"]
    assert shifts
    return {shift["cell"]: shift["change"] for shift in shifts}


@pytest.mark.night
@pytest.mark.usefixtures("needs_guest")
@pytest.mark.parametrize("name", ["queue-depth-sweep", "raid10-governor", "raid10-governor-far"])
def test_two_kernels_are_compared_by_the_length_of_their_paths(name: str, tmp_path: Path) -> None:
    assert all(change for change in counted(name, tmp_path, "6.1", "6.12").values())
