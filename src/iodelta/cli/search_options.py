"""Options that ``bisect`` and ``attribute`` share, in groups that stand together in their help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from iodelta.cli.contact import on_machine
from iodelta.cli.own_command import allow_commands, workload
from iodelta.cli.shared_options import may_destroy, named_target, sized_target
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
    "--repo",
    default=".",
    metavar="DIR",
    help="The git repository (default: that of the current directory).",
)


def measuring(builds: str, knob: str) -> Decorator[Any]:
    """Return how one of them is made ready and measured. ``builds`` and ``knob``: what --build and --set say of
    themselves.
    """
    return together(
        click.option("--build", default="", metavar="COMMAND", help=builds),
        click.option(
            "--artifact",
            "artifacts",
            multiple=True,
            metavar="PATH",
            help="A file that the build produces and that is kept. Repeatable.",
        ),
        click.option(
            "--put",
            default="",
            metavar="COMMAND",
            help="Command that installs the build, before every measurement.",
        ),
        click.option(
            "--measure",
            default="",
            metavar="COMMAND",
            help="Command that prints the number (default: run fio).",
        ),
        workload,
        allow_commands,
        click.option(
            "--better",
            type=click.Choice(["higher", "lower"]),
            help="Whether a higher or a lower number is better.",
        ),
        on_machine,
        click.option(
            "--clock",
            type=click.Choice(["wall", "instructions"]),
            help="What to measure: wall time, or instructions through a kernel (--machine vm --set kernel={built}).",
        ),
        click.option(
            "--target",
            callback=named_target,
            default="",
            help="What fio measures (default: a scratch file here).",
        ),
        sized_target,
        click.option("--trial", default="", help="Duration of one trial, such as 5s."),
        click.option(
            "--ramp",
            default="",
            help="Warm-up before each trial, which is not counted.",
        ),
        click.option(
            "--metric",
            default="",
            help="The metric to follow, such as read.iops or read.lat.mean.",
        ),
        click.option("--set", "knobs", multiple=True, metavar="KNOB=VALUE", help=knob),
        may_destroy,
        waits,
        click.option(
            "--repeat",
            default=1,
            type=click.IntRange(1, 1000),
            help="Number of runs per visit, which are averaged.",
        ),
    )


by_hand = together(
    click.option(
        "--by-hand",
        is_flag=True,
        help="You judge each item: good, bad or skip; with --better, give numbers.",
    ),
    click.option(
        "--wrong",
        default="5%",
        show_default=True,
        metavar="SHARE",
        help="How often you expect an answer to be wrong.",
    ),
    click.option(
        "--value",
        default="",
        metavar="NUMBER",
        help="For a folder searched by hand with numbers: the number you measured.",
    ),
)

time_limits = together(
    click.option(
        "--build-timeout",
        default="2h",
        show_default=True,
        help="A build that takes longer counts as hung.",
    ),
    click.option(
        "--put-timeout",
        default="10m",
        show_default=True,
        help="The same limit for --put.",
    ),
    click.option(
        "--measure-timeout",
        default="10m",
        show_default=True,
        help="The same limit for --measure.",
    ),
)


def folder(plan: str) -> Decorator[Any]:
    """Return the folder: where it is made, and what is done with one. ``plan``: what --plan says of itself."""
    return together(
        click.option(
            "--seed",
            type=int,
            help="Seed of the order of runs (default: random; always recorded).",
        ),
        click.option(
            "--folder",
            type=click.Path(path_type=Path),
            help="Name of the folder to create.",
        ),
        click.option("--plan", "plan_", is_flag=True, help=plan),
        click.option(
            "--undo",
            type=click.IntRange(1),
            metavar="N",
            help="For a folder: undo the last N answers.",
        ),
        click.option(
            "--show",
            "show_",
            is_flag=True,
            help="For a folder: report the current result; do not measure.",
        ),
    )
