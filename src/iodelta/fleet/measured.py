"""What the hosts of a fleet measured: their folders, and how the fleet left each of them."""

from __future__ import annotations

from pathlib import Path

from iodelta.bundle.packed import is_own, opened
from iodelta.errors import RequestError, pasted
from iodelta.fleet.folder import FleetFolder
from iodelta.fleet.status import status_of
from iodelta.lab.folder import EXPERIMENT, Folder
from iodelta.study.fleet_host import Left
from iodelta.study.sides import short_names

HOSTS = "hosts"
"""The directory of a fleet folder that holds a folder for each host."""


def hosts_in(paths: tuple[str, ...]) -> tuple[dict[str, Folder], dict[str, Left]]:
    """Return the folder of each host, and how its fleet left it, by the host's name. Raises RequestError."""
    states: dict[str, Left] = {}
    places: list[str] = []
    for path in paths:
        place = Path(path)
        parts = (HOSTS, EXPERIMENT)
        if place.is_dir() and not any((place / part).exists() for part in parts):
            raise RequestError(
                f"neither a fleet folder (it has no {HOSTS}) nor an experiment folder (it has no {EXPERIMENT})",
                place=path,
                remedy="give the folder that `iodelta fleet run` printed, or the folders of hosts that measured one plan",
            )
        own = _left_in(path)
        states.update(own)
        is_fleet = Path(path, HOSTS).is_dir()
        inside = sorted(map(str, Path(path, HOSTS).iterdir())) if is_fleet else []
        below = [folder_path for folder_path in inside if is_own(folder_path)]
        if is_fleet and not below:
            raise RequestError(
                "no host of this fleet has been measured yet",
                place=path,
                remedy=f"`iodelta fleet status {pasted(path)}` says why"
                if own
                else "run the fleet first",
            )
        places += [
            *below,
            *(folder_path for folder_path in own if folder_path not in below),
        ] or [path]
    names = dict(zip(places, short_names(places), strict=True))
    folders = {
        names[path]: opened(path)
        for path in places
        if path not in states or is_own(path)
    }
    return folders, {names[path]: state for path, state in states.items()}


def _left_in(path: str) -> dict[str, Left]:
    """Return how a fleet left its hosts, by the places of their folders; nothing where ``path`` is not a fleet folder."""
    fleet = FleetFolder(Path(path))
    if not Path(path, HOSTS).is_dir() or fleet.begun() is None:
        return {}
    states_ = (
        Left(str(fleet.place(host.name)), host.state, host.reason)
        for host in status_of(fleet).hosts
    )
    return {state.place: state for state in states_}
