"""Inventories and host expressions, as somebody writes them, mistypes them, or gets them from a stranger."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.errors import RequestError
from iodelta.fleet.choice import chosen
from iodelta.fleet.host import FleetHost
from iodelta.fleet.inventory import load

OWN = """
[host.stor1]
ssh = "root@stor1.lab"
tags = ["nvme", "rack1"]
targets = { nvme = "/dev/disk/by-id/nvme-A", hdd = "/dev/disk/by-id/ata-B" }
window = "22:00-06:00"
[host.stor2]
tags = ["nvme", "rack2"]
[host.stor10]
tags = ["rack2"]
"""

YAML = """
all:
  vars: {ansible_user: admin}
  hosts:
    lone: {}
  children:
    storage:
      vars:
        secret: !vault |
          $ANSIBLE_VAULT;1.1
      hosts:
        stor[01:03]:
        stor9: {ansible_host: 10.0.0.9, ansible_user: root, iodelta_targets: {nvme: /dev/nvme0n1}}
      children:
        rack2: {hosts: {stor9: , "stor4": }}
"""

INI = """
lone ansible_user=admin
[storage]
stor[01:03]
stor9 ansible_host=10.0.0.9 ansible_user=root  # the new one
[rack2]
stor9
stor4
[storage:children]
rack2
[all:vars]
ansible_user=admin
"""


def inventory(place: Path, text: str, **others: str) -> tuple[FleetHost, ...]:
    for name, other in others.items():
        (place / name.replace("_", ".")).write_text(other)
    (place / "fleet.toml").write_text(text)
    return load(place / "fleet.toml")


def test_hosts_have_address_tags_targets_and_window(tmp_path: Path) -> None:
    hosts = {host.name: host for host in inventory(tmp_path, OWN)}
    assert hosts["stor1"].machine == "ssh:root@stor1.lab"
    assert hosts["stor1"].target("class:hdd") == "/dev/disk/by-id/ata-B"
    assert hosts["stor1"].target("/dev/sdb") == "/dev/sdb"
    assert hosts["stor2"].machine == "ssh:stor2"
    with pytest.raises(RequestError, match=r"no target of class 'nvme' for this host"):
        hosts["stor2"].target("class:nvme")


@pytest.mark.parametrize(
    ("window", "open_at", "closed_at"),
    [
        ("22:00-06:00", (1320, 1439, 0, 359), (360, 720, 1319)),
        ("09:00-17:30", (540, 1049), (1050, 539)),
        ("", (0,), ()),
    ],
)
def test_a_window_may_go_over_midnight(window: str, open_at: tuple[int, ...], closed_at: tuple[int, ...]) -> None:
    host = FleetHost("a", "a", window=window)
    assert [host.is_open(minute) for minute in open_at] == [True] * len(open_at)
    assert [host.is_open(minute) for minute in closed_at] == [False] * len(closed_at)


@pytest.mark.parametrize(("name", "text"), [("hosts_yml", YAML), ("hosts_ini", INI)])
def test_hosts_of_ansible_have_groups_as_tags_and_a_table_of_ours_adds_to_them(
    name: str, text: str, tmp_path: Path
) -> None:
    own = (
        f'from = "ansible:{name.replace("_", ".")}"\n[host.stor9]\ntags = ["fast"]\ntargets = {{ hdd = "/dev/sdb" }}\n'
    )
    hosts = {host.name: host for host in inventory(tmp_path, own, **{name: text})}
    assert sorted(hosts) == ["lone", "stor01", "stor02", "stor03", "stor4", "stor9"]
    assert hosts["stor9"].ssh == "root@10.0.0.9"
    assert hosts["stor01"].ssh == "admin@stor01"
    assert set(hosts["stor9"].tags) == {"storage", "rack2", "fast"}
    assert set(hosts["stor4"].tags) == {"storage", "rack2"}
    assert hosts["lone"].tags == ()
    assert hosts["stor9"].targets["hdd"] == "/dev/sdb"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no host"),
        ("[host.a]\nssh = = 1", r"fleet.toml:2: not valid TOML"),
        ("[host.a]\nshh = 'a'", r"fleet.toml:2: \[host.a\] has no key 'shh'\n  did you mean ssh"),
        ("[host.a]\n\nssh = '-oProxyCommand=reboot'", r"fleet.toml:3: not a valid address: '-oProxyCommand=reboot'"),
        ("[host.a]\nssh = 'a b'", "not a valid address"),
        ("[host.a]\nssh = 'a$(reboot)'", "not a valid address"),
        ("[host.a]\nssh = 7", "not a valid address: 7"),
        ("[host.'../../etc']", "cannot be the name of a host"),
        ("[host.'-rf']", "cannot be the name of a host"),
        ("[host.all]", "cannot be the name of a host"),
        ("[host.a]\ntags = 'x'", "tags must be a list"),
        ("[host.a]\ntags = ['a;b']", "cannot be the name of a tag"),
        ("[host.a]\ntargets = { nvme = 'sdb' }", "not an absolute path: 'sdb'"),
        ("[host.a]\ntargets = { nvme = '/dev/../etc/shadow' }", "not an absolute path"),
        ('[host.a]\ntargets = { nvme = "/dev/\\u001b[2J" }', "not an absolute path"),
        ("[host.a]\ntargets = { 'a/b' = '/dev/sda' }", "cannot be the name of a class"),
        ("[host.a]\nwindow = '22-6'", "not a window: '22-6'"),
        ("[host.a]\nwindow = '25:00-06:00'", "not a window"),
        ("[host.a]\nwindow = 22", "not a window"),
        ("[host.a]\ntags = ['b']\n[host.b]", "'b' is the name of a host and a tag"),
        ("host = 3", "host must be tables"),
        ("host.a = 3", "must be a table"),
        ("from = 'hosts.yml'", "from must name an Ansible inventory"),
        ("from = 'ansible:nothing.yml'", "nothing.yml: cannot read the inventory"),
    ],
)
def test_what_is_wrong_is_one_message_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=said):
        inventory(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("all: [1, 2]", "a table is expected"),
        ("a: &a {children: {b: *a}}", "too many hosts|groups deep"),
        (f"x: {'[' * 5000}", "not valid YAML"),
        ("all: {hosts: {'$(reboot)': {}}}", "cannot be the name of a host"),
        ("all: {hosts: {a: {ansible_host: '-oProxyCommand=x'}}}", "not a valid address"),
        ("all: {hosts: {a: {ansible_host: '{{ lookup(1) }}'}}}", "not a valid address"),
        ("all: {hosts: {a: {ansible_port: 2222}}}", "ansible_port is not read"),
        ("all: {hosts: {'a[1:99999999]': {}}}", "too many hosts"),
        ("all: !!python/object/apply:os.system ['reboot']", "not valid YAML|a table is expected"),
    ],
)
def test_an_ansible_inventory_of_a_stranger_does_nothing(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=said):
        inventory(tmp_path, 'from = "ansible:hosts.yml"', hosts_yml=text)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("all", ["stor1", "stor10", "stor2"]),
        ("stor1", ["stor1"]),
        ("stor1*", ["stor1", "stor10"]),
        ("nvme", ["stor1", "stor2"]),
        ("nvme,!stor2", ["stor1"]),
        ("!stor2", ["stor1", "stor10"]),
        ("nvme,&rack2", ["stor2"]),
        ("stor1, rack2", ["stor1", "stor10", "stor2"]),
        ("all,!rack*,!stor2,!stor10", None),
        ("stor3", None),
        ("nvme,!stro2", None),
        ("stor1,", None),
        ("", None),
        ("!all", None),
    ],
)
def test_an_expression_names_hosts_or_says_that_it_does_not(
    expression: str, names: list[str] | None, tmp_path: Path
) -> None:
    hosts = inventory(tmp_path, OWN)
    if names is None:
        with pytest.raises(RequestError, match="--hosts: "):
            chosen(hosts, expression)
    else:
        assert [host.name for host in chosen(hosts, expression)] == names
