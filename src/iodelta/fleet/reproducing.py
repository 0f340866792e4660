"""Somebody's bundle as the question of a fleet: every host prepares it for itself, as `iodelta reproduce` does."""

from __future__ import annotations

import msgspec

from iodelta.bundle.packed import Packed
from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import toml_text
from iodelta.experiment.source import toml_data
from iodelta.fleet.folder import BUNDLE, WISHES, FleetFolder
from iodelta.lab.folder import EXPERIMENT
from iodelta.lab.opened import read_member


class Wishes(msgspec.Struct, frozen=True):
    """The user's options for the reproduction, which are the same on every host."""

    target: str
    """A path, or a class of targets as in ``class:nvme``; empty: a scratch file."""
    size: str = ""
    given: tuple[str, ...] = ()
    """CPU sets and nodes to replace, as in ``cpus=0-31:0-1``."""
    budget: str = ""
    allow_commands: bool = False


def check_sets(given: tuple[str, ...]) -> None:
    """Raises RequestError for a mapping that would give every host an experiment of its own."""
    for text in given:
        if ":" not in text:
            raise RequestError(
                f"{text!r} replaces what a host lacks, and each host may lack something else",
                place="--map",
                remedy="with --hosts, say which set is replaced: --map cpus=THERE:HERE",
            )


def files_of(bundle: Packed, wishes: Wishes, text: str) -> dict[str, bytes]:
    """Return the files of the question; ``text`` is the experiment as one host would run it."""
    data = toml_data(text, EXPERIMENT)
    data.pop("machine", None)
    target = {
        key: value for key, value in data.get("target", {}).items() if key != "path"
    }
    data["target"] = {**target, **({"path": wishes.target} if wishes.target else {})}
    packed = bundle.path.read_bytes()
    return {
        EXPERIMENT: toml_text(data).encode(),
        BUNDLE: packed,
        WISHES: msgspec.json.encode(wishes),
    }


def wishes_of(folder: FleetFolder) -> Wishes | None:
    """Return what a fleet was asked to reproduce; None where its question is an experiment file. Raises MeasureError."""
    begun = folder.begun()
    if begun is None or WISHES not in begun.files:
        return None
    try:
        return from_json(read_member(folder.path, WISHES), Wishes)
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        raise MeasureError(
            f"cannot read: {error}", place=str(folder.path / WISHES)
        ) from error


def goes_on(folder: FleetFolder, bundle: Packed, wishes: Wishes) -> bool:
    """Return whether this folder is already about that bundle, asked in the same way. Raises RequestError where it is
    about something else."""
    begun = folder.begun()
    if begun is None:
        return False
    if begun.files.get(BUNDLE) == bundle.digest and wishes_of(folder) == wishes:
        return True
    raise RequestError(
        "this fleet folder is about another question",
        place=str(folder.path),
        remedy="name a new folder with --folder; without a bundle, `iodelta fleet run FOLDER` continues this one",
    )
