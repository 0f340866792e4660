"""Every scenario there is by name, and the devices of a folder that is continued, made again in the same place."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Iterator

from iodelta.errors import RequestError
from iodelta.lab.folder import EXPERIMENT, Folder
from iodelta.lab.judged import read_plan
from iodelta.lab.progress import Watcher
from iodelta.lab.session import settle_pending
from iodelta.machine import Machine
from iodelta.parts.scenarios import (
    btrfs_read_policy,
    jbod_mmap,
    queue_depth_sweep,
    raid10_governor,
    read_policy_order,
    ublk_null_affinity,
)
from iodelta.parts.scenarios.model import ORIGIN, Origin, Scenario
from iodelta.parts.scenarios.stage import PREFIX, staged

SCENARIOS: tuple[Scenario, ...] = (
    queue_depth_sweep.SCENARIO,
    jbod_mmap.SCENARIO,
    raid10_governor.NEAR,
    raid10_governor.FAR,
    ublk_null_affinity.SCENARIO,
    read_policy_order.SCENARIO,
    btrfs_read_policy.SCENARIO,
)


def scenario(name: str) -> Scenario:
    """Return the scenario of that name. Raises RequestError with near matches for an unknown one."""
    for candidate in SCENARIOS:
        if candidate.name == name:
            return candidate
    names = [candidate.name for candidate in SCENARIOS]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names
    raise RequestError(
        "there is no such scenario",
        place=name,
        remedy=f"did you mean {', '.join(near)}? `iodelta scenario list`",
    )


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
