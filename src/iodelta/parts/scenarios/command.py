"""``iodelta scenario``: the experiments that make what they measure."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from iodelta.cli.commands import Asked, contacts, declared, fresh, group
from iodelta.cli.progress import say_line
from iodelta.errors import RequestError
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.machine import Machine
    from iodelta.parts.scenarios.model import Need, Scenario
    from iodelta.probe.topology import Target

WIDTH = 80

FULL = (
    "--full                Use the size of the original question: hours, not minutes."
)


def scenarios(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete the name of a scenario."""
    from iodelta.parts.scenarios.catalogue import SCENARIOS

    return [
        scenario.name for scenario in SCENARIOS if scenario.name.startswith(incomplete)
    ]


command = group(
    "scenario",
    "Replay published regression reports, as experiments that create and remove their own devices.",
    """
  iodelta scenario list
  iodelta scenario show queue-depth-sweep --full
  iodelta scenario run queue-depth-sweep --full --dry-run
  iodelta scenario run queue-depth-sweep
  iodelta scenario run queue-depth-sweep --vm --kernel 6.12
  iodelta scenario run queue-depth-sweep --full --target /dev/disk/by-id/... --format mail -o report.txt
""",
)


@declared("list", "", "--machine\n--format", into=command)
def list_(asked: Asked) -> None:
    """List the scenarios, and what this machine lacks for them."""
    from iodelta.parts.scenarios.answers import Offered, ScenarioListAnswer
    from iodelta.parts.scenarios.catalogue import SCENARIOS

    with asked.contact() as place:
        offers = tuple(
            Offered(one.name, one.title, one.missing(place)) for one in SCENARIOS
        )
    lines = (
        line
        for offer in offers
        for line in (offer.name, *_lines(offer.missing, offer.title))
    )
    asked.answer(ScenarioListAnswer(offers), lines)


@declared(
    "show",
    "name",
    f"{FULL}\n--machine\n--format",
    complete={"name": scenarios},
    into=command,
)
def show(asked: Asked) -> None:
    """Show a scenario: who asked the question, what it needs and creates, and its experiment file."""
    from iodelta.parts.scenarios.answers import ScenarioAnswer
    from iodelta.parts.scenarios.catalogue import scenario

    one = scenario(asked.name)
    with asked.contact() as place:
        missing = one.missing(place)
    text = one.text({}, full=asked.full)
    offer = ScenarioAnswer(one.name, one.title, one.about, one.makes, missing, text)
    lines = (
        f"{offer.name}: {offer.title}",
        *_lines(offer.missing, offer.about, f"It makes: {offer.makes}"),
        "  In its experiment file @NAME@ stands for a value that is known after the devices are made:",
        f"\n{offer.experiment.rstrip()}",
    )
    asked.answer(offer, lines)


@declared(
    "run",
    "name",
    f"""
{FULL}
--target PATH         Measure this instead, or create everything in this directory.
--machine
--vm                  Run in a throw-away qemu guest that has everything the scenario needs.
--kernel NAME*        Kernel of the guest: 6.12, or a bzImage. Repeatable; each kernel becomes a variant.
--count               Count instructions in guests instead of measuring time: exact on any machine. Kernels are compared
                      so without KVM.
--timed               Compare kernels by time even without KVM.
--format REPORT [console]
--output
--charts
--force
--folder
--destroy DEVICE*     Allow the --target to be overwritten; name it again.
--dry-run             Show what would be created and measured, the space and the time; change nothing.
--wait
""",
    complete={"name": scenarios},
    into=command,
)
def run(asked: Asked) -> None:
    """Create the devices of the scenario NAME, measure them, remove them, and report.

    Exit codes: 0 nothing worse, 1 regression, 2 the request is wrong, 3 inconclusive, 4 could not measure because
    something is missing here.
    """
    import msgspec

    from iodelta.api.measuring import Question, Wishes, begin, look_for
    from iodelta.cli import counting
    from iodelta.cli.run import showing
    from iodelta.cli.watching import watcher
    from iodelta.errors import MeasureError
    from iodelta.experiment import parse
    from iodelta.lab.session import settle_pending
    from iodelta.lab.signals import stop_on_signals
    from iodelta.parts.scenarios.catalogue import scenario
    from iodelta.parts.scenarios.model import ORIGIN, Origin
    from iodelta.parts.scenarios.stage import staged
    from iodelta.report.derived import charted, derive
    from iodelta.vm.targets import PLACE

    name, kernels, full, vm = asked.name, asked.kernel, asked.full, asked.vm
    chosen, boots = scenario(name), len(kernels) > 1
    told = Origin(name, full, kernels, vm, asked.target, asked.machine)
    beside = {ORIGIN: msgspec.json.encode(told)}
    where = asked.folder or fresh(name)
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
    if asked.count and not vm:
        raise RequestError(
            "instructions are counted in guests", place="--count", remedy="add --vm"
        )
    if vm and (asked.count or (boots and not full and not asked.timed)):
        named = _to_count(chosen, kernels, always=asked.count)
        if named:
            text = chosen.in_counts(named)
            question = Question(text, parse(text, name))
            counting.begin(question, where, asked, dry_run=asked.dry_run)
            sys.exit(0)
    if asked.dry_run and asked.charts is not None:
        raise RequestError(
            "a plan has no charts", place="--dry-run", remedy="omit --charts"
        )
    if vm:
        if asked.machine or asked.target:
            remedy = "leave out --machine and --target"
            raise RequestError(
                "a guest has its own target", place="--vm", remedy=remedy
            )
        if not chosen.guest:
            what = "a guest does not help this scenario"
            raise RequestError(what, place=f"{name} --vm", remedy="run it without --vm")
        if boots and chosen.in_guest is None:
            raise RequestError(
                "this scenario cannot compare kernels",
                place=name,
                remedy="give one --kernel",
            )
        asked.machine = chosen.guest_name(kernels, full=full)
        asked.target = PLACE if "target=" in asked.machine else "/tmp"
    if asked.dry_run:
        missing, refused = _rehearse(chosen, asked)
        if refused is not None:
            raise refused
        sys.exit(4 if missing else 0)
    machine, target = asked.machine, asked.target
    with contextlib.ExitStack() as stack:
        machines = stack.enter_context(contacts((machine,), boots=boots))
        (place,) = machines
        own = None if boots else _own(chosen, place, target)
        missing = () if boots else chosen.missing(place, makes=own is None)
        if missing:
            reasons = "; ".join(f"{need.what}: {need.reason}" for need in missing)
            remedies = "\n  ".join(f"{need.what}: {need.remedy}" for need in missing)
            raise MeasureError(
                f"cannot run here: {reasons}", place=name, remedy=remedies
            )
        stop = stack.enter_context(stop_on_signals())
        watching = stack.enter_context(watcher(asked.format))
        if boots:
            values = chosen.of_kernels(kernels, full=full)
            text = _on(machine) + chosen.text(values, full=full)
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
        wishes = Wishes(leave_out=not boots, destroy=asked.destroy, wait=asked.wait)
        question = Question(text, parse(text, name))
        made = begin(
            where,
            text,
            machines,
            look_for(machines, question, wishes, say_line),
            wishes,
            watching,
            stop,
            showing(asked),
            beside,
        )
    account = derive(made)
    draws = asked.format == "html" or asked.charts is not None
    asked.deliver(account, lambda: charted(made)[1] if draws else ())
    for line in chosen.tell(made) if chosen.tell is not None else ():
        click.echo(line, err=asked.format != "console")
    sys.exit(account.exit_code)


def _to_count(
    chosen: Scenario, kernels: tuple[str, ...], *, always: bool
) -> tuple[str, ...]:
    """Return the kernels to count the question on; none where time is measured. Raises RequestError."""
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
    chosen: Scenario, asked: Asked
) -> tuple[tuple[Need, ...], Exception | None]:
    """Show what a run would make, ask and take; return what is missing, and what the guard says of the user's own
    target. Nothing is made or booted for it. Raises IodeltaError."""
    from iodelta.api.measuring import Question, Wishes, look_for
    from iodelta.experiment import parse
    from iodelta.lab.boots import check_here
    from iodelta.lab.plan import make_plan
    from iodelta.machine import throw_away
    from iodelta.parts.scenarios.answers import ScenarioPlanAnswer
    from iodelta.study.planned import plan_answer
    from iodelta.vm.spec import parse as parse_guest

    kernels, named, target, full = (
        asked.kernel,
        asked.machine,
        asked.target,
        asked.full,
    )
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
        with asked.contact() as place:
            own = _own(chosen, place, target)
            missing = chosen.missing(place, makes=own is None)
            text = _on(named) + chosen.text(
                chosen.foreseen(place, full, own), full=full
            )
            experiment = parse(text, chosen.name)
            mine = own is not None and not throw_away(place)
            if own is not None and not missing:
                wishes = Wishes(leave_out=True, destroy=asked.destroy)
                seen = look_for((place,), Question(text, experiment), wishes, say_line)
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
    asked.deliver(rehearsed)
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


def _lines(missing: Sequence[Need], *texts: str) -> Iterator[str]:
    """Yield texts, then what is missing, below the name of a scenario."""
    needs = (
        f"needs {inert(need.what)}: {inert(need.reason)} ({inert(need.remedy)})"
        for need in missing
    )
    for text, further in (
        *((text, "  ") for text in texts),
        *((need, "    ") for need in needs),
    ):
        yield textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent=further)
