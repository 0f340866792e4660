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
            literals |= _one(_without_partition(value.rpartition("/")[2]), kind)
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
    # The kind of a path below the key `word`; empty for one that every machine has
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
    return "" if (value.split("/")[1] in SYSTEM) else "path"


def _is_host(path: tuple[str, ...], value: str) -> bool:
    if path[-1:] == ("hostname",) or path[-2:] == ("host", "name"):
        return True
    return path[-2:] == ("host", "machine") and value != "local"


def _volume_or_share(value: str) -> str:
    """Return the kind of ``server:/export``, or of a pool or volume by its name."""
    if re.match(r"[\w.-]+:/", value):
        return "share"
    return "volume"


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
    found = of_host(server)
    exported = "".join(rest)
    export = f"/{exported}"
    # A short path occurs in many texts with another meaning.
    if len(exported) >= LEAST and export not in USUAL:
        found |= _one(export, "share")
    return found


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


WORDS = frozenset(
    # what mitigations cost
    "mitigations nospectre_v1 nospectre_v2 spectre_v2 spectre_v2_user spectre_bhi spec_store_bypass_disable "
    "spec_rstack_overflow retbleed l1tf mds tsx tsx_async_abort mmio_stale_data srbds gather_data_sampling "
    "reg_file_data_sampling indirect_target_selection tsa vmscape pti nopti kpti "
    # which CPUs do what
    "isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity threadirqs skew_tick maxcpus nr_cpus nosmt preempt "
    # clocks and sleep states
    "intel_pstate amd_pstate idle nohlt intel_idle.max_cstate processor.max_cstate cpuidle.off cpuidle.governor "
    "cpufreq.off cpufreq.default_governor clocksource tsc notsc hpet nohpet pcie_aspm pcie_port_pm "
    # block layer and devices
    "elevator iommu iommu.strict iommu.passthrough intel_iommu amd_iommu swiotlb noapic nomsi "
    # memory
    "transparent_hugepage hugepages hugepagesz default_hugepagesz numa numa_balancing init_on_alloc init_on_free "
    "slub_debug page_poison debug_pagealloc "
    # what is accounted or watched at every call
    "audit selinux apparmor security cgroup_disable cgroup_no_v1 systemd.unified_cgroup_hierarchy psi nmi_watchdog "
    "nowatchdog nosoftlockup".split()
)
"""Boot parameters that are kept with their values."""

MODULES = frozenset(
    "nvme nvme_core nvme_tcp scsi_mod sd_mod libata ahci mpt3sas megaraid_sas virtio_blk virtio_scsi null_blk ublk_drv "
    "loop dm_mod dm_multipath md_mod raid1 raid10 raid456 btrfs zswap workqueue rcutree rcupdate kvm kvm_intel kvm_amd "
    "haltpoll cpuidle_haltpoll".split()
)
"""Modules whose parameters are kept if the value is a number or a switch."""

_ONE = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_VALUE = re.compile(r"[A-Za-z0-9_,.:+-]{1,64}")
_SWITCH = re.compile(
    r"-?\d{1,12}[KMGkmg]?|0x[0-9A-Fa-f]{1,8}|[YyNn]|on|off|auto|none|mq-deadline|kyber|bfq"
)
_COUNT = re.compile(r"\s*\((\d+) further words? left out\)\Z")


def reduced(line: str) -> str:
    """Return a command line as a bundle contains it; reducing it again does not change it."""
    before = _COUNT.search(line)
    words = _ONE.findall(_COUNT.sub("", line))
    travelling = [word for word in words if _travels(word)]
    left_out = len(words) - len(travelling)
    if before:
        left_out += int(before[1])
    if left_out:
        noun = "word" if left_out == 1 else "words"
        travelling.append(f"({left_out} further {noun} left out)")
    return " ".join(travelling)


def left_out_words(line: str) -> int:
    """Number of words of a command line that a bundle omits."""
    count = _COUNT.search(reduced(line))
    if not count:
        return 0
    return int(count[1])


def without_count(line: str) -> str:
    """Return a reduced line without the count of omitted words."""
    return _COUNT.sub("", line)


def _travels(word: str) -> bool:
    """Return whether a boot parameter matters for I/O, and its value cannot be a name."""
    name, equals, value = word.partition("=")
    if name in WORDS:
        return not equals or bool(_VALUE.fullmatch(value))
    module, dot, _ = name.partition(".")
    if not dot or module not in MODULES or not re.fullmatch(r"[\w.]+", name):
        return False
    return bool(_SWITCH.fullmatch(value))
