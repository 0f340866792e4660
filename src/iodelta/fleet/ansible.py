"""Hosts of an Ansible inventory: names, addresses, and groups as tags. Plug-ins, templates and vaults in it are not
run. A file that ends in .yml, .yaml or .json is YAML, any other one is INI.

From a host's variables come ``ansible_host``, ``ansible_user``, ``iodelta_targets`` and ``iodelta_window``.
"""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iodelta.errors import RequestError, needs_extra
from iodelta.fleet.entry import ALL, checked, text_of
from iodelta.fleet.host import FleetHost

MOST = 100_000
"""Most groups and hosts that are read: a short YAML file can expand to billions through aliases."""

DEEPEST = 50
"""Levels of groups within groups."""

RANGE = re.compile(r"\[(\d+|[A-Za-z]):(\d+|[A-Za-z])\]")

_IMPLIED = (ALL, "ungrouped")
"""Groups that every inventory has, so they are not tags."""

_VARIABLES = {"iodelta_targets": "targets", "iodelta_window": "window"}


class _Inventory:
    """What was read so far of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inherited: dict[str, dict[str, Any]] = {}
        self.own: dict[str, dict[str, Any]] = {}
        """Variables of a host. They override those of its groups, in any order in the file."""
        self.groups: dict[str, list[str]] = {}
        self.seen = 0

    def refuse(self, what: str, remedy: str = "") -> RequestError:
        return RequestError(what, place=str(self.path), remedy=remedy)

    def _count(self) -> None:
        self.seen += 1
        if self.seen > MOST:
            raise self.refuse("too many hosts, or groups that contain themselves")

    def entries(self, table: Any) -> Iterator[tuple[str, Any]]:
        """Yield what is in a table of a group or host."""
        if table is not None and not isinstance(table, dict):
            raise self.refuse(
                f"not an Ansible inventory: a table is expected in place of {str(table)[:60]!r}"
            )
        for name, value in (table or {}).items():
            self._count()
            yield str(name), value

    def take(
        self,
        name: str,
        group: Any,
        above: tuple[str, ...],
        inherited: Mapping[str, Any],
    ) -> None:
        """Take the hosts of a group and of those in it."""
        if len(above) > DEEPEST:
            raise self.refuse(f"group {name!r} lies more than {DEEPEST} groups deep")
        parts = dict(self.entries(group))
        groups = (*above, name)
        variables = {**inherited, **dict(self.entries(parts.get("vars")))}
        for pattern, own in self.entries(parts.get("hosts")):
            own_variables = dict(self.entries(own))
            for host in expanded(pattern):
                self._count()
                self.inherited.setdefault(host, {}).update(variables)
                self.own.setdefault(host, {}).update(own_variables)
                self.groups.setdefault(host, []).extend(
                    group for group in groups if group not in _IMPLIED
                )
        for child, inner in self.entries(parts.get("children")):
            self.take(child, inner, groups, variables)

    def host(self, name: str) -> FleetHost:
        """Return a host with the variables that are of use here."""
        variables = {**self.inherited[name], **self.own[name]}
        if str(variables.get("ansible_port", 22)) != "22":
            raise self.refuse(
                f"{name}: ansible_port is not read",
                "write Port for this host into ~/.ssh/config, and leave it out here",
            )
        address, user = (
            variables.get("ansible_host", name),
            variables.get("ansible_user", ""),
        )
        table: dict[str, Any] = {
            "ssh": f"{user}@{address}" if user else address,
            "tags": list(dict.fromkeys(self.groups[name])),
            **{
                ours: variables[theirs]
                for theirs, ours in _VARIABLES.items()
                if theirs in variables
            },
        }
        try:
            return checked(name, table)
        except ValueError as error:
            what, _, remedy = error.args
            raise self.refuse(f"host {name!r}: {what}", remedy) from error


def read(path: Path) -> dict[str, FleetHost]:
    """Return the hosts by name. Raises RequestError."""
    text, inventory = text_of(path), _Inventory(path)
    is_yaml = path.suffix in (".yml", ".yaml", ".json")
    for name, group in inventory.entries((_yaml if is_yaml else _ini)(text, inventory)):
        inventory.take(name, group, (), {})
    return {name: inventory.host(name) for name in inventory.own}


def expanded(pattern: str) -> Iterator[str]:
    """``stor[01:03]`` as ``stor01``, ``stor02``, ``stor03``."""
    span = RANGE.search(pattern)
    if not span:
        yield pattern
        return
    first, last = span.groups()
    digits = first.isdigit() and last.isdigit()
    begin, end = (int(first), int(last)) if digits else (ord(first[0]), ord(last[0]))
    for number in range(begin, min(end, begin + MOST) + 1):
        item = str(number).zfill(len(first)) if digits else chr(number)
        yield from expanded(f"{pattern[: span.start()]}{item}{pattern[span.end() :]}")


def _yaml(text: str, inventory: _Inventory) -> Any:
    with needs_extra("fleet", "an Ansible inventory"):
        import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Values with tags such as !vault are dropped."""

    Loader.add_multi_constructor("!", lambda loader, suffix, node: None)
    try:
        return yaml.load(text, Loader=Loader)  # derived from SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = " ".join(str(error).split())
        raise inventory.refuse(
            f"not valid YAML: {message}",
            "`ansible-inventory --list` shows what Ansible makes of it",
        ) from error


def _ini(text: str, inventory: _Inventory) -> Any:
    """Return ``[group]`` with a host and its variables a line, ``[group:children]`` and ``[group:vars]`` as the tables
    that YAML would have."""
    parser = configparser.RawConfigParser(
        allow_no_value=True,
        delimiters=("\n",),
        comment_prefixes=("#", ";"),
        default_section="",
        strict=False,
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    groups: dict[str, dict[str, Any]] = {}

    def group_of(name: str) -> dict[str, Any]:
        return groups.setdefault(name, {"hosts": {}, "vars": {}, "children": {}})

    def pair(text: str) -> tuple[str, str]:
        key, sign, value = text.partition("=")
        if not sign:
            raise inventory.refuse(
                f"a variable without a value: {text!r}", "write it as NAME=VALUE"
            )
        return key.strip(), value.strip().strip("\"'")

    try:
        parser.read_string(f"[ungrouped]\n{text}", str(inventory.path))
        for section in parser.sections():
            name, _, kind = section.partition(":")
            for line in parser[section]:
                if kind == "children":
                    child = line.split()[0]
                    group_of(name)["children"][child] = group_of(child)
                elif kind == "vars":
                    group_of(name)["vars"].update([pair(line)])
                elif not kind:
                    host, *words = shlex.split(line, comments=True)
                    group_of(name)["hosts"].setdefault(host, {}).update(
                        map(pair, words)
                    )
    except (configparser.Error, ValueError) as error:
        raise inventory.refuse(
            f"not an Ansible inventory: {' '.join(str(error).split())}"
        ) from error
    # A group that is in another one is read there once more, with the variables of both.
    return {ALL: {**groups.pop(ALL, {}), "children": groups}}
