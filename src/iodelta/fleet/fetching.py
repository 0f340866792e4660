"""Bring an experiment folder that was measured on a host itself into the fleet."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from pathlib import Path

from iodelta.errors import IodeltaError, RequestError
from iodelta.experiment import Experiment
from iodelta.fleet.answers import FetchedHost
from iodelta.fleet.events import Moved
from iodelta.fleet.folder import FleetFolder
from iodelta.fleet.host import FleetHost
from iodelta.fleet.sight import said
from iodelta.lab.account import Account
from iodelta.lab.folder import DERIVED, RAW, Folder, now
from iodelta.lab.integrity import check_uncut
from iodelta.lab.judged import read_plan
from iodelta.machine import Machine, literal, reach

NAME = re.compile(r"(raw/)?[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
"""Files that are taken: a folder on a host may hold anything."""

MOST = 200_000
"""Files of a folder."""


def fetch_from(fleet: FleetFolder, host: FleetHost, there: str) -> FetchedHost:
    """Fetch a host's folder at ``there``. Raises RequestError for a path that is not absolute."""
    place = fleet.place(host.name)
    if place.exists():
        return FetchedHost(host.name, False, f"{place} exists already")
    if not there.startswith("/"):
        raise RequestError(
            "not an absolute path",
            place=there,
            remedy="give the whole path of the folder on the hosts",
        )
    draft = place.with_name(f".{host.name}.{uuid.uuid4().hex[:8]}")
    try:
        with reach(host.machine) as machine:
            _copy(machine, there.rstrip("/"), draft)
        _check(Folder.open(draft), fleet.experiment())
        draft.rename(place)
    except IodeltaError as error:
        return FetchedHost(host.name, False, said(error).replace(str(draft), there))
    except OSError as error:
        return FetchedHost(
            host.name, False, f"cannot write {place}: {os.strerror(error.errno or 0)}"
        )
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    fleet.journal.append(Moved(now(), host.name, "done"))
    return FetchedHost(host.name, True, f"from {there}")


def _copy(machine: Machine, there: str, draft: Path) -> None:
    """Raises MachineError, RequestError."""
    (draft / RAW).mkdir(parents=True)
    files = [
        *machine.glob(f"{literal(there)}/*"),
        *machine.glob(f"{literal(there)}/{RAW}/*"),
    ]
    if (
        not any(path.endswith("/experiment.toml") for path in files)
        or len(files) > MOST
    ):
        raise RequestError(
            "not an experiment folder",
            place=there,
            remedy="give a folder that `iodelta run` made there",
        )
    for path in files:
        name = path.removeprefix(f"{there}/")
        if NAME.fullmatch(name) and name not in DERIVED and name != RAW:
            machine.get(path, str(draft / name))


def _check(folder: Folder, asked: Experiment) -> None:
    """Raises IodeltaError for a folder that was changed, or that has another question."""
    plan = read_plan(folder)
    check_uncut(folder)
    if not Account(folder.events()).over:
        raise RequestError(
            "its experiment has not ended", remedy="continue it there first"
        )
    altered = folder.altered()
    if altered:
        name, why = next(iter(altered.items()))
        raise RequestError(f"not what was measured: {name}: {why}")
    measured = plan.experiment
    same = (measured.cells, measured.variants, measured.conditions) == (
        asked.cells,
        asked.variants,
        asked.conditions,
    )
    if not same or measured.baseline != asked.baseline:
        raise RequestError("its workloads or variants are not those of this fleet")
