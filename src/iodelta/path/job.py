"""What one boot does: the guest's script and its data. Nothing from an experiment is ever part of the script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from iodelta.path.settings import Settings
from iodelta.vm import targets
from iodelta.vm.cpio import Entry, program
from iodelta.vm.guest import JOB, job
from iodelta.vm.spec import Spec

SETTLE = 3
"""Seconds of the guest's idle time before the first cell: a 6.12 works in the background for two after its boot
(measured). Idle time costs nothing: the clock jumps."""

FIXED = {"thread": "1", "norandommap": "1", "randrepeat": "1"}
"""fio's options that make a job countable."""

LOG = {"write_lat_log": "/tmp/lat", "log_avg_msec": "0"}
"""Those that keep every I/O's latency."""

IOS = "4000"
"""I/Os of a cell unless its ``number_ios`` says otherwise: plenty for a median."""


FILESYSTEMS = ("btrfs-", "ext4", "xfs")
"""Targets that are a directory."""


class CellJob(msgspec.Struct, frozen=True):
    """One cell as one variant runs it."""

    options: tuple[tuple[str, str | None], ...]
    settings: Settings
    reason: str = ""
    """Why it cannot be measured with this kernel, empty when it can."""


FUNCTIONS = r"""
set_one() {  # set_one PATH VALUE: written, and read back
    if ! printf '%s' "$2" >"$1"; then reason="$1 did not take $2"; return; fi
    now=$(cat "$1")
    case " $now " in
        *"[$2]"*) ;;
        *\[*) reason="$1: wanted $2, is $now" ;;
        *) [ "$now" = "$2" ] || reason="$1: wanted $2, is $now" ;;
    esac
}
pid=1000  # btrfs chooses a mirror by the reader's process number (read_policy pid): the same one under every kernel
measure() {  # measure JOB
    rm -f /tmp/lat*
    echo $pid >/proc/sys/kernel/ns_last_pid
    fio --output-format=json --output=/tmp/result $1 </dev/null >/tmp/said 2>&1 && return
    cat /tmp/said /tmp/result >/dev/console
    reason="fio failed: $(grep -m 1 -h error /tmp/said /tmp/result | tr '\n@' '  ')"
}
steer() {  # tags come from a random word of their bitmap, and its last word takes other instructions: take the first
    for disk in $device $members; do
        tags=/sys/block/$disk/queue/nr_requests
        read -r whole <$tags && echo 4 >$tags || continue
        dd if=/dev/$disk of=/dev/null bs=4k count=1 iflag=direct  # finds its hint beyond the end, and draws another
        echo $whole >$tags
    done >/dev/null 2>&1
}
disks() {  # the null_blk disks of the target, by their names
    for place in /sys/kernel/config/nullb/*/; do
        [ -d "$place" ] || continue
        place=${place%/}; disk=${place##*/}
        [ -b /dev/$disk ] || disk=nullb$(cat $place/index)
        echo $disk
    done
}
unmake() {  # whatever the target was
    umount /mnt; mdadm --stop /dev/md0; dmsetup remove target; rublk del -a
    for place in /sys/kernel/config/nullb/*/; do rmdir $place; done
}
"""
"""What the scripts of all boots have in common."""

_RUN = r"""
echo "@boot $(uname -r)"
sleep $(cat /job/settle)
for cell in /job/cells/*; do
    echo "@cell ${cell##*/}"
    reason="" made=""
    if [ -s $cell/reason ]; then reason=$(cat $cell/reason); else
        made=$(sh $cell/target 2>/tmp/said) || reason="no target: $(tail -n 1 /tmp/said | tr @ ' ')"
        members=$(disks)
        if [ -b "$made" ]; then device=${made##*/}; else device=$(echo $members | cut -d ' ' -f 1); fi
        queue=/sys/block/$device/queue
        steer
        while read -r name value; do [ -n "$reason" ] || set_one "$queue/$name" "$value"; done <$cell/queue
        while read -r name value; do [ -n "$reason" ] || set_one "$name" "$value"; done <$cell/files
        steer  # a scheduler has tags of its own
        for member in $members; do read -r reads rest </sys/block/$member/stat; echo $member $reads; done >/tmp/members
        if [ -z "$reason" ]; then
            if [ -f $cell/twice.fio ]; then phases; else measure $cell/job.fio; fi
        fi
        if [ -n "$reason" ]; then dmesg | tail -n 20 >/dev/console; else
            echo "@json"; cat /tmp/result
            if [ ! -f $cell/twice.fio ]; then
                echo "@latencies"
                cat /tmp/lat_lat.*.log | awk -F', *' '{n[$3 " " $2]++} END {for (k in n) print k, n[k]}' | sort -n
            fi
            echo "@members"
            while read -r member before; do
                read -r reads rest </sys/block/$member/stat; echo $member $((reads - before))
            done </tmp/members
        fi
        rm -f /tmp/result
        unmake >/dev/null 2>&1
    fi
    [ -z "$reason" ] || echo "@reason $reason"
done
if [ -f /job/symbols ]; then
    echo "@symbols"
    awk '$2 ~ /[tTwW]/ {print $1, $3}' /proc/kallsyms | gzip -c | base64
fi
echo "@end"
"""

_PHASES = r"""
armed=""
named() { awk -v wanted="$1" '$3 ~ wanted {print $1}' /proc/kallsyms; }
arm() {  # what the plugin must know of this kernel (plugin.c): where an I/O begins, interrupts, exceptions
    mark 1040 $(named '^submit_bio$')
    mark 1041 $(named '^asm_(sysvec_|common_interrupt$|spurious_interrupt$)')
    mark 1042 $(named '^asm_exc_')
    mark 1043; armed=1
    sleep 1
}
phases() {  # the same job once and with twice as many I/Os: what both share cancels out
    number=$((1${cell##*/} - 1000))
    [ -n "$armed" ] || arm
    measure $cell/twice.fio  # what only a first run does: caches of names, slabs, random numbers
    sleep 1  # what the kernel does later (RCU, work queues) is of no phase
    mark $((2 * number + 1)); measure $cell/once.fio; mark 0
    sleep 1
    mark $((2 * number + 2)); measure $cell/twice.fio; mark 0
}
"""


def job_archive(
    target: Spec, size: str, cells: Sequence[CellJob], *, mark: bytes = b""
) -> bytes:
    """Return the archive of one boot; with ``mark``, the program that announces phases, every cell runs in two for the
    plugin, and the kernel's symbols follow. Raises RequestError for an option of the target that nothing takes."""
    entries: dict[str, Entry] = {
        JOB: program(f"{_PHASES}{FUNCTIONS}{_RUN}".encode()),
        "job/settle": Entry(f"{SETTLE}\n".encode()),
    }
    if mark:
        entries["bin/mark"], entries["job/symbols"] = program(mark), Entry(b"")
    for number, cell in enumerate(cells):
        place = f"job/cells/{number:03d}"
        options = {**dict(target.options), **cell.settings.disk}
        entries[f"{place}/target"] = Entry(
            targets.script(target.target, options).encode()
        )
        if mark:
            for name, times in (("once", 1), ("twice", 2)):
                entries[f"{place}/{name}.fio"] = Entry(
                    job_file(cell.options, target, size, times=times, log=False)
                )
        else:
            entries[f"{place}/job.fio"] = Entry(job_file(cell.options, target, size))
        entries[f"{place}/reason"] = Entry(cell.reason.encode())
        entries[f"{place}/queue"] = setting_lines(cell.settings.queue)
        entries[f"{place}/files"] = setting_lines(cell.settings.files)
    return job(entries)


def job_file(
    options: Sequence[tuple[str, str | None]],
    target: Spec,
    size: str,
    *,
    times: int = 1,
    log: bool = True,
) -> bytes:
    """fio's job for a cell: count-bound, so many ``times`` over, its offsets fixed. ``size`` of a device is all of it
    when left out, of a file 32 MiB. The ``log`` of every I/O's latency grows by faults that are of no I/O's path."""
    whole: dict[str, str | None] = {
        "filename": targets.PLACE,
        "number_ios": IOS,
        **FIXED,
        **(LOG if log else {}),
    }
    if target.target.startswith(FILESYSTEMS):
        whole.update(filename=f"{targets.PLACE}/file", size="32m")
    if size:
        whole["size"] = size
    whole.update(options)
    whole["number_ios"] = str(times * int(whole["number_ios"] or IOS))
    lines = [key if value is None else f"{key}={value}" for key, value in whole.items()]
    return "\n".join(["[cell]", *lines, ""]).encode()


def setting_lines(values: Mapping[str, str]) -> Entry:
    """Settings as the guest's script reads them: a line of path and value each."""
    return Entry("".join(f"{key} {value}\n" for key, value in values.items()).encode())
