"""The JSON documents of the small commands: env, knobs, restore, rebuild, pack."""

from __future__ import annotations

from typing import Any

import msgspec

from iodelta.knob import KnobInfo
from iodelta.lab.undo import Outcome
from iodelta.probe.topology import Target
from iodelta.study.confounders import Differing
from iodelta.vm.kernels import Kernel
from iodelta.vm.packages import Package


class EnvAnswer(msgspec.Struct, frozen=True):
    """What a machine is."""

    environment: dict[str, Any]
    """Sections of texts as the kernel prints them, as in ``environment.json``; ``absent`` says what is not there."""
    schema: str = "iodelta.env/1"


class EnvDiffAnswer(msgspec.Struct, frozen=True):
    """What differs between two environments, likely confounders first."""

    baseline: str
    """The folder (or ``this machine``) on the left."""
    variant: str
    """The one on the right."""
    differing: tuple[Differing, ...]
    schema: str = "iodelta.env-diff/1"


class KnobsAnswer(msgspec.Struct, frozen=True):
    """What can be set on a machine for a target."""

    target: Target
    knobs: tuple[KnobInfo, ...]
    """Where ``reason`` is not empty the knob cannot be set here."""
    schema: str = "iodelta.knobs/1"


class RestoreAnswer(msgspec.Struct, frozen=True):
    """What was restored after crashed runs."""

    outcomes: tuple[Outcome, ...]
    """One per crashed run; ``restored`` holds an account or an error for each setting."""
    forgotten: bool
    """Whether settings that could not be restored were given up."""
    schema: str = "iodelta.restore/1"


class RebuildAnswer(msgspec.Struct, frozen=True):
    """The derived files that were rebuilt."""

    files: tuple[str, ...]
    trials: int
    """Usable trials they were made from."""
    schema: str = "iodelta.rebuild/1"


class Removed(msgspec.Struct, frozen=True):
    """A name, number or address that a bundle does not hold."""

    kind: str
    placeholder: str
    """What stands in its place."""
    text: str
    """What it was: for the packer alone."""


class PackedFile(msgspec.Struct, frozen=True):
    """One file of a bundle."""

    name: str
    bytes: int


class PackAnswer(msgspec.Struct, frozen=True):
    """A bundle that was made."""

    file: str
    bytes: int
    sha256: str
    """Hex digest of the file: the same folder gives the same."""
    removed: tuple[Removed, ...]
    """Names, numbers and addresses that the bundle does not hold."""
    left_out: tuple[str, ...]
    """Files of the folder that are not in the bundle."""
    state: str
    """How the experiment ended, as in the journal."""
    files: tuple[PackedFile, ...] = ()
    """What the bundle holds."""
    boot_words: int = 0
    """Words of the kernel's command line that it does not hold."""
    schema: str = "iodelta.pack/1"


class FioBuildAnswer(msgspec.Struct, frozen=True):
    """The programs in the cache."""

    fio: str
    """Path of the static fio."""
    io_uring: str
    """Path of the static t/io_uring."""
    version: str
    """Version of the source they were made from."""
    schema: str = "iodelta.fio-build/1"


class KernelsAnswer(msgspec.Struct, frozen=True):
    """Kernels for virtual machines."""

    here: tuple[Kernel, ...]
    """Those that can be booted now."""
    available: tuple[Package, ...]
    """Those that the system's package manager knows."""
    built: tuple[Kernel, ...] = ()
    """Those that ``iodelta kernel build`` made; each goes by its name."""
    schema: str = "iodelta.kernels/1"


class ServeAnswer(msgspec.Struct, frozen=True):
    """A server that answers from now on."""

    url: str
    """The address of its first page."""
    write: bool
    """Whether it lets anything be changed."""
    schema: str = "iodelta.serve/1"
