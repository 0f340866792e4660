"""The door through which a part joins the core: one object that names the commands, folders and results it brings.

``iodelta.parts`` holds iodelta's own parts, a folder each, and deleting the folder removes the part. A package of somebody
else registers its object under the entry point group ``iodelta.parts``. Names are strings, ``module:attribute``, so
that listing what is there imports nothing else.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from pathlib import Path
from typing import Any, NamedTuple

from iodelta.plugins import sound

GROUPS = {
    "measure": "Measure",
    "cause": "Find the cause",
    "numbers": "Other people's numbers",
    "nights": "Over time and machines",
    "machine": "This machine",
}
"""Group of commands -> its heading in ``iodelta --help``."""


class Command(NamedTuple):
    """A command of ``iodelta``, and where click's object is."""

    name: str
    help: str
    group: str
    place: str


class Kind(NamedTuple):
    """A kind of result: the struct that holds it, and what can be made of it. An empty place means: not this."""

    result: str
    """The struct. Its JSON is the result's document unless ``document`` makes another one."""
    story: str
    """``(result, Detail) -> Story``: the terminal, mail, Markdown and HTML lay it out."""
    rows: str
    """Lists of the JSON document by their places, ``judgement.verdicts``: their members are the rows of CSV and data
    frames. Behind ``|`` stand places of what every row has too. Or ``(result) -> str``."""
    checks: str = ""
    """``(result) -> Iterator[Check]``: what a build gate goes by, and JUnit, KTAP and GitHub."""
    values: str = ""
    """``(result) -> Iterator[Named]``: Bencher's metric format."""
    mail: str = ""
    """``(result) -> str``: a letter of its own in place of the story."""
    document: str = ""
    """``(result) -> struct`` that is printed as JSON."""
    screen: str = ""
    """``(result, Detail)``: print a first screen of its own on a terminal."""
    pictures: str = ""
    """``(result, columns) -> Iterator[Text]``: what a terminal draws below the story."""


class Document(NamedTuple):
    """A JSON document: ``iodelta.NAME/VERSION``, the struct it is made from, and who prints it."""

    schema: str
    struct: str
    printed_by: str


class Folder(NamedTuple):
    """A kind of folder (or file) that ``iodelta report`` shows."""

    name: str
    recognises: str
    """``(Path) -> bool``."""
    report: str
    """``(Asked)``: show it, and exit."""


class Remake(NamedTuple):
    """Of a part that makes the targets of its experiments: how a folder of it goes on after they were removed."""

    line: str
    """``(Folder) -> str``: the command that measures it again; empty for a folder of anything else."""
    remade: str
    """``(Folder, Machine, Watcher, stop=...)``: a context in which the target is there; it yields whether it made one."""


class Part(NamedTuple):
    """What one part brings."""

    name: str
    commands: tuple[Command, ...] = ()
    kinds: tuple[Kind, ...] = ()
    documents: tuple[Document, ...] = ()
    folders: tuple[Folder, ...] = ()
    remakes: tuple[Remake, ...] = ()


def load(place: str) -> Any:
    """Return the object at ``module:attribute``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@functools.cache
def parts() -> tuple[Part, ...]:
    """Return the core, iodelta's own parts by name, then those of other packages."""
    own = importlib.import_module("iodelta.parts").__path__
    names = sorted(entry.name for entry in pkgutil.iter_modules(own))
    made = (load(f"iodelta.parts.{name}:PART") for name in names)
    strangers = (plugin.made for plugin in sound("part", unusable))
    return (load("iodelta.core:CORE"), *made, *strangers)


def unusable(name: str, made: object) -> str:
    """Say why a plugin's object is not a part; empty where it is one."""
    if not isinstance(made, Part):
        return f"{name} is a {type(made).__name__}, not an iodelta.part.Part"
    taken = {command.name for command in load("iodelta.core:CORE").commands}
    twice = [command.name for command in made.commands if command.name in taken]
    return f"its command {twice[0]} is a command of iodelta" if twice else ""


@functools.cache
def commands() -> dict[str, Command]:
    """Return the commands by name, group after group, in the order of the parts."""
    every = [command for part in parts() for command in part.commands]
    places = list(GROUPS)
    every.sort(key=lambda command: places.index(command.group))
    return {command.name: command for command in every}


@functools.cache
def documents() -> dict[str, Document]:
    """Return the JSON documents by schema."""
    return {made.schema: made for part in parts() for made in part.documents}


@functools.cache
def kinds() -> dict[str, Kind]:
    """Return the kinds of result by the place of their struct."""
    return {kind.result: kind for part in parts() for kind in part.kinds}


def kind_of(result: object) -> Kind:
    """Return the kind of a result; without a part that names its struct, a kind from which nothing can be made."""
    made = type(result)
    place = f"{made.__module__}:{made.__qualname__}"
    return kinds().get(place, Kind(place, "", ""))


def folder_at(path: Path) -> Folder | None:
    """Return the kind of folder that lies at ``path``; none where no part knows it."""
    every = (folder for part in parts() for folder in part.folders)
    return next((folder for folder in every if load(folder.recognises)(path)), None)
