"""The record of a trial: with fio's output it gives the same ``Trial`` later, on any machine."""

from __future__ import annotations

import re

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.lab.folder import Folder, Started
from iodelta.trial import Background, Finding, Place, Quantity, Trial
from iodelta.workload.model import OUTPUTS, FioResult, FioRun
from iodelta.workload.pooled import pooled
from iodelta.workload.result import read_run

RECORD = "record"

SEED = re.compile(rb'"randseed"\s*:\s*"?(\d+)')
"""As fio's JSON repeats it, once for the run or for each job."""


class Record(msgspec.Struct, frozen=True):
    """What a folder keeps of a trial besides fio's output; both together give the ``Trial``."""

    run: FioRun
    """Its ``output`` is empty here: another file of the folder holds it, byte for byte."""
    counters: dict[str, float]
    background: Background | None
    findings: tuple[Finding, ...] = ()
    more: tuple[FioRun, ...] = ()
    """Further runs of the same load in the same boot, with their output."""
    measured: dict[str, Quantity] = {}
    """Of a command: the numbers that the run read from its output. Readers of the folder, which may come from a
    stranger, do not run its patterns again."""
    usage: tuple[float, float, int] = (0.0, 0.0, 0)
    """Of a command: user and system CPU in percent of one CPU, context switches."""
    said: tuple[Finding, ...] = ()
    """Of a command: the findings about its run."""

    def results(self, output: bytes) -> FioResult:
        """Return what all its runs measured; ``output`` is the first one's."""
        if self.run.request.tool == "command":
            user, system, switches = self.usage
            return FioResult(
                measured=self.measured,
                usr_cpu=user,
                sys_cpu=system,
                context_switches=switches,
                findings=self.said,
            )
        first = read_run(msgspec.structs.replace(self.run, output=output))
        return pooled([first, *map(read_run, self.more)])


def assemble(
    identity: Started, record: Record, result: FioResult, source: str = ""
) -> Trial:
    """Return the trial of a record and what fio measured: the same live and from a folder."""
    return Trial(
        number=identity.trial,
        cell=identity.cell,
        variant=identity.variant,
        block=identity.block,
        position=identity.position,
        seed=identity.seed,
        started=record.run.started,
        seconds=sum(run.seconds for run in (record.run, *record.more)),
        directions=result.directions,
        sync=result.sync,
        attempt=identity.attempt,
        conditioning=identity.conditioning,
        usr_cpu=result.usr_cpu,
        sys_cpu=result.sys_cpu,
        context_switches=result.context_switches,
        counters={**record.counters, **result.counters},
        background=record.background,
        series=result.series,
        measured=result.measured,
        findings=(*record.findings, *result.findings),
        source=Place(source),
    )


def read_trial(folder: Folder, identity: Started) -> Trial:
    """Return a finished trial from its raw files. Raises MeasureError when they are missing or damaged."""
    data = folder.read_raw(identity.trial, RECORD)
    try:
        record = from_json(data, Record)
    except msgspec.MsgspecError as error:
        raise MeasureError(
            f"damaged: {error}",
            place=str(folder.path / f"raw/{identity.trial:06d}.{RECORD}.zst"),
            remedy="restore a copy of the folder, if you have one",
        ) from error
    output = folder.read_raw(identity.trial, OUTPUTS[record.run.request.tool])
    outputs = (output, *(more.output for more in record.more))
    for number, (made, text) in enumerate(
        zip((record.run, *record.more), outputs, strict=True)
    ):
        wanted = identity.seed + number
        seeds = (
            {int(seed) for seed in SEED.findall(text)}
            if made.request.tool == "fio"
            else set()
        )
        other = (seeds | {made.request.seed}) - {wanted}
        if other:
            raise MeasureError(
                f"fio ran with seed {min(other)}, but the journal says {wanted}: not the raw files of this trial",
                place=f"trial {identity.trial}",
            )
    return assemble(
        identity,
        record,
        record.results(output),
        f"{folder.path.name}/raw/{identity.trial:06d}",
    )
