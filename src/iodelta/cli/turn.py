"""``--wait``: begin once others that measure on the same device have ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from iodelta.cli.progress import say_line

if TYPE_CHECKING:
    from iodelta.machine import Machine
    from iodelta.probe.topology import Target

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


def let_wait() -> None:
    """As if ``--wait`` had been said, for a command that says it in another way."""
    click.get_current_context().meta[_KEY] = True


def expect_turn(machine: Machine, target: Target) -> None:
    """Before a plan is shown. Raises BusyError while another run measures on ``target``, unless this one may wait."""
    from iodelta.lab.turns import alone

    if not _may_wait():
        with alone(machine, [target], Path.cwd()):
            pass


def _may_wait() -> bool:
    return bool(click.get_current_context().meta.get(_KEY))


def in_turn(
    measure: Callable[[], T],
    stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = say_line,
) -> T:
    """Return what ``measure`` returns, called again after others where ``--wait`` was said. Raises as it does."""
    from iodelta.lab.turns import patiently

    return patiently(measure, wait=_may_wait(), stop=stop, note=note)
