"""The experiment as frozen data; the other modules of this room parse it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import starmap
from typing import Literal

import msgspec

Option = tuple[str, str | None]
"""A fio option as fio spells it; None for a flag given without a value."""


def option_word(name: str, value: str | None) -> str:
    """Return a fio option as a word of a command line."""
    return f"--{name}" if value is None else f"--{name}={value}"


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,47}")
FIO_PREFIX = "fio."
"""A variant's ``fio.ioengine`` sets the fio option ``ioengine`` for that variant; everything else is a knob."""
WORKLOAD_PREFIX = "workload."
"""If the workload is a command, a variant's ``workload.cache`` sets its parameter ``cache``."""

TARGET_CLASS = "class:"
"""Prefix of a class of targets; each host of a fleet has its own path for the class."""

INSTRUMENTS = {
    "perf": "perf stat of the load, perf record of the whole machine: two more runs of every variant of every cell",
    "block": "events of the block layer traced in an instance of tracefs: one more run of every variant of every cell",
}
"""What each runs. ``perf``: counts and symbols of the CPUs; ``block``: how long requests stay in each stage."""


class Target(msgspec.Struct, frozen=True):
    """What is measured: a block device, file or directory; no path means a scratch file iodelta makes."""

    path: str = ""
    size: str = ""
    files: str = ""
    """Of the files that a directory holds already, the names, as fio's ``filename_format`` spells them:
    ``$jobnum/$filenum``. iodelta made and marked that directory; its entries may lead to other filesystems."""
    none: bool = False
    """Whether the commands use no disk (``path = "none"``), so that nobody else who measures on one is in their way."""


class Subject(msgspec.Struct, frozen=True):
    """The build that was measured, for a history of many experiments: where it comes from and what it is called."""

    repo: str = ""
    """Name or address of its repository."""
    commit: str = ""
    """Full or abbreviated hash."""
    describe: str = ""
    """What ``git describe`` says of it, or a version."""
    dirty: bool = False
    """Whether the checkout had changes that no commit holds."""
    labels: dict[str, str] = {}
    """Anything else that is said of it, by name."""


class Command(msgspec.Struct, frozen=True):
    """A benchmark of its own as the workload: words with ``{NAME}`` in them, never given to a shell."""

    words: tuple[str, ...]
    """The program and its arguments."""
    setup: tuple[tuple[str, ...], ...] = ()
    """Commands that run once before the first trial."""
    reset: tuple[tuple[str, ...], ...] = ()
    """Commands that run before every trial, outside of what is measured."""
    timeout: float = 600.0
    """Seconds after which it counts as hanging."""
    only_reads: bool = False
    """Its owner says that it only reads the target, and writes nothing elsewhere that matters."""


class Measure(msgspec.Struct, frozen=True):
    """A number that a command prints: where it stands, its unit, which way is better."""

    name: str
    """What `[design] metrics` and reports call it."""
    unit: str
    """Its unit, where the output does not say another."""
    better: Literal["higher", "lower"]
    """Which way is better."""
    pattern: str = ""
    """A regular expression that one line of the output matches; its group is the number."""
    json: str = ""
    """Where the number stands in an output that is JSON: ``a.b[0]``."""
    last_line: bool = False
    """Only the last line that is not empty is looked at."""


MIRROR = "mirror.read_policy"
"""The knob that spreads the load over several members, not only the target."""

SCRATCH_SIZE = 1 << 30
"""Bytes of a scratch file when no size is given."""

PLACEBO = "placebo"
"""Name of the variant that is the baseline once more."""


class Variant(msgspec.Struct, frozen=True):
    """A named set of knob settings, and of fio options that this variant alone uses."""

    name: str
    knobs: dict[str, str] = {}
    options: tuple[Option, ...] = ()
    role: Literal["", "reference"] = ""
    """``reference``: the same build for months, against which a history compares what else ran in its blocks."""


class Condition(msgspec.Struct, frozen=True):
    """Something held while variants are compared: a background load (command words, or a fio job), or knobs."""

    name: str
    background: tuple[str, ...] = ()
    background_fio: tuple[Option, ...] = ()
    knobs: dict[str, str] = {}

    @property
    def load(self) -> str:
        """Return the background load as one line of words; empty without one."""
        if not self.background_fio:
            return shlex.join(self.background)
        return shlex.join(["fio", *starmap(option_word, self.background_fio)])


class Design(msgspec.Struct, frozen=True):
    """How much is measured and decided by which rules; seconds throughout."""

    trial: float = 2.0
    ramp: float = 0.5
    budget: float = 600.0
    blocks: int = 80
    """No cell gets more blocks than this."""
    metrics: tuple[str, ...] = ()
    """Primary metrics; empty for the defaults of each direction."""
    level: float = 0.95
    seed: int | None = None
    fresh_seeds: bool = True
    """A fresh fio random seed for every trial; false gives every trial the same offsets."""
    boot: float = 900.0
    """Seconds within which a host must be back from a reboot into another kernel."""
    settle: float = 0.0
    """Pause after a change of knobs, before the trial."""
    family: Literal["", "each", "holm", "screen"] = ""
    """How many comparisons are corrected for; empty: by their number (see ``iodelta.verdict.Rules``). ``each`` is of
    older experiments only."""
    stalls: float = 0.1
    """``equivalent`` needs as many trials of a variant as exclude stalls in this share of its trials."""
    carry_over: Literal["", "superblocks", "tested", "none"] = msgspec.field(
        default="", name="carry-over"
    )
    """What is done about what one trial leaves to the next; empty: by workload (see ``iodelta.lab.plan``)."""
    conditioning: int = 1
    """In superblocks, the trials of each variant that do not count before the one that does."""
    placement: Literal["kept", "fresh"] = "kept"
    """Of a command whose variants name a build, a script or a directory: ``fresh`` runs every trial on a copy of its own,
    so that inode, pages and alignment are not one arm's for the whole session."""
    placebo: bool = False
    """Add an arm that is the baseline under another name."""
    weights: dict[str, float] = {}
    """Cell -> what its losses count for when a variant is recommended; 1 for a cell that is not named."""


class Prepare(msgspec.Struct, frozen=True):
    """How a disk is brought to a known state: purged, filled, then written in rounds until it is steady."""

    purge: Literal["none", "discard", "nvme-format"] = "none"
    """How everything on it is given up first, where the disk can; ``none``: its history stays."""
    fill: float = 2.0
    """Times that its size is written in sequence, in blocks of 128 KiB, before the rounds."""
    workload: tuple[Option, ...] = ()
    """fio options of the rounds; none: those of the first cell that writes, else random writes of 4 KiB."""
    round: float = 60.0
    """Seconds of one round."""
    limit: int = 25
    """Rounds after which it is given up that the disk becomes steady."""
    spare: float = 0.3
    """Share of the size that rounds must have written before the five that are called steady: until the spare area of
    an SSD is used up, it writes as fast as a new one."""


class Cell(msgspec.Struct, frozen=True):
    """One workload under one condition: what variants are compared in."""

    name: str
    condition: str
    options: tuple[Option, ...]
    """Of fio; of a ``command`` the values of its parameters."""
    command: Command | None = None
    """What is run in place of fio."""

    def option(self, name: str) -> str | None:
        """Return the value of a fio option in this cell, or None when it is absent (or a flag)."""
        # Of several the last one counts, as for fio.
        return dict(self.options).get(name)

    def options_under(self, variant: Variant) -> dict[str, str | None]:
        """fio's options of this cell under a variant, whose own options take precedence."""
        return dict((*self.options, *variant.options))


ANATOMIES = ("path", "sharing")
"""``path``: of an I/O the tree of its calls, and the memory that it touches; ``sharing``: the cache lines that move
between two CPUs for an I/O, counted in boots of its own."""


class Experiment(msgspec.Struct, frozen=True):
    """One question, ready to be planned."""

    question: str
    baseline: str
    margin: float
    target: Target
    cells: tuple[Cell, ...]
    variants: tuple[Variant, ...]
    conditions: tuple[Condition, ...]
    design: Design
    notes: tuple[str, ...] = ()
    """What measuring it cell by cell changes against how its fio job file would have run."""
    machines: tuple[str, ...] = ()
    """Where trials happen, as in ``ssh:HOST``; none: on this machine. Of several each makes blocks in its turn."""
    clock: Literal["wall", "instructions"] = "wall"
    """``instructions``: the length of the path through the kernel is counted in a virtual machine, no time measured."""

    anatomy: str = ""
    """What more is counted with the instruction clock, one of ``ANATOMIES``; empty: nothing."""

    instruments: tuple[str, ...] = ()
    """Which instruments look at every variant of every cell, in runs of their own when all trials were made."""

    subject: Subject = Subject()
    """The build that is measured."""

    prepare: Prepare | None = None
    """How the disk is brought to a known state before the first trial; None: it is measured as it is."""

    measures: tuple[Measure, ...] = ()
    """What is read from the output of commands."""

    @property
    def option_prefix(self) -> str:
        """Return what stands before an option of the workload among the settings of a variant."""
        return WORKLOAD_PREFIX if self.of_command else FIO_PREFIX

    @property
    def of_command(self) -> bool:
        """Return whether the workload is a command, of this experiment all or none."""
        return self.cells[0].command is not None

    def variant(self, name: str) -> Variant:
        """Return the variant ``name``. Raises StopIteration if there is none."""
        return next(variant for variant in self.variants if variant.name == name)

    def condition(self, name: str) -> Condition:
        """Return the condition ``name``. Raises StopIteration if there is none."""
        return next(each for each in self.conditions if each.name == name)

    def knob_names(self) -> tuple[str, ...]:
        """Return every knob that some variant or condition sets, sorted."""
        return tuple(sorted(set().union(*self._settings())))

    def _settings(self) -> list[dict[str, str]]:
        """Return the knobs of each variant and condition."""
        of_variants = [variant.knobs for variant in self.variants]
        return of_variants + [condition.knobs for condition in self.conditions]

    @property
    def tool(self) -> str:
        """Return what makes the load where that is not fio itself; one experiment has one."""
        return self.cells[0].option("tool") or ""

    @property
    def boot_knobs(self) -> tuple[str, ...]:
        """Return the knobs among them that apply to a whole boot."""
        return tuple(filter(of_boot, self.knob_names()))

    @property
    def boots(self) -> bool:
        """Return whether variants differ in what they boot: then each trial of a cell has its own boot."""
        return self.clock == "wall" and bool(self.boot_knobs)

    @property
    def reboots(self) -> bool:
        """Return whether those boots are of hosts. They are slow, so one serves every cell of its variant once."""
        of_guests = (name.partition(":")[0] == "vm" for name in self.machines)
        return self.boots and not all(of_guests)

    def looks_closer(self) -> tuple[str, ...]:
        """Return what instruments run when all trials were made, as shown before anything starts."""
        return tuple(
            f"instrument {name}: {INSTRUMENTS[name]}" for name in self.instruments
        )

    def runs_commands(self) -> tuple[str, ...]:
        """Return every command that this experiment would run besides its trials, as shown before anything starts."""
        loads = [condition.load for condition in self.conditions]
        of_knobs = [knobs.get("command", "") for knobs in self._settings()]
        return tuple(filter(None, (*loads, *of_knobs)))


def mirrored(knobs: Mapping[str, str]) -> bool:
    """Return whether these settings spread the load over several members."""
    return MIRROR in knobs


def of_boot(setting: str) -> bool:
    """Return whether a setting applies to a whole boot: the kernel, its command line, the guest that it runs in."""
    return setting in ("kernel", "kernel.cmdline") or setting.startswith("vm.")


def variant(
    name: str, settings: Mapping[str, str], prefix: str = FIO_PREFIX
) -> Variant:
    """Return a variant from dotted settings: those with ``prefix`` are options of the workload, all others knobs."""
    knobs: dict[str, str] = {}
    options: list[Option] = []
    for setting, value in settings.items():
        if setting.startswith(prefix):
            options.append((setting.removeprefix(prefix), value))
        else:
            knobs[setting] = value
    return Variant(name, knobs, tuple(options))
