"""What tells who and where: the names, numbers and addresses that a bundle must not carry.

Two sources. What the folder itself records as a name or serial number; and what this machine is called now, since the
same words may stand in any text: a path, an error, a command line. Forms that can be told by their look alone (UUIDs,
MAC and IP addresses, by-id names, homes) are found by ``patterns`` wherever they stand.
"""

from __future__ import annotations

import glob
import os
import pwd
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Literals = dict[str, str]
"""Text -> kind."""

SERIALS = frozenset(
    "serial wwid uuid machine_id partition_uuid wwn eui nguid fsid".split()
)
"""Last parts of the keys under which environments and identities keep what a device is called."""

SECRETS = re.compile(
    r"(?i)password|passwd|passphrase|secret|token|credential|(api|access|private)[_-]?key"
)
"""Keys under which no environment of iodelta has anything; one of another version may."""

LABELS = frozenset({"label"})
PATHS = frozenset("path real_path backing_file source mount target folder cwd".split())
USUAL = frozenset(
    "/ /boot /boot/efi /data /dev /dev/shm /home /media /mnt /opt /proc /root /run /scratch /srv /sys /tmp /usr /var "
    "/var/lib /var/lib/docker /var/log /var/tmp".split()
)
"""Mount points that everybody has."""
SYSTEM = "bin boot dev etc lib lib32 lib64 libx32 proc run sbin sys usr".split()
"""First parts of paths that are alike on every machine."""
LEAST = 5
"""Letters of an exported path that is looked for in texts."""
HOMES = ("/home/", "/root/", "/Users/", "/media/", "/run/media/")

_FILES = (
    ("serial", "/sys/block/*/serial"),
    ("serial", "/sys/block/*/device/serial"),
    ("serial", "/sys/block/*/wwid"),
    ("serial", "/sys/block/*/device/wwid"),
    ("serial", "/sys/class/dmi/id/*_serial"),
    ("serial", "/sys/class/dmi/id/product_uuid"),
    ("serial", "/sys/class/dmi/id/chassis_asset_tag"),
    ("volume", "/sys/block/dm-*/dm/name"),
    ("serial", "/sys/block/dm-*/dm/uuid"),
    ("serial", "/etc/nvme/hostnqn"),
    ("serial", "/etc/nvme/hostid"),
    ("machine id", "/etc/machine-id"),
    ("machine id", "/var/lib/dbus/machine-id"),
    ("MAC address", "/sys/class/net/*/address"),
    ("host name", "/etc/hostname"),
)

_EMPTY = re.compile(
    r"(?i)0*|(00:)*00|none|n/?a|default string|not specified|to be filled.*|system serial number|unknown"
)
"""What firmware says that has no serial number."""


def of_this_machine() -> Literals:
    """What this machine, its disks and its people are called. Reads a few files; what is not there is no identity."""
    literals: Literals = {}
    for kind, pattern in _FILES:
        for path in glob.glob(pattern):
            literals |= _one(_text_of(path), kind)
    for name in (os.uname().nodename, _canonical_name()):
        literals |= of_host(name)
    for user in (os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")):
        literals |= _one(user, "user name")
    for account in pwd.getpwall():
        if 1000 <= account.pw_uid < 60000:
            literals |= _one(account.pw_name, "user name")
    for directory, kind in (
        ("by-id", "disk name"),
        ("by-uuid", "serial"),
        ("by-label", "label"),
    ):
        for path in glob.glob(f"/dev/disk/{directory}/*"):
            literals |= _one(re.sub(r"-part\d+$", "", Path(path).name), kind)
    return literals


def _text_of(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8", "replace").strip("\0 \n")
    except OSError:  # root's only, or gone
        return ""


def of_owner(path: Path) -> Literals:
    """Who owns the folder."""
    try:
        return _one(path.owner(), "user name")
    except (KeyError, OSError):
        return {}


def of_document(document: Any) -> Literals:
    """What an environment, a journal line or a record says that it is: values under the keys that hold identities."""
    literals: Literals = {}
    for path, value in _walk(document):
        kind = kind_of(path, value)
        if kind == "host name":
            literals |= of_host(value)
        elif kind == "share":
            literals |= _one(value, kind) | _server_and_path(value)
        elif kind == "disk name":
            literals |= _one(re.sub(r"-part\d+$", "", value.rpartition("/")[2]), kind)
        elif kind:
            literals |= _one(value, kind)
    return literals


def kind_of(path: tuple[str, ...], value: str) -> str:
    """The kind of identity that the text at ``path`` of a document is; empty when it is none by its place."""
    last = path[-1] if path else ""
    word = last.rpartition(".")[2]
    if _is_host(path, value):
        return "host name"
    if word in SERIALS:
        return "serial"
    if word in LABELS:
        return "label"
    if last == "by_id":
        return "disk name"
    if last == "dm.name" or word == "source":
        source = _kind_of_source(value, is_volume=last == "dm.name")
        if source:
            return source
    if SECRETS.search(last):
        return "secret"
    return _kind_of_path(word, value)


def _is_host(path: tuple[str, ...], value: str) -> bool:
    if path[-1:] == ("hostname",) or path[-2:] == ("host", "name"):
        return True
    return path[-2:] == ("host", "machine") and value != "local"


def _kind_of_source(value: str, *, is_volume: bool) -> str:
    """What a filesystem is mounted from: ``server:/export``, ``//server/share``, or a pool or volume by its name."""
    if is_volume or ("/" in value and not value.startswith("/")):
        return "share" if re.match(r"[\w.-]+:/", value) else "volume"
    return "share" if value.startswith("//") else ""


def _kind_of_path(word: str, value: str) -> str:
    if value.startswith(HOMES):
        return "home" if word in PATHS else ""
    is_own = value.startswith("/") and value not in USUAL
    if word in ("mount", "point"):
        return "mount point" if is_own else ""
    is_deep = value.count("/") > 1  # a placeholder is not
    if word in PATHS and is_own and is_deep and value.split("/")[1] not in SYSTEM:
        return "path"
    return ""


def _walk(
    value: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    todo = [(path, value)]
    while todo:
        here, node = todo.pop()
        if isinstance(node, Mapping):
            todo += [((*here, str(key)), inner) for key, inner in node.items()]
        elif isinstance(node, list):
            todo += [(here, inner) for inner in node]
        elif isinstance(node, str):
            yield here, node


def _server_and_path(share: str) -> Literals:
    """Who serves ``server:/export`` or ``//server/share``, and what."""
    server, _, path = re.sub(":/|/", "\0", share.lstrip("/"), count=1).partition("\0")
    return of_host(server) | (
        _one(f"/{path}", "share")
        if len(path) >= LEAST and f"/{path}" not in USUAL
        else {}
    )


def of_host(name: str) -> Literals:
    """A host's full name, and the first part of it. ``localhost`` is everybody's."""
    short = name.partition(".")[0]
    if short in ("localhost", ""):
        return {}
    return _one(name, "host name") | _one(short, "host name")


def _canonical_name() -> str:
    """The full name as the resolver's own file gives it; no question leaves this machine."""
    try:
        lines = (
            Path("/etc/hosts")
            .read_text(encoding="utf-8", errors="replace")
            .splitlines()
        )
    except OSError:
        return ""
    own = socket.gethostname()
    words = next(
        (
            line.split("#")[0].split()[1:]
            for line in lines
            if own in line.split("#")[0].split()[1:]
        ),
        [],
    )
    return next((word for word in words if word.startswith(f"{own}.")), "")


def _one(text: str, kind: str) -> Literals:
    text = text.strip()
    usable = (
        text and not _EMPTY.fullmatch(text) and len(text) <= 256 and text.isprintable()
    )
    if not usable:
        return {}
    return {text: kind}
