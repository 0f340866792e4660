"""``[build]``: how to build the commit that variants name in their settings by ``{built}`` and ``{commit}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.source import Refuse, check_keys, is_filled
from iodelta.experiment.values import seconds, split_command


class Build(msgspec.Struct, frozen=True):
    """How a commit is built."""

    repo: str = ""
    """The checkout whose commit a night measures."""
    command: tuple[str, ...] = ()
    """Builds a commit in a separate tree; empty where there is nothing to build."""
    artifacts: tuple[str, ...] = ()
    """The files that are kept of the build, relative to the tree."""
    timeout: float = 7200.0
    """Seconds for one build."""


def parse_build(table: Any, refuse: Refuse) -> Build:
    """Return the table of an experiment file as a Build. Refuses with the key."""
    if not isinstance(table, dict):
        refuse('build is a table: [build] repo = "/home/me/linux"', "build")
    check_keys(refuse, table, ("build",), Build.__struct_fields__)
    for key in ("repo", "command"):
        if not is_filled(table.get(key, key)):
            refuse(f"{key} is a text", "build", key)
    artifacts = table.get("artifacts", [])
    if not isinstance(artifacts, list) or not all(map(_lies_inside, artifacts)):
        refuse(
            'artifacts are paths relative to the tree, as in artifacts = ["bzImage"]',
            "build",
            "artifacts",
        )
    if bool(artifacts) != ("command" in table):
        refuse("a build has a command and artifacts, which it keeps", "build")
    command: Sequence[str] = ()
    try:
        timeout = seconds(table.get("timeout", Build().timeout))
        if "command" in table:
            command = split_command(table["command"], "build.command")
    except RequestError as error:
        refuse(error.sentence, "build")
    except (ValueError, TypeError) as error:
        refuse(str(error), "build")
    return Build(table.get("repo", ""), tuple(command), tuple(artifacts), timeout)


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """Plain data with ``{built}`` and ``{commit}`` replaced in every text."""
    if isinstance(value, str):
        for name, replacement in values.items():
            value = value.replace("{" + name + "}", replacement)
        return value
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    return value


def _lies_inside(name: Any) -> bool:
    """Return whether it is a path that stays below the tree of the build."""
    if not isinstance(name, str) or not name:
        return False
    path = PurePath(name)
    return not path.is_absolute() and ".." not in path.parts
