"""Continue a scenario's folder: make its devices again in the same place."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

from iodelta.errors import RequestError
from iodelta.lab.folder import EXPERIMENT, Folder
from iodelta.lab.progress import Watcher
from iodelta.lab.session import read_plan, settle_pending
from iodelta.machine import Machine
from iodelta.parts.scenarios.catalogue import scenario
from iodelta.parts.scenarios.model import ORIGIN, Origin
from iodelta.parts.scenarios.stage import PREFIX, staged

_IN_STAGE = re.compile(rf"(.*)/{PREFIX}([0-9a-f]{{16}})/.+")


@contextlib.contextmanager
def remade(
    folder: Folder, machine: Machine, watcher: Watcher, *, stop: Callable[[], bool]
) -> Iterator[bool]:
    """Whether it had to be made; leaving removes it again. A folder of anything else, or on a disk of the user's own,
    needs nothing.

    Raises MeasureError, and RequestError where another experiment would come of it by now.
    """
    experiment = read_plan(folder).experiment
    place = _IN_STAGE.fullmatch(experiment.target.path)
    if place is None or not folder.has(ORIGIN):
        yield False
        return
    origin = folder.read_struct(ORIGIN, Origin)
    origin_scenario = scenario(origin.name)
    with folder.writing():  # no other process continues it
        settle_pending(machine, watcher)
    watcher.note(f"{origin_scenario.name} makes again: {origin_scenario.makes}")
    asked = folder.read(EXPERIMENT).decode()
    with staged(
        machine,
        watcher,
        full=origin.full,
        target=None,
        home=place[1],
        stop=stop,
        identifier=place[2],
        asked=asked,
    ) as stage:
        if origin_scenario.made(stage, machine="".join(experiment.machines)) != asked:
            raise RequestError(
                "this scenario would now create an experiment that differs from the folder's",
                place=str(folder.path),
                remedy=f"run it again: {origin.line}",
            )
        yield True
