"""Path mode with real guests: a planted change is found where it sits, two boots are alike, a panic is a result."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from iodelta.errors import MeasureError
from iodelta.experiment import parse
from iodelta.lab.folder import Booted, Folder
from iodelta.path import footprint, functions, plan, run
from iodelta.path.judge import judge
from iodelta.path.output import read
from iodelta.path.plan import make_plan
from iodelta.report.derived import derive_counts
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

    def booted(self, one: plan.BootPlan, event: Booted, done: int) -> None:
        self.made.append(one.number)

    def stop(self) -> bool:
        return len(self.made) >= self._stop_after


@pytest.mark.night
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
        number_ios = 2000
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

    found = derive_counts(Folder(made.path))
    assert found.self_check == "identical"
    assert [one.word for one in found.shifts] == ["shorter"]
    assert all(-300 < (one.change or 0) < -100 for one in found.shifts)
    assert all(one.median > 5000 for one in found.counts)
    if functions.why_not():
        assert found.functions == ()
    else:
        (table,) = found.functions
        rows = {row.name: row for row in table.rows}
        assert table.kernel[1] - table.kernel[0] == pytest.approx(found.shifts[0].change, abs=30)
        assert not [doubt for doubt in table.doubts if "Believe the median" in doubt]
        assert min(min(row.baseline, row.value) for row in table.rows) > -10
        assert rows["blk_account_io_done"].change < -20
        assert abs(rows["ktime_get"].change) < 100
        (bill,) = found.bills
        charges = {one.kind: one for one in bill.charges}
        assert charges["locked"].baseline > 10, "the kernel took its LOCK prefixes away"
        assert charges["locked"].word == "same"
        assert charges["indirect"].baseline > 5

    verdict = (made.path / "verdict.json").read_bytes()
    assert json.loads(verdict)["schema"] == "iodelta.path/1"
    derive_counts(Folder(made.path))
    assert (made.path / "verdict.json").read_bytes() == verdict
    assert judge(made).exit_code == 0


KNOWN = {"locked": 103, "fence": 14, "rdtsc": 10, "indirect": 3, "string": 4097 + 65}
"""What tests/vm/known.c executes each time over; of a string instruction qemu counts its end as one more unit."""

TOUCHED = {
    "loads": 100 + 3 + 7 + 3 + 4096 + 64 + 5,  # locked, xchg, calls, nested calls, copy, lines, others
    "stores": 100 + 3 + 6 + 3 + 4096 + 64 + 5,
    "data_lines": 1 + 64 + 64 + 64 + 1,  # word, from, to, lines, the stack's
    "written_lines": 1 + 64 + 1,
    "data_pages": 4 + 1,
}
"""What it accesses each time over."""


@pytest.fixture(scope="module")
def known(kernel: kernels.Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the plugin wrote of a program of known content, all of whose code is followed, not the kernel's alone."""
    place = tmp_path_factory.mktemp("known")
    source = Path(__file__).parent / "known.c"
    subprocess.run(["gcc", "-nostdlib", "-static", "-o", str(place / "known"), str(source)], check=True)
    built = functions.build()
    begun = symbols_of(place / "known")["again"]
    script = f"""
        mark 1040 {begun:x}
        mark 1043
        sleep 1
        for n in 1 2; do mark $n; /bin/known ${{n}}00; mark 0; done
        echo @end
    """
    entries = {"job/run": program(script.encode()), "bin/mark": program(Path(built.mark).read_bytes())}
    entries["bin/known"] = program((place / "known").read_bytes())
    (place / "initrd").write_bytes(Path(guest.base().path).read_bytes() + guest.job(entries))
    words = f"{built.plugin},out=counts,tree=tree,epochs=epochs,floor=0"
    asked = boot.Boot(kernel.image, str(place / "initrd"), boot.QUIET, clock="instructions", devices=("-plugin", words))
    with boot.Guest(asked, str(place)) as running:
        assert running.wait().problem == ""
    return place


def symbols_of(program: Path) -> dict[str, int]:
    """Its labels, as nm of binutils lists them."""
    listed = subprocess.run(["nm", str(program)], check=True, capture_output=True, text=True).stdout
    return {line.split()[2]: int(line.split()[0], 16) for line in listed.splitlines()}


needs_gcc = pytest.mark.skipif(bool(functions.why_not()), reason="gcc is not here")


@needs_gcc
def test_the_bill_of_a_program_of_known_content_is_exact(known: Path) -> None:
    counts = (known / "counts").read_bytes()
    (cost,) = functions.per_io(counts, functions.Symbols(""), {0: 100}).values()
    executed = {kind: own.get(functions.USER, 0) for kind, own in cost.classes.items()}
    assert executed == pytest.approx(KNOWN, abs=0.005)


@needs_gcc
def test_the_footprint_of_a_program_of_known_content_is_exact(known: Path) -> None:
    (epochs,) = footprint.read((known / "epochs").read_bytes(), {0: 100}).values()
    assert epochs.each == pytest.approx(1, abs=0.01)
    found = epochs.medians["all"]
    assert {name: found[name] for name in (*TOUCHED, *KNOWN)} == {**TOUCHED, **KNOWN}
    labels = symbols_of(known / "known")
    assert found["code_lines"] == (labels["ended"] - 1) // 64 - labels["again"] // 64 + 1


@needs_gcc
def test_the_calls_of_a_program_of_known_content_stand_below_their_callers(known: Path) -> None:
    labels = symbols_of(known / "known")
    entries: dict[str, tuple[str, int]] = {}
    blocks: dict[str, int] = {}
    executed: Counter[tuple[str, ...]] = Counter()
    for kind, *words in map(str.split, (known / "tree").read_text().splitlines()):
        if kind == "n":
            entries[words[0]] = (words[1], int(words[3], 16))
        elif kind == "b":
            blocks[words[0]] = int(words[1], 16)
        elif kind == "c":
            change = int(words[3]) * (1 if words[0] == "2" else -1)
            entry = blocks[words[2]]
            path = chain_of(words[1], entries, {labels[name]: name for name in ("outer", "middle", "inner", "back")})
            if path and entry == labels[path[-1]]:  # the block that a call enters
                executed[path] += change
    assert executed == {
        ("outer",): 100,
        ("outer", "middle"): 100,
        ("outer", "middle", "inner"): 100,
        ("back",): 6 * 100,
    }


def chain_of(node: str, entries: dict[str, tuple[str, int]], names: dict[int, str]) -> tuple[str, ...]:
    """The functions of a node up to the first that has no name."""
    parent, entry = entries.get(node, ("", 0))
    return (*chain_of(parent, entries, names), names[entry]) if entry in names else ()


@pytest.mark.night
def test_inputs_that_should_not_matter_move_no_median(kernel: kernels.Kernel, tmp_path: Path) -> None:
    text = f"""
        machine = "vm"
        clock = "instructions"
        [workload]
        rw = "randread"
        bs = "4k"
        direct = 1
        number_ios = 300
        ioengine = "io_uring"
        randseed = [1, 22, 333, 4444]
        [variant.plain]
        kernel = "{kernel.release}"
        [variant.other]
        kernel = "{kernel.release}"
        "vm.memory" = "320"
        "kernel.cmdline" = "placebo={"x" * 120}"
        [condition.once]
        [condition.again]
    """
    made = make_plan(parse(text))
    medians = set()
    for one in [one for one in made.boots if one.purpose == "exact"]:
        place = tmp_path / one.variant
        place.mkdir()
        with run.started(made, one, place) as running:
            assert running.wait().problem == ""
            cells = read(running.output, one.variant).cells.values()
        medians |= {cell.latencies["read"].median for cell in cells}
    assert len(medians) == 1, medians


@pytest.mark.night
def test_a_kernel_that_finds_no_init_panics_and_qemu_alone_would_not_say_so(
    kernel: kernels.Kernel, tmp_path: Path
) -> None:
    (tmp_path / "initrd").write_bytes(guest.job({"nothing": program(b"")}))
    asked = boot.Boot(kernel.image, str(tmp_path / "initrd"), clock="instructions")
    with boot.Guest(asked, str(tmp_path)) as running:
        ended = running.wait()
    assert ended.problem.startswith("the guest's kernel panicked: Kernel panic - not syncing")
    assert any("Kernel panic" in line for line in ended.console)
