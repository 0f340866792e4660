"""Identities: the names, numbers and addresses that a bundle must not contain.

There are two sources: the names and serial numbers that the folder records, and the present names of this machine,
which may occur in any text (a path, an error, a command line). Identities with a typical form (UUIDs, MAC and IP addresses,
by-id names, home directories) are found by ``pseudonyms.PATTERNS``.
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
"""Last parts of the keys under which environments record the serial numbers of devices."""

LABELS = frozenset({"label"})

KEYS = dict.fromkeys(LABELS, "label") | dict.fromkeys(SERIALS, "serial")
"""Last part of a key -> kind of its value."""

SECRETS = re.compile(
    r"(?i)password|passwd|passphrase|secret|token|credential|(api|access|private)[_-]?key"
)
"""Keys of secrets: no environment of this version has one, but one of another version may."""

PATHS = frozenset("path real_path backing_file source mount target folder cwd".split())
USUAL = frozenset(
    "/ /boot /boot/efi /data /dev /dev/shm /home /media /mnt /opt /proc /root /run /scratch /srv /sys /tmp /usr /var "
    "/var/lib /var/lib/docker /var/log /var/tmp".split()
)
"""Mount points of every machine."""
SYSTEM = "bin boot dev etc lib lib32 lib64 libx32 proc run sbin sys usr".split()
"""First parts of paths that are the same on every machine."""
LEAST = 5
"""Fewest letters of an exported path that is replaced in texts."""
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

_LINKS = {"by-id": "disk name", "by-uuid": "serial", "by-label": "label"}
"""Directory below /dev/disk -> kind of the names in it."""

PEOPLE = range(1000, 60000)
"""User ids that distributions give to people; other ids belong to services, whose names are the same everywhere."""

_EMPTY = re.compile(
    r"(?i)0*|(00:)*00|none|n/?a|default string|not specified|to be filled.*|system serial number|unknown"
)
"""Placeholders of firmware without a serial number."""


def of_this_machine() -> Literals:
    """Return the identities of this machine, its disks and its users. Reads a few files; a missing one adds nothing."""
    literals: Literals = {}
    for kind, pattern in _FILES:
        for path in glob.glob(pattern):
            literals |= _one(_text_of(path), kind)
    for name in (os.uname().nodename, _canonical_name()):
        literals |= of_host(name)
    for variable in ("USER", "LOGNAME", "SUDO_USER"):
        literals |= _one(os.environ.get(variable, ""), "user name")
    for account in pwd.getpwall():
        if account.pw_uid in PEOPLE:
            literals |= _one(account.pw_name, "user name")
    for directory, kind in _LINKS.items():
        for path in glob.glob(f"/dev/disk/{directory}/*"):
            literals |= _one(_without_partition(Path(path).name), kind)
    return literals


def _without_partition(name: str) -> str:
    """Return the link of a whole disk below /dev/disk, from one of its partitions."""
    return re.sub(r"-part\d+$", "", name)


def _text_of(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8", "replace").strip("\0 \n")
    except OSError:
        # Only root may read it, or it is gone.
        return ""


def of_owner(path: Path) -> Literals:
    """Who owns the folder."""
    try:
        return _one(path.owner(), "user name")
    except (KeyError, OSError):
        return {}


def of_document(document: Any) -> Literals:
    """Identities in an environment, a journal line or a record: the values of keys that hold identities."""
    literals: Literals = {}
    for path, value in _walk(document):
        kind = kind_of(path, value)
        if kind == "host name":
            literals |= of_host(value)
        elif kind == "share":
            literals |= _one(value, kind) | _server_and_path(value)
        elif kind == "disk name":
            name = value.rpartition("/")[2]
            literals |= _one(_without_partition(name), kind)
        elif kind:
            literals |= _one(value, kind)
    return literals


def kind_of(path: tuple[str, ...], value: str) -> str:
    """Return the kind of identity at ``path`` of a document; empty if no identity belongs there."""
    last = path[-1] if path else ""
    word = last.rpartition(".")[2]
    if _is_host(path, value):
        return "host name"
    if word in KEYS:
        return KEYS[word]
    if last == "by_id":
        return "disk name"
    if last == "dm.name":
        return _volume_or_share(value)
    # A filesystem's source without a device: a server's directory, or a pool by its name.
    if word == "source" and value.startswith("//"):
        return "share"
    if word == "source" and "/" in value and not value.startswith("/"):
        return _volume_or_share(value)
    if SECRETS.search(last):
        return "secret"
    return _kind_of_path(word, value)


def _is_host(path: tuple[str, ...], value: str) -> bool:
    if path[-1:] == ("hostname",) or path[-2:] == ("host", "name"):
        return True
    return path[-2:] == ("host", "machine") and value != "local"


def _volume_or_share(value: str) -> str:
    """Return the kind of ``server:/export``, or of a pool or volume by its name."""
    if re.match(r"[\w.-]+:/", value):
        return "share"
    return "volume"


def _kind_of_path(word: str, value: str) -> str:
    """Return the kind of a path below the key ``word``; empty for one that every machine has."""
    if value.startswith(HOMES):
        return "home" if word in PATHS else ""
    if not value.startswith("/") or value in USUAL:
        return ""
    if word in ("mount", "point"):
        return "mount point"
    # A placeholder has one level.
    is_deep = value.count("/") > 1
    if word not in PATHS or not is_deep:
        return ""
    is_system = value.split("/")[1] in SYSTEM
    return "" if is_system else "path"


def _walk(document: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every string in plain data with the keys above it. Uses its own stack, because data may be nested deeply."""
    todo: list[tuple[tuple[str, ...], Any]] = [((), document)]
    while todo:
        here, node = todo.pop()
        if isinstance(node, Mapping):
            for key, inner in node.items():
                todo.append(((*here, str(key)), inner))
        elif isinstance(node, list):
            todo += [(here, inner) for inner in node]
        elif isinstance(node, str):
            yield here, node


def _server_and_path(share: str) -> Literals:
    """Return the server and the path of ``server:/export`` or ``//server/share``."""
    server, *rest = re.split(":/|/", share.lstrip("/"), maxsplit=1)
    literals = of_host(server)
    path = "".join(rest)
    export = f"/{path}"
    # A short path occurs in many texts with another meaning.
    if len(path) >= LEAST and export not in USUAL:
        literals |= _one(export, "share")
    return literals


def of_host(name: str) -> Literals:
    """Return a host's full name, and the first part of it; nothing for ``localhost``, the name of every machine."""
    short = name.partition(".")[0]
    if short in ("localhost", ""):
        return {}
    return _one(name, "host name") | _one(short, "host name")


def _canonical_name() -> str:
    """Return the full name of this machine from /etc/hosts, without a query to a name server."""
    try:
        text = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    host = socket.gethostname()
    for line in text.splitlines():
        names = line.split("#")[0].split()[1:]
        if host in names:
            full_names = [name for name in names if name.startswith(f"{host}.")]
            return full_names[0] if full_names else ""
    return ""


def _one(text: str, kind: str) -> Literals:
    """Return the text as one identity; nothing for an empty text, a placeholder or a text that cannot be a name."""
    text = text.strip()
    if not text or _EMPTY.fullmatch(text):
        return {}
    if len(text) > 256 or not text.isprintable():
        return {}
    return {text: kind}
