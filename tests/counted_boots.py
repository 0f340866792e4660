"""Folders of path experiments whose guests were never booted: what they wrote is given."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iodelta.experiment import parse
from iodelta.lab.folder import Booted, Ended, Folder
from iodelta.path import run
from iodelta.path.judge import PathAccount
from iodelta.path.plan import ANATOMY_SEEDS, SEEDS, Arm, BootPlan, PathPlan, Purpose
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import TEXTS, rendered
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.path import of_path
from iodelta.report.stories.story import Detail
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


SYMBOLS = "ffffffff81000000 _stext\nffffffff81000100 submit\n"


def with_symbols(ios: int, names: str = SYMBOLS) -> bytes:
    """What a guest writes whose functions are counted: ``ios`` in its second run, and where its kernel's code lies."""
    symbols = base64.b64encode(gzip.compress(names.encode(), mtime=0)).decode()
    report = json.dumps({"jobs": [{"read": {"total_ios": ios}}]})
    return f"@boot 6.x\n@cell 000\n@json\n{report}\n@members\n@symbols\n{symbols}\n@end\niodelta-end\n".encode()


Says = Callable[[str, Purpose, int], bytes | None]


def folder(
    place: Path,
    says: Says,
    *,
    row: tuple[str, ...] = ("old", "new"),
    counts: Callable[[str], str] | None = None,
    anatomy: Callable[[str, int], dict[str, bytes]] | None = None,
) -> Folder:
    """A folder whose guests wrote what ``says`` gives for variant, purpose and seed; None: it panicked. ``counts`` is
    what the plugin wrote of a variant with 4000 and 8000 I/Os; ``anatomy`` gives all files of such a boot."""
    wanted: list[Wanted] = [(row[0], "exact", 0), (row[0], "again", 0)]
    wanted += [(name, "exact", 0) for name in row[1:]]
    wanted += [(name, "layout", seed) for seed in SEEDS for name in row]
    if counts:
        wanted += [(name, "functions", 0) for name in row]
    if anatomy:
        wanted += [(name, "anatomy", seed) for seed in (0, *ANATOMY_SEEDS) for name in row]
    text = QUESTION
    if row != ("old", "new"):
        variants = (f"[variant.{name.replace('.', '-')}]\nkernel = '{name}'\n" for name in row)
        text = QUESTION.partition("[variant")[0] + "".join(variants)
    if anatomy:
        text = f'anatomy = "path"\n{text}'

    def wrote(one: BootPlan) -> dict[str, bytes]:
        raw = {"out": says(one.variant, one.purpose, one.seed) or b""}
        if counts and one.purpose == "functions":
            raw = {"out": with_symbols(8000), "counts": counts(one.variant).encode()}
        if anatomy and one.purpose == "anatomy":
            raw |= anatomy(one.variant, one.seed)
        return raw

    kernels = {name: Kernel(name, f"{name}.0", "bzImage", package=f"linux-image {name}.0-1") for name in row}
    return made(place, text, kernels, wanted, wrote, "" if counts or anatomy else "no gcc")


Wanted = tuple[str, Purpose, int]


def made(
    place: Path,
    text: str,
    kernels: Mapping[str, Kernel],
    wanted: Sequence[Wanted],
    wrote: Callable[[BootPlan], dict[str, bytes]],
    why: str,
) -> Folder:
    """A folder of boots of these kernels, each a variant, that ``wrote`` such files; nothing in "out": it panicked."""
    arms = tuple(Arm(name, kernel, "", "quiet", 224) for name, kernel in kernels.items())
    boots = tuple(BootPlan(number, *one) for number, one in enumerate(wanted))
    plan = PathPlan(parse(text), arms, boots, "QEMU 7", "", why, "0" * 16, row=len(arms) > 2)
    folder = Folder.begin(place, text, plan)
    with folder.writing():
        for one in boots:
            raw = {"console": b"", **wrote(one)}
            folder.write_raw(one.number, raw)
            problem = "" if raw["out"] else "the guest's kernel panicked: Kernel panic - not syncing: no init"
            folder.append(Booted(float(one.number), one.number, 9.0, problem, ("last line",) if problem else ()))
        folder.append(Ended(99.0, run.COMPLETE))
    return folder


def texts(found: PathAccount, detail: Detail) -> dict[str, str]:
    """A result in every format, each as one line."""
    said = {name: rendered(found, name, detail) for name in TEXTS}
    said["html"] = html_of(found, (), detail)
    said["console"] = "\n".join(line.plain for line in lines(of_path(found, detail))).encode()
    return {name: " ".join(text.decode().split()) for name, text in said.items()}
