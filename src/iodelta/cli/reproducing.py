"""From somebody's bundle to an experiment: what would run, whether that is accepted, and the measuring."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.turn import in_turn
from iodelta.errors import RefusedError, RequestError, pasted
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.bundle.packed import Packed
    from iodelta.bundle.planning import Prepared
    from iodelta.lab.folder import Folder
    from iodelta.machine import Machine
    from iodelta.study.planned import PlanAnswer
    from iodelta.study.reproduction import Side


def bundle_at(bundle: str) -> Packed:
    """Raises RequestError for everything that is not a bundle."""
    from iodelta.bundle.packed import Packed, is_bundle

    path = Path(bundle)
    if path.is_file() and not is_bundle(path):
        raise RequestError(
            "it does not contain an experiment to run here",
            place=bundle,
            remedy="`iodelta pack FOLDER` makes a bundle; --against puts results of any kind side by side",
        )
    if path.is_dir():
        raise RequestError(
            "this is a folder, not a bundle",
            place=bundle,
            remedy=f"`iodelta pack {pasted(bundle)}` makes a bundle of it",
        )
    if not path.exists():
        raise RequestError(
            "there is nothing at this path", place=bundle, remedy="name a bundle"
        )
    return Packed(path)


def prepared_for(
    bundle: Packed,
    there: Side,
    machine: Machine,
    target: str,
    size: str,
    given: tuple[str, ...],
    budget: str,
    *,
    leave_out: bool,
) -> Prepared:
    """Return the experiment of a bundle as ``machine`` would run it. Raises RequestError."""
    from iodelta.bundle.planning import prepare, whole
    from iodelta.study.reproduction import planned_blocks

    blocks = planned_blocks(there, whole(bundle).experiment.margin)
    return prepare(
        bundle,
        machine,
        target=target,
        size=size,
        given=given,
        budget=budget,
        leave_out=leave_out,
        blocks=blocks,
    )


def plan_of(
    prepared: Prepared,
    there: Side,
    bundle: Packed,
    place: Path,
    refused: RefusedError | None,
) -> PlanAnswer:
    """Return what would be run and set here."""
    from iodelta.bundle.planning import commands
    from iodelta.study.planned import FromBundle, plan_answer

    shown = any(effect.shown for effect in there.effects)
    origin = FromBundle(
        *(there.name, there.digest, bundle.manifest.made_by, there.question, shown),
        commands=commands(prepared),
        folder=str(place),
    )
    dangers = [
        f"{danger.place}: {danger.what}: {danger.why}" for danger in prepared.dangers
    ]
    return plan_answer(
        prepared.plan, [prepared.found], refused, prepared.notes, dangers, bundle=origin
    )


def show_plan(plan: PlanAnswer, *, error: bool) -> None:
    """The plan, before the question whether to run it."""
    from iodelta.report.formats.terminal import lines
    from iodelta.report.stories.plan import of_plan

    for line in lines(of_plan(plan)):
        click.echo(line.plain, err=error)


def refuse_existing(place: Path) -> None:
    """Raises RequestError where the folder is there already."""
    if place.exists() or place.is_symlink():
        raise RequestError(
            "this path exists already",
            place=str(place),
            remedy="name a new folder with --folder",
        )


def accept(
    prepared: Prepared,
    bundle: Packed,
    *,
    yes: bool,
    allow_commands: bool,
    where: str = "here",
) -> None:
    """Raises RequestError unless everything shown was accepted."""
    if prepared.dangers and not allow_commands:
        raise RequestError(
            f"{plural(len(prepared.dangers), 'part')} of it could do more than I/O on the target (DANGER above)",
            place=str(bundle.path),
            remedy="if you trust its author with this machine, add --allow-commands",
        )
    if yes:
        return
    nothing = "nothing was run, set or written"
    if not sys.stdin.isatty():
        raise RequestError(
            f"not accepted, {nothing}",
            place=str(bundle.path),
            remedy="use --yes if you cannot answer questions",
        )
    try:
        agreed = click.confirm(f"Run this {where}?", default=False, err=True)
    except click.Abort:
        click.echo("", err=True)
        agreed = False
    if not agreed:
        raise RequestError(
            f"not accepted, {nothing}",
            place=str(bundle.path),
            remedy="--dry-run shows it again",
        )


def measured(
    bundle: Packed,
    there: Side,
    prepared: Prepared,
    machine: Machine,
    place: Path,
    destroy: tuple[str, ...],
    format_: str,
    allow_commands: bool,
) -> Side:
    """Measure it, and show the experiment; the side that it makes."""
    import msgspec
    from rich.console import Console

    from iodelta.cli.watching import watcher
    from iodelta.lab.progress import Control
    from iodelta.lab.session import start
    from iodelta.lab.setup import survey
    from iodelta.lab.signals import stop_on_signals
    from iodelta.report.derived import derive
    from iodelta.report.formats.console import show
    from iodelta.study.reproduction import FILE, Origin, own_side

    unavailable = survey(machine, prepared.experiment).unavailable
    if unavailable:
        reasons = "; ".join(
            f"{variant}: {reason}" for variant, reason in unavailable.items()
        )
        raise RequestError(
            f"not every variant can run here: {reasons}", place=str(bundle.path)
        )
    margin = prepared.plan.rules.margin
    origin = Origin(
        there, margin, prepared.notes, bundle.manifest.plan_sha256, allow_commands
    )
    beside = {FILE: msgspec.json.format(msgspec.json.encode(origin), indent=1) + b"\n"}
    with stop_on_signals() as stop, watcher(format_) as watching:

        def starting() -> Folder:
            plan = prepared.plan
            return start(
                place,
                prepared.text,
                plan,
                machine,
                Control(watching, stop, destroy, allow_commands),
                beside=beside,
            )

        folder = in_turn(starting, stop, watching.note)
    account = derive(folder)
    if format_ == "console":
        show(Console(), account)
        click.echo("")
        if account.state not in ("complete", "budget"):
            click.echo(
                f"It is not complete. To continue, then to compare:\n  iodelta run {pasted(place)}\n"
                f"  iodelta reproduce {pasted(bundle.path)} --against {pasted(place)}\n"
            )
    return own_side(folder, account)
