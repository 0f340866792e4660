"""``python -m benchmarks.path.targets KERNEL NAME...``: which I/O paths can an anatomy count? Real boots answer.

One boot with the plugin for each name of ``CASES``, 200 I/Os a cell. Prints a row for each cell: the share of returns
that belong to no call, the calls of submit_bio for each I/O, and medians of an I/O in the kernel; or why there are
none.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from iodelta.errors import IodeltaError
from iodelta.experiment import parse, toml_text
from iodelta.path import calls, footprint
from iodelta.path.anatomy import ios_of
from iodelta.path.functions import Symbols
from iodelta.path.output import Output, read
from iodelta.path.plan import BootPlan, PathPlan, make_plan
from iodelta.path.run import started

READ: Mapping[str, object] = {"rw": "randread", "bs": "4k", "direct": 1, "ioengine": "libaio", "number_ios": 200}
BOTH: Mapping[str, object] = {**READ, "rw": ["randread", "randwrite"]}
FIXED: Mapping[str, object] = {**READ, "ioengine": "io_uring", "fixedbufs": 1, "registerfiles": 1}
FILES: Mapping[str, object] = {**BOTH, "direct": [1, 0], "ioengine": "psync"}

CASES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "null_blk": ("", {**BOTH, "iodepth": [1, 8]}),
    "io_uring-fixed": ("", {**FIXED, "iodepth": [1, 8]}),
    "buffered": ("", {**BOTH, "direct": 0, "ioengine": "psync"}),
    "md-raid1": ("md-raid1", BOTH),
    "md-raid10": ("md-raid10", BOTH),
    "dm-linear": ("dm-linear", BOTH),
    "ext4": ("ext4", FILES),
    "xfs": ("xfs", FILES),
    "ublk-null": ("ublk-null", READ),
    "two-jobs": ("", {**READ, "numjobs": 2}),
}
MEASURES = ("instructions", "locked", "data_lines", "code_lines")


def planned(kernel: str, target: str, workload: Mapping[str, object]) -> tuple[PathPlan, BootPlan]:
    """A plan with an anatomy of one target (empty: the default one), and its boot that counts the baseline. Raises
    IodeltaError for what is refused."""
    text = {
        "machine": "vm",
        "clock": "instructions",
        "anatomy": "path",
        "workload": workload,
        "variant": {"plain": {"kernel": kernel}, "again": {"kernel": kernel}},
    }
    if target:
        text["target"] = {"path": target}
    plan = make_plan(parse(toml_text(text)))
    return plan, next(boot for boot in plan.boots if boot.purpose == "anatomy" and not boot.seed)


def rows(plan: PathPlan, boot: BootPlan, place: Path) -> Iterator[str]:
    """A boot's cells. Raises IodeltaError for a plugin's file that is damaged."""
    with started(plan, boot, place) as guest:
        ended = guest.wait(1.0)
    if ended.problem:
        yield f"{ended.problem} | {' / '.join(ended.console[-2:])}"
        return
    output = read((place / "out").read_bytes(), "guest")
    for number, cell in output.cells.items():
        name = plan.experiment.cells[number].name
        yield f"{name} | {cell.reason or _figures(output, number, place)}"


def _figures(output: Output, number: int, place: Path) -> str:
    ios = ios_of(output, "guest")
    epochs = footprint.read((place / "epochs").read_bytes(), ios).get(number)
    files = [(place / name).read_bytes() for name in ("tree", "counts")]
    tree = calls.per_io(files[0], files[1], Symbols(output.symbols), ios)[number]
    said = [tree.refused or f"{100 * tree.orphans:.2f} % of returns of no call"]
    if epochs is None:
        return f"no call of submit_bio; {said[0]}"
    values = epochs.medians["kernel"]
    said.append(f"submit_bio {epochs.each:.2f}")
    return ", ".join([*said, *(f"{name} {values[name]:g}" for name in MEASURES)])


def main() -> int:
    """Every case that is named, or all."""
    kernel, *names = sys.argv[1:]
    for name in names or CASES:
        with tempfile.TemporaryDirectory(prefix="iodelta-targets-") as place:
            try:
                for row in rows(*planned(kernel, *CASES[name]), Path(place)):
                    print(f"| {kernel} | {name} | {row} |", flush=True)
            except IodeltaError as error:
                print(f"| {kernel} | {name} | refused: {error} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
