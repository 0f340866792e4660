"""The entry of a host in an inventory: every name, address and path is checked before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from iodelta.errors import RequestError
from iodelta.experiment.model import NAME
from iodelta.fleet.host import FleetHost, minutes
from iodelta.machine.connection import HOST

LARGEST = 1 << 20
"""Bytes of an inventory."""

ALL = "all"
"""The word for every host, which is neither a host nor a tag."""


def text_of(path: Path) -> str:
    """Return a file of an inventory. Raises RequestError."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            "the inventory is not text in UTF-8", place=str(path)
        ) from error
    except OSError as error:
        remedy = "write it, or name another one with --inventory"
        raise RequestError(
            f"cannot read the inventory: {error.strerror}",
            place=str(path),
            remedy=remedy,
        ) from error
    if len(data) > LARGEST:
        raise RequestError(
            "an inventory of more than 1 MiB", place=str(path), remedy="split it"
        )
    return text


def checked(name: str, table: Mapping[str, Any]) -> FleetHost:
    """Return a host with these values. Raises ValueError(what is wrong, the key below the host, the remedy)."""
    _check_name(name, "a host")
    ssh, tags, targets = (
        table.get("ssh", name),
        table.get("tags", []),
        table.get("targets", {}),
    )
    if not isinstance(ssh, str) or not HOST.fullmatch(ssh):
        raise ValueError(
            f"not a valid address: {ssh!r}",
            ("ssh",),
            "write ssh = HOST or USER@HOST; port and key go into ~/.ssh/config",
        )
    if not isinstance(tags, list):
        raise ValueError('tags must be a list, as in tags = ["nvme"]', ("tags",), "")
    for tag in tags:
        _check_name(tag, "a tag", "tags")
    if not isinstance(targets, dict):
        raise ValueError(
            'targets must be a table, as in targets = { nvme = "/dev/disk/by-id/..." }',
            ("targets",),
            "",
        )
    for kind, path in targets.items():
        _check_name(kind, "a class of targets", "targets")
        plain = (
            isinstance(path, str)
            and path.isprintable()
            and path.startswith("/")
            and ".." not in PurePosixPath(path).parts
        )
        if not plain:
            what = f"not an absolute path: {path!r}"
            raise ValueError(
                what,
                ("targets", kind),
                "give the device, file or directory by its whole path on that host",
            )
    return FleetHost(
        name,
        ssh,
        tuple(dict.fromkeys(tags)),
        dict(targets),
        _window(table.get("window", "")),
    )


def _check_name(name: Any, kind: str, *key: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name) or name == ALL:
        what = f"{name!r} cannot be the name of {kind}"
        raise ValueError(
            what,
            key,
            f"letters, digits and . _ + - only, 48 at most, a letter or digit first; not {ALL!r}",
        )


def _window(value: Any) -> str:
    try:
        minutes(value or "00:00-00:01")
    except (TypeError, ValueError):
        what = f"not a window: {value!r}"
        raise ValueError(
            what,
            ("window",),
            'write it as window = "22:00-06:00"; leave it out for any time',
        ) from None
    return str(value)
