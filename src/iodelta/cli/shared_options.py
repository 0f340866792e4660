"""Options that several commands have in common, with the same words in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from iodelta.cli.complete import files
from iodelta.errors import RequestError
from iodelta.experiment.options import specs

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


def with_anatomy(what: str, *, hidden: bool = False) -> Decorator:
    """``--anatomy``, alone the path of an I/O, or ``=sharing`` its moved cache lines; ``what`` is the help."""
    return click.option(
        "--anatomy",
        is_flag=False,
        flag_value="path",
        type=click.Choice(["path", "sharing"]),
        help=what,
        hidden=hidden,
    )


def design_options(command: Any) -> Any:
    """Return every option of ``DesignOptions``."""
    for name, spec in reversed(specs().items()):
        if spec.form == "FLAG":
            option = click.option(f"--{name}", is_flag=True, help=spec.help)
        elif spec.form == "NUMBER":
            option = click.option(
                f"--{name}", type=int, metavar=spec.form, help=spec.help
            )
        else:
            option = click.option(
                f"--{name}",
                default="",
                metavar=spec.form,
                help=spec.help,
                callback=named_target if name == "target" else None,
                shell_complete=files if spec.form == "PATH" else None,
            )
        command = option(command)
    return command


in_console_or_json = in_formats(["console", "json"])

names_files = click.option(
    "--name-pattern",
    help="How to read file names, such as '{variant}/{cell}-{replicate}.json'.",
)


def named_target(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A target that is named by nothing is no request for the default one."""
    given = (
        context.get_parameter_source(parameter.name or "")
        is ParameterSource.COMMANDLINE
    )
    if given and not value.strip():
        raise RequestError(
            "names nothing",
            place=f"--target {value!r}",
            remedy="name a path, or leave --target out",
        )
    return value


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
