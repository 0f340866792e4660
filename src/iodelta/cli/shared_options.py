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
