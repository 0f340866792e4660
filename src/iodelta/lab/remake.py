"""A folder whose target a part makes: the command that measures it again, and the target while it is continued."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from iodelta.lab.folder import Folder
from iodelta.part import Remake, load, parts

if TYPE_CHECKING:
    from iodelta.lab.progress import Watcher
    from iodelta.machine import Machine


def line_of(folder: Folder) -> str:
    """Return the command of the part that made this folder; empty for a folder of `iodelta run`."""
    return next(filter(None, (load(remake.line)(folder) for remake in _remakes())), "")


@contextlib.contextmanager
def remade(
    folder: Folder, machine: Machine, watcher: Watcher, *, stop: Callable[[], bool]
) -> Iterator[bool]:
    """Make the target of a folder where a part made it before, and remove it at the end; yield whether it was made.

    Raises MeasureError, and RequestError where another experiment would come of it by now.
    """
    with contextlib.ExitStack() as stack:
        made = False
        for remake in _remakes():
            context = load(remake.remade)(folder, machine, watcher, stop=stop)
            made |= stack.enter_context(context)
        yield made


def _remakes() -> list[Remake]:
    return [remake for part in parts() for remake in part.remakes]
