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

from iodelta.cli.contact import contact, on_machine
from iodelta.cli.delivery import FORMATS, deliver, delivered
from iodelta.cli.files import print_document
from iodelta.cli.groups import Group
from iodelta.cli.shared_options import in_formats
from iodelta.cli.turn import in_turn, waits
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.lab.folder import Folder
    from iodelta.machine import Machine
    from iodelta.parts.scenarios.model import Need, Scenario
    from iodelta.parts.scenarios.rehearsing import Rehearsal
    from iodelta.probe.topology import Target

WIDTH = 80

_format = click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console"
)
_full = click.option(
    "--full",
    is_flag=True,
    help="Use the size of the original question: hours, not minutes.",
)


def scenarios(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete the name of a scenario."""
    from iodelta.parts.scenarios.catalogue import SCENARIOS

    return [
        scenario.name for scenario in SCENARIOS if scenario.name.startswith(incomplete)
    ]


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
    from iodelta.parts.scenarios.answers import ScenarioListAnswer, offered
    from iodelta.parts.scenarios.catalogue import SCENARIOS

    with contact(machine) as place:
        offers = tuple(offered(chosen, chosen.missing(place)) for chosen in SCENARIOS)
    if format_ == "json":
        print_document(ScenarioListAnswer(offers))
        return
    for offer in offers:
        click.echo(offer.name)
        for line in (*_wrapped(offer.title), *_lacking(offer.missing)):
            click.echo(line)


@command.command("show")
@click.argument("name", shell_complete=scenarios)
@_full
@on_machine
@_format
def show(name: str, full: bool, machine: str, format_: str) -> None:
    """Show a scenario: who asked the question, what it needs and creates, and its experiment file."""
    from iodelta.parts.scenarios.answers import answer
    from iodelta.parts.scenarios.catalogue import scenario

    chosen = scenario(name)
    with contact(machine) as place:
        offer = answer(chosen, chosen.missing(place), full=full)
    if format_ == "json":
        print_document(offer)
        return
    click.echo(f"{offer.name}: {offer.title}")
    for line in (
        *_wrapped(offer.about),
        *_wrapped(f"It makes: {offer.makes}"),
        *_lacking(offer.missing),
    ):
        click.echo(line)
    click.echo(
        "  In its experiment file @NAME@ stands for a value that is known after the devices are made:"
    )
    click.echo(f"\n{offer.experiment}", nl=False)


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
    "--count",
    is_flag=True,
    help="Count instructions in guests instead of measuring time: exact on any machine. Kernels are compared so without "
    "KVM.",
)
@click.option("--timed", is_flag=True, help="Compare kernels by time even without KVM.")
@in_formats(FORMATS)
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
    count: bool,
    timed: bool,
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
    from iodelta.parts.scenarios.catalogue import scenario
    from iodelta.parts.scenarios.model import ORIGIN, Origin
    from iodelta.report.derived import charted, derive

    chosen = scenario(name)
    origin = {
        ORIGIN: msgspec.json.encode(Origin(name, full, kernels, vm, target, machine))
    }
    _check_kernels(kernels, vm=vm)
    if (count or (len(kernels) > 1 and not full and not timed)) and vm:
        _counted(
            chosen,
            kernels,
            format_,
            output,
            folder,
            always=count,
            force=force,
            dry_run=dry_run,
        )
    elif count:
        raise RequestError(
            "instructions are counted in guests", place="--count", remedy="add --vm"
        )
    if dry_run and charts is not None:
        raise RequestError(
            "a plan has no charts", place="--dry-run", remedy="omit --charts"
        )
    if vm:
        machine, target = _guest(chosen, kernels, machine, target, full=full)
    if dry_run:
        rehearsal = _rehearse(
            chosen, kernels, machine, target, full=full, destroy=destroy
        )
        rehearsal.show(format_, output, force=force)
        return
    if len(kernels) > 1:
        made = _booted(
            chosen, kernels, machine, origin, full=full, folder=folder, format_=format_
        )
    else:
        with contact(machine) as place:
            own = _own(chosen, place, target)
            _check_needs(name, chosen.missing(place, makes=own is None))
            made = _measured(
                chosen,
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
    if chosen.tell is not None:
        for line in chosen.tell(made):
            click.echo(line, err=format_ != "console")
    sys.exit(account.exit_code)


def _counted(
    chosen: Scenario,
    kernels: tuple[str, ...],
    format_: str,
    output: Path | None,
    folder: Path | None,
    *,
    always: bool,
    force: bool,
    dry_run: bool,
) -> None:
    """Count the question in guests and end, if it can be counted and that was asked for or there is no KVM."""
    from iodelta.cli.counting import begin
    from iodelta.cli.progress import say_line
    from iodelta.errors import RequestError
    from iodelta.experiment import parse
    from iodelta.vm.boot import why_no_kvm
    from iodelta.vm.kernels import here

    if not chosen.counted:
        if always:
            raise RequestError(
                "this question has no answer in instructions",
                place=f"{chosen.name} --count",
            )
        return
    reason = why_no_kvm()
    if not (always or reason):
        return
    if reason:
        say_line(
            f"Time in an emulated guest says nothing ({reason}), so instructions are counted: --timed measures it."
        )
    # Without names: from the oldest kernel that is here to the newest.
    known = [kernel.release for kernel in here()]
    named = (
        kernels
        if len(kernels) > 1
        else (*dict.fromkeys((*kernels[:1], *known[-1:])),)
        if kernels
        else known[:1] + known[-1:]
    )
    if len(set(named)) < 2:
        raise RequestError(
            "two kernels are compared",
            place="--kernel",
            remedy="`iodelta kernel fetch 6.1 6.12`, and name both",
        )
    text = chosen.in_counts(tuple(named))
    begin(
        parse(text, chosen.name),
        text,
        folder or _new(chosen),
        format_,
        output,
        force=force,
        dry_run=dry_run,
    )
    sys.exit(0)


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
    chosen: Scenario, kernels: tuple[str, ...], machine: str, target: str, *, full: bool
) -> tuple[str, str]:
    """Return the name of a guest for it, and what is measured or where it is made there. Raises RequestError."""
    from iodelta.errors import RequestError
    from iodelta.vm.targets import PLACE

    if machine or target:
        raise RequestError(
            "a guest has its own target",
            place="--vm",
            remedy="leave out --machine and --target",
        )
    if not chosen.guest:
        raise RequestError(
            "a guest does not help this scenario",
            place=f"{chosen.name} --vm",
            remedy="run it without --vm",
        )
    if len(kernels) > 1 and chosen.in_guest is None:
        raise RequestError(
            "this scenario cannot compare kernels",
            place=chosen.name,
            remedy="give one --kernel",
        )
    named = chosen.guest_name(kernels, full=full)
    return named, PLACE if "target=" in named else "/tmp"


def _booted(
    chosen: Scenario,
    kernels: tuple[str, ...],
    named: str,
    beside: Mapping[str, bytes],
    *,
    full: bool,
    folder: Path | None,
    format_: str,
) -> Folder:
    """Return the folder of a run whose variants are kernels: each trial boots one. Raises IodeltaError."""
    from iodelta.cli.contact import contacts
    from iodelta.cli.running import looked, planned
    from iodelta.cli.watching import watcher
    from iodelta.experiment import parse
    from iodelta.lab.progress import Control
    from iodelta.lab.session import start
    from iodelta.lab.signals import stop_on_signals

    text = f"machine = {json.dumps(named)}\n{chosen.text(_of_kernels(chosen, kernels, full=full), full=full)}"
    with (
        contacts((named,), boots=True) as (machine,),
        stop_on_signals() as stop,
        watcher(format_) as watching,
    ):
        plan = planned(
            (machine,),
            looked((machine,), parse(text, chosen.name), leave_out=False),
            format_,
        )
        where = folder or _new(chosen)
        control = Control(watching, stop)
        return in_turn(
            lambda: start(where, text, plan, machine, control, beside=beside),
            stop,
            watching.note,
        )


def _of_kernels(
    chosen: Scenario, kernels: tuple[str, ...], *, full: bool
) -> dict[str, str]:
    """Return what fills the gaps where kernels are the variants."""
    variants = "\n".join(
        f"[variant.{json.dumps(kernel)}]\nkernel = {json.dumps(kernel)}\n"
        for kernel in kernels
    )
    values = {**(chosen.in_guest or {}), **chosen.of_guest(kernels)}
    values |= {"variants": variants, "baseline": kernels[0], "new": kernels[-1]}
    return values | dict({} if full else chosen.small_boots(len(kernels)))


def _rehearse(
    chosen: Scenario,
    kernels: tuple[str, ...],
    named: str,
    target: str,
    *,
    full: bool,
    destroy: tuple[str, ...],
) -> Rehearsal:
    """Return what a run would make, ask and take. Raises IodeltaError."""
    from iodelta.parts.scenarios.rehearsing import Rehearsal, planned_here, planned_only
    from iodelta.vm.spec import parse

    machine = f"machine = {json.dumps(named)}\n" * bool(named)
    if len(kernels) > 1:
        text = chosen.text(_of_kernels(chosen, kernels, full=full), full=full)
        spec = parse(named.removeprefix("vm:"))
        return Rehearsal(planned_only(chosen, machine + text, spec))
    with contact(named) as place:
        own = _own(chosen, place, target)
        text = machine + chosen.text(chosen.foreseen(place, full, own), full=full)
        return planned_here(
            chosen,
            place,
            text,
            own,
            target or place.directory,
            full=full,
            destroy=destroy,
        )


def _own(chosen: Scenario, machine: Machine, target: str) -> Target | None:
    """Return what the user wants measured instead of what it would make; None for the latter. Raises RequestError."""
    from iodelta.probe.topology import resolve

    resolved = resolve(machine, target) if target else None
    if resolved is not None:
        chosen.check_target(resolved.kind, target)
    return resolved if resolved is not None and resolved.kind != "directory" else None


def _measured(
    chosen: Scenario,
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
    """Return the folder of a run; ``home`` is where to make things, here when empty. Raises IodeltaError."""
    from iodelta.cli.running import looked, planned
    from iodelta.cli.watching import watcher
    from iodelta.errors import MeasureError
    from iodelta.experiment import parse
    from iodelta.lab.progress import Control
    from iodelta.lab.session import settle_pending, start
    from iodelta.lab.signals import stop_on_signals
    from iodelta.parts.scenarios.stage import staged

    place = home if home and own is None else machine.directory
    with stop_on_signals() as stop, watcher(format_) as watching:
        settle_pending(machine, watching)
        watching.note(
            f"{chosen.name} makes: {chosen.makes}"
            if own is None
            else f"{chosen.name} measures {own.path}"
        )
        with staged(
            machine, watching, full=full, target=own, home=place, stop=stop
        ) as stage:
            text = chosen.made(stage, machine=named)
            if stop():
                raise MeasureError("stopped before the first trial", place=chosen.name)
            watching.note(parse(text, chosen.name).question)
            survey = looked(
                (machine,), parse(text, chosen.name), leave_out=True, destroy=destroy
            )
            plan = planned((machine,), survey, format_)
            where = folder or _new(chosen)

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


def _new(chosen: Scenario) -> Path:
    return Path(time.strftime(f"{chosen.name}-%Y%m%d-%H%M%S"))


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
