"""Kernels as items: each is booted in a guest that counts instructions; what does not come to its end is not bad."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from counted_boots import QUESTION, with_symbols

from iodelta.bisect.counted import Written, metric_of, value_of
from iodelta.bisect.tree import Unbuildable
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import parse
from iodelta.path.metrics import path_metric

from .toy import Toy, bisect, log, shown

QEMU = r"""#!/bin/sh
# Stands for qemu: a kernel's last line says how many instructions its reads take, or how it fails.
[ "$1" = --version ] && echo "QEMU emulator version 10.0.2" && exit
while [ $# -gt 0 ]; do
    case $1 in -kernel) kernel=$2 ;; -serial) serials="$serials ${2#file:}" ;; esac
    shift
done
set -- $serials
takes=$(tail -n 1 "$kernel")
echo "booting" >"$1"
case $takes in
panics) echo "Kernel panic - not syncing: Attempted to kill init!" >>"$1"; exit ;;
diskless) said="@reason needs null_blk: the kernel made no /dev/nullb0" ;;
*) said="@json\n{}\n@latencies\n0 $takes 4000\n@members" ;;
esac
printf "@boot 6.12.0\n@cell 0\n$said\n@end\niodelta-end\n" >"$2"
"""

BUILD = """\
case $(cat speed) in broken) echo 'no rule to make it' >&2; exit 2 ;; esac
mkdir -p arch/x86/boot
{ cat header; cat speed; } >arch/x86/boot/bzImage
printf 'CONFIG_BLK_DEV_NULL_BLK=y\\nCONFIG_CONFIGFS_FS=y\\n' >.config
"""
HEADER = f"{'':514}HdrS{'':8}\0\3{'':752}6.12.0 x\0\n"
"""Of a bzImage, with its release (Documentation/arch/x86/boot.rst)."""

COUNT = ("--machine", "vm", "--clock", "instructions", "--seed", "1", "--build", "sh build.sh")
KEPT = ("--artifact", "arch/x86/boot/bzImage", "--artifact", ".config")
READ = ("--", "--rw=randread", "--bs=4k", "--ioengine=io_uring", "--direct=1")


@pytest.fixture(autouse=True)
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel is really booted here; the guests themselves are looked at elsewhere."""
    (tmp_path / "bin").mkdir()
    for name, text in (("qemu-system-x86_64", QEMU), ("fio", "#!/bin/sh\necho fio-3.36\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("IODELTA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def kernels(repo: Toy) -> list[str]:
    """Two culprits, of 1 % and 3 %, and a layout that moves each count by some instructions. All three before the first
    are broken."""
    speeds = [5143, 5147, "diskless", "broken", "panics", 5202, 5200, 5201, 5204, 5203, 5201, 5202, 5360, 5357, 5359]
    repo.commit(speeds[0], "base", **{"build.sh": BUILD, "header": HEADER, ".gitignore": "arch\n.config\n"})
    return [repo.git("rev-parse", "HEAD"), *repo.commits(*speeds[1:])]


def test_both_slower_kernels_are_found_by_their_instructions_and_broken_ones_are_skipped(
    repo: Toy, kernels: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    ends = ("--repo", repo.path, "--good", kernels[0], "--bad", kernels[-1], "--folder", folder)
    done = bisect(*ends, *COUNT, *KEPT, "--set", "kernel={built}", *READ)
    assert done.code == 1, done.err
    found = shown(folder)
    assert [one["item"] for one in found["culprits"]] == [kernels[5], kernels[12]]
    assert [one["change"]["value"] for one in found["culprits"]] == pytest.approx([0.0113, 0.0302], abs=0.001)
    assert [len(one["suspects"]) for one in found["culprits"]] == [4, 1]
    reasons = {one["item"]: one["reason"] for one in found["skipped"]}
    assert "null_blk" in reasons[kernels[2]]
    assert reasons[kernels[3]] == "the build ended with 2: no rule to make it"
    assert "Kernel panic" in reasons[kernels[4]]
    assert any("Kernel panic" in path.read_text() for path in (folder / "output").glob("*.console"))
    visited = [line["item"] for line in log(folder) if line["type"] == "answered"]
    assert len(set(visited)) < len(kernels)
    mail = bisect(folder, "--show", "--format", "mail").out
    assert "read.instructions" in mail
    assert "qemu64, emulated" in mail


MAKEFILE = """\
tinyconfig: ; : >$(O)/.config
olddefconfig: ;
bzImage:
\t@if grep -q broken speed; then echo "speed.c:7:1: error: no such speed" >&2; exit 1; fi
\tmkdir -p $(O)/arch/x86/boot; cat header speed >$(O)/arch/x86/boot/bzImage
"""


def test_a_search_builds_its_kernels_by_iodelta_itself_and_skips_one_that_does_not_build(
    repo: Toy, tmp_path: Path
) -> None:
    base = repo.commit(5143, "base", **{"Makefile": MAKEFILE, "header": HEADER})
    made = [base, *repo.commits(5143, "broken", 5143, 5203, 5203)]
    folder, iodelta = tmp_path / "out", Path(sys.executable).with_name("iodelta")
    ends = ("--repo", repo.path, "--good", made[0], "--bad", made[-1], "--folder", folder, "--seed", "1")
    build = ("--build", f"{iodelta} kernel build . --into .kernel", "--artifact", ".kernel")
    count = ("--machine", "vm", "--clock", "instructions", "--set", "kernel={built}/.kernel")
    done = bisect(*ends, *build, *count, *READ)
    assert done.code == 1, done.err
    found = shown(folder)
    assert [one["item"] for one in found["culprits"]] == [made[4]]
    [skipped] = found["skipped"]
    assert skipped["item"] == made[2]
    assert "error: no such speed" in skipped["reason"]
    assert repo.git("status", "--porcelain") == ""


def test_times_are_not_taken_in_guests_by_a_search(tmp_path: Path) -> None:
    done = bisect("--item", "6.1", "--item", "6.12", "--set", "kernel={item}", "--machine", "vm", *READ)
    assert isinstance(done.error, RequestError)
    assert "--clock instructions" in done.error.remedy


@pytest.mark.parametrize(("executed", "value"), [("2 1 0 4 0", 4.0), ("2 1 0 0 0", 0.25)], ids=["four", "none"])
def test_the_bill_of_a_boot_is_a_value_and_none_of_a_class_is_a_quarter(executed: str, value: float) -> None:
    lines = [f"{phase} ffffffff81000104 10 {4000 * phase} {executed}" for phase in (1, 2)]
    metric = path_metric("bill.indirect")
    assert metric is not None
    assert value_of(metric, Written(with_symbols(8000), "\n".join(lines).encode(), b""), "boot") == value
    with pytest.raises(MeasureError, match="counts are damaged"):
        value_of(metric, Written(with_symbols(8000), b"1 ffffffff81000104 10", b""), "boot")


EPOCHS = f"2 {' '.join(['100'] * 5 + ['0'] * 8 + ['7'] * 13)}\n" * 1999
MOVED = "phase 1 200\nios 1 150\nios 2 50\n"
TWO_CPUS = "@boot 6.x\n@cell 000\n@tags apart\n@births\n@symbols\nH4sIAAAAAAAAAwMAAAAAAAAAAAA=\n@end\niodelta-end\n"


@pytest.mark.parametrize(
    ("name", "value"), [("loads", 100.0), ("written_lines", 100.0), ("code_lines", 0.25), ("moved_lines", 1.0)]
)
def test_a_footprint_and_moved_lines_are_values_of_a_boot(name: str, value: float) -> None:
    metric = path_metric(name)
    assert metric
    printed = TWO_CPUS.encode() if name == "moved_lines" else with_symbols(2000)
    assert value_of(metric, Written(printed, MOVED.encode(), EPOCHS.encode()), "boot") == value


@pytest.mark.parametrize("name", ["loads", "moved_lines"])
def test_a_kernel_whose_ios_nothing_counted_is_skipped_and_damage_is_no_value(name: str) -> None:
    metric = path_metric(name)
    assert metric
    printed = TWO_CPUS.encode() if name == "moved_lines" else with_symbols(2000)
    with pytest.raises(Unbuildable, match="no I/O"):
        value_of(metric, Written(printed, b"", b""), "boot")
    with pytest.raises(MeasureError):
        value_of(metric, Written(printed, b"line\n", b"2 1\n"), "boot")


@pytest.mark.parametrize("tags", ["unknown", "shared"])
def test_lines_that_chance_moves_end_a_search_and_blame_no_commit(tags: str) -> None:
    metric = path_metric("moved_lines")
    assert metric
    printed = TWO_CPUS.replace("apart", tags).encode()
    with pytest.raises(MeasureError, match="tags of both CPUs"):
        value_of(metric, Written(printed, MOVED.encode(), b""), "boot")


def test_moved_lines_are_followed_of_what_two_cpus_can_do() -> None:
    with pytest.raises(RequestError, match="synchronous I/O only"):
        metric_of(parse(QUESTION.replace("direct = 1", "direct = 1\nioengine = 'libaio'")), "moved_lines")
    assert metric_of(parse(QUESTION), "moved_lines").unit == "lines"


def test_a_search_over_kernels_follows_paths_and_bills_and_names_both() -> None:
    experiment = parse(QUESTION)
    path, locked = metric_of(experiment, ""), metric_of(experiment, "bill.locked")
    assert (path.name, locked.name) == ("read.instructions", "bill.locked")
    assert locked.exact > path.exact
    assert metric_of(experiment, "locks") == locked
    assert metric_of(experiment, "code_lines").name == "footprint.code_lines"
    for wrong in ("bill.string", "locked", "read.iops"):
        with pytest.raises(RequestError) as refused:
            metric_of(experiment, wrong)
        assert "bill.locked" in refused.value.remedy


def test_a_kernel_that_is_built_and_not_booted_is_refused(repo: Toy, kernels: list[str], tmp_path: Path) -> None:
    ends = ("--repo", repo.path, "--good", kernels[0], "--bad", kernels[-1], "--folder", tmp_path / "out")
    for options, remedy in (((), "--set kernel={built}"), (("--metric", "read.iops"), "read.instructions")):
        done = bisect(*ends, *COUNT, *KEPT, *options, *(("--set", "kernel={built}") if options else ()), *READ)
        assert isinstance(done.error, RequestError)
        assert remedy in done.error.remedy
        assert not (tmp_path / "out").exists()
