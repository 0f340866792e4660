"""What a reproduction would do, before anybody accepts it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from itertools import product

from iodelta.bundle.planning import Prepared
from iodelta.lab.bench import Requests
from iodelta.study.reproduction import Side
from iodelta.study.words import inert
from iodelta.workload.fio import command_of

WIDTH = 80

COMMANDS = 6
"""fio command lines that are shown in full."""


def plan_lines(prepared: Prepared, there: Side, made_by: str) -> Iterator[str]:
    """What stands above and below the plan: whose it is, what is not as it was, commands, and what is dangerous."""
    yield from _plain(f"Bundle    {inert(there.name)}, SHA-256 {there.digest}, made by iodelta {inert(made_by)}")
    if there.question:
        yield from _plain(f"Question  {inert(there.question)}")
    if not any(effect.shown for effect in there.effects):
        yield from _plain(
            "Note      nothing was shown there (every interval holds zero): there is nothing to reproduce"
        )
    for note in prepared.notes:
        yield from _plain(f"Changed   {inert(note)}")
    for one in prepared.dangers:
        yield from _plain(f"DANGER    {inert(one.place)}: {inert(one.what)}: {inert(one.why)}")


def command_lines(prepared: Prepared) -> Iterator[str]:
    """fio's command lines as they would be, directories of the run aside."""
    experiment, found = prepared.experiment, prepared.found
    told: dict[str, None] = {}
    requests = Requests(experiment, found.target, found.size, found.fio, workdir="WORKDIR")
    for cell, variant in product(experiment.cells, experiment.variants):
        told[inert(shlex.join(command_of(requests.of(cell, variant))))] = None
    for text in list(told)[:COMMANDS]:
        yield from _plain(f"Runs      {text}")
    if len(told) > COMMANDS:
        yield f"          and {len(told) - COMMANDS} more that differ from these by their cell's options"


def _plain(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, subsequent_indent=" " * 10, break_on_hyphens=False)
