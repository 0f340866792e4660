"""Options that several commands have in common, with the same words in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Decorator = Callable[[Any], Any]


def in_formats(choices: Sequence[str]) -> Decorator:
    """``--format``, one of ``choices``; the console without it."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(choices),
        default="console",
        show_default=True,
    )


def with_anatomy(what: str) -> Decorator:
    """``--anatomy``, alone the path of an I/O, or ``=sharing`` its moved cache lines; ``what`` is the help."""
    return click.option(
        "--anatomy",
        is_flag=False,
        flag_value="path",
        type=click.Choice(["path", "sharing"]),
        help=what,
    )


in_console_or_json = in_formats(["console", "json"])

names_files = click.option(
    "--name-pattern",
    help="How to read file names, such as '{variant}/{cell}-{replicate}.json'.",
)

sized_target = click.option(
    "--size",
    default="",
    help="How much of the target to use, in fio's units: 512m, 100g.",
)

may_destroy = click.option(
    "--destroy",
    multiple=True,
    metavar="DEVICE",
    help="Allow this device or file to be overwritten.",
)
