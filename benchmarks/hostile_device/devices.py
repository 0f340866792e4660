"""Experiments on a device that the kernel throttles, by a ``command`` knob: a slower variant, none, one that stalls now
and then, one that leaves dirty pages behind it. What must be said of each is known."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acceptance.stand import LIMIT, Stand, verdict

EXPERIMENT = """
margin = "2%"
[target]
path = "{target}"
size = "32m"
[workload]
rw = "{rw}"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 8
{variants}
[design]
trial = "{trial}"
ramp = "0s"
budget = "{budget}"
metrics = ["{metric}"]
seed = {seed}
{design}
"""

STALLING = """\
# Usage: stalling.sh COUNTER RATE GROUP MAJ:MIN [SECONDS]: before a trial. In every tenth one 25 reads a second, all the
# time or for SECONDS.
here=$(dirname "$0")
count=$(( $(cat "$1" 2>/dev/null || echo 0) + 1 ))
echo $count >"$1"
[ $((count % 10)) = 0 ] || exec sh "$here/limit.sh" "$2" "$3" "$4"
sh "$here/limit.sh" 25 "$3" "$4"
[ -z "$5" ] || { sleep "$5"; sh "$here/limit.sh" "$2" "$3" "$4"; } >/dev/null 2>&1 &
"""

LEAVING = """\
# Usage: leaving.py VARIANT STATE FILE PAGES: before a trial. What the variant "new" ran before left dirty pages.
import os, subprocess, sys
variant, state, name, pages = sys.argv[1:]
with open(state, "a+") as file:
    file.seek(0)
    before = file.read()
    file.truncate(0)
    file.write(variant)
if before == "new":
    left = os.open(name, os.O_RDWR | os.O_CREAT)
    for page in range(int(pages)):
        os.pwrite(left, bytes(4096), 8192 * page)
    nobody = subprocess.DEVNULL
    subprocess.Popen(["sync", "-f", name], stdin=nobody, stdout=nobody, stderr=nobody)
"""


def throttled(
    stand: Stand,
    rates: tuple[int, int],
    *,
    seed: int,
    trial: str,
    budget: str,
    stalls: str | None = None,
    level: str = "95%",
) -> dict[str, Any]:
    """The verdict on reads at one rate against another; ``stalls``: the variant's limit is lowered in every tenth
    trial, for so many seconds or (empty) as long as the trial."""
    device = stand.loop()
    group, number = stand.group(device)
    tables = []
    for name, rate in zip(("old", "new"), rates, strict=True):
        words = ["sh", _script(stand, "limit.sh", LIMIT), str(rate), str(group), number]
        check = words
        if stalls is not None and name == "new":
            counter = str(stand.place / "count")
            check = ["sh", _script(stand, "stalling.sh", STALLING), counter, *words[2:], *([stalls] if stalls else [])]
        # verify runs before every trial, apply when the machine is turned to the variant
        tables.append(_variant(name, {"apply": words, "restore": words, "verify": check}))
    text = EXPERIMENT.format(
        target=device,
        rw="randread",
        variants="\n".join(tables),
        trial=trial,
        budget=budget,
        metric="read.iops",
        seed=seed,
        design=f'level = "{level}"',
    )
    return _run(stand, text, group)


def leaving(
    stand: Stand, *, seed: int, trial: str, budget: str, carry_over: str, pages: int, level: str = "95%"
) -> dict[str, Any]:
    """The verdict on direct writes to a filesystem of 8 MB/s, where one variant differs in nothing but the dirty pages
    that it leaves to the next trial."""
    place = stand.filesystem(128)
    device = os.stat(place).st_dev
    limit = _write_limit(stand, f"{os.major(device)}:{os.minor(device)}")
    script = _script(stand, "leaving.py", LEAVING)
    tables = []
    for name in ("old", "new"):
        words = [sys.executable, script, name, str(stand.place / "before"), str(place / "left"), str(pages)]
        tables.append(_variant(name, {"apply": ["true"], "restore": ["true"], "verify": words}))
    text = EXPERIMENT.format(
        target=place,
        rw="randwrite",
        variants="\n".join(tables),
        trial=trial,
        budget=budget,
        metric="write.iops",
        seed=seed,
        design=f'carry-over = "{carry_over}"\nlevel = "{level}"',
    )
    return _run(stand, text, limit)


def _variant(name: str, knob: Mapping[str, Sequence[str]]) -> str:
    commands = ", ".join(f"{key} = {json.dumps(words)}" for key, words in knob.items())
    return f"[variant.{name}]\ncommand = {{{commands}}}"


def _write_limit(stand: Stand, number: str) -> Path:
    """The group whose writes, those of its dirty pages too, get 8 MB/s: the root in the older hierarchy, where all
    pages are written back from it; else a group of its own."""
    group, _ = stand.group("/dev/null")
    if (group / "io.max").exists():
        (group / "io.max").write_text(f"{number} wbps=8000000")
        return group
    file = group.parent / "blkio.throttle.write_bps_device"
    file.write_text(f"{number} 8000000")
    stand.undo(lambda: file.write_text(f"{number} 0"))
    return group.parent


def _script(stand: Stand, name: str, text: str) -> str:
    path = stand.place / name
    path.write_text(text)
    return str(path)


def _run(stand: Stand, text: str, group: Path) -> dict[str, Any]:
    (stand.place / "hostile.toml").write_text(text)
    done = stand.run_in(group, "run", "hostile.toml", "--folder", "folder", timeout=1200)
    assert done.code in (0, 1, 3), done
    found = verdict(stand.place / "folder")["account"]["judgement"]["verdicts"][0]
    return {**found, "code": done.code, "said": done.out}
