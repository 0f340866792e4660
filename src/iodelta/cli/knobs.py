"""``iodelta knobs``: what can be set here."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from iodelta.cli.contact import contact, on_machine
from iodelta.cli.files import print_document
from iodelta.cli.shared_options import in_console_or_json, named_target
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.knob import KnobInfo

WIDTH = 80


@click.command(
    "knobs",
    epilog="\b\nExamples:\n  iodelta knobs\n  iodelta knobs --target /dev/sdb\n  iodelta knobs --format json\n"
    "  iodelta knobs --machine ssh:storage1 --target /dev/nvme0n1\n",
)
@on_machine
@click.option(
    "--target",
    callback=named_target,
    default="",
    help="Block device, file or directory (default: the current directory).",
)
@in_console_or_json
def command(machine: str, target: str, format_: str) -> None:
    """List every knob: its current value and the allowed values, or why it cannot be set on this machine."""
    from iodelta.knob import catalogue
    from iodelta.probe.topology import resolve

    with contact(machine) as place:
        target_ = resolve(place, target or place.directory)
        knobs = catalogue(place, target_)
    if format_ == "json":
        from iodelta.report.answers import KnobsAnswer

        print_document(KnobsAnswer(target_, knobs))
        return
    click.echo(
        f"For {inert(target_.path)}"
        + (f" on {target_.device}" if target_.device else "")
    )
    for line in lines(knobs):
        click.echo(line)


def lines(knobs: Sequence[KnobInfo]) -> Iterator[str]:
    """80 columns: name and present value, below them what is allowed; then what cannot be set here, by reason."""
    width = max((len(info.name) for info in knobs), default=0) + 2
    for info in knobs:
        if not info.reason:
            present = inert(info.present) or "(nothing to show)"
            yield from textwrap.wrap(
                f"{info.name:<{width}}{present}", WIDTH, subsequent_indent=" " * width
            )
            yield from _wrapped(f"allowed: {inert(info.allowed)}")
    reasons: dict[str, list[str]] = {}
    for info in knobs:
        if info.reason:
            reasons.setdefault(info.reason, []).append(info.name)
    if reasons:
        yield ""
        yield "Not here:"
    for reason, names in reasons.items():
        yield from textwrap.wrap(", ".join(names), WIDTH)
        yield from _wrapped(inert(reason))


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
