"""``iodelta fleet``: one question on many hosts. Commands import dask."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iodelta.api.hosts import How, among, chosen_of, measured, scheduled
from iodelta.cli.commands import Asked, declared, fresh, group, words_of
from iodelta.cli.progress import say_line
from iodelta.errors import RequestError
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.fleet.answers import FleetCheckAnswer, FleetStatusAnswer
    from iodelta.fleet.host import FleetHost
    from iodelta.report.formats.charts.model import Charts

DESTROY = "--destroy HOST:DEVICE*  Allow this device of this host to be overwritten."

command = group(
    "fleet",
    "Measure one experiment on many hosts of an inventory, over SSH, and say whether they agree.",
    """
  iodelta fleet check experiment.toml --hosts nvme
  iodelta fleet run experiment.toml --hosts 'nvme,!stor3'
  iodelta fleet status iodelta-fleet-experiment
""",
)


@declared(
    "check",
    "file",
    f"""
--hosts
--inventory
{DESTROY}
--placebo TIME        Also compare each host with itself for this long.
--folder
--scheduler
--at-once
--allow-commands
--format
""",
    "  iodelta fleet check experiment.toml --hosts nvme",
    into=command,
)
def check(asked: Asked) -> None:
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

    hosts = chosen_of(asked.inventory, asked.hosts)
    commands = asked.allow_commands
    permits, files = destroyed(asked.destroy, hosts), question(asked.file, commands)
    experiment = load(asked.file)
    with workers(asked.scheduler, min(asked.at_once, len(hosts))) as (client, _):
        tasks = [
            client.submit(
                check_host,
                host,
                experiment,
                permits.get(host.name, ()),
                commands=commands,
                pure=False,
            )
            for host in hosts
        ]
        answer = FleetCheckAnswer(tuple(client.gather(tasks)))
    if asked.placebo:
        answer = _with_placebo(answer, hosts, files, asked)
    asked.answer(answer, _checks(answer))
    sys.exit(answer.exit_code)


def _with_placebo(
    answer: FleetCheckAnswer,
    hosts: tuple[FleetHost, ...],
    files: dict[str, bytes],
    asked: Asked,
) -> FleetCheckAnswer:
    """Return the answer with a step for what the comparison of each good host with itself found."""
    from msgspec.structs import replace

    from iodelta.fleet.answers import CheckedStep, FleetCheckAnswer
    from iodelta.fleet.folder import placebo
    from iodelta.fleet.status import status_of

    pairs = zip(hosts, answer.hosts, strict=True)
    good = tuple(host for host, check in pairs if check.ok)
    if not good:
        return answer
    how = How(
        destroy=asked.destroy,
        scheduler=asked.scheduler,
        at_once=asked.at_once,
        in_use="skip",
        patience="1m",
        allow_commands=asked.allow_commands,
    )
    path = asked.folder or fresh("iodelta-fleet-check")
    folder = scheduled(path, good, placebo(files, asked.placebo), how, say_line)
    steps = {}
    for state in status_of(folder, good).hosts:
        ok = state.state == "done"
        quiet = f"no alarm in {plural(state.trials, 'trial')}"
        said = quiet if ok else state.reason or state.state
        steps[state.name] = (CheckedStep("placebo", ok, said, state.remedy),)
    return FleetCheckAnswer(
        tuple(
            replace(one, steps=(*one.steps, *steps.get(one.name, ())))
            for one in answer.hosts
        )
    )


def _checks(answer: FleetCheckAnswer) -> Iterator[str]:
    from iodelta.study.words import inert

    width = max(len(host.name) for host in answer.hosts)
    for host in answer.hosts:
        yield f"{host.name:{width}}  {'ok' if host.ok else 'not ready'}"
        for step in host.steps:
            mark = "" if step.ok else "NOT OK: "
            yield f"{'':{width}}  {step.step:12} {mark}{inert(step.said)}"
            if step.remedy:
                yield f"{'':{width}}  {'':12} {inert(step.remedy)}"


@declared(
    "run",
    "what",
    f"""
--hosts
--inventory
{DESTROY}
--folder
--spread              Make one experiment whose blocks alternate between the hosts.
--at-once
--scheduler
--patience
--in-use
--allow-commands
--format
""",
    """
  iodelta fleet run experiment.toml --hosts 'nvme,!stor3'
  iodelta fleet run iodelta-fleet-experiment       # continues it
""",
    into=command,
)
def run(asked: Asked) -> None:
    """Measure WHAT, an experiment file, on every chosen host, or continue WHAT, a fleet folder.

    Each host gets an ordinary experiment folder below the fleet folder. A host, and each physical device, is used once
    at a time. iodelta waits for a host that does not answer, while the others go on. It repeats nothing because of a
    value. The same command again continues after a kill. Exit codes: 0 every host is done, 3 some are still to be
    measured, 4 some could not be. With --spread all hosts share one experiment, and the exit code is that of `iodelta
    run`.
    """
    what = Path(asked.what)
    expression = asked.hosts
    if asked.spread:
        _spread(what, chosen_of(asked.inventory, expression), asked)
    answer = measured(
        what,
        asked.folder,
        lambda: chosen_of(asked.inventory, expression),
        expression,
        how_of(asked),
        say_line,
    )
    asked.answer(answer, _states(answer))
    sys.exit(answer.exit_code)


def how_of(asked: Asked) -> How:
    """Return how hosts are scheduled, as it was asked for."""
    return How(
        destroy=asked.destroy,
        scheduler=asked.scheduler,
        at_once=asked.at_once,
        in_use=asked.in_use,
        patience=asked.patience,
        allow_commands=asked.allow_commands,
    )


def _spread(file: Path, hosts: tuple[FleetHost, ...], asked: Asked) -> None:
    """Run one experiment over all hosts, as `iodelta run` does with a --machine for each; exits by itself."""
    from iodelta.api.measuring import Wishes
    from iodelta.cli.run import measure
    from iodelta.experiment import load
    from iodelta.fleet.checking import destroyed

    path = load(file).target.path
    paths = {host.target(path): host.name for host in hosts}
    if len(paths) > 1:
        (path, first), (other, second) = list(paths.items())[:2]
        raise RequestError(
            f"one experiment has one path of its target, and it is {path} on {first}, {other} on {second}",
            place="--spread",
            remedy="choose hosts with the same path, or leave --spread out",
        )
    place = asked.folder or Path(f"iodelta-fleet-{file.stem}")
    devices = destroyed(asked.destroy, hosts).values()
    wishes = Wishes(
        destroy=tuple(dict.fromkeys(itertools.chain.from_iterable(devices))),
        allow_commands=asked.allow_commands,
        wait=asked.in_use == "wait",
    )
    asked.words = words_of("regression,inconclusive")
    if place.exists():
        measure(place, wishes, asked)
    from msgspec.structs import replace

    new = replace(
        wishes,
        machines=tuple(host.machine for host in hosts),
        given={"target": next(iter(paths))},
        folder=place,
    )
    measure(file, new, asked)


@declared(
    "status",
    "folder",
    "--hosts\n--format",
    "  iodelta fleet status iodelta-fleet-experiment",
    into=command,
)
def status(asked: Asked) -> None:
    """Show the state of every host of a fleet: waiting, running, done, failed, lost, drained or skipped, and why."""
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.status import status_of

    opened = FleetFolder.open(asked.folder)
    answer = status_of(
        opened, among(opened, asked.hosts) if asked.hosts is not None else ()
    )
    asked.answer(answer, _states(answer))


def _states(answer: FleetStatusAnswer) -> Iterator[str]:
    from iodelta.study.words import inert

    width = max((len(host.name) for host in answer.hosts), default=0)
    for host in answer.hosts:
        yield f"{host.name:{width}}  {host.state:8} {plural(host.trials, 'trial')}"
        for text in filter(None, (host.reason, host.remedy, *host.notes)):
            yield f"{'':{width}}  {inert(text)}"


@declared(
    "cancel",
    "folder",
    "--hosts\n--format",
    "  iodelta fleet cancel iodelta-fleet-experiment --hosts stor3",
    into=command,
)
def cancel(asked: Asked) -> None:
    """End the runs of a fleet, or of some of its hosts. Settings are restored, finished trials are kept, and
    `iodelta fleet run FOLDER` continues."""
    from iodelta.fleet.answers import FleetCancelAnswer
    from iodelta.fleet.coordinator import CANCELLED
    from iodelta.fleet.folder import FleetFolder

    opened = FleetFolder.open(asked.folder)
    names = tuple(host.name for host in among(opened, asked.hosts))
    if not opened.is_held():
        names = ()
    for name in names:
        opened.write(f"stop/{name}", CANCELLED.encode())
    asked.answer(FleetCancelAnswer(str(asked.folder), names), ())
    if asked.format == "console":
        nobody = "no `iodelta fleet run` is running on this folder: nothing to cancel"
        say_line(f"asked {', '.join(names)} to end" if names else nobody)


@declared(
    "fetch",
    "folder there",
    "--hosts\n--format",
    "  iodelta fleet fetch iodelta-fleet-experiment /srv/night --hosts stor3",
    into=command,
)
def fetch(asked: Asked) -> None:
    """Bring experiment folders into a fleet that were measured on the hosts themselves: THERE is the folder's path on
    each of them. It must ask the same question; each file is checked against the folder's own seal. Exit codes: 0 every
    folder was fetched, 4 some were not."""
    from iodelta.fleet.answers import FleetFetchAnswer
    from iodelta.fleet.fetching import fetch_from
    from iodelta.fleet.folder import FleetFolder

    opened = FleetFolder.open(asked.folder)
    fetched = []
    with opened.journal.held():
        for host in among(opened, asked.hosts):
            one = fetch_from(opened, host, asked.there)
            fetched.append(one)
            if asked.format == "console":
                done = "fetched" if one.fetched else "not fetched:"
                say_line(f"{one.name}: {done} {one.said}")
    answer = FleetFetchAnswer(str(asked.folder), tuple(fetched))
    asked.answer(answer, ())
    sys.exit(answer.exit_code)


@declared(
    "report",
    "folders...",
    """
--format VERDICTS [console]
--output
--charts
--force
--verbose
--fail-on [nothing]
--exit-code
""",
    """
  iodelta fleet report stor1/ stor2/ stor3/
  iodelta fleet report iodelta-fleet-experiment
  iodelta fleet report iodelta-fleet-experiment -o hosts.html
  iodelta fleet report iodelta-fleet-experiment --exit-code    # for a script: 1 for a regression, 3 inconclusive
""",
    metavar="FOLDER...",
    into=command,
)
def report(asked: Asked) -> None:
    """Combine the results of hosts that measured the same plan: is a change there everywhere, on average, or only on some machines?

    FOLDER is the experiment folder or bundle of one host, or a fleet folder, which holds one for each host. Fewer than
    three hosts get no joint verdict; each keeps its own. A host that sees changes where there are none, or whose folder
    is not what was measured, is shown but not averaged.

    Exit codes: 0 reported, 2 the request is wrong, 4 there is nothing to report. With --exit-code also 1 a regression
    everywhere, on average, or on some host for sure, and 3 inconclusive.
    """
    from iodelta.api.fleets import agreed

    account = agreed(asked.folders)

    def draw() -> Charts:
        from iodelta.report.formats.charts.changes import charts_of_fleet

        return charts_of_fleet(account)

    asked.deliver(account, draw)
    asked.end(account)
