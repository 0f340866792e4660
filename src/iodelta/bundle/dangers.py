"""List everything in a stranger's experiment that is more than a workload, so that the user can refuse it.

fio has about 250 options, and every version adds some. Those in ``SHAPES`` only describe the I/O. Any other option
needs ``--allow-commands``: it may run a program (exec_prerun), load code (ioengine=external:), create or truncate files
anywhere (mem=mmap:/path), use a network or socket (engines net, nbd, http), or act as another user (uid). Options that
iodelta's own runs refuse (``iodelta.jobfile``) are refused here too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import product

import msgspec

from iodelta.experiment import (
    Cell,
    Condition,
    Experiment,
    Option,
    Prepare,
    Variant,
    io_uring,
)
from iodelta.experiment.command import GIVEN, filled
from iodelta.jobfile import canonical, owned, runs_command
from iodelta.knob.base import NOT_ONLY_IO
from iodelta.knob.registry import family, known
from iodelta.workload.engines import ENGINES

SHAPES = frozenset(
    "rw rw_sequencer bs bsrange bssplit bs_is_seq_rand bs_unaligned ba iodepth iodepth_batch "
    "iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low serialize_overlap io_submit_mode size io_size "
    "offset offset_align offset_increment number_ios loops random_generator random_distribution percentage_random "
    "norandommap softrandommap randrepeat allrandrepeat randseed nrfiles openfiles file_service_type filesize "
    "fadvise_hint fallocate fsync fdatasync write_barrier sync_file_range direct atomic buffered overwrite numjobs "
    "thread nice prio prioclass cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit thinktime thinktime_spin "
    "thinktime_blocks thinktime_blocks_type thinktime_iotime rate rate_min rate_iops rate_iops_min rate_process "
    "rate_ignore_thinktime rate_cycle max_latency latency_target latency_window latency_percentile latency_run "
    "rwmixread rwmixwrite rwmixcycle invalidate sync create_serialize create_fsync end_fsync fsync_on_close "
    "pre_read exitall exitall_on_error exit_what continue_on_error ignore_error max_open_zones "
    "zero_buffers refill_buffers scramble_buffers buffer_compress_percentage buffer_compress_chunk dedupe_percentage "
    "dedupe_mode dedupe_working_set_percentage clocksource gtod_reduce gtod_cpu disable_lat disable_clat disable_slat "
    "disable_bw_measurement kb_base significant_figures disk_util description startdelay lockmem hugepage-size "
    "cpus_allowed cpus_allowed_policy cpumask numa_cpu_nodes numa_mem_policy fixedbufs registerfiles sqthread_poll "
    "sqthread_poll_cpu hipri hipri_percentage nonvectored uncached nowait force_async userspace_reap libaio_vectored "
    "verify verify_interval verify_offset verify_fatal verify_backlog verify_backlog_batch do_verify verifysort "
    "cpuload cpuchunks flow flow_id flow_watermark flow_sleep unit_base stonewall".split()
)
"""fio options (first names, 3.16 to 3.42) that only describe the I/O."""

MEMORY = frozenset("malloc shm shmhuge mmap mmaphuge mmapshared cudamalloc".split())
"""Values of ``mem``, none of which names a file."""


ALLOWED_VALUES = {
    "ioengine": (ENGINES, "not an engine that only reads and writes the target"),
    "mem": (MEMORY, "not known to be memory without a file"),
}
"""fio options with some harmless values: these values, and the reason against any other."""


class Danger(msgspec.Struct, frozen=True):
    """One thing that needs separate consent: its place, what it is, and why it is more than a workload."""

    place: str
    what: str
    why: str


def dangers(experiment: Experiment) -> tuple[Danger, ...]:
    """Everything that needs ``--allow-commands``, one entry per place."""
    listed = [*_conditions(experiment.conditions), *_commands(experiment)]
    if experiment.of_command:
        # Its words, which are listed already, contain the values of its parameters.
        for variant in experiment.variants:
            listed += _knobs(f"variant {variant.name}", variant.knobs)
    else:
        by_io_uring = any(cell.option(io_uring.TOOL) for cell in experiment.cells)
        listed += _variants(experiment.variants, by_io_uring=by_io_uring)
        listed += _cells(experiment.cells)
    listed += _preparation(experiment.prepare)
    listed += _instruments(experiment)
    # A dict keeps the order and drops repeats.
    return tuple(dict.fromkeys(listed))


def _instruments(experiment: Experiment) -> Iterator[Danger]:
    why = "an instrument runs with your rights and sees the whole machine"
    for text in experiment.looks_closer():
        yield Danger("instrument", text.removeprefix("instrument "), why)


def _preparation(prepare: Prepare | None) -> Iterator[Danger]:
    if prepare is None:
        return
    if prepare.purge != "none":
        yield Danger(
            "[prepare] purge",
            prepare.purge,
            "it discards everything on the disk at once",
        )
    yield from _options("[prepare] workload", prepare.workload)


def _conditions(conditions: tuple[Condition, ...]) -> Iterator[Danger]:
    for condition in conditions:
        place = f"condition {condition.name}"
        if condition.load:
            yield Danger(
                place,
                condition.load,
                "a background load is a command written by the author of the bundle",
            )
        yield from _knobs(place, condition.knobs)


def dangers_of_loads(experiment: Experiment) -> Iterator[Danger]:
    """Options of background fio loads that may do more than I/O on the target.

    For a bundle iodelta asks for consent to every load. A user who writes a load here has seen it already.
    """
    for condition in experiment.conditions:
        yield from _options(f"condition {condition.name}", condition.background_fio)


def _commands(experiment: Experiment) -> Iterator[Danger]:
    """Yield the commands that a workload runs instead of fio, with all their values."""
    why = "a command chosen by the author of the bundle runs with your rights and may write anywhere"
    for cell, variant in product(experiment.cells, experiment.variants):
        if cell.command is None:
            continue
        # A placeholder that the run fills in is shown as it is: {target}.
        values = {name: f"{{{name}}}" for name in GIVEN}
        for name, value in (*cell.options, *variant.options):
            values[name] = value or ""
        by_place = {
            "[workload] setup": cell.command.setup,
            "[workload] reset": cell.command.reset,
            "[workload] command": (cell.command.words,),
        }
        for place, commands in by_place.items():
            for words in commands:
                yield Danger(place, shlex.join(filled(words, values)), why)


def _variants(variants: tuple[Variant, ...], *, by_io_uring: bool) -> Iterator[Danger]:
    for variant in variants:
        place = f"variant {variant.name}"
        yield from _knobs(place, variant.knobs)
        yield from _options(place, variant.options, by_io_uring=by_io_uring)


def _cells(cells: tuple[Cell, ...]) -> Iterator[Danger]:
    for cell in cells:
        by_io_uring = bool(cell.option(io_uring.TOOL))
        yield from _options("workload", cell.options, by_io_uring=by_io_uring)


def _knobs(place: str, settings: dict[str, str]) -> Iterator[Danger]:
    for name, value in settings.items():
        # An unknown knob: from another version, or from a plugin that is not installed here.
        why = family(name).danger(name) if known(name) else NOT_ONLY_IO
        if why:
            yield Danger(
                place, value if name == "command" else f"{name} = {value}", why
            )


def _options(
    place: str, options: tuple[Option, ...], *, by_io_uring: bool = False
) -> Iterator[Danger]:
    """Yield the options that need consent, of fio or of ``t/io_uring``."""
    why_not = _why_not_io_uring if by_io_uring else _why_not_fio
    for name, value in options:
        why = why_not(name, value)
        if why:
            yield Danger(place, name if value is None else f"{name}={value}", why)


def _why_not_io_uring(name: str, value: str | None) -> str:
    """Return why an option of ``t/io_uring``, which only reads, needs consent; empty if it does not."""
    if name == io_uring.TOOL:
        return runs_command(name, value) or ""
    if io_uring.name_of(name):
        return ""
    return "t/io_uring has no such option"


def _why_not_fio(name: str, value: str | None) -> str:
    """Return why an option of fio needs consent; empty if it only describes the I/O."""
    first_name = canonical(name)
    program = runs_command(name, value)
    if program:
        return program
    ours = owned(name)
    if ours:
        return ours.why
    if first_name in ALLOWED_VALUES:
        allowed, why = ALLOWED_VALUES[first_name]
        return "" if value in allowed else why
    if first_name in SHAPES:
        return ""
    return "not known to change only how I/O is done"
