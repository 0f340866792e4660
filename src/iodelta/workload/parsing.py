"""Whether fio itself accepts a job's options, checked before anything is measured: ``fio --parse-only``.

It opens and creates nothing, so neither the target nor a place for output is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from iodelta.errors import RequestError
from iodelta.machine import Machine
from iodelta.workload.fio import command, target_words
from iodelta.workload.model import FioRequest
from iodelta.workload.tried import PATIENCE, in_time

LINES = 24
"""Lines of fio's own message that are quoted."""


class Job(msgspec.Struct, frozen=True):
    """One job as words of fio's command line, and what to call it in a message."""

    name: str
    words: tuple[str, ...]


def job_of(name: str, request: FioRequest) -> Job:
    """Return the job of ``request``. Raises RequestError as ``command`` does."""
    return job_of_words(
        name,
        command(request),
        target_words(request.target, request.target_kind, request.files),
    )


def job_of_words(name: str, words: Sequence[str], target: Sequence[str]) -> Job:
    """Return the job in a whole command line: from its ``--name`` on, without the words of its ``target``."""
    start = next(at for at, word in enumerate(words) if word.startswith("--name="))
    return Job(name, tuple(word for word in words[start:] if word not in target))


def check(
    machine: Machine, jobs: Sequence[Job], workdir: str, *, fio: str = "fio"
) -> None:
    """Raises RequestError with fio's own message for the first job that it does not accept; MachineError where fio does
    not end in time."""
    refusal = _refused(machine, jobs, workdir, fio)
    if refusal is not None:
        job, message = refusal
        raise RequestError(
            f"fio does not accept these options:\n  {message}", place=job.name
        )


def _refused(
    machine: Machine, jobs: Sequence[Job], workdir: str, fio: str
) -> tuple[Job, str] | None:
    """Return the first job that this fio does not accept, with fio's message; None when it accepts every job.

    Starting fio takes 0.2 s and a further job next to nothing, so all jobs are checked at once, and halved only to find
    a bad one.
    """
    if not jobs:
        return None
    words = list(chain.from_iterable(job.words for job in jobs))
    done = machine.run(
        [fio, "--parse-only", *words],
        timeout=PATIENCE,
        env={"LC_ALL": "C"},
        cwd=workdir,
    )
    in_time(done, jobs[0].name)
    if done.returncode == 0:
        return None
    if len(jobs) == 1:
        message = (
            f"{done.stderr.decode(errors='replace')}\n{done.text}".strip()
            or f"fio ended with {done.returncode}"
        )
        return jobs[0], "\n  ".join(
            line.rstrip() for line in message.splitlines()[:LINES] if line.strip()
        )
    middle = len(jobs) // 2
    return _refused(machine, jobs[:middle], workdir, fio) or _refused(
        machine, jobs[middle:], workdir, fio
    )
