"""The script of a boot that follows cache lines between two CPUs. For each cell it creates the target, applies the
settings, traces allocations for the names of lines, and then lets both CPUs do I/O in turn (alternate.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from iodelta.errors import RequestError
from iodelta.experiment import Experiment
from iodelta.experiment.values import size_bytes
from iodelta.path.job import FILESYSTEMS, FUNCTIONS, SETTLE, CellJob, setting_lines
from iodelta.vm import targets
from iodelta.vm.cpio import Entry, program
from iodelta.vm.guest import JOB, job
from iodelta.vm.spec import Spec

CPUS = 2
"""CPUs of a guest whose moved lines are counted: as many as alternate.c has processes."""

BOOT_WORDS = "no_hash_pointers ignore_loglevel"
"""Boot parameters: true addresses in traces, and a sign of progress before the guest's script begins."""

IOS = "1000"
"""I/Os of each CPU unless the cell's ``number_ios`` says otherwise."""

MOST_IOS = 1_000_000
LARGEST_BLOCK = 1 << 20

DIRECTIONS = ("read", "write", "randread", "randwrite")
OPTIONS = frozenset({"rw", "bs", "direct", "number_ios", "ioengine", "iodepth"})
"""fio's options that a cell may have: the guest runs another program instead of fio."""

_RUN = r"""
tracing=/sys/kernel/tracing
events="kmalloc kmalloc_node kmem_cache_alloc kmem_cache_alloc_node kfree kmem_cache_free mm_page_alloc mm_page_free"
trace() {  # trace 0|1: allocations; a kernel without their events has lines without a birth
    if [ $1 = 1 ]; then stack=stacktrace; else stack='!stacktrace'; fi
    { echo $stack >$tracing/events/kmem/mm_page_alloc/trigger; } 2>/dev/null  # that event does not say who asks
    for event in $events; do echo $1 >$tracing/events/kmem/$event/enable; done 2>/dev/null
}
births() {  # of what is still allocated: address, bytes, the function that asked for it; "page", number, order, function
    awk '
    / => / {
        if (page != "" && $2 !~ /alloc_pages|alloc_frozen|alloc_folio|folio_alloc|free_page|zeroed_page|[kv]malloc|trace_/) {
            born["page " page] = order " " $2; page = ""
        }
        next
    }
    /<stack trace>/ { next }
    {
        site = address = bytes = page = order = ""
        for (i = 5; i <= NF; i++) {
            if ($i ~ /^call_site=/) site = substr($i, 11)
            if ($i ~ /^ptr=/) address = substr($i, 5)
            if ($i ~ /^bytes_req=/) bytes = substr($i, 11)
            if ($i ~ /^pfn=/) page = substr($i, 5)
            if ($i ~ /^order=/) order = substr($i, 7)
        }
        sub(/\+.*/, "", site)
        if (bytes != "") born[address] = bytes " " site
        else if (address != "") delete born[address]
        else if (/ mm_page_free: /) { delete born["page " page]; page = "" }
    }
    END { for (address in born) print address, born[address] }' $tracing/trace 2>/dev/null | sort
}
apart() {  # whether the CPUs have words of their own in every bitmap of tags, as far as it has several (blk-mq-debugfs)
    cat /sys/kernel/debug/block/*/hctx*/tags /sys/kernel/debug/block/*/hctx*/sched_tags 2>/dev/null | awk '
        /^bits_per_word=/ { bits = substr($0, 15) }
        /^map_nr=/ { words = substr($0, 8) }
        /^alloc_hint=/ && words > 1 {
            gsub(/[^0-9,]/, ""); split($0, hint, ",")
            if (int(hint[1] / bits) == int(hint[2] / bits)) same = 1
        }
        END { exit same }'
}
own_queues() {  # whether each CPU has a queue, and so a bitmap of tags, of its own on every null_blk; later ones poll
    cat /sys/kernel/config/nullb/*/shared_tag_bitmap 2>/dev/null | grep -q 1 && return 1
    for queues in /sys/block/nullb*/mq; do
        [ "$(echo $(cat $queues/0/cpu_list $queues/1/cpu_list 2>/dev/null))" = "0 1" ] || return 1
    done
}
ready() {  # the target of a cell and its settings: the devices of both CPUs, or a reason
    reason=""; others=""
    echo 2>/dev/null >$tracing/trace
    trace 1
    made=$(sh $cell/target 2>/tmp/said) || reason="no target: $(tail -n 1 /tmp/said | tr @ ' ')"
    each=$made
    if [ -z "$reason" ] && [ -f $cell/second ]; then
        each=$(sh $cell/second 2>/tmp/said) || reason="no second target: $(tail -n 1 /tmp/said | tr @ ' ')"
        others=${each##*/}
    fi
    for device in ${made##*/} $others; do
        queue=/sys/block/$device/queue
        while read -r name value; do [ -n "$reason" ] || set_one "$queue/$name" "$value"; done <$cell/queue
    done
    while read -r name value; do [ -n "$reason" ] || set_one "$name" "$value"; done <$cell/files
    trace 0
}
echo "@boot $(uname -r)"
mount -t tracefs tracefs $tracing 2>/dev/null && echo 8192 >$tracing/buffer_size_kb
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
sleep $(cat /job/settle)
for cell in /job/cells/*; do
    echo "@cell ${cell##*/}"
    reason=""
    if [ -s $cell/reason ]; then reason=$(cat $cell/reason); else
        ready; tries=1
        # Where a CPU's tags begin is drawn when the target is made: one in eight draws of a null_blk gives both one word.
        until [ -n "$reason" ] || own_queues || apart || [ $tries -ge 30 ]; do
            unmake >/dev/null 2>&1
            ready; tries=$((tries + 1))
        done
        if [ -z "$reason" ]; then
            sleep 1  # what the kernel does later (RCU, work queues) is of no I/O
            number=$((1${cell##*/} - 999))
            alternate $number $(cat $cell/load) $made $each || reason="the I/O program failed with code $?"
        fi
        if [ -n "$reason" ]; then dmesg | tail -n 20 >/dev/console; else
            if own_queues; then tags=apart
            elif [ ! -e $(set -- /sys/kernel/debug/block/*/hctx*/tags; echo $1) ]; then tags=unknown
            elif apart; then tags=apart; else tags=shared; fi
            echo "@tags $tags"
            echo "@births"
            births
        fi
        unmake >/dev/null 2>&1
    fi
    [ -z "$reason" ] || echo "@reason $reason"
done
echo "@symbols"
awk '$3 !~ /^(__pfx_|__ksymtab_|__param_|__kstrtab)/ {print $1, $2, $3}' /proc/kallsyms | gzip -c | base64
echo "@end"
"""

_SECOND = "disk 1"


def sharing_job(target: Spec, cells: Sequence[CellJob], alternate: bytes) -> bytes:
    """Return the archive of one boot; ``alternate`` is the program that does the I/O."""
    entries: dict[str, Entry] = {
        JOB: program(f"{FUNCTIONS}{_RUN}".encode()),
        "bin/alternate": program(alternate),
        "job/settle": Entry(f"{SETTLE}\n".encode()),
    }
    for number, cell in enumerate(cells):
        place = f"job/cells/{number:03d}"
        options = {**dict(target.options), **cell.settings.disk}
        script = targets.script(target.target, options)
        entries[f"{place}/target"] = Entry(script.encode())
        if cell.settings.devices == CPUS:
            entries[f"{place}/second"] = Entry(_second_disk(options).encode())
        entries[f"{place}/load"] = Entry(f"{load(dict(cell.options))}\n".encode())
        entries[f"{place}/reason"] = Entry(cell.reason.encode())
        entries[f"{place}/queue"] = setting_lines(cell.settings.queue)
        entries[f"{place}/files"] = setting_lines(cell.settings.files)
    return job(entries)


def _second_disk(options: Mapping[str, str]) -> str:
    """Return a script that makes one more null_blk with the same attributes."""
    attributes = " ".join(f"{name}={value}" for name, value in options.items())
    lines = [f"attributes='{attributes}'", targets.COMMON, _SECOND]
    return "\n".join([*lines, 'printf %s "$made"'])


def load(options: Mapping[str, str | None]) -> str:
    """Return what alternate.c is to do for a cell: I/Os of each CPU, bytes of a block, direction."""
    ios = options.get("number_ios") or IOS
    return f"{ios} {_block(options)} {options.get('rw') or 'read'}"


def refuse(experiment: Experiment, target: Spec) -> None:
    """Raise RequestError for what the guest's program cannot do."""
    if target.target.startswith(FILESYSTEMS):
        raise RequestError(
            f"moved lines are counted on a block device, not on {target.target}",
            place="target",
            remedy="omit --target for null_blk, or name md-raid1, dm-linear, brd, ...",
        )
    if target.target != "null_blk" and "vm.devices" in experiment.knob_names():
        raise RequestError(
            "a second disk is made of null_blk only",
            place="vm.devices",
            remedy="omit --target, or vm.devices",
        )
    for cell, variant in product(experiment.cells, experiment.variants):
        place = f"cell {cell.name}, variant {variant.name}"
        options = cell.options_under(variant)
        size, ios = _block(options), options.get("number_ios") or IOS
        others = sorted(options.keys() - OPTIONS)
        wrong = {
            f"the program that does I/O on two CPUs in turn has no option {''.join(others[:1])}": (
                not others,
                f"its options are {', '.join(sorted(OPTIONS))}",
            ),
            f"moved lines are counted for {', '.join(DIRECTIONS)}, not {options.get('rw')}": (
                options.get("rw", "read") in DIRECTIONS,
                "",
            ),
            "moved lines are counted for synchronous I/O only": (
                options.get("ioengine", "psync") in ("psync", "sync"),
                "omit ioengine, or say psync",
            ),
            "moved lines are counted with one direct I/O of each CPU in flight": (
                (options.get("iodepth", "1"), options.get("direct")) == ("1", "1"),
                "say direct=1, and omit iodepth",
            ),
            f"bs is one size from 512 to 1m, in sectors, not {options.get('bs')}": (
                512 <= size <= LARGEST_BLOCK and not size % 512,
                "",
            ),
            f"number_ios is 10 to {MOST_IOS:,} for each CPU, not {ios}": (
                ios.isdigit() and 10 <= int(ios) <= MOST_IOS,
                "",
            ),
        }
        for what, (fits, remedy) in wrong.items():
            if not fits:
                raise RequestError(what, place=place, remedy=remedy)


def _block(options: Mapping[str, str | None]) -> int:
    """Bytes of a block; 0 for a text that is not a size."""
    try:
        return size_bytes(options.get("bs") or "4k")
    except ValueError:
        return 0
