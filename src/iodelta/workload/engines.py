"""Which I/O engines this fio offers, and the reason why one cannot be used here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from iodelta.errors import MachineError
from iodelta.experiment import Experiment
from iodelta.machine import Machine
from iodelta.workload.naming import named
from iodelta.workload.tried import PATIENCE, in_time

ENGINES = frozenset(
    "io_uring libaio mmap null posixaio psync pvsync pvsync2 splice sync vsync cpuio".split()
)
"""Engines that do what ``rw`` says, and only to fio's ``filename``."""

READERS = frozenset("dev-dax filestat io_uring_cmd libpmem sg".split())
"""Engines that only read when ``rw`` says read. What they write need not be the target: of a partition ``sg`` counts
blocks from the beginning of its disk.

Neither here nor above are engines that name their place by another option (``e4defrag``, ``libblkio``, ``nbd``,
``rbd``, ``http``), that change files whatever ``rw`` says (``falloc``, ``filedelete``), or that are not known yet."""

_IO_URING_SWITCH = "/proc/sys/kernel/io_uring_disabled"


def engines(machine: Machine, fio: str = "fio") -> tuple[str, ...]:
    """The engines this fio was built with, in its order."""
    listing = machine.run([fio, "--enghelp"], timeout=30).text
    return tuple(re.findall(r"^\s+(\S+)\s*$", listing, re.MULTILINE))


def engine_refusal(
    machine: Machine,
    engine: str,
    workdir: str,
    *,
    fio: str = "fio",
    launcher: tuple[str, ...] = (),
) -> str | None:
    """Return why ``engine`` cannot be used here, or None: tries one read of a small file in ``workdir``.

    "io_uring: Operation not permitted (kernel.io_uring_disabled = 2)". Takes about 0.3 s. Raises MachineError where fio
    does not end in time, which says nothing about the engine.
    """
    scratch = f"{workdir}/engine.probe"
    done = machine.run(
        [
            *launcher,
            *(
                fio,
                "--output-format=json",
                "--eta=never",
                "--name=probe",
                f"--ioengine={engine}",
                "--rw=read",
            ),
            *("--bs=4k", "--size=4k", "--iodepth=1", f"--filename={named(scratch)}"),
        ],
        timeout=PATIENCE,
        env={"LC_ALL": "C"},
        cwd=workdir,
    )
    machine.run(["rm", "-f", "--", scratch])
    in_time(done, f"ioengine={engine}")
    if done.returncode == 0:
        return None
    output = (done.text + "\n" + done.stderr.decode(errors="replace")).strip()
    reasons = re.findall(r"error=(.+)$", output, re.MULTILINE) or re.findall(
        r"^fio: (.+)$", output, re.MULTILINE
    )
    reason = reasons[0] if reasons else f"fio ended with {done.returncode}"
    return (
        f"{engine}: {reason}{_switch(machine) if engine.startswith('io_uring') else ''}"
    )


def refused_engines(
    machine: Machine, experiment: Experiment, place: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Variants and cells whose ioengine cannot be used here, with the reason: each is tried on a small file in
    ``place``, which is in memory."""
    wanted_by_variant = {
        v.name: dict(v.options).get("ioengine") for v in experiment.variants
    }
    varied = all(wanted_by_variant.values())
    wanted_by_cell = {
        c.name: None if varied else c.option("ioengine") for c in experiment.cells
    }
    reasons = {
        engine: engine_refusal(machine, engine, place)
        for engine in {*wanted_by_variant.values(), *wanted_by_cell.values()}
        if engine
    }
    return _refused(wanted_by_variant, reasons), _refused(wanted_by_cell, reasons)


def _refused(
    wanted: Mapping[str, str | None], reasons: Mapping[str, str | None]
) -> dict[str, str]:
    """Return those whose engine has a reason against it, with the reason."""
    refusals = {name: reasons.get(engine or "") for name, engine in wanted.items()}
    return {name: reason for name, reason in refusals.items() if reason}


def _switch(machine: Machine) -> str:
    try:
        value = machine.read(_IO_URING_SWITCH).strip()
    except MachineError:  # kernels before 6.6 have no such switch
        return ""
    if value == "0":
        return " (a seccomp filter or container forbids it)"
    return f" (kernel.io_uring_disabled = {value})"
