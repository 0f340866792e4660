"""Options that ``bisect`` and ``attribute`` share, in groups that stand together in their help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from iodelta.cli.contact import on_machine
from iodelta.cli.turn import waits

C = TypeVar("C", bound=Callable[..., Any])
Decorator = Callable[[C], C]


def together(*options: Decorator[Any]) -> Decorator[Any]:
    """Options in the order in which they are written."""

    def decorate(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


repository = click.option(
    "--repo", default=".", metavar="DIR", help="The git repository; this directory's when left out."
)


def measuring(builds: str, knob: str) -> Decorator[Any]:
    """How one of them is made ready and measured. ``builds`` and ``knob``: what --build and --set say of themselves."""
    return together(
        click.option("--build", default="", metavar="COMMAND", help=builds),
        click.option(
            "--artifact", "artifacts", multiple=True, metavar="PATH", help="What a build leaves and is kept; repeat."
        ),
        click.option(
            "--put", default="", metavar="COMMAND", help="Puts the build under test, before every measurement."
        ),
        click.option("--measure", default="", metavar="COMMAND", help="Prints the number; without it fio is run."),
        click.option("--better", type=click.Choice(["higher", "lower"]), help="Which way that number is better."),
        on_machine,
        click.option(
            "--clock",
            type=click.Choice(["wall", "instructions"]),
            help="instructions: count the path through a kernel, with --machine vm --set kernel={built}.",
        ),
        click.option("--target", default="", help="What fio runs on; a scratch file here when left out."),
        click.option("--size", default="", help="How much of it, as fio spells sizes."),
        click.option("--trial", default="", help="Seconds of one trial, as in 5s."),
        click.option("--ramp", default="", help="Seconds before it that do not count."),
        click.option("--metric", default="", help="What is followed, as in read.iops or read.lat.mean."),
        click.option("--set", "knobs", multiple=True, metavar="KNOB=VALUE", help=knob),
        click.option("--destroy", multiple=True, metavar="DEVICE", help="This very device or file may be overwritten."),
        waits,
        click.option("--repeat", default=1, type=click.IntRange(1, 1000), help="Runs of one visit, averaged."),
    )


by_hand = together(
    click.option("--by-hand", is_flag=True, help="You answer: good, bad or skip; with --better, numbers."),
    click.option(
        "--wrong", default="5%", show_default=True, metavar="SHARE", help="How often such a word of yours is wrong."
    ),
    click.option("--value", default="", metavar="NUMBER", help="Of a folder searched by hand with numbers: an answer."),
)

time_limits = together(
    click.option("--build-timeout", default="2h", show_default=True, help="A build that takes longer hangs."),
    click.option("--put-timeout", default="10m", show_default=True, help="The same for --put."),
    click.option("--measure-timeout", default="10m", show_default=True, help="The same for --measure."),
)


def folder(plan: str) -> Decorator[Any]:
    """The folder: where it is made, and what is done with one. ``plan``: what --plan says of itself."""
    return together(
        click.option("--seed", type=int, help="Seed of the order of runs; drawn and recorded when left out."),
        click.option("--folder", type=click.Path(path_type=Path), help="The folder to make."),
        click.option("--plan", "plan_", is_flag=True, help=plan),
        click.option("--undo", type=click.IntRange(1), metavar="N", help="Of a folder: take back the last N answers."),
        click.option("--show", "show_", is_flag=True, help="Of a folder: report what is known; measure nothing."),
    )
