"""Targets that a guest makes at its start from the drivers of its kernel, by a POSIX sh script.

A script sets ``made`` to the device or directory that is measured, or ends with a reason on stderr. The server of
ublk's null target is rublk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from iodelta.errors import RequestError

PLACE = "/dev/target"
"""A link to what was made."""


class GuestTarget(msgspec.Struct, frozen=True):
    """A kind of target."""

    about: str
    script: str
    modules: tuple[str, ...] = ("configfs", "null_blk")
    programs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Names of its options; all others go to the null_blk disks below it."""
    parameters: tuple[str, ...] = ()
    """Options that are parameters of its module instead."""


COMMON = r"""
fail() { echo "$*" >&2; exit 1; }
quiet() { "$@" >/tmp/said 2>&1 || fail "$1: $(tail -n 2 /tmp/said | tr '\n' ' ')"; }
disk() {  # disk N [ATTRIBUTE=VALUE]...: one null_blk, its own attributes before the user's
    place=/sys/kernel/config/nullb/nullb$1; shift
    mkdir "$place" || fail 'null_blk: no device can be made by configfs; of a kernel whose null_blk is a module give BZIMAGE:MODULES'
    for one in "$@" $attributes; do
        printf %s "${one#*=}" 2>/dev/null >"$place/${one%%=*}" || fail "null_blk does not take $one"
    done
    echo 1 >"$place/power" || fail 'null_blk: the device does not start'
    made=/dev/${place##*/}; [ -b "$made" ] || made=/dev/nullb$(cat "$place/index")
}
members() {  # members MIB: the requested number, each with its own memory
    list=; n=0
    while [ $n -lt $disks ]; do disk $n memory_backed=1 size=$1; list="$list $made"; n=$((n + 1)); done
}
array() {  # array LEVEL
    layout=${layout:+--layout=$layout}
    members ${size:-64}
    [ $1 = 1 ] || layout="$layout --chunk=${chunk:-512}"  # a RAID1 has no chunks
    quiet mdadm --create /dev/md0 --run --assume-clean --level=$1 $layout --raid-devices=$disks $list
    made=/dev/md0
}
mapped() {  # mapped KIND [PARAMETER]: a dm device over one null_blk
    disk 0
    quiet dmsetup create target --table "0 $(blockdev --getsz $made) $1 $made 0 $2"
    quiet dmsetup mknodes
    made=/dev/mapper/target
}
pool() {  # pool PROFILE
    members ${size:-256}
    quiet mkfs.btrfs -q -f -d $1 -m $1 $list
    quiet command btrfs device scan $list
    quiet mount -t btrfs ${list##* } /mnt; made=/mnt
}
filesystem() {  # filesystem TYPE
    disk 0 memory_backed=1 size=${size:-512}
    quiet mkfs.$1 $made; quiet mount -t $1 $made /mnt; made=/mnt
}
"""

_NULL = ("configfs", "null_blk")


def _md(level: int, about: str) -> GuestTarget:
    options = ("disks", "layout", "chunk", "size")
    return GuestTarget(
        about, f"array {level}", (*_NULL, f"raid{level}"), ("mdadm",), options
    )


def _btrfs(profile: str) -> GuestTarget:
    about = f"btrfs, data and metadata {profile}, of null_blk disks"
    return GuestTarget(
        about,
        f"pool {profile}",
        (*_NULL, "btrfs"),
        ("mkfs.btrfs", "btrfs"),
        ("disks", "size"),
    )


def _filesystem(kind: str) -> GuestTarget:
    return GuestTarget(
        f"{kind} on a null_blk",
        f"filesystem {kind}",
        (*_NULL, kind),
        (f"mkfs.{kind}",),
        ("size",),
    )


TARGETS: Mapping[str, GuestTarget] = {
    "null_blk": GuestTarget(
        "completes every I/O by itself; its configfs attributes are options", "disk 0"
    ),
    "brd": GuestTarget(
        "a RAM disk of the kernel", "made=/dev/ram0", ("brd",), parameters=("rd_size",)
    ),
    "scsi_debug": GuestTarget(
        "an emulated SCSI disk; dev_size_mb, ndelay (ns) and other parameters are options",
        "for made in /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block/*; do :; done\n"
        'made=/dev/${made##*/}; [ -b "$made" ] || fail "scsi_debug made no disk"',
        ("scsi_debug", "sd_mod"),
        parameters=(
            "dev_size_mb",
            "ndelay",
            "delay",
            "max_queue",
            "submit_queues",
            "sector_size",
        ),
    ),
    "md-raid0": _md(0, "md RAID0 of null_blk disks"),
    "md-raid1": _md(1, "md RAID1 of null_blk disks"),
    "md-raid10": _md(10, "md RAID10 of null_blk disks; layout=n2, f2 or o2"),
    "dm-linear": GuestTarget(
        "device mapper over a null_blk",
        "mapped linear",
        (*_NULL, "dm-mod"),
        ("dmsetup",),
    ),
    "dm-delay": GuestTarget(
        "device mapper's delay (ms=1) over a null_blk; granular to a jiffy, so not a calibrated delay",
        "mapped delay ${ms:-1}",
        (*_NULL, "dm-delay"),
        ("dmsetup",),
        ("ms",),
    ),
    **{
        f"btrfs-{profile}": _btrfs(profile)
        for profile in ("single", "raid0", "raid1", "raid10")
    },
    "ext4": _filesystem("ext4"),
    "xfs": _filesystem("xfs"),
    "ublk-null": GuestTarget(
        "ublk's null target, served by rublk",
        "quiet rublk add null -q ${queues:-1} -d ${depth:-64}; made=/dev/ublkb0\n"
        'n=0; while [ ! -b $made ] && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done; [ -b $made ] || fail "no $made"',
        ("ublk_drv",),
        ("rublk",),
        ("queues", "depth"),
    ),
}


def find(kind: str) -> GuestTarget:
    """Return the kind of target called so. Raises RequestError that lists them."""
    if kind not in TARGETS:
        raise RequestError(
            f"not a target that a guest can make: {kind!r}",
            place="machine",
            remedy="; ".join(
                f"{name}: {target.about}" for name, target in TARGETS.items()
            ),
        )
    return TARGETS[kind]


def script(kind: str, options: Mapping[str, str]) -> str:
    """Return the script that makes it. Raises RequestError for an unknown option."""
    target = find(kind)
    own = {name: value for name, value in options.items() if name in target.options}
    rest = {
        name: value
        for name, value in options.items()
        if name not in (*own, *target.parameters)
    }
    if rest and "null_blk" not in target.modules:
        raise RequestError(
            f"{kind} has no option {', '.join(rest)}",
            place="machine",
            remedy=target.about,
        )
    if not own.get("disks", "4").isdigit() or not re.fullmatch(
        r"[nfo][1-9]|", own.get("layout", "")
    ):
        raise RequestError("disks is a number, layout n2, f2 or o2", place="machine")
    pair = kind in ("md-raid1", "btrfs-raid1", "btrfs-raid0", "btrfs-single")
    values = {
        "disks": "2" if pair else "4",
        **own,
        "attributes": " ".join(f"{name}={value}" for name, value in rest.items()),
    }
    lines = [f"{name}='{value}'" for name, value in values.items()]
    return "\n".join(
        [*lines, COMMON, target.script, f'ln -sfn "$made" {PLACE}', 'printf %s "$made"']
    )


def parameters(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters with which its module is loaded."""
    target = find(kind)
    given = " ".join(
        f"{name}={value}"
        for name, value in options.items()
        if name in target.parameters
    )
    if kind == "brd":
        return {"brd": f"rd_nr=1 {given or 'rd_size=65536'}"}
    if target.parameters:
        return {target.modules[0]: given}
    return {"null_blk": "nr_devices=0"}


def boot_parameters(kind: str, options: Mapping[str, str]) -> str:
    """Return the parameters for a kernel that has the module built in. Without them null_blk makes ``nullb0`` at boot,
    and configfs cannot make a device of that name."""
    words: list[str] = []
    for module, given in parameters(kind, options).items():
        words += (f"{module}.{word}" for word in given.split())
    return " ".join(words)
