"""``iodelta fleet``: one question on many hosts. Commands import dask."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.cli.files import print_document
from iodelta.cli.fleet_report import command as report
from iodelta.cli.groups import Group
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.fleet.answers import FleetCheckAnswer, FleetStatusAnswer
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.host import FleetHost

_EXAMPLES = """
\b
Examples:
  iodelta fleet check experiment.toml --hosts nvme
  iodelta fleet run experiment.toml --hosts 'nvme,!stor3'
  iodelta fleet status iodelta-fleet-experiment
"""
INVENTORY = click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    default=Path("fleet.toml"),
    show_default=True,
    help="The file that names the hosts.",
)
HOSTS = click.option(
    "--hosts",
    "expression",
    metavar="EXPR",
    help="Which hosts: names, patterns such as 'stor*', tags; !NAME leaves out, &TAG keeps (default: all).",
)
DESTROY = click.option(
    "--destroy", multiple=True, metavar="HOST:DEVICE", help="Allow this device of this host to be overwritten."
)
SCHEDULER = click.option(
    "--scheduler", default="", metavar="tcp://HOST:PORT", help="Use this Dask scheduler (default: this process)."
)
AT_ONCE = click.option(
    "--at-once", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many hosts at a time."
)
IN_USE = click.option(
    "--in-use",
    type=click.Choice(["wait", "skip"]),
    default="wait",
    show_default=True,
    help="If somebody else measures on a host's device.",
)
PATIENCE = click.option(
    "--patience",
    default="15m",
    show_default=True,
    metavar="TIME",
    help="How long to wait for a host that does not answer.",
)
FORMAT = click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console", show_default=True
)
FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.group("fleet", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """One question on many hosts: an ordinary experiment on each, over SSH, all from one inventory."""


command.add_command(report)


@command.command("check", epilog="\b\nExamples:\n  iodelta fleet check experiment.toml --hosts nvme\n")
@click.argument("file", type=click.Path(path_type=Path))
@HOSTS
@INVENTORY
@DESTROY
@click.option("--placebo", "budget", default="", metavar="TIME", help="Also compare each host with itself for so long.")
@click.option("--folder", "place", type=click.Path(path_type=Path), help="Folder for the comparisons of --placebo.")
@SCHEDULER
@AT_ONCE
@FORMAT
def check(
    file: Path,
    expression: str | None,
    inventory: Path,
    destroy: tuple[str, ...],
    budget: str,
    place: Path | None,
    scheduler: str,
    at_once: int,
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

    hosts = _chosen(inventory, expression)
    permits, files = destroyed(destroy, hosts), question(file)
    experiment = load(file)
    with workers(scheduler, min(at_once, len(hosts))) as (client, _):
        tasks = [client.submit(check_host, one, experiment, permits.get(one.name, ()), pure=False) for one in hosts]
        answer = FleetCheckAnswer(tuple(client.gather(tasks)))
    if budget:
        answer = _with_placebo(answer, hosts, files, budget, place, (destroy, scheduler, at_once))
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
    how: tuple[tuple[str, ...], str, int],
) -> FleetCheckAnswer:
    """The answer with a step for what the comparison of each good host with itself found."""
    import time

    from msgspec.structs import replace

    from iodelta.fleet.answers import CheckedStep, FleetCheckAnswer
    from iodelta.fleet.folder import placebo
    from iodelta.fleet.status import status_of
    from iodelta.plural import plural

    good = tuple(host for host, found in zip(hosts, answer.hosts, strict=True) if found.ok)
    if not good:
        return answer
    path = place or Path(time.strftime("iodelta-fleet-check-%Y%m%d-%H%M%S"))
    destroy, scheduler, at_once = how
    folder = _run(path, good, placebo(files, budget), destroy, scheduler, at_once, "skip", "1m")
    steps = {}
    for one in status_of(folder, good).hosts:
        ok = one.state == "done"
        steps[one.name] = CheckedStep(
            "placebo", ok, f"no alarm in {plural(one.trials, 'trial')}" if ok else one.reason or one.state, one.remedy
        )
    found = [replace(one, steps=(*one.steps, steps[one.name])) if one.name in steps else one for one in answer.hosts]
    return FleetCheckAnswer(tuple(found))


@command.command(
    "run",
    epilog="\b\nExamples:\n  iodelta fleet run experiment.toml --hosts 'nvme,!stor3'\n"
    "  iodelta fleet run iodelta-fleet-experiment       # continues it\n",
)
@click.argument("what", type=click.Path(path_type=Path))
@HOSTS
@INVENTORY
@DESTROY
@IN_USE
@PATIENCE
@click.option(
    "--folder", "place", type=click.Path(path_type=Path), help="The fleet folder (default: iodelta-fleet-FILE)."
)
@click.option("--spread", is_flag=True, help="Make one experiment whose blocks alternate between the hosts.")
@SCHEDULER
@AT_ONCE
@FORMAT
def run(
    what: Path,
    expression: str | None,
    inventory: Path,
    destroy: tuple[str, ...],
    in_use: str,
    patience: str,
    place: Path | None,
    spread: bool,
    scheduler: str,
    at_once: int,
    format_: str,
) -> None:
    """Measure WHAT, an experiment file, on every chosen host, or continue WHAT, a fleet folder.

    Each host gets an ordinary experiment folder below the fleet folder. A host, and each physical device, is used once
    at a time. A host that does not answer is waited for while the others go on; nothing is repeated because of a value.
    The same command again continues after a kill. Exit codes: 0 every host is done, 3 some are still to be measured,
    4 some could not be. With --spread all hosts share one experiment, and the exit code is that of `iodelta run`.
    """
    if spread:
        _spread(what, _chosen(inventory, expression), destroy, in_use, place, format_)
    from iodelta.fleet.folder import FleetFolder, question
    from iodelta.fleet.status import status_of

    if what.is_dir():
        if place is not None:
            raise RequestError("the fleet folder is given already", place="--folder")
        files = None
        place, hosts = what, _among(FleetFolder.open(what), expression)
    else:
        files, hosts = question(what), _chosen(inventory, expression)
        place = place or Path(f"iodelta-fleet-{what.stem}")
    folder = _run(place, hosts, files, destroy, scheduler, at_once, in_use, patience)
    answer = status_of(folder, hosts)
    _deliver(answer, format_)
    sys.exit(answer.exit_code)


def _spread(
    file: Path, hosts: tuple[FleetHost, ...], destroy: tuple[str, ...], in_use: str, place: Path | None, format_: str
) -> NoReturn:
    """One experiment over all hosts, as `iodelta run` with a --machine for each."""
    from iodelta.cli.running import Asked, measure
    from iodelta.cli.turn import let_wait
    from iodelta.experiment import load
    from iodelta.fleet.checking import destroyed

    asked_path = load(file).target.path
    paths = {host.target(asked_path): host.name for host in hosts}
    if len(paths) > 1:
        (one, first), (other, second) = list(paths.items())[:2]
        raise RequestError(
            f"one experiment has one path of its target, and it is {one} on {first}, {other} on {second}",
            place="--spread",
            remedy="choose hosts with the same path, or leave --spread out",
        )
    if in_use == "wait":
        let_wait()
    place = place or Path(f"iodelta-fleet-{file.stem}")
    permits = tuple(dict.fromkeys(itertools.chain.from_iterable(destroyed(destroy, hosts).values())))
    if place.exists():
        measure(place, Asked(destroy=permits, format_=format_))
    names = tuple(host.machine for host in hosts)
    measure(file, Asked(names=names, target=next(iter(paths)), destroy=permits, place=place, format_=format_))
    raise AssertionError("measuring exits by itself")


def _run(
    path: Path,
    hosts: tuple[FleetHost, ...],
    files: dict[str, bytes] | None,
    destroy: tuple[str, ...],
    scheduler: str,
    at_once: int,
    in_use: str,
    patience: str,
) -> FleetFolder:
    """Schedule a fleet to its end. ``files`` are those of the question; None: the one that is there."""
    from iodelta.experiment import seconds
    from iodelta.fleet.checking import destroyed
    from iodelta.fleet.cluster import workers
    from iodelta.fleet.coordinator import Coordinator, Policy
    from iodelta.fleet.folder import FleetFolder
    from iodelta.lab.signals import stop_on_signals
    from iodelta.study.words import inert

    def say(text: str) -> None:
        click.echo(inert(text), err=True)

    try:
        waits = seconds(patience)
    except ValueError as error:
        raise RequestError(str(error), place="--patience") from error
    policy = Policy("skip" if in_use == "skip" else "wait", waits, destroyed(destroy, hosts))
    folder = FleetFolder(path)
    folder.make()
    with (
        folder.journal.held(),
        stop_on_signals() as stop,
        workers(scheduler, min(at_once, len(hosts))) as (client, most),
    ):
        if files is not None:
            folder.fix(files)
        folder.join(hosts)
        say(f"fleet folder {path}")
        Coordinator(folder, hosts, policy, client=client, most=most, stop=stop, say=say).run()
    return folder


@command.command("status", epilog="\b\nExamples:\n  iodelta fleet status iodelta-fleet-experiment\n")
@FOLDER
@HOSTS
@FORMAT
def status(folder: Path, expression: str | None, format_: str) -> None:
    """Show the state of every host of a fleet: waiting, running, done, failed, lost, drained or skipped, and why."""
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.status import status_of

    opened = FleetFolder.open(folder)
    _deliver(status_of(opened, _among(opened, expression) if expression else ()), format_)


@command.command("cancel", epilog="\b\nExamples:\n  iodelta fleet cancel iodelta-fleet-experiment --hosts stor3\n")
@FOLDER
@HOSTS
@FORMAT
def cancel(folder: Path, expression: str | None, format_: str) -> None:
    """End the runs of a fleet, or of some of its hosts. Settings are restored, finished trials are kept, and
    `iodelta fleet run FOLDER` continues."""
    from iodelta.fleet.answers import FleetCancelAnswer
    from iodelta.fleet.coordinator import CANCELLED
    from iodelta.fleet.folder import FleetFolder

    opened = FleetFolder.open(folder)
    names = tuple(host.name for host in _among(opened, expression))
    if not opened.is_held():
        names = ()
    for name in names:
        opened.write(f"stop/{name}", CANCELLED.encode())
    if format_ == "json":
        print_document(FleetCancelAnswer(str(folder), names))
    elif names:
        click.echo(f"asked {', '.join(names)} to end", err=True)
    else:
        click.echo("no `iodelta fleet run` is at work on this folder: nothing to cancel", err=True)


@command.command(
    "fetch", epilog="\b\nExamples:\n  iodelta fleet fetch iodelta-fleet-experiment /srv/night --hosts stor3\n"
)
@FOLDER
@click.argument("there")
@HOSTS
@FORMAT
def fetch(folder: Path, there: str, expression: str | None, format_: str) -> None:
    """Bring experiment folders into a fleet that were measured on the hosts themselves: THERE is the folder's path on
    each of them. It must ask the same question; each file is checked against the folder's own seal. Exit codes: 0 every
    folder was fetched, 4 some were not."""
    from iodelta.fleet.answers import FleetFetchAnswer
    from iodelta.fleet.fetching import fetch_from
    from iodelta.fleet.folder import FleetFolder
    from iodelta.study.words import inert

    opened = FleetFolder.open(folder)
    hosts = _among(opened, expression)
    found = []
    with opened.journal.held():
        for host in hosts:
            one = fetch_from(opened, host, there)
            found.append(one)
            if format_ == "console":
                click.echo(inert(f"{one.name}: {'fetched' if one.fetched else 'not fetched:'} {one.said}"), err=True)
    answer = FleetFetchAnswer(str(folder), tuple(found))
    if format_ == "json":
        print_document(answer)
    sys.exit(answer.exit_code)


def _chosen(inventory: Path, expression: str | None) -> tuple[FleetHost, ...]:
    from iodelta.fleet.choice import chosen
    from iodelta.fleet.inventory import ALL, load

    return chosen(load(inventory), ALL if expression is None else expression)


def _among(folder: FleetFolder, expression: str | None) -> tuple[FleetHost, ...]:
    """Hosts of a fleet folder."""
    from iodelta.fleet.choice import chosen
    from iodelta.fleet.inventory import ALL

    hosts = sorted(folder.hosts().values(), key=lambda host: host.name)
    return chosen(hosts, ALL if expression is None else expression)


def _deliver(answer: FleetStatusAnswer, format_: str) -> None:
    if format_ == "json":
        print_document(answer)
        return
    for line in _status_lines(answer):
        click.echo(line)


def _status_lines(answer: FleetStatusAnswer) -> Iterator[str]:
    from iodelta.plural import plural
    from iodelta.study.words import inert

    width = max((len(host.name) for host in answer.hosts), default=0)
    for host in answer.hosts:
        yield f"{host.name:{width}}  {host.state:8} {plural(host.trials, 'trial')}"
        for text in (host.reason, host.remedy, *host.notes):
            if text:
                yield f"{'':{width}}  {inert(text)}"


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
