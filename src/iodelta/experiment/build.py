"""``[build]``: how a commit becomes what variants measure, by ``{built}`` and ``{commit}`` in their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.expand import Refuse
from iodelta.experiment.values import seconds, split_command


class Build(msgspec.Struct, frozen=True):
    """How a commit is built."""

    repo: str = ""
    """The checkout whose commit a night measures."""
    command: tuple[str, ...] = ()
    """Builds a commit in a tree of its own; empty where there is nothing to build."""
    artifacts: tuple[str, ...] = ()
    """What it leaves that is kept, relative to the tree."""
    timeout: float = 7200.0
    """Seconds for one build."""


def parse_build(table: Any, refuse: Refuse) -> Build:
    """The table of an experiment file as a Build. Refuses with the key."""
    if not isinstance(table, dict):
        refuse('build is a table: [build] repo = "/home/me/linux"', "build")
    _check_keys(table, refuse)
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


def _check_keys(table: Mapping[str, Any], refuse: Refuse) -> None:
    for key, value in table.items():
        if key not in Build.__struct_fields__:
            refuse(
                f"[build] has no key {key!r}",
                "build",
                key,
                remedy=f"allowed: {', '.join(Build.__struct_fields__)}",
            )
        if key in ("repo", "command") and not _is_text(value):
            refuse(f"{key} is a text", "build", key)


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


def _is_text(value: Any) -> bool:
    """Whether it is a text with something in it, without a NUL, which ends an argument."""
    if not isinstance(value, str):
        return False
    return bool(value.strip()) and "\0" not in value


def _lies_inside(name: Any) -> bool:
    """Whether it is a path that stays below the tree of the build."""
    if not isinstance(name, str) or not name:
        return False
    path = PurePath(name)
    return not path.is_absolute() and ".." not in path.parts
