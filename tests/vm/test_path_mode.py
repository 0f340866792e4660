"""Path mode with real guests: a planted change is found where it sits, two boots are alike, a panic is a result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iodelta.errors import MeasureError
from iodelta.experiment import parse
from iodelta.lab.folder import Booted, Folder
from iodelta.path import functions, plan, run
from iodelta.path.judge import judge
from iodelta.path.plan import make_plan
from iodelta.report.path import derive
from iodelta.vm import boot, guest, kernels
from iodelta.vm.cpio import program


@pytest.fixture(scope="module")
def kernel() -> kernels.Kernel:
    """The quickest to boot of those that `scripts/setup test` fetches."""
    try:
        boot.available()
        guest.find_program("busybox")
        return kernels.find("6.1")
    except MeasureError as error:
        pytest.skip(f"needs a guest: {error}")


class Watched:
    """Asks to stop after some boots."""

    def __init__(self, stop_after: int = 99) -> None:
        self.made: list[int] = []
        self._stop_after = stop_after

    def begin(self, planned: plan.PathPlan, folder: str, done: int) -> None:
        self.made.clear()

    def booted(self, one: plan.BootPlan, event: Booted, done: int, left: float) -> None:
        self.made.append(one.number)

    def stop(self) -> bool:
        return len(self.made) >= self._stop_after


@pytest.mark.timeout(900)
def test_a_setting_that_shortens_the_path_is_found_to_the_function_and_a_run_goes_on_after_a_stop(
    kernel: kernels.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SEEDS", (1,))
    text = f"""
        machine = "vm"
        clock = "instructions"
        [workload]
        rw = "randread"
        bs = "4k"
        direct = 1
        number_ios = 1000
        ioengine = "io_uring"
        [variant.on]
        kernel = "{kernel.release}"
        [variant.off]
        kernel = "{kernel.release}"
        "block.iostats" = "0"
    """
    made = Folder.begin(tmp_path / "folder", text, make_plan(parse(text)))
    first = Watched(stop_after=1)
    assert run.go(made, first, stop=first.stop) == run.INTERRUPTED
    second = Watched()
    assert run.go(made, second, stop=second.stop) == run.COMPLETE
    assert not set(first.made) & set(second.made)

    found = derive(Folder(made.path))
    assert found.self_check == "identical"
    assert [one.word for one in found.shifts] == ["shorter"]
    assert all(-300 < (one.change or 0) < -100 for one in found.shifts)
    assert all(one.median > 5000 for one in found.counts)
    if functions.why_not():
        assert found.functions == ()
    else:
        rows = {row.name: row for row in found.functions[0].rows}
        assert rows["blk_account_io_done"].change < -20
        assert abs(rows["ktime_get"].change) < 100

    verdict = (made.path / "verdict.json").read_bytes()
    assert json.loads(verdict)["schema"] == "iodelta.path/1"
    derive(Folder(made.path))
    assert (made.path / "verdict.json").read_bytes() == verdict
    assert judge(made).exit_code == 0


def test_a_kernel_that_finds_no_init_panics_and_qemu_alone_would_not_say_so(
    kernel: kernels.Kernel, tmp_path: Path
) -> None:
    (tmp_path / "initrd").write_bytes(guest.job({"nothing": program(b"")}))
    asked = boot.Boot(kernel.image, str(tmp_path / "initrd"), clock="instructions")
    with boot.Guest(asked, str(tmp_path)) as running:
        ended = running.wait()
    assert ended.problem.startswith("the guest's kernel panicked: Kernel panic - not syncing")
    assert any("Kernel panic" in line for line in ended.console)
