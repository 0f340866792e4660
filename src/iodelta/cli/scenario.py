"""``iodelta scenario``: the experiments that make what they measure."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.complete import scenarios
from iodelta.cli.contact import contact, on_machine
from iodelta.cli.delivery import FORMATS, deliver, delivered
from iodelta.cli.files import print_document
from iodelta.cli.groups import Group
from iodelta.cli.turn import in_turn, waits
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.cli.rehearsing import Rehearsal
    from iodelta.lab.folder import Folder
    from iodelta.machine import Machine
    from iodelta.probe.topology import Target
    from iodelta.scenarios.model import Need, Scenario

WIDTH = 80

_format = click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console"
)
_full = click.option(
    "--full",
    is_flag=True,
    help="Use the size of the original question: hours, not minutes.",
)


@click.group(
    "scenario",
    cls=Group,
    epilog="""
\b
Examples:
  iodelta scenario list
  iodelta scenario show queue-depth-sweep --full
  iodelta scenario run queue-depth-sweep --full --dry-run
  iodelta scenario run queue-depth-sweep
  iodelta scenario run queue-depth-sweep --vm --kernel 6.12
  iodelta scenario run queue-depth-sweep --full --target /dev/disk/by-id/... --format mail -o report.txt
""",
)
def command() -> None:
    """Replay published regression reports, as experiments that create and remove their own devices."""


@command.command("list")
@on_machine
@_format
def list_(machine: str, format_: str) -> None:
    """List the scenarios, and what this machine lacks for them."""
    from iodelta.scenarios.answers import ScenarioListAnswer, offered
    from iodelta.scenarios.catalogue import SCENARIOS

    with contact(machine) as place:
        found = tuple(offered(one, one.missing(place)) for one in SCENARIOS)
    if format_ == "json":
        print_document(ScenarioListAnswer(found))
        return
    for one in found:
        click.echo(one.name)
        for line in (*_wrapped(one.title), *_lacking(one.missing)):
            click.echo(line)


@command.command("show")
@click.argument("name", shell_complete=scenarios)
@_full
@on_machine
@_format
def show(name: str, full: bool, machine: str, format_: str) -> None:
    """Show a scenario: who asked the question, what it needs and creates, and its experiment file."""
    from iodelta.scenarios.answers import answer
    from iodelta.scenarios.catalogue import scenario

    one = scenario(name)
    with contact(machine) as place:
        found = answer(one, one.missing(place), full=full)
    if format_ == "json":
        print_document(found)
        return
    click.echo(f"{found.name}: {found.title}")
    for line in (
        *_wrapped(found.about),
        *_wrapped(f"It makes: {found.makes}"),
        *_lacking(found.missing),
    ):
        click.echo(line)
    click.echo(
        "  In its experiment file @NAME@ stands for a value that is known after the devices are made:"
    )
    click.echo(f"\n{found.experiment}", nl=False)


@command.command("run")
@click.argument("name", shell_complete=scenarios)
@_full
@click.option(
    "--target",
    default="",
    help="Measure this instead, or create everything in this directory.",
)
@on_machine
@click.option(
    "--vm",
    is_flag=True,
    help="Run in a throw-away qemu guest that has everything the scenario needs.",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    help="Kernel of the guest: 6.12, or a bzImage. Repeatable; each kernel becomes a variant.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="console",
    show_default=True,
)
@delivered
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Name of the experiment folder to create.",
)
@click.option(
    "--destroy",
    multiple=True,
    metavar="DEVICE",
    help="Allow the --target to be overwritten; name it again.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be created and measured, the space and the time; change nothing.",
)
@waits
def run(
    name: str,
    full: bool,
    target: str,
    machine: str,
    vm: bool,
    kernels: tuple[str, ...],
    format_: str,
    output: Path | None,
    charts: Path | None,
    force: bool,
    folder: Path | None,
    destroy: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Create the devices of the scenario NAME, measure them, remove them, and report.

    Exit codes: 0 nothing worse, 1 regression, 2 the request is wrong, 3 inconclusive, 4 could not measure because
    something is missing here.
    """
    import msgspec

    from iodelta.errors import RequestError
    from iodelta.report.derived import charted, derive
    from iodelta.scenarios.catalogue import scenario
    from iodelta.scenarios.model import ORIGIN, Origin

    one = scenario(name)
    origin = {
        ORIGIN: msgspec.json.encode(Origin(name, full, kernels, vm, target, machine))
    }
    _check_kernels(kernels, vm=vm)
    if dry_run and charts is not None:
        raise RequestError(
            "a plan has no charts", place="--dry-run", remedy="omit --charts"
        )
    if vm:
        machine, target = _guest(one, kernels, machine, target, full=full)
    if dry_run:
        found = _rehearse(one, kernels, machine, target, full=full, destroy=destroy)
        found.show(format_, output, force=force)
        return
    if len(kernels) > 1:
        made = _booted(
            one, kernels, machine, origin, full=full, folder=folder, format_=format_
        )
    else:
        with contact(machine) as place:
            own = _own(one, place, target)
            _check_needs(name, one.missing(place, makes=own is None))
            made = _measured(
                one,
                place,
                origin,
                full=full,
                own=own,
                home=target,
                named=machine,
                folder=folder,
                format_=format_,
                destroy=destroy,
            )
    account = derive(made)
    draws = format_ == "html" or charts is not None
    figures = charted(made)[1] if draws else ()
    deliver(account, lambda: figures, format_, output, charts, force=force)
    if one.tell is not None:
        for line in one.tell(made):
            click.echo(line, err=format_ != "console")
    sys.exit(account.exit_code)


def _check_kernels(kernels: tuple[str, ...], *, vm: bool) -> None:
    from iodelta.errors import RequestError

    if len(set(kernels)) < len(kernels):
        raise RequestError(
            "a kernel is given twice",
            place="--kernel",
            remedy="each is a variant of its own",
        )
    if kernels and not vm:
        raise RequestError(
            "a kernel is booted in a guest", place="--kernel", remedy="add --vm"
        )


def _check_needs(name: str, missing: Sequence[Need]) -> None:
    """Raises MeasureError if the machine lacks something that the scenario needs."""
    from iodelta.errors import MeasureError

    if not missing:
        return
    reasons = "; ".join(f"{need.what}: {need.reason}" for need in missing)
    remedies = "\n  ".join(f"{need.what}: {need.remedy}" for need in missing)
    raise MeasureError(f"cannot run here: {reasons}", place=name, remedy=remedies)


def _guest(
    one: Scenario, kernels: tuple[str, ...], machine: str, target: str, *, full: bool
) -> tuple[str, str]:
    """The name of a guest for it, and what is measured or where it is made there. Raises RequestError."""
    from iodelta.errors import RequestError
    from iodelta.vm.targets import PLACE

    if machine or target:
        raise RequestError(
            "a guest has its own target",
            place="--vm",
            remedy="leave out --machine and --target",
        )
    if not one.guest:
        raise RequestError(
            "a guest does not help this scenario",
            place=f"{one.name} --vm",
            remedy="run it without --vm",
        )
    if len(kernels) > 1 and one.in_guest is None:
        raise RequestError(
            "this scenario cannot compare kernels",
            place=one.name,
            remedy="give one --kernel",
        )
    named = one.guest_name(kernels, full=full)
    return named, PLACE if "target=" in named else "/tmp"


def _booted(
    one: Scenario,
    kernels: tuple[str, ...],
    named: str,
    beside: Mapping[str, bytes],
    *,
    full: bool,
    folder: Path | None,
    format_: str,
) -> Folder:
    """The folder of a run whose variants are kernels: each trial boots one. Raises IodeltaError."""
    from iodelta.cli.contact import contacts
    from iodelta.cli.running import looked, planned
    from iodelta.cli.watching import watcher
    from iodelta.experiment import parse
    from iodelta.lab.progress import Control
    from iodelta.lab.session import start
    from iodelta.lab.signals import stop_on_signals

    text = f"machine = {json.dumps(named)}\n{one.text(_of_kernels(one, kernels, full=full), full=full)}"
    with (
        contacts((named,), boots=True) as (machine,),
        stop_on_signals() as stop,
        watcher(format_) as watching,
    ):
        plan = planned(
            (machine,),
            looked((machine,), parse(text, one.name), leave_out=False),
            format_,
        )
        where = folder or _new(one)
        control = Control(watching, stop)
        return in_turn(
            lambda: start(where, text, plan, machine, control, beside=beside),
            stop,
            watching.note,
        )


def _of_kernels(
    one: Scenario, kernels: tuple[str, ...], *, full: bool
) -> dict[str, str]:
    """What fills the gaps where kernels are the variants."""
    variants = "\n".join(
        f"[variant.{json.dumps(kernel)}]\nkernel = {json.dumps(kernel)}\n"
        for kernel in kernels
    )
    values = {**(one.in_guest or {}), **one.of_guest(kernels)}
    values |= {"variants": variants, "baseline": kernels[0], "new": kernels[-1]}
    return values | dict({} if full else one.small_boots(len(kernels)))


def _rehearse(
    one: Scenario,
    kernels: tuple[str, ...],
    named: str,
    target: str,
    *,
    full: bool,
    destroy: tuple[str, ...],
) -> Rehearsal:
    """What a run would make, ask and take. Raises IodeltaError."""
    from iodelta.cli.rehearsing import Rehearsal, planned_here, planned_only

    machine = f"machine = {json.dumps(named)}\n" * bool(named)
    if len(kernels) > 1:
        return Rehearsal(
            planned_only(
                one, machine + one.text(_of_kernels(one, kernels, full=full), full=full)
            )
        )
    with contact(named) as place:
        own = _own(one, place, target)
        text = machine + one.text(one.foreseen(place, full, own), full=full)
        return planned_here(
            one, place, text, own, target or place.directory, full=full, destroy=destroy
        )


def _own(one: Scenario, machine: Machine, target: str) -> Target | None:
    """What the user wants measured instead of what it would make; None for the latter. Raises RequestError."""
    from iodelta.probe.topology import resolve

    found = resolve(machine, target) if target else None
    if found is not None:
        one.check_target(found.kind, target)
    return found if found is not None and found.kind != "directory" else None


def _measured(
    one: Scenario,
    machine: Machine,
    beside: Mapping[str, bytes],
    *,
    full: bool,
    own: Target | None,
    home: str,
    named: str,
    folder: Path | None,
    format_: str,
    destroy: tuple[str, ...],
) -> Folder:
    """The folder of a run; ``home`` is where to make things, here when empty. Raises IodeltaError."""
    from iodelta.cli.running import looked, planned
    from iodelta.cli.watching import watcher
    from iodelta.errors import MeasureError
    from iodelta.experiment import parse
    from iodelta.lab.progress import Control
    from iodelta.lab.session import settle_pending, start
    from iodelta.lab.signals import stop_on_signals
    from iodelta.scenarios.stage import staged

    place = home if home and own is None else machine.directory
    with stop_on_signals() as stop, watcher(format_) as watching:
        settle_pending(machine, watching)
        watching.note(
            f"{one.name} makes: {one.makes}"
            if own is None
            else f"{one.name} measures {own.path}"
        )
        with staged(
            machine, watching, full=full, target=own, home=place, stop=stop
        ) as stage:
            text = one.made(stage, machine=named)
            if stop():
                raise MeasureError("stopped before the first trial", place=one.name)
            watching.note(parse(text, one.name).question)
            found = looked(
                (machine,), parse(text, one.name), leave_out=True, destroy=destroy
            )
            plan = planned((machine,), found, format_)
            where = folder or _new(one)

            def starting() -> Folder:
                return start(
                    where,
                    text,
                    plan,
                    machine,
                    Control(watching, stop, destroy),
                    beside=beside,
                )

            return in_turn(starting, stop, watching.note)


def _new(one: Scenario) -> Path:
    return Path(time.strftime(f"{one.name}-%Y%m%d-%H%M%S"))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _lacking(missing: Sequence[Need]) -> Iterator[str]:
    for need in missing:
        yield from textwrap.wrap(
            f"needs {inert(need.what)}: {inert(need.reason)} ({inert(need.remedy)})",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
        )
