"""``iodelta scenario``: the experiments that make what they measure."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
import time
from collections.abc import Sequence
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
    from iodelta.machine import Machine
    from iodelta.parts.scenarios.model import Need, Scenario
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
    from iodelta.parts.scenarios.answers import Offered, ScenarioListAnswer
    from iodelta.parts.scenarios.catalogue import SCENARIOS

    with contact(machine) as place:
        offers = tuple(
            Offered(one.name, one.title, one.missing(place)) for one in SCENARIOS
        )
    if format_ == "json":
        print_document(ScenarioListAnswer(offers))
        return
    for offer in offers:
        click.echo(offer.name)
        _say(offer.missing, offer.title)


@command.command("show")
@click.argument("name", shell_complete=scenarios)
@_full
@on_machine
@_format
def show(name: str, full: bool, machine: str, format_: str) -> None:
    """Show a scenario: who asked the question, what it needs and creates, and its experiment file."""
    from iodelta.parts.scenarios.answers import ScenarioAnswer
    from iodelta.parts.scenarios.catalogue import scenario

    one = scenario(name)
    with contact(machine) as place:
        missing = one.missing(place)
    offer = ScenarioAnswer(
        one.name, one.title, one.about, one.makes, missing, one.text({}, full=full)
    )
    if format_ == "json":
        print_document(offer)
        return
    click.echo(f"{offer.name}: {offer.title}")
    _say(offer.missing, offer.about, f"It makes: {offer.makes}")
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

    from iodelta.cli import counting
    from iodelta.cli.contact import contacts
    from iodelta.cli.running import looked, planned
    from iodelta.cli.watching import watcher
    from iodelta.errors import MeasureError, RequestError
    from iodelta.experiment import parse
    from iodelta.lab.progress import Control
    from iodelta.lab.session import settle_pending, start
    from iodelta.lab.signals import stop_on_signals
    from iodelta.parts.scenarios.catalogue import scenario
    from iodelta.parts.scenarios.model import ORIGIN, Origin
    from iodelta.parts.scenarios.stage import staged
    from iodelta.report.derived import charted, derive
    from iodelta.vm.targets import PLACE

    chosen = scenario(name)
    beside = {
        ORIGIN: msgspec.json.encode(Origin(name, full, kernels, vm, target, machine))
    }
    where = folder or Path(time.strftime(f"{name}-%Y%m%d-%H%M%S"))
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
    if count and not vm:
        raise RequestError(
            "instructions are counted in guests", place="--count", remedy="add --vm"
        )
    if vm and (count or (len(kernels) > 1 and not full and not timed)):
        named = _to_count(chosen, kernels, always=count)
        if named:
            text = chosen.in_counts(named)
            counting.begin(
                parse(text, name),
                text,
                where,
                format_,
                output,
                force=force,
                dry_run=dry_run,
            )
            sys.exit(0)
    if dry_run and charts is not None:
        raise RequestError(
            "a plan has no charts", place="--dry-run", remedy="omit --charts"
        )
    if vm:
        if machine or target:
            remedy = "leave out --machine and --target"
            raise RequestError(
                "a guest has its own target", place="--vm", remedy=remedy
            )
        if not chosen.guest:
            what = "a guest does not help this scenario"
            raise RequestError(what, place=f"{name} --vm", remedy="run it without --vm")
        if len(kernels) > 1 and chosen.in_guest is None:
            raise RequestError(
                "this scenario cannot compare kernels",
                place=name,
                remedy="give one --kernel",
            )
        machine = chosen.guest_name(kernels, full=full)
        target = PLACE if "target=" in machine else "/tmp"
    if dry_run:
        missing, refused = _rehearse(
            chosen, kernels, machine, target, full, destroy, format_, output, force
        )
        if refused is not None:
            raise refused
        sys.exit(4 if missing else 0)
    boots = len(kernels) > 1
    with contextlib.ExitStack() as stack:
        (place,) = stack.enter_context(contacts((machine,), boots=boots))
        own = None if boots else _own(chosen, place, target)
        missing = () if boots else chosen.missing(place, makes=own is None)
        if missing:
            reasons = "; ".join(f"{need.what}: {need.reason}" for need in missing)
            remedies = "\n  ".join(f"{need.what}: {need.remedy}" for need in missing)
            raise MeasureError(
                f"cannot run here: {reasons}", place=name, remedy=remedies
            )
        stop = stack.enter_context(stop_on_signals())
        watching = stack.enter_context(watcher(format_))
        if boots:
            text = _on(machine) + chosen.text(
                chosen.of_kernels(kernels, full=full), full=full
            )
        else:
            settle_pending(place, watching)
            what = f"makes: {chosen.makes}" if own is None else f"measures {own.path}"
            watching.note(f"{name} {what}")
            home = target if target and own is None else place.directory
            stage = stack.enter_context(
                staged(place, watching, full=full, target=own, home=home, stop=stop)
            )
            text = chosen.made(stage, machine=machine)
            if stop():
                raise MeasureError("stopped before the first trial", place=name)
            watching.note(parse(text, name).question)
        survey = looked(
            (place,), parse(text, name), leave_out=not boots, destroy=destroy
        )
        plan, control = (
            planned((place,), survey, format_),
            Control(watching, stop, destroy),
        )
        made = in_turn(
            lambda: start(where, text, plan, place, control, beside=beside),
            stop,
            watching.note,
        )
    account = derive(made)
    figures = charted(made)[1] if format_ == "html" or charts is not None else ()
    deliver(account, lambda: figures, format_, output, charts, force=force)
    if chosen.tell is not None:
        for line in chosen.tell(made):
            click.echo(line, err=format_ != "console")
    sys.exit(account.exit_code)


def _to_count(
    chosen: Scenario, kernels: tuple[str, ...], *, always: bool
) -> tuple[str, ...]:
    """Return the kernels to count the question on; none where time is measured. Raises RequestError."""
    from iodelta.cli.progress import say_line
    from iodelta.errors import RequestError
    from iodelta.vm.boot import why_no_kvm
    from iodelta.vm.kernels import here

    if not chosen.counted and always:
        raise RequestError(
            "this question has no answer in instructions",
            place=f"{chosen.name} --count",
        )
    reason = why_no_kvm()
    if not chosen.counted or not (always or reason):
        return ()
    if reason:
        say_line(
            f"Time in an emulated guest says nothing ({reason}), so instructions are counted: --timed measures it."
        )
    if len(kernels) > 1:
        return kernels
    # Without names: from the oldest kernel that is here to the newest.
    known = [kernel.release for kernel in here()]
    named = tuple(dict.fromkeys((*(kernels or known[:1]), *known[-1:])))
    if len(named) < 2:
        remedy = "`iodelta kernel fetch 6.1 6.12`, and name both"
        raise RequestError("two kernels are compared", place="--kernel", remedy=remedy)
    return named


def _rehearse(
    chosen: Scenario,
    kernels: tuple[str, ...],
    named: str,
    target: str,
    full: bool,
    destroy: tuple[str, ...],
    format_: str,
    output: Path | None,
    force: bool,
) -> tuple[tuple[Need, ...], Exception | None]:
    """Show what a run would make, ask and take; return what is missing, and what the guard says of the user's own
    target. Nothing is made or booted for it. Raises IodeltaError."""
    from iodelta.cli.running import looked
    from iodelta.experiment import parse
    from iodelta.lab.boots import check_here
    from iodelta.lab.plan import make_plan
    from iodelta.machine import throw_away
    from iodelta.parts.scenarios.answers import ScenarioPlanAnswer
    from iodelta.study.planned import plan_answer
    from iodelta.vm.spec import parse as parse_guest

    missing: tuple[Need, ...] = ()
    refused, mine, home, free = None, False, "", None
    if len(kernels) > 1:
        text = _on(named) + chosen.text(
            chosen.of_kernels(kernels, full=full), full=full
        )
        experiment = parse(text, chosen.name)
        check_here(parse_guest(named.removeprefix("vm:")), experiment)
        answer = plan_answer(make_plan(experiment), ())
    else:
        with contact(named) as place:
            own = _own(chosen, place, target)
            missing = chosen.missing(place, makes=own is None)
            text = _on(named) + chosen.text(
                chosen.foreseen(place, full, own), full=full
            )
            experiment = parse(text, chosen.name)
            mine = own is not None and not throw_away(place)
            if own is not None and not missing:
                seen = looked((place,), experiment, leave_out=True, destroy=destroy)
                answer, refused, mine = seen.answer, seen.refused, True
            else:
                answer = plan_answer(make_plan(experiment), ())
            if own is None and not throw_away(place):
                home = target or place.directory
                blocks, each = place.run(
                    ["stat", "-f", "-c", "%a %S", "--", home]
                ).text.split()
                free = int(blocks) * int(each)
    makes, space = (chosen.makes, chosen.space[full]) if home else ("", 0)
    rehearsed = ScenarioPlanAnswer(
        chosen.name, makes, space, free, home, missing, answer, mine
    )
    deliver(rehearsed, tuple, format_, output, force=force)
    return missing, refused


def _on(machine: str) -> str:
    """Return the line of an experiment file for a machine; nothing for this one."""
    return f"machine = {json.dumps(machine)}\n" * bool(machine)


def _own(chosen: Scenario, machine: Machine, target: str) -> Target | None:
    """Return what the user wants measured instead of what it would make; None for the latter. Raises RequestError."""
    from iodelta.probe.topology import resolve

    resolved = resolve(machine, target) if target else None
    if resolved is not None:
        chosen.check_target(resolved.kind, target)
    return resolved if resolved is not None and resolved.kind != "directory" else None


def _say(missing: Sequence[Need], *texts: str) -> None:
    """Print texts, then what is missing, below the name of a scenario."""
    needs = (
        f"needs {inert(need.what)}: {inert(need.reason)} ({inert(need.remedy)})"
        for need in missing
    )
    for text, further in (
        *((text, "  ") for text in texts),
        *((need, "    ") for need in needs),
    ):
        click.echo(
            textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent=further)
        )
