"""The inventory: which hosts there are. TOML of our own, with hosts of an Ansible inventory where it names one.

An inventory may come from somebody else: every name, address and path in it is checked before it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iodelta.experiment.source import Source, check_keys, toml_data
from iodelta.fleet import ansible
from iodelta.fleet.entry import checked, text_of
from iodelta.fleet.host import FleetHost

ANSIBLE = "ansible:"


def load(path: Path) -> tuple[FleetHost, ...]:
    """Return the hosts of an inventory, sorted by name. Raises RequestError that names the file, the line and the
    remedy.
    """
    text = text_of(path)
    data = toml_data(text, str(path), page="docs/fleet.md")
    source = Source(text, str(path))
    check_keys(source.refuse, data, (), ("from", "host"))
    tables = data.get("host", {})
    if not isinstance(tables, dict):
        source.refuse("host must be tables: [host.NAME]", "host")
    known = _from(source, data["from"], path.parent) if "from" in data else {}
    hosts = {
        name: _host(source, name, table, known.get(name))
        for name, table in tables.items()
    }
    merged = tuple(sorted((known | hosts).values(), key=lambda host: host.name))
    if not merged:
        source.refuse(
            "the inventory has no host", remedy='add one: [host.NAME] with ssh = "HOST"'
        )
    _check_tags(source, merged)
    return merged


def _from(source: Source, value: Any, base: Path) -> dict[str, FleetHost]:
    if not isinstance(value, str) or not value.startswith(ANSIBLE) or value == ANSIBLE:
        source.refuse(
            'from must name an Ansible inventory, as in from = "ansible:hosts.yml"',
            "from",
        )

    return ansible.read(base / value.removeprefix(ANSIBLE))


def _host(source: Source, name: str, table: Any, known: FleetHost | None) -> FleetHost:
    """Return a table of ours; it adds to the entry of a host that is in Ansible's inventory, too."""
    place = ("host", name)
    if not isinstance(table, dict):
        source.refuse(f"host.{name} must be a table: [host.{name}]", *place)
    check_keys(source.refuse, table, place, ("ssh", "tags", "targets", "window"))
    try:
        entry = checked(name, {"ssh": known.ssh if known else name, **table})
    except ValueError as error:
        what, key, remedy = error.args
        source.refuse(what, *place, *key, remedy=remedy)
    if known is None:
        return entry
    tags = tuple(dict.fromkeys((*known.tags, *entry.tags)))
    return FleetHost(
        name,
        entry.ssh,
        tags,
        known.targets | entry.targets,
        entry.window or known.window,
    )


def _check_tags(source: Source, hosts: tuple[FleetHost, ...]) -> None:
    """Raises RequestError for a tag that is also a host's name: a term of ``--hosts`` must have one meaning."""
    names = {host.name for host in hosts}
    for host in hosts:
        for tag in names.intersection(host.tags):
            source.refuse(
                f"{tag!r} is the name of a host and a tag",
                "host",
                host.name,
                "tags",
                remedy="rename one of them",
            )
