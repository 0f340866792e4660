"""Folders of path experiments whose guests were never booted: what they wrote is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from iodelta.experiment import parse
from iodelta.lab.folder import Booted, Ended, Folder
from iodelta.path import run
from iodelta.path.plan import SEEDS, Arm, BootPlan, PathPlan, Purpose
from iodelta.vm.kernels import Kernel

QUESTION = """
machine = "vm"
clock = "instructions"
[workload]
rw = "randread"
direct = 1
[variant.old]
kernel = "6.1"
[variant.new]
kernel = "6.12"
"""


def output(median: int | str, kind: int = 0) -> bytes:
    """What a guest writes whose I/Os took ``median`` instructions, but for a few; or its reason."""
    if isinstance(median, str):
        return f"@boot 6.x\n@cell 000\n@reason {median}\n@end\niodelta-end\n".encode()
    counts = f"{kind} {median} 3700\n{kind} {median + 97} 280\n{kind} {median + 2800} 20"
    whole = f"@boot 6.x\n@cell 000\n@json\n{{}}\n@latencies\n{counts}\n@members\nnullb0 4000 0\n@end\niodelta-end\n"
    return whole.encode()


Says = Callable[[str, Purpose, int], bytes | None]


def folder(place: Path, says: Says, *, row: tuple[str, ...] = ("old", "new")) -> Folder:
    """A folder whose guests wrote what ``says`` gives for variant, purpose and seed; None: it panicked."""
    kernels = [Kernel(name, f"{name}.0", "bzImage", package=f"linux-image {name}.0-1") for name in row]
    arms = tuple(Arm(kernel.name, kernel, "", "quiet", 224) for kernel in kernels)
    wanted: list[tuple[str, Purpose, int]] = [(row[0], "exact", 0), (row[0], "again", 0)]
    wanted += [(name, "exact", 0) for name in row[1:]]
    wanted += [(name, "layout", seed) for seed in SEEDS for name in row]
    boots = tuple(BootPlan(number, *one) for number, one in enumerate(wanted))
    text = (
        QUESTION
        if row == ("old", "new")
        else QUESTION.partition("[variant")[0]
        + "".join(f"[variant.{name.replace('.', '-')}]\nkernel = '{name}'\n" for name in row)
    )
    plan = PathPlan(parse(text), arms, boots, "QEMU 7", "", "no gcc", "0" * 16, row=len(row) > 2)
    made = Folder.begin(place, text, plan)
    with made.writing():
        for one in boots:
            wrote = says(one.variant, one.purpose, one.seed)
            made.write_raw(one.number, {"out": wrote or b"", "console": b""})
            problem = "" if wrote else "the guest's kernel panicked: Kernel panic - not syncing: no init"
            made.append(Booted(float(one.number), one.number, 9.0, problem, ("last line",) if problem else ()))
        made.append(Ended(99.0, run.COMPLETE))
    return made
