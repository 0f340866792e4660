"""The running command as a command line."""

from __future__ import annotations

import shlex
from collections.abc import Collection

import click
from click.core import ParameterSource

SHOWING = frozenset(
    {"format_", "output", "force", "yes", "wait", "verbose", "gate", "fail_on"}
)
"""Options that change how a result is shown, but not the result."""


def typed(leave_out: Collection[str] = SHOWING) -> str:
    """Return the command line with its given options, without those in ``leave_out``."""
    context = click.get_current_context()
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name in leave_out:
            continue
        value = context.params.get(name)
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            arguments += map(str, values)
            continue
        option = max(parameter.opts, key=len)
        for each in values:
            options += [option] if each is True else [option, _text(each)]
    words = ["iodelta", *_path(context)]
    if any(argument.startswith("-") for argument in arguments):
        return shlex.join([*words, *options, "--", *arguments])
    return shlex.join([*words, *arguments, *options])


def _text(value: object) -> str:
    """Return a value as it was given: click turns 1 into 1.0."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _path(context: click.Context) -> list[str]:
    """Return the names of the commands below ``iodelta``, outermost first."""
    names: list[str] = []
    inner: click.Context | None = context
    while inner is not None and inner.parent is not None:
        names.insert(0, str(inner.info_name))
        inner = inner.parent
    return names
