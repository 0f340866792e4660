"""Before the first trial: survey the machine, check whether the experiment can run there, and prepare it.

``survey`` does no I/O on the device and changes nothing: it is all that a dry run does. ``ready`` reads signatures,
takes the write permit, lays out the scratch file, keeps the knobs' originals and holds the undo log; leaving it
restores everything.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Literal

import msgspec

from iodelta.errors import IodeltaError, RefusedError, RequestError
from iodelta.experiment import Experiment, Option, facts, size_bytes
from iodelta.experiment.command import only_reads, uses_target
from iodelta.experiment.io_uring import TOOL, switches
from iodelta.experiment.model import SCRATCH_SIZE, TARGET_CLASS, mirrored
from iodelta.jobfile import canonical
from iodelta.knob import Knob, Restored, Saved, check, knob
from iodelta.knob.affinity import Binding
from iodelta.knob.mirror import PERMITTED, members_of, options_of
from iodelta.knob.mirror import check_options as check_options_of_mirror
from iodelta.lab.bench import Bench, Settings, background_words
from iodelta.lab.commands import makes_scratch, needs_fio, set_up
from iodelta.lab.diskstate import Known, state_known
from iodelta.lab.folder import Folder, KnobRestored, KnobSaved, now
from iodelta.lab.guard import (
    check_commands,
    check_write,
    held_by,
    refuse_reasons,
)
from iodelta.lab.plan import Plan
from iodelta.lab.preparing import Cost, Preparation, cost_of, disk_of, prepared_first
from iodelta.lab.progress import Control, Watcher
from iodelta.lab.requests import Requests
from iodelta.lab.scratch import scratch_file
from iodelta.lab.turns import alone
from iodelta.lab.undo import UndoLog, undo_log
from iodelta.lab.workdir import workdir
from iodelta.machine import LocalMachine, Machine, throw_away
from iodelta.probe.identity import same_device
from iodelta.probe.queues import Cpus, nodes, numbers, placement_findings, queues
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target, resolve, resolve_tree
from iodelta.probe.usage import Reason
from iodelta.trial import Finding
from iodelta.workload import command, io_uring, parsing
from iodelta.workload.engines import ENGINES, READERS, refused_engines
from iodelta.workload.fio import (
    OLDEST,
    READS,
    check_reach,
    command_of,
    fio_version,
    target_words,
)
from iodelta.workload.leftovers import marked

CHANGING = frozenset(
    "fill_device fill_fs profile read_iolog sprandom trim_backlog trim_backlog_batch trim_percentage trim_verify_zero "
    "unlink unlink_each_loop".split()
)
"""Options with which fio changes its target although ``rw`` reads: replayed logs, trims, deletion, growth."""

JUDGED = frozenset({"rw", "readwrite", "ioengine", *CHANGING})


def any_writes(experiment: Experiment, target: Target, size: int | None = None) -> bool:
    """Return whether its preparation, any trial or fio background of ``experiment`` may change ``target``."""
    if experiment.prepare is not None:
        return True
    loads = [
        condition.background_fio
        for condition in experiment.conditions
        if condition.background_fio
    ]
    if experiment.of_command:
        changes = uses_target(experiment) and not only_reads(experiment)
        # The guard does not cover a directory: the user is responsible for what a command does in it.
        trials_write = changes and not (
            experiment.target.path and target.kind == "directory"
        )
        return trials_write or any(writes(options, target, size) for options in loads)
    trials = (
        (*cell.options, *variant.options)
        for cell, variant in product(experiment.cells, experiment.variants)
    )
    return any(writes(options, target, size) for options in (*trials, *loads))


def writes(options: Iterable[Option], target: Target, size: int | None = None) -> bool:
    """Return whether fio with these options, as fio spells them, may change ``target``.

    ``size`` is what iodelta itself gives as fio's ``size``, in bytes. A read job destroys a regular file that is
    shorter than what it shall read: fio deletes it and lays out a new one (``extend_file`` in fio's ``filesetup.c``);
    in a directory it makes files. Commands of the user's own (``exec_prerun``) are not judged here.
    """
    given = [(canonical(name), (value or "").strip()) for name, value in options]
    return any(_changes(name, value) for name, value in given) or _makes_files(
        dict(given), target, size
    )


def _changes(name: str, value: str) -> bool:
    if name == "rw":
        return value.split(":")[0] not in READS
    if name == "ioengine":
        return value not in ENGINES | READERS
    if name in CHANGING:
        return value != "0"
    # fio accepts an unambiguous prefix of an option's name.
    return any(full.startswith(name) for full in JUDGED)


def _makes_files(given: dict[str, str], target: Target, size: int | None) -> bool:
    if target.kind != "file":
        return target.kind == "directory"
    whole = target.size_bytes
    try:
        jobs = int(given.get("numjobs", "1"))
        start = _bytes(given.get("offset", "0"), whole)
        start += (jobs - 1) * _bytes(given.get("offset_increment", "0"), whole)
        asked = [
            _bytes(given[name], whole) for name in ("size", "filesize") if name in given
        ]
    except ValueError:
        return True
    return start + max(asked, default=size or 0) > whole


def _bytes(text: str, whole: int) -> int:
    """Bytes of a size, or of a share of ``whole``. Raises ValueError."""
    share, percent, rest = text.partition("%")
    if percent and not rest.strip():
        return int(share) * whole // 100
    return size_bytes(text)


def placement(
    machine: Machine, experiment: Experiment, target: Target, knobs: Mapping[str, Knob]
) -> dict[str, tuple[Finding, ...]]:
    """Findings of each variant whose tasks are bound to some CPUs only; none for one that may run anywhere.

    Interrupts are taken as they are now: a variant that moves them is judged by where they were.
    """
    findings_of = {}
    everywhere = numbers(attribute(machine, "/sys/devices/system/cpu/online") or "")
    disks = [queues(machine, disk) for disk in target.disks]
    by_node = nodes(machine)
    for variant in experiment.variants:
        cpus = _cpus(variant.knobs, knobs, by_node)
        if cpus and cpus < everywhere and "irq.affinity" not in variant.knobs:
            of_disks = (
                placement_findings(disk, cpus, by_node, variant.name) for disk in disks
            )
            findings_of[variant.name] = tuple(chain.from_iterable(of_disks))
    return {name: findings for name, findings in findings_of.items() if findings}


def _cpus(
    settings: Mapping[str, str], knobs: Mapping[str, Knob], by_node: dict[int, Cpus]
) -> Cpus:
    """Return the CPUs that a variant's settings leave to its tasks."""
    cpus_knob, node = knobs.get("cpus"), knobs.get("numa")
    cpus: Cpus = frozenset()
    if "numa" in settings and isinstance(node, Binding):
        cpus = frozenset().union(
            *(
                by_node.get(number, frozenset())
                for number in node.named(settings["numa"])
            )
        )
    if "cpus" in settings and isinstance(cpus_knob, Binding):
        # taskset runs after numactl, so its CPUs are the ones that hold.
        cpus = cpus_knob.named(settings["cpus"])
    return cpus


SYSTEM = frozenset(
    "/ /bin /boot /dev /etc /lib /lib32 /lib64 /proc /root/.ssh /sbin /sys /usr /usr/bin /usr/lib".split()
)


class Survey(msgspec.Struct, frozen=True):
    """What the machine offers this experiment. Sizes in bytes."""

    target: Target
    """What is measured, or the directory in which the scratch file will be made."""
    scratch: bool
    """Whether iodelta makes the file that is measured."""
    size: int | None
    """Given to fio as ``size``; None for the whole of a device or file."""
    fio: tuple[int, int]
    writes: bool
    """Whether some cell writes to the target."""
    reasons: tuple[Reason, ...]
    """Reasons against writing, as far as they can be known without opening the target."""
    unavailable: dict[str, str]
    """Variant -> why it cannot run here."""
    unmeasurable: dict[str, str]
    """Cell -> why it cannot be measured under any variant."""
    reboots: str = ""
    """How the host is rebooted for every variant of a block; empty if it is not."""
    placement: dict[str, tuple[Finding, ...]] = {}
    """Variant -> findings about the CPUs that it binds its tasks to."""
    holds: str = ""
    """What a write would destroy, where ``--destroy`` has to name the target; empty otherwise."""
    disk: Known | None = None
    """What is known of the state of a block device that is written to; None where that was not asked."""
    prepare: Cost | None = None
    """What its preparation before the first trial takes; None where there is none."""
    memory: int = 0
    """Bytes of memory of the machine; 0 where it is not known."""

    @property
    def used(self) -> int:
        """Bytes of the target that trials use; 0 where that is not known."""
        return self.size or self.target.size_bytes


def survey(machine: Machine, experiment: Experiment, *, engines: bool = True) -> Survey:
    """Survey the machine. Raises RequestError for what it cannot do, MeasureError when fio is missing.

    Without ``engines`` no option of the experiment is tried: of fio only the version is read.
    """
    version = fio_version(machine) if needs_fio(experiment) else OLDEST
    tree = bool(experiment.target.files)
    target = target_of(machine, experiment)
    scratch = target.kind == "directory" and not tree
    if experiment.of_command:
        scratch = makes_scratch(experiment)
    if scratch and experiment.target.path and target.real_path in SYSTEM:
        raise RequestError(
            "is a directory of the system, in which iodelta makes no scratch file",
            place=target.path,
            remedy="name a directory of your own on that filesystem",
        )
    size = _size(experiment, target, scratch)
    if (
        target.kind != "directory"
        and not target.size_bytes
        and target.fstype not in ("proc", "sysfs")
    ):
        raise RequestError(
            "has 0 bytes: there is nothing to measure",
            place=target.path,
            remedy="name another target",
        )
    queue = f"/sys/class/block/{target.disk}/queue/logical_block_size"
    sector = int(attribute(machine, queue) or 0) if target.disk else 0
    for cell, variant, options in facts.each_trial(experiment):
        used = (
            size_bytes(options["size"])
            if "size" in options
            else size or target.size_bytes
        )
        for fact in facts.of_target(options, sector, used, 0):
            if fact.refused:
                raise RequestError(
                    fact.what,
                    place=f"cell {cell}, variant {variant}",
                    remedy=facts.spelled(fact.remedy, as_options=True),
                )
    writing = any_writes(experiment, target, size)
    reasons = refuse_reasons(machine, target, None if tree else size) if writing else ()
    holds = held_by(machine, target) if writing else ""
    knobs = knobs_of(machine, experiment, target)
    for condition in experiment.conditions:
        background_words(condition, target, experiment.target.files)
    for settings in all_settings(experiment):
        check(knobs, settings)
    requests = Requests(experiment, target, size, version)
    _check_requests(requests)
    if experiment.of_command:
        command.python(machine)
    tool = experiment.tool
    if tool:
        # The built one is static, so it is asked here and copied to another machine only when it runs there.
        there = machine if tool.startswith("/") else LocalMachine()
        has = io_uring.usage(there, io_uring.program(there, tool))
        of_cells = (cell.options for cell in experiment.cells)
        of_variants = (variant.options for variant in experiment.variants)
        for name, value in chain.from_iterable((*of_cells, *of_variants)):
            for word in switches(name, value) if name != TOOL else ():
                if word[1] not in has:
                    raise RequestError(
                        f"this t/io_uring has no option {word[:2]}",
                        place=f"workload {name}",
                        remedy="omit it, or use a newer fio",
                    )
    refused = _tried(machine, requests) if engines else ({}, {})
    of_placement = placement(machine, experiment, target, knobs)
    state = state_known(machine, target) if writing else None
    cost = (
        cost_of(disk_of(machine, experiment, target, size, version), state)
        if (experiment.prepare is not None)
        else None
    )
    looked = Survey(
        target,
        scratch,
        size,
        version,
        writing,
        reasons,
        *refused,
        placement=of_placement,
        holds=holds,
    )
    # Bytes of memory of the machine; 0 where the kernel does not say
    found = re.search(
        r"^MemTotal:\s*(\d+) kB",
        attribute(machine, "/proc/meminfo") or "",
        re.MULTILINE,
    )
    return msgspec.structs.replace(
        looked, disk=state, prepare=cost, memory=int(found[1]) << 10 if found else 0
    )


def _size(experiment: Experiment, target: Target, scratch: bool) -> int | None:
    """Return what fio is given as ``size``. Raises RequestError for more than the device has."""
    if not experiment.target.size:
        return SCRATCH_SIZE if scratch else None
    size = size_bytes(experiment.target.size)
    if target.kind == "block" and size > target.size_bytes:
        raise RequestError(
            f"{experiment.target.size} was requested, but the device has only {target.size_bytes} bytes",
            place=target.path,
            remedy="give a smaller [target] size, or none",
        )
    return size


def all_settings(experiment: Experiment) -> list[dict[str, str]]:
    """Return the knobs of every variant under every condition; a variant's own replace those of the condition."""
    pairs = product(experiment.conditions, experiment.variants)
    return [{**condition.knobs, **variant.knobs} for condition, variant in pairs]


def _check_requests(requests: Requests) -> None:
    """Raises RequestError for options that cannot be passed on to fio, or that a mirror does not understand."""
    experiment = requests.experiment
    held = {condition.name: condition.knobs for condition in experiment.conditions}
    # Bytes of the file that is measured, or of the scratch file that will be; None for a device and for many files
    target = requests.target
    if requests.experiment.target.files or target.kind == "block":
        size = None
    else:
        size = requests.size if target.kind == "directory" else target.size_bytes
    for cell, variant in product(experiment.cells, experiment.variants):
        request = requests.of(cell, variant)
        words = command_of(request)
        if size is not None and cell.command is None:
            check_reach(request, size)
        if cell.command is None and mirrored(
            {**held.get(cell.condition, {}), **variant.knobs}
        ):
            check_options_of_mirror(options_of(words[1:]))


def target_of(machine: Machine, experiment: Experiment) -> Target:
    """Return what is measured, or the directory of the scratch file. Raises RequestError."""
    if experiment.target.path.startswith(TARGET_CLASS):
        raise RequestError(
            f"a class of targets, {experiment.target.path!r}, has a path only on the hosts of a fleet",
            place="target",
            remedy="measure it with `iodelta fleet run`, or name the path with --target",
        )
    return (resolve_tree if experiment.target.files else resolve)(
        machine, experiment.target.path or machine.directory
    )


def knobs_of(
    machine: Machine, experiment: Experiment, target: Target
) -> dict[str, Knob]:
    """Return every knob that some variant or condition sets. Raises RequestError for an unknown one, or one of a boot."""
    booted = experiment.boot_knobs
    if booted:
        raise RequestError(
            "applies to a whole boot: it needs a reboot, or a guest, for every variant",
            place=booted[0],
            remedy="only `iodelta run` does that",
        )
    return {name: knob(name, machine, target) for name in experiment.knob_names()}


def unsettable(
    machine: Machine, experiment: Experiment, target: Target
) -> dict[str, str]:
    """Variants with a knob that cannot be set here, with the reason. Reads only."""
    reasons = {}
    for variant in experiment.variants:
        try:
            check(
                {name: knob(name, machine, target) for name in variant.knobs},
                variant.knobs,
            )
        except RequestError as error:
            reasons[variant.name] = f"{error.place}: {error.what}"
    return reasons


def _tried(
    machine: Machine, requests: Requests
) -> tuple[dict[str, str], dict[str, str]]:
    """Variants and cells whose ioengine is not allowed here. Raises RequestError for options that fio refuses."""
    with workdir(machine) as place:
        variants, cells = (
            ({}, {})
            if requests.experiment.of_command
            else refused_engines(machine, requests.experiment, place)
        )
        parsing.check(machine, _jobs(requests, cells=cells, variants=variants), place)
        cells = {**_unpolled(machine, requests), **cells}
    return variants, cells


def _unpolled(machine: Machine, requests: Requests) -> dict[str, str]:
    """Cells that ``t/io_uring`` would poll on a device that has no poll queues, with the reason."""
    experiment, disk = requests.experiment, requests.target.disk
    polling = [
        cell.name
        for cell, variant in product(experiment.cells, experiment.variants)
        if io_uring.is_polling({**dict(cell.options), **dict(variant.options)})
    ]
    if experiment.tool and polling and disk and io_uring.cannot_poll(machine, disk):
        return dict.fromkeys(polling, io_uring.NOT_POLLED)
    return {}


def check_options(machine: Machine, experiment: Experiment, found: Survey) -> None:
    """Ask fio whether it accepts the options of every cell. Raises RequestError with fio's own message.

    fio only parses the options. Options that load code, or open a file by name, do so even then and must have been
    refused before.
    """
    parsing.check(
        machine, _jobs(Requests(experiment, found.target, found.size, found.fio)), "/"
    )


def _jobs(
    requests: Requests, *, cells: Container[str] = (), variants: Container[str] = ()
) -> list[parsing.Job]:
    """Return the jobs of background loads and of all cells under all variants, without those ``cells`` and
    ``variants``.
    """
    experiment, target = requests.experiment, requests.target
    jobs = []
    for cell, variant in product(experiment.cells, experiment.variants):
        if not (
            cell.command
            or cell.option(TOOL)
            or cell.name in cells
            or variant.name in variants
        ):
            request = requests.of(cell, variant)
            jobs.append(
                parsing.job_of(f"cell {cell.name}, variant {variant.name}", request)
            )
    for condition in experiment.conditions:
        if condition.background_fio:
            words = background_words(condition, target, experiment.target.files)
            kind: Literal["directory", "file"] = (
                "directory" if target.kind == "directory" else "file"
            )
            named = target_words(target.real_path, kind, experiment.target.files)
            jobs.append(
                parsing.job_of_words(f"condition {condition.name}", words, named)
            )
    return jobs


def opened_by_name(experiment: Experiment) -> bool:
    """Return whether commands or a mirror open the target, which have only its name."""
    return experiment.of_command or any(map(mirrored, all_settings(experiment)))


@contextlib.contextmanager
def ready(
    machine: Machine,
    plan: Plan,
    found: Survey,
    folder: Folder,
    control: Control,
) -> Iterator[Bench]:
    """Make the machine ready for the plan's trials; leaving puts everything back.

    Raises RefusedError, RequestError, MeasureError; then nothing is changed.
    """
    check_commands(plan.experiment, control.commands)
    with contextlib.ExitStack() as stack:
        target = found.target
        # The log comes first: after a kill, what was started is found and ended by it.
        log = stack.enter_context(undo_log(machine, plan.identifier, folder.path))
        mirrors = other_members(machine, plan.experiment, target)
        used = [] if plan.experiment.target.none else [target, *mirrors]
        stack.enter_context(alone(machine, used, folder.path))
        place = stack.enter_context(workdir(machine))
        opened, permit = target.real_path, None
        if found.scratch:
            made = scratch_file(machine, plan, target, found.size, place, control)
            target, opened = stack.enter_context(made)
        by_name = opened_by_name(plan.experiment)
        if found.writes and not found.scratch:
            # A directory of files exists already and needs no free space.
            size = None if target.kind == "directory" else found.size
            permit = check_write(
                machine,
                target,
                control.destroy,
                size,
                place="" if by_name else place,
                env=marked(plan.identifier),
            )
            opened = stack.enter_context(permit).opened
        if by_name and opened != target.real_path:
            raise RefusedError(
                "another user may exchange it, and commands and mirrors open it by its name",
                place=target.path,
                remedy="choose a directory on whose path only you and root may rename anything, or run as that user",
            )
        if plan.experiment.prepare is not None:
            disk = disk_of(machine, plan.experiment, target, found.size, found.fio)
            own = marked(plan.identifier)
            prepared_first(
                Preparation(disk, folder, control, place=place, env=own, permit=permit),
                disk,
                folder,
            )
        permitted = (
            _mirror_permits(machine, plan.experiment, target, control.destroy, stack)
            if found.writes
            else ()
        )
        with machine.together("knobs"):
            knobs = knobs_of(machine, plan.experiment, target)
        values = _values(plan.experiment, knobs)
        of_values = {
            name: one.findings(values[name], found.size) for name, one in knobs.items()
        }
        # The warnings about values of knobs, each sentence once
        findings = chain.from_iterable(
            chain.from_iterable(by_value.values()) for by_value in of_values.values()
        )
        for text in list(
            dict.fromkeys(
                finding.explanation
                for finding in findings
                if finding.severity == "warning"
            )
        ):
            control.watcher.note(f"warning: {text}")

        def save() -> list[Saved]:
            return [knob.save(values[name]) for name, knob in knobs.items()]

        saved = {record.knob: record for record in log.keep(save)}
        for record in saved.values():
            folder.append(KnobSaved(now(), msgspec.to_builtins(record)))
        tool = plan.experiment.tool
        requests = Requests(
            plan.experiment,
            target,
            found.size,
            found.fio,
            place,
            io_uring.program(machine, tool, place) if tool else "",
            opened=opened,
        )
        if plan.experiment.of_command:
            requests = dataclasses.replace(
                requests, python=set_up(machine, plan, target, place)
            )
        settings = Settings(knobs, saved, of_values, found.placement)
        env = {**marked(plan.identifier), PERMITTED: json.dumps(permitted)}
        try:
            yield Bench(
                machine, plan, folder, requests, settings, permit=permit, env=env
            )
        finally:
            put_back(log, folder, control.watcher, quiet=throw_away(machine))


def _values(experiment: Experiment, knobs: Iterable[str]) -> dict[str, list[str]]:
    """Return what each knob is set to in the course of the experiment, sorted."""
    values: dict[str, set[str]] = {name: set() for name in knobs}
    for settings in all_settings(experiment):
        for name in values.keys() & settings.keys():
            values[name].add(settings[name])
    return {name: sorted(each) for name, each in values.items()}


def _mirror_permits(
    machine: Machine,
    experiment: Experiment,
    target: Target,
    destroy: Sequence[str],
    stack: contextlib.ExitStack,
) -> tuple[str, ...]:
    """Permits for the members of mirrors that the experiment writes to, held in ``stack``; their real paths."""
    if not any_writes(experiment, target):
        return ()
    members = other_members(machine, experiment, target)
    for member in members:
        stack.enter_context(check_write(machine, member, destroy))
    return tuple(member.real_path for member in members)


def other_members(
    machine: Machine, experiment: Experiment, target: Target
) -> tuple[Target, ...]:
    """Return the members of the experiment's mirrors, each once and without the target. Raises RequestError."""
    paths = dict.fromkeys(
        chain.from_iterable(
            members_of(variant.knobs) for variant in experiment.variants
        )
    )
    resolved = (resolve(machine, path) for path in paths)
    members = {member.real_path: member for member in resolved}
    members.pop(target.real_path, None)
    return tuple(members.values())


def put_back(
    log: UndoLog, folder: Folder, watcher: Watcher, *, quiet: bool = False
) -> list[Restored]:
    """Undo, recorded in the folder's journal; a setting that could not be restored is a note, unless ``quiet``.

    Raises MeasureError.
    """
    done = log.undo()
    for restored in done:
        if restored.error:
            if not quiet:
                watcher.note(
                    f"could not restore {restored.saved.knob}: {' '.join(restored.error.split())}"
                )
            continue
        # A full disk must not keep the other settings from being restored.
        with contextlib.suppress(IodeltaError):
            folder.append(KnobRestored(now(), restored.saved.knob))
    return done


def check_same_target(before: Target, after: Target) -> None:
    """One experiment is about one device, also after a reboot that gave its name to another. Raises RequestError."""
    lasting = any(before.identity.lasting) or any(after.identity.lasting)
    same_boot = before.identity.boot == after.identity.boot
    if (lasting or same_boot) and not same_device(before.identity, after.identity):
        raise RequestError(
            "is not the device or file that the earlier trials of this folder were made on",
            place=after.path,
            remedy="reconnect that device under this path, or begin a new experiment",
        )
