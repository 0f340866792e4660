"""Reproducer scripts of small experiments."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from waiting import LIMIT

from iodelta.experiment import parse
from iodelta.lab.folder import Started
from iodelta.lab.plan import Plan, make_plan
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve
from iodelta.reproducer.script import script

SHELL = shutil.which("dash") or "sh"
SCHEDULERS = "[variant.none]\n'block.scheduler' = 'none'\n[variant.deadline]\n'block.scheduler' = 'mq-deadline'"
READS = "rw = 'randread'\nbs = '4k'\ndirect = 1\nioengine = 'psync'"


def plan_of(workload: str = READS, variants: str = SCHEDULERS, more: str = "", trial: str = "200ms") -> Plan:
    return make_plan(
        parse(f"[workload]\n{workload}\n{variants}\n{more}\n[design]\ntrial = '{trial}'\nramp = 0\nseed = 1")
    )


def trials_of(plan: Plan, blocks: int) -> list[Started]:
    return [
        Started(0.0, 0, slot.cell, slot.block, 0, position, name, 1000 + slot.block)
        for slot in list(plan.schedule.slots())[: blocks * len(plan.experiment.cells)]
        for position, name in enumerate(slot.order)
    ]


def written(place: Path, plan: Plan, target: str, blocks: int = 1) -> Path:
    """The script of ``plan`` as if it had been measured on ``target``."""
    path = place / "reproduce.sh"
    path.write_text(script(plan, resolve(LocalMachine(), target), trials_of(plan, blocks), "nobody knows.", "3.33"))
    return path


def run(path: Path, *words: str, programs: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script where it lies; ``programs`` is a folder whose programs come before the machine's own."""
    env = dict(os.environ)
    if programs is not None:
        env["PATH"] = f"{programs}:{env['PATH']}"
    return subprocess.run(
        [SHELL, path, *words], cwd=path.parent, env=env, capture_output=True, text=True, timeout=LIMIT
    )
