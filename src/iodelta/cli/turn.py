"""``--wait``: begin once others that measure on the same device have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

T = TypeVar("T")

_KEY = "iodelta.wait"


def _keep(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    context.meta[_KEY] = value


waits = click.option(
    "--wait",
    is_flag=True,
    expose_value=False,
    callback=_keep,
    help="If another run is measuring on the same device, wait until it ends.",
)


def in_turn(
    measure: Callable[[], T],
    stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda text: click.echo(text, err=True),
) -> T:
    """What ``measure`` returns, called again after others where ``--wait`` was said. Raises as it does."""
    from iodelta.lab.turns import patiently

    return patiently(measure, wait=bool(click.get_current_context().meta.get(_KEY)), stop=stop, note=note)
