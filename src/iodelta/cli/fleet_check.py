"""``iodelta fleet check``: what prevents a run, on each host."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.api.hosts import How, chosen_of, scheduled
from iodelta.cli.files import print_document
from iodelta.cli.fleet_options import (
    AT_ONCE,
    DESTROY,
    FORMAT,
    HOSTS,
    INVENTORY,
    SCHEDULER,
    say,
)
from iodelta.cli.own_command import allow_commands

if TYPE_CHECKING:
    from iodelta.fleet.answers import FleetCheckAnswer
    from iodelta.fleet.host import FleetHost


@click.command(
    "check",
    epilog="\b\nExamples:\n  iodelta fleet check experiment.toml --hosts nvme\n",
)
@click.argument("file", type=click.Path(path_type=Path))
@HOSTS
@INVENTORY
@DESTROY
@click.option(
    "--placebo",
    "budget",
    default="",
    metavar="TIME",
    help="Also compare each host with itself for this long.",
)
@click.option(
    "--folder",
    "place",
    type=click.Path(path_type=Path),
    help="Folder for the comparisons of --placebo.",
)
@SCHEDULER
@AT_ONCE
@allow_commands
@FORMAT
def command(
    file: Path,
    expression: str | None,
    inventory: Path,
    destroy: tuple[str, ...],
    budget: str,
    place: Path | None,
    scheduler: str,
    at_once: int,
    allow_commands: bool,
    format_: str,
) -> None:
    """Look at every host: can it be reached, and can FILE be measured there?

    Checks the connection, the target, fio, knobs, permits to write, and whether somebody measures there now, and shows
    the machine. With --placebo each host also compares the baseline with itself; a host on which that comes out as a
    change should not be measured. Exit codes: 0 all hosts can be measured, 4 some cannot.
    """
    from iodelta.experiment import load
    from iodelta.fleet.answers import FleetCheckAnswer
    from iodelta.fleet.checking import check as check_host
    from iodelta.fleet.checking import destroyed
    from iodelta.fleet.cluster import workers
    from iodelta.fleet.folder import question

    hosts = chosen_of(inventory, expression)
    permits, files = destroyed(destroy, hosts), question(file, allow_commands)
    experiment = load(file)
    with workers(scheduler, min(at_once, len(hosts))) as (client, _):
        tasks = [
            client.submit(
                check_host,
                host,
                experiment,
                permits.get(host.name, ()),
                commands=allow_commands,
                pure=False,
            )
            for host in hosts
        ]
        answer = FleetCheckAnswer(tuple(client.gather(tasks)))
    if budget:
        how = How(
            destroy=destroy,
            scheduler=scheduler,
            at_once=at_once,
            in_use="skip",
            patience="1m",
            allow_commands=allow_commands,
        )
        answer = _with_placebo(answer, hosts, files, budget, place, how)
    if format_ == "json":
        print_document(answer)
    else:
        for line in _check_lines(answer):
            click.echo(line)
    sys.exit(answer.exit_code)


def _with_placebo(
    answer: FleetCheckAnswer,
    hosts: tuple[FleetHost, ...],
    files: dict[str, bytes],
    budget: str,
    place: Path | None,
    how: How,
) -> FleetCheckAnswer:
    """Return the answer with a step for what the comparison of each good host with itself found."""
    import time

    from msgspec.structs import replace

    from iodelta.fleet.answers import CheckedStep, FleetCheckAnswer
    from iodelta.fleet.folder import placebo
    from iodelta.fleet.status import status_of
    from iodelta.plural import plural

    good = tuple(
        host for host, check in zip(hosts, answer.hosts, strict=True) if check.ok
    )
    if not good:
        return answer
    path = place or Path(time.strftime("iodelta-fleet-check-%Y%m%d-%H%M%S"))
    folder = scheduled(path, good, placebo(files, budget), how, say)
    steps = {}
    for state in status_of(folder, good).hosts:
        ok = state.state == "done"
        steps[state.name] = CheckedStep(
            "placebo",
            ok,
            f"no alarm in {plural(state.trials, 'trial')}"
            if ok
            else state.reason or state.state,
            state.remedy,
        )
    checks = [
        replace(one, steps=(*one.steps, steps[one.name])) if one.name in steps else one
        for one in answer.hosts
    ]
    return FleetCheckAnswer(tuple(checks))


def _check_lines(answer: FleetCheckAnswer) -> Iterator[str]:
    from iodelta.study.words import inert

    width = max(len(host.name) for host in answer.hosts)
    for host in answer.hosts:
        yield f"{host.name:{width}}  {'ok' if host.ok else 'not ready'}"
        for step in host.steps:
            mark = "" if step.ok else "NOT OK: "
            yield f"{'':{width}}  {step.step:12} {mark}{inert(step.said)}"
            if step.remedy:
                yield f"{'':{width}}  {'':12} {inert(step.remedy)}"
