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


class _Found:
    """What was read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inherited: dict[str, dict[str, Any]] = {}
        self.own: dict[str, dict[str, Any]] = {}
        """Variables of a host. They override those of its groups, in any order in the file."""
        self.groups: dict[str, list[str]] = {}
        self.seen = 0

    def refuse(self, what: str, remedy: str = "") -> RequestError:
        return RequestError(what, place=str(self.path), remedy=remedy)

    def add(
        self,
        pattern: str,
        groups: tuple[str, ...],
        inherited: Mapping[str, Any],
        own: Mapping[str, Any],
    ) -> None:
        for name in expanded(pattern):
            self.seen += 1
            if self.seen > MOST:
                raise self.refuse("too many hosts, or groups that contain themselves")
            self.inherited.setdefault(name, {}).update(inherited)
            self.own.setdefault(name, {}).update(own)
            self.groups.setdefault(name, []).extend(
                group for group in groups if group not in _IMPLIED
            )

    def hosts(self) -> dict[str, FleetHost]:
        return {
            name: self._host(name, {**self.inherited[name], **own})
            for name, own in self.own.items()
        }

    def _host(self, name: str, variables: Mapping[str, Any]) -> FleetHost:
        if str(variables.get("ansible_port", 22)) != "22":
            raise self.refuse(
                f"{name}: ansible_port is not read",
                "write Port for this host into ~/.ssh/config, and leave it out here",
            )
        address, user = (
            variables.get("ansible_host", name),
            variables.get("ansible_user", ""),
        )
        table: dict[str, Any] = {"ssh": f"{user}@{address}" if user else address}
        table["tags"] = list(dict.fromkeys(self.groups[name]))
        table |= {
            ours: variables[theirs]
            for theirs, ours in _VARIABLES.items()
            if theirs in variables
        }
        try:
            return checked(name, table)
        except ValueError as error:
            what, _, remedy = error.args
            raise self.refuse(f"host {name!r}: {what}", remedy) from error


def read(path: Path) -> dict[str, FleetHost]:
    """Return the hosts by name. Raises RequestError."""
    text, inventory = text_of(path), _Found(path)
    if path.suffix in (".yml", ".yaml", ".json"):
        data = _yaml(text, inventory)
        for name, group in _entries(data, inventory):
            _group(name, group, (), {}, inventory)
    else:
        _ini(text, inventory)
    return inventory.hosts()


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


def _yaml(text: str, inventory: _Found) -> Any:
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


def _entries(table: Any, inventory: _Found) -> Iterator[tuple[str, Any]]:
    if table is not None and not isinstance(table, dict):
        raise inventory.refuse(
            f"not an Ansible inventory: a table is expected in place of {str(table)[:60]!r}"
        )
    for name, value in (table or {}).items():
        inventory.seen += 1
        if inventory.seen > MOST:
            raise inventory.refuse("too many hosts, or groups that contain themselves")
        yield str(name), value


def _group(
    name: str,
    group: Any,
    above: tuple[str, ...],
    inherited: Mapping[str, Any],
    inventory: _Found,
) -> None:
    if len(above) > DEEPEST:
        raise inventory.refuse(f"group {name!r} lies more than {DEEPEST} groups deep")
    parts = dict(_entries(group, inventory))
    groups = (*above, name)
    variables = {**inherited, **dict(_entries(parts.get("vars"), inventory))}
    for host, own in _entries(parts.get("hosts"), inventory):
        inventory.add(host, groups, variables, dict(_entries(own, inventory)))
    for child, inner in _entries(parts.get("children"), inventory):
        _group(child, inner, groups, variables, inventory)


def _ini(text: str, inventory: _Found) -> None:
    """``[group]`` with a host and its variables a line, ``[group:children]``, ``[group:vars]``."""
    parser = configparser.RawConfigParser(
        allow_no_value=True,
        delimiters=("\n",),
        comment_prefixes=("#", ";"),
        default_section="",
        strict=False,
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(f"[ungrouped]\n{text}", str(inventory.path))
    except configparser.Error as error:
        raise inventory.refuse(
            f"not an Ansible inventory: {' '.join(str(error).split())}"
        ) from error
    children: dict[str, list[str]] = {}
    of_group: dict[str, dict[str, str]] = {}
    for section in parser.sections():
        group, _, kind = section.partition(":")
        if kind == "children":
            children[group] = [line.split()[0] for line in parser[section]]
        elif kind == "vars":
            of_group[group] = dict(_pair(line, inventory) for line in parser[section])
    for section in parser.sections():
        if ":" not in section:
            names, waiting = {section: None}, [section]
            while waiting:
                child = waiting.pop()
                for parent, inner in children.items():
                    if child in inner and parent not in names:
                        names[parent] = None
                        waiting.append(parent)
            groups = tuple(names)
            inherited: dict[str, str] = {}
            for group in (ALL, *reversed(groups)):
                inherited |= of_group.get(group, {})
            for line in parser[section]:
                _line(line, groups, inherited, inventory)


def _line(
    line: str, groups: tuple[str, ...], inherited: Mapping[str, str], inventory: _Found
) -> None:
    try:
        name, *words = shlex.split(line, comments=True)
    except ValueError as error:
        raise inventory.refuse(f"cannot read {line!r}: {error}") from error
    inventory.add(
        name, groups, inherited, dict(_pair(word, inventory) for word in words)
    )


def _pair(text: str, inventory: _Found) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise inventory.refuse(
            f"a variable without a value: {text!r}", "write it as NAME=VALUE"
        )
    return key.strip(), value.strip().strip("\"'")
