"""A run of fio, of its ``t/io_uring``, or of any command: what was asked, how it went, what it measured."""

from __future__ import annotations

from typing import Literal

import msgspec

from iodelta.experiment.model import Measure
from iodelta.trial import Direction, Finding, Latency, Quantity

Ended = Literal["finished", "stopped", "timed out"]
Tool = Literal["fio", "t/io_uring", "command"]
OUTPUTS = {"fio": "fio.json", "t/io_uring": "io_uring.txt", "command": "output.txt"}
"""Tool -> what the file of its output is called in a folder."""


class FioRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides one fio run. Times are seconds, sizes bytes.

    ``options`` are the user's, in their order, spelt as fio spells them (None: a flag without a value), without the
    options that iodelta sets itself (``iodelta.jobfile.owned``). ``target`` is an absolute path; in a ``directory`` fio
    chooses the file names. ``workdir`` is an existing directory on the machine, not on the target, which receives
    fio's output. ``launcher`` words go before fio (``taskset -c 0-3``). ``fio`` is the program, of the kind that
    ``tool`` says; ``version`` is fio's, as ``fio_version`` says.
    """

    options: tuple[tuple[str, str | None], ...]
    target: str
    target_kind: Literal["device", "file", "directory"]
    runtime: float
    ramp: float
    seed: int
    workdir: str
    size: int | None = None
    files: str = ""
    """Of a ``directory``: how its files are called (``filename_format``)."""
    launcher: tuple[str, ...] = ()
    tool: Tool = "fio"
    fio: str = "fio"
    version: tuple[int, int] = (3, 33)
    allow_commands: bool = False
    whole: bool = False
    """The run ends when ``size`` bytes were done; ``runtime`` is only its limit."""
    words: tuple[str, ...] = ()
    """Of a ``command``: what is run; ``fio`` is then the Python of its supervisor, ``runtime`` its time limit."""
    reset: tuple[tuple[str, ...], ...] = ()
    """Commands that run before it."""
    only_reads: bool = False
    """Of a ``command``: its owner says that it writes nothing."""
    measures: tuple[Measure, ...] = ()
    """What is read from its output."""
    copied: tuple[str, ...] = ()
    """Of a ``command``: files and directories of its words that are copied for this trial alone."""


class FioRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended, byte for byte: nothing here is interpreted yet (``read_run`` does that)."""

    request: FioRequest
    args: tuple[str, ...]
    exit_code: int
    """fio's exit code; negative: the signal that ended it."""
    ended: Ended
    started: float
    """Unix seconds."""
    seconds: float
    """Wall time from before the start of fio until after its end."""
    output: bytes
    """What fio wrote to its ``--output`` file: json+, and the notes it mixes in. Of ``t/io_uring`` its output."""
    stdout: bytes
    stderr: bytes
    log: bytes
    """The per-second iops log; of a ``command`` its supervisor's report."""
    before: str = ""
    """Why the reset before a ``command`` failed; the command itself did not run then."""


class FioResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one fio run measured. The run is usable unless one of ``findings`` is ``hard``."""

    directions: tuple[Direction, ...] = ()
    sync: Latency | None = None
    """Of fsync and its like."""
    usr_cpu: float = float("nan")
    sys_cpu: float = float("nan")
    """Percent of one CPU, summed over the jobs."""
    context_switches: int = 0
    series: dict[str, tuple[float, ...]] = {}
    """``read.iops``: one value per whole second of the measured window."""
    window: tuple[float, float] | None = None
    """Unix seconds between which fio measured (after the ramp); None when it did not say. Good to 30 ms."""
    fio_version: str = ""
    counters: dict[str, float] = {}
    """What the load itself counted beyond fio's directions: the members of a mirror."""
    measured: dict[str, Quantity] = {}
    """What was read from the output of a command, and what it used."""
    findings: tuple[Finding, ...] = ()

    @property
    def usable(self) -> bool:
        """Return whether the numbers may be used: no finding is ``hard``."""
        return all(finding.severity != "hard" for finding in self.findings)
