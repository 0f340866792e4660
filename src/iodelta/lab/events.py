"""The events of an experiment's journal: one line each, in the order in which they came to be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
"""Of a journal that may come from a stranger."""


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    """The plan is on disk: order, rules and experiment are fixed from here on."""

    at: float
    plan_sha256: str
    experiment_sha256: str
    version: str


class Session(msgspec.Struct, frozen=True, tag="session"):
    """A run (or its continuation) began on a booted machine."""

    at: float
    boot_id: str
    pid: int
    target: dict[str, Any]
    environment: str
    """The environment file of this session."""
    machine: str = ""
    """Its name, as in ``ssh:HOST``; of several hosts each has a session of its own."""
    disk: dict[str, Any] | None = None
    """What was known of the state of a disk that is written to; None where that was not asked."""


class KnobSaved(msgspec.Struct, frozen=True, tag="knob-saved"):
    """The original value of a knob, on disk before the first write to it."""

    at: float
    saved: dict[str, Any]


class KnobRestored(msgspec.Struct, frozen=True, tag="knob-restored"):
    """A knob has its original value again."""

    at: float
    knob: str


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A trial is about to run."""

    at: Seconds
    trial: Number
    cell: str
    block: Number
    attempt: Number
    position: Number
    variant: str
    seed: int
    conditioning: bool = False
    """Its variant's first trial of a superblock, which does not count."""


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """A trial is over and its raw record is on disk; ``problem`` is empty for a usable one."""

    at: Seconds
    trial: Number
    seconds: Seconds
    """Wall time since the trial before it ended, or the session began: iodelta's own work is in it."""
    problem: str = ""


class Repeated(msgspec.Struct, frozen=True, tag="repeated"):
    """A block is repeated: a trial was ``spoilt`` and cannot be used.

    Folders made by 0.1 also have blocks that were repeated for ``noise``; of those the first attempt counts.
    """

    at: float
    cell: str
    block: int
    attempt: int
    """The attempt that is given up."""
    why: Literal["spoilt", "noise"]
    reason: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A trial that could not be run at all (a knob, the machine, the guard), with the reason."""

    at: float
    trial: int
    reason: str


class Abandoned(msgspec.Struct, frozen=True, tag="abandoned"):
    """A cell that could not be measured, with its reason; the experiment went on without it."""

    at: float
    cell: str
    reason: str


class LeftOut(msgspec.Struct, frozen=True, tag="left-out"):
    """A variant whose kernel did not come up, with the reason; the experiment went on without it."""

    at: float
    variant: str
    reason: str


class Extended(msgspec.Struct, frozen=True, tag="extended"):
    """The user asked for more blocks or budget after the end; they are judged with the alpha held in reserve."""

    at: float
    budget: float
    blocks: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A session ended by itself: ``complete``, ``budget``, ``interrupted`` or ``failed: ...``."""

    at: float
    reason: str


class Kept(msgspec.Struct, frozen=True, tag="kept"):
    """Files that belong to no trial were written; the line seals them."""

    at: float


class Booted(msgspec.Struct, frozen=True, tag="booted"):
    """A guest of path mode ended and what it wrote is on disk; ``problem`` is empty when it came to its own end."""

    at: float
    boot: int
    seconds: float
    problem: str = ""
    console: tuple[str, ...] = ()
    """The last lines of its console, when there was a problem."""


class Rebooted(msgspec.Struct, frozen=True, tag="rebooted"):
    """A host was rebooted for a variant and came up as requested."""

    at: float
    machine: str
    variant: str
    boot_id: str
    release: str
    cmdline: str
    way: str
    seconds: float
    """Until it was back."""


class Preparing(msgspec.Struct, frozen=True, tag="preparing"):
    """The preparation of a disk began, or goes on; all that was on the disk is given up from here on."""

    at: float
    boot_id: str
    pid: int
    target: dict[str, Any]
    size: int
    """Bytes that are prepared, from the beginning of the disk."""
    workload: tuple[tuple[str, str | None], ...]
    """fio options of the rounds."""
    machine: str = ""


class StepBegun(msgspec.Struct, frozen=True, tag="step-begun"):
    """A step of a preparation is about to run."""

    at: float
    number: int
    """Of all steps in this folder, from 1."""
    step: Literal["purge", "fill", "round"]
    machine: str = ""


class StepDone(msgspec.Struct, frozen=True, tag="step-done"):
    """A step of a preparation is over and its raw output is on disk."""

    at: float
    number: int
    step: Literal["purge", "fill", "round"]
    started: float
    """Unix seconds."""
    seconds: float
    written: int
    """Bytes."""
    machine: str = ""


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """A preparation came to its end: the disk is steady, or did not become so within the limit of rounds."""

    at: float
    steady: bool
    rounds: int
    """Made until then."""
    machine: str = ""


Event = (
    Planned
    | Session
    | KnobSaved
    | KnobRestored
    | Started
    | Finished
    | Repeated
    | Failed
    | Abandoned
    | LeftOut
    | Extended
    | Ended
    | Kept
    | Booted
    | Rebooted
    | Preparing
    | StepBegun
    | StepDone
    | Settled
)
