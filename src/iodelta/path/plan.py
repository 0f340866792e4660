"""The plan of a path experiment: every kernel, guest and boot, fixed and hashed before the first boot."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import Cell, Experiment, Variant
from iodelta.lab.folder import Folder
from iodelta.lab.workdir import workdir
from iodelta.machine import LocalMachine
from iodelta.path.functions import build, why_not
from iodelta.path.job import CellJob, job_archive
from iodelta.path.settings import modules_for, settings
from iodelta.path.sharing_build import build as sharing_build
from iodelta.path.sharing_job import BOOT_WORDS, refuse, sharing_job
from iodelta.path.treetest import check_anatomy
from iodelta.vm import boot, guest, kernels, spec, targets
from iodelta.workload import parsing
from iodelta.workload.fio import option_words

SEEDS: tuple[int, ...] = (1, 2, 3, 4, 5)
"""Seeds of the layout sweep: with RDRAND a guest's address layout and free lists depend on the seed."""

MEMORY, LARGE = 224, 384
"""MiB of a guest whose target keeps no data, and of one whose target does."""

SHARING_SEEDS = (1, 2)
"""Seeds of the layout sweep if moved lines are counted: each boot takes twice as long."""

CERTAIN = 10.0
"""Instructions: irrelevant inputs move a median by up to 8 (measured), so less than this is never a change."""

ANATOMY_SEEDS = (1, 2)
"""Seeds of the layout sweep of an anatomy: its boots take about seven times the CPU time of an exact one."""

Known = TypeVar("Known")

Purpose = Literal["exact", "again", "layout", "functions", "anatomy"]


class Arm(msgspec.Struct, frozen=True):
    """One variant: its kernel, and what its boots have in common."""

    variant: str
    kernel: kernels.Kernel
    guest: str
    """sha256 of its initramfs: modules, programs, script and cells."""
    cmdline: str
    """Boot parameters of the kernel."""
    memory: int
    """MiB of the guest."""


class BootPlan(msgspec.Struct, frozen=True):
    """One boot; all cells of a variant run in it."""

    number: int
    """From 0, in the order of the plan."""
    variant: str
    purpose: Purpose
    """What it is for: to count, to repeat, another address layout, a table of functions, or that with an anatomy."""
    seed: int = 0

    def place(self, folder: Folder) -> str:
        """Its name in messages about a folder."""
        return f"{folder.path}, boot {self.number}"


class PathPlan(msgspec.Struct, frozen=True):
    """What will be booted. It contains everything that two boots must share to be comparable."""

    experiment: Experiment
    arms: tuple[Arm, ...]
    """What each variant boots."""
    boots: tuple[BootPlan, ...]
    """All boots, in the order in which they are begun."""
    qemu: str
    """Version of the emulator."""
    fio: str
    """sha256 of the fio that runs in the guest."""
    functions: str
    """Why there will be no table of functions; empty when there will be one."""
    identifier: str
    """Names this experiment."""
    row: bool = False
    """Whether the variants are a row of kernels, each compared with the one before."""
    clock: Literal["instructions"] = "instructions"
    """What is counted."""
    schema: Literal[1] = 1

    def against_baseline(
        self, known: Mapping[str, Mapping[int, Known]]
    ) -> Iterator[tuple[int, str, Known, Known]]:
        """Number of a cell, another variant, and what is ``known`` (variant -> cell -> value) of the cell under the
        baseline and under that variant; only where both are known."""
        baseline = known.get(self.experiment.baseline, {})
        for number, variant in product(range(len(self.experiment.cells)), self.others):
            of_variant = known.get(variant, {})
            if number in baseline and number in of_variant:
                yield number, variant, baseline[number], of_variant[number]

    def arm(self, variant: str) -> Arm:
        """Return the arm of a variant."""
        return next(arm for arm in self.arms if arm.variant == variant)

    def exact(self, variant: str) -> int:
        """Number of the boot whose I/Os are timed."""
        return next(
            boot.number
            for boot in self.boots
            if (boot.variant, boot.purpose) == (variant, "exact")
        )

    @property
    def sharing(self) -> bool:
        """Return whether moved cache lines are counted, in place of instructions."""
        return self.experiment.anatomy == "sharing"

    @property
    def others(self) -> tuple[str, ...]:
        """Return the variants that are compared with the baseline."""
        variants = [arm.variant for arm in self.arms]
        baseline = self.experiment.baseline
        return tuple(variant for variant in variants if variant != baseline)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs that are compared: baseline and variant; in a row of kernels each with the one before, and
        the first with the last, since many small steps can add up."""
        if not self.row:
            return tuple(product([self.experiment.baseline], self.others))
        names = [arm.variant for arm in self.arms]
        whole_way = (names[0], names[-1])
        # A row of two kernels is its own whole way.
        return tuple(dict.fromkeys([*pairwise(names), whole_way]))


class PathPlanAnswer(msgspec.Struct, frozen=True):
    """What a run with the instruction clock would boot. Nothing was started to find it out."""

    plan: PathPlan
    schema: Literal["iodelta.path-plan/1"] = "iodelta.path-plan/1"


def make_plan(experiment: Experiment, *, row: bool = False) -> PathPlan:
    """Plan ``experiment``: find its kernels and build its guests. For a ``row`` of kernels no functions are counted.

    Raises RequestError, and MeasureError for what is missing.
    """
    _refuse(experiment)
    sharing = experiment.anatomy == "sharing"
    if sharing:
        refuse(experiment, target(experiment))
    kernels_named = [variant.knobs.get("kernel", "") for variant in experiment.variants]
    check_programs(experiment.target.path, experiment.anatomy, kernels_named)
    if sharing:
        sharing_build()
    version = boot.available()
    _check_options(experiment)
    arms = tuple(_arm(experiment, variant) for variant in experiment.variants)
    boot.enough_memory(max(arm.memory for arm in arms))
    plain = row and not experiment.anatomy
    why = "a series of kernels is reported without it" if plain else why_not()
    if sharing:
        why = "moved cache lines are counted instead"
    else:
        _refuse_without(why, experiment)
    seeds = SHARING_SEEDS if sharing else SEEDS
    boots = _boots(experiment, functions=not why, seeds=seeds)
    fio = kernels.digest(guest.find_program("fio"))
    identifier = f"{random.SystemRandom().getrandbits(64):016x}"
    return PathPlan(
        experiment=experiment,
        arms=arms,
        boots=boots,
        qemu=version,
        fio=fio,
        functions=why,
        identifier=identifier,
        row=row,
    )


def check_programs(
    measured: str, anatomy: str, kernels_named: Sequence[str] = ()
) -> None:
    """Raise MeasureError with everything that this machine lacks for guests with this target. Only an ``anatomy`` needs
    a compiler: a table of functions is left out without one. Raises RequestError for an unknown target."""
    compiler = ("gcc",) if anatomy else ()
    kind = targets.find(_target(measured).target)
    guest.check_present(("fio", *kind.programs, *compiler), kernels_named)


def _refuse_without(why: str, experiment: Experiment) -> None:
    """Raise RequestError if a requested anatomy is impossible; test that qemu shows the plugin what a guest does."""
    if not experiment.anatomy:
        return
    if why:
        raise RequestError(f"no anatomy: {why}", place="anatomy")
    check_anatomy()


def _boots(
    experiment: Experiment, *, functions: bool, seeds: tuple[int, ...]
) -> tuple[BootPlan, ...]:
    """Return the baseline twice, since both boots must give the same counts; the other variants; all at other layouts."""
    baseline = experiment.baseline
    variants = [variant.name for variant in experiment.variants]
    others = [variant for variant in variants if variant != baseline]
    planned: list[tuple[str, Purpose, int]] = [
        (baseline, "exact", 0),
        (baseline, "again", 0),
    ]
    planned += [(variant, "exact", 0) for variant in others]
    planned += [(variant, "layout", seed) for seed, variant in product(seeds, variants)]
    if functions and experiment.anatomy:
        planned += [
            (variant, "anatomy", seed)
            for seed, variant in product((0, *ANATOMY_SEEDS), variants)
        ]
    elif functions:
        planned += [(variant, "functions", 0) for variant in variants]
    return tuple(BootPlan(number, *boot) for number, boot in enumerate(planned))


def _refuse(experiment: Experiment) -> None:
    """Raise RequestError for what the instruction clock cannot count."""
    for condition in experiment.conditions:
        if condition.background or condition.background_fio:
            raise RequestError(
                "the instruction clock allows no background load",
                place="[condition]",
                remedy="path mode counts one path at a time on one CPU; measure with background loads under clock = wall",
            )
    for condition in experiment.conditions:
        place = f"[condition.{condition.name}]"
        knobs = settings(condition.knobs, place)
        if knobs.kernel or knobs.cmdline or knobs.memory or knobs.files:
            raise RequestError(
                "kernel, kernel.cmdline, vm.memory, sysctl and sysfs apply to a whole boot: only variants can set them",
                place=place,
            )
    if experiment.anatomy != "sharing" and "vm.devices" in experiment.knob_names():
        raise RequestError(
            "vm.devices is how many disks two CPUs share",
            place="vm.devices",
            remedy="add --anatomy=sharing, or remove it",
        )
    _refuse_waiting(experiment)


def _refuse_waiting(experiment: Experiment) -> None:
    """Raise RequestError for options of fio that wait: under this clock no time passes."""
    for cell, name in product(experiment.cells, ("rate_iops", "rate", "thinktime")):
        if cell.option(name):
            raise RequestError(
                f"{name} waits for time to pass, so its path cannot be counted",
                place=f"cell {cell.name}",
            )


def _check_options(experiment: Experiment) -> None:
    """Raise RequestError for options that the guests' fio does not accept. It is static, so it runs on this machine."""
    jobs = []
    for cell, variant in product(experiment.cells, experiment.variants):
        words = ("--name=cell", *option_words(_options(cell, variant)))
        jobs.append(parsing.Job(f"cell {cell.name}, variant {variant.name}", words))
    machine = LocalMachine()
    with workdir(machine) as place:
        parsing.check(machine, jobs, place, fio=str(guest.find_program("fio")))


def target(experiment: Experiment) -> spec.Spec:
    """Return the target in the guest, as in ``md-raid10:layout=f2``; null_blk by default. Raises RequestError."""
    made = _target(experiment.target.path)
    targets.find(made.target)
    return made


def _target(measured: str) -> spec.Spec:
    return spec.parse(f"target={measured or 'null_blk'}")


def _arm(experiment: Experiment, variant: Variant) -> Arm:
    own = settings(variant.knobs, f"[variant.{variant.name}]")
    kernel = kernels.find(own.kernel) if own.kernel else _newest_kernel(variant)
    words = [boot.QUIET]
    options = kernel.options()
    if options.get("BLK_DEV_NULL_BLK") == options.get("CONFIGFS_FS") == "y":
        # A built-in null_blk would make a device before the guest's script does.
        words.append("null_blk.nr_devices=0")
    if experiment.anatomy == "sharing":
        words.append(BOOT_WORDS)
    cmdline = " ".join(filter(None, (*words, own.cmdline)))
    digest = hashlib.sha256(_initramfs(experiment, variant.name, kernel)).hexdigest()
    return Arm(
        variant=variant.name,
        kernel=kernel,
        guest=digest,
        cmdline=cmdline,
        memory=own.memory or _memory(target(experiment).target),
    )


def _newest_kernel(variant: Variant) -> kernels.Kernel:
    """Return the newest kernel on this machine, for a variant that names none. Raises MeasureError."""
    known = kernels.here()
    if not known:
        raise MeasureError(
            "there is no kernel to boot",
            place=f"[variant.{variant.name}]",
            remedy='`iodelta kernel fetch 6.12` gets one; or say kernel = "PATH of a bzImage"',
        )
    return known[-1]


def _memory(kind: str) -> int:
    """MiB of the guest: members of an array, and a filesystem's disk, keep their data in memory."""
    keeps_none = (("configfs", "null_blk"), ("ublk_drv",))
    return MEMORY if targets.find(kind).modules in keeps_none else LARGE


def _base(experiment: Experiment, kernel: kernels.Kernel) -> guest.Base:
    """Return the guest of a kernel: the same for every variant that boots it."""
    wanted = [settings(variant.knobs, variant.name) for variant in experiment.variants]
    wanted += [
        settings(condition.knobs, condition.name) for condition in experiment.conditions
    ]
    made = target(experiment)
    kind = targets.find(made.target)
    needed = kernel.loadable().needed([*kind.modules, *modules_for(wanted)])
    return guest.base(
        modules=needed.load,
        parameters=targets.parameters(made.target, dict(made.options)),
        programs=("fio", *kind.programs),
    )


def initrd(plan: PathPlan, arm: Arm, place: Path, *, functions: bool = False) -> None:
    """Write the initramfs of an arm's boots to ``place``. Raises MeasureError if it is not the one of the plan."""
    data = _initramfs(plan.experiment, arm.variant, arm.kernel)
    same_guest = hashlib.sha256(data).hexdigest() == arm.guest
    if not same_guest or kernels.digest(arm.kernel.image) != arm.kernel.sha256:
        raise MeasureError(
            "kernel, modules, programs or iodelta differ from those of the plan: earlier and later boots "
            "would not be comparable",
            place=f"variant {arm.variant}",
            remedy="undo the change, or begin a new experiment",
        )
    if functions:
        data = _initramfs(plan.experiment, arm.variant, arm.kernel, functions=True)
    place.write_bytes(data)


def _initramfs(
    experiment: Experiment,
    variant: str,
    kernel: kernels.Kernel,
    *,
    functions: bool = False,
) -> bytes:
    cells = _cell_jobs(experiment, variant, kernel)
    if experiment.anatomy == "sharing":
        program = Path(sharing_build().program).read_bytes()
        job = sharing_job(target(experiment), cells, program)
    else:
        mark = Path(build().mark).read_bytes() if functions else b""
        job = job_archive(target(experiment), experiment.target.size, cells, mark=mark)
    return Path(_base(experiment, kernel).path).read_bytes() + job


def _cell_jobs(
    experiment: Experiment, name: str, kernel: kernels.Kernel
) -> list[CellJob]:
    """Return the cells as a variant runs them, with a reason for those that its kernel cannot."""
    variant = experiment.variant(name)
    kind = targets.find(target(experiment).target)
    loadable = kernel.loadable()
    jobs = []
    for cell in experiment.cells:
        held = settings(experiment.condition(cell.condition).knobs, cell.name)
        whole = held.under(settings(variant.knobs, name))
        wanted = [
            *(module for module in kind.modules if module != "configfs"),
            *modules_for([whole]),
        ]
        missing = loadable.needed(wanted).missing
        jobs.append(
            CellJob(_options(cell, variant), whole, "; ".join(missing.values()))
        )
    return jobs


def _options(cell: Cell, variant: Variant) -> tuple[tuple[str, str | None], ...]:
    return tuple(cell.options_under(variant).items())
