"""The commands that repeat an experiment: with iodelta, and by hand with fio alone."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, product, starmap

import msgspec

from iodelta.errors import IodeltaError, pasted
from iodelta.experiment import Cell, Experiment, Variant, parse, size_bytes
from iodelta.experiment.model import PLACEBO, SCRATCH_SIZE, option_word
from iodelta.experiment.shorthand import shorthand
from iodelta.grouping import grouped
from iodelta.lab.plan import Plan
from iodelta.lab.requests import Requests
from iodelta.probe.topology import Target
from iodelta.study.words import inert, setting
from iodelta.workload.fio import command_of

OURS = (
    "--output=",
    "--output-format=",
    "--eta=",
    "--write_iops_log=",
    "--log_avg_msec=",
    "--per_job_logs=",
)
"""Options that say where fio writes its results: they do not change what is measured."""

SEED = "--randseed="


class Again(msgspec.Struct, frozen=True):
    """Commands that repeat an experiment.

    ``run`` repeats all of it. ``fio`` has the options that all trials share, ``parts`` those that differ: by cell, and
    also by variant if variants have fio options of their own. ``settings`` are what variants and conditions set.
    """

    run: str
    fio: str
    parts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    backgrounds: tuple[tuple[str, str], ...]
    tool: str = "fio"
    """The program that makes the load: fio, `t/io_uring` by name or path, or a command."""


def again(plan: Plan, target: Target | None, version: tuple[int, int]) -> Again:
    """Return the commands of a plan. ``target`` is what was measured; without one, the target that the question names."""
    experiment = plan.experiment
    fio, parts = _fio(plan, target or _unseen(experiment), version)
    loads = [(condition.name, condition.load) for condition in experiment.conditions]
    return Again(
        run=run_line(experiment, plan.seed),
        fio=fio,
        parts=parts,
        settings=tuple(_all_settings(experiment)),
        backgrounds=tuple((name, load) for name, load in loads if load),
        tool="command" if experiment.of_command else experiment.tool or "fio",
    )


def size_of(experiment: Experiment, target: Target) -> int | None:
    """Return the size that fio gets; None for the whole of a device or file."""
    if experiment.target.size:
        return size_bytes(experiment.target.size)
    if not experiment.target.path or target.kind == "directory":
        return SCRATCH_SIZE
    return None


def words_of(
    plan: Plan,
    cell: Cell,
    variant: Variant,
    target: Target,
    version: tuple[int, int],
    *,
    seed: int = 1,
) -> list[str]:
    """Return the words of fio's command line in one trial, without the options in ``OURS``. Raises RequestError for a
    foreign plan with options that iodelta refuses to pass on."""
    request = Requests(
        experiment=plan.experiment,
        target=target,
        size=size_of(plan.experiment, target),
        version=version,
        workdir=".",
    ).of(cell, variant, seed=seed)
    if request.tool == "command":
        return list(request.words)
    return [word for word in command_of(request) if not word.startswith(OURS)]


def _fio(
    plan: Plan, target: Target, version: tuple[int, int]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """``fio`` and ``parts`` of ``Again``."""
    try:
        lines = _command_lines(plan, target, version)
    except IodeltaError as error:
        return f"# no command line: {inert(error.what)}", ()
    # The words of any other command have an order, so none can be taken out.
    if plan.experiment.of_command:
        # Command lines of programs other than fio: each in full if they differ.
        texts = {name: shlex.join(words) for name, words in lines.items()}
        if len(set(texts.values())) == 1:
            return next(iter(texts.values())), ()
        return "", tuple(texts.items())
    first = next(iter(lines.values()), [])
    shared = set(first).intersection(*lines.values())
    common = [word for word in first if word in shared]
    parts = {
        name: shlex.join(word for word in words if word not in shared)
        for name, words in lines.items()
    }
    if not any(parts.values()):
        return shlex.join(common), ()
    return shlex.join(common), tuple(parts.items())


def _command_lines(
    plan: Plan, target: Target, version: tuple[int, int]
) -> dict[str, list[str]]:
    """Return the words of each cell without seeds; of each variant too if one has fio options. Raises RequestError."""
    experiment = plan.experiment
    by_variant = any(variant.options for variant in experiment.variants)
    variants = experiment.variants if by_variant else experiment.variants[:1]
    lines: dict[str, list[str]] = {}
    for cell, variant in product(experiment.cells, variants):
        name = f"{cell.name}, {variant.name}" if by_variant else cell.name
        words = words_of(plan, cell, variant, target, version)
        lines[name] = [word for word in words if SEED not in word]
    return lines


def _all_settings(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield what each variant and condition sets; nothing if no knob is set at all."""
    if not experiment.knob_names():
        return
    for variant in experiment.variants:
        yield variant.name, _settings(variant.knobs)
    for condition in experiment.conditions:
        if condition.knobs:
            yield condition.name, _settings(condition.knobs)


def _settings(knobs: Mapping[str, str]) -> str:
    texts = [f"{knob} = {setting(knob, knobs[knob])}" for knob in sorted(knobs)]
    return "; ".join(texts) or "as it is"


def _unseen(experiment: Experiment) -> Target:
    """Return the target that a question names, of which nothing else is known."""
    from iodelta.probe.identity import Identity

    path = experiment.target.path or "/TARGET"
    return Target(
        path=path,
        kind="file",
        real_path=path,
        device=None,
        devno="",
        disk=None,
        devices=(),
        disks=(),
        mount="",
        fstype="",
        size_bytes=0,
        identity=Identity("", "", 0),
    )


def run_line(experiment: Experiment, seed: int) -> str:
    """``iodelta run`` with everything on its command line, if that is exactly this experiment; else with its file."""
    words = None
    # An experiment that the command line cannot express needs its file.
    with contextlib.suppress(IodeltaError):
        words = _shorthand(experiment, seed)
    if words is None:
        return f"{BY_FILE} --seed {seed}"
    return shlex.join(["iodelta", "run", *words])


BY_FILE = "iodelta run FOLDER/experiment.toml"
"""Runs an experiment that needs its file; ``placed`` replaces FOLDER."""


def placed(line: str, folder: str) -> str:
    """Return a command that repeats an experiment, with the path of its folder, ready to paste."""
    return line.replace(BY_FILE, f"iodelta run {pasted(f'{folder}/experiment.toml')}")


def _shorthand(experiment: Experiment, seed: int) -> list[str] | None:
    """Return the words after ``iodelta run`` for this experiment; None if they would mean another one. Raises
    RequestError.
    """
    if experiment.of_command:
        return None
    design = experiment.design
    # --placebo adds its variant itself.
    variants = [
        _setting(variant)
        for variant in experiment.variants
        if not (design.placebo and variant.name == PLACEBO)
    ]
    conditions = _conditions(experiment)
    top = {
        "question": experiment.question,
        "baseline": experiment.baseline,
        "margin": f"{100 * experiment.margin:g}%",
    }
    target = {"path": experiment.target.path, "size": experiment.target.size}
    given: dict[str, str | int] = {
        "trial": f"{design.trial:g}s",
        "ramp": f"{design.ramp:g}s",
        "budget": f"{design.budget:g}s",
        "seed": seed,
    }
    if design.blocks != type(design)().blocks:
        given["blocks"] = design.blocks
    placebo: dict[str, str | int] = {"placebo": True} if design.placebo else {}
    fio = fio_words(experiment)
    text = shorthand(
        variants=variants,
        fio=fio,
        conditions=conditions,
        top=top,
        target=target,
        design={**given, **placebo},
    )
    read_back = parse(text, "command line", numbered=False)
    read_design = msgspec.structs.replace(read_back.design, seed=design.seed)
    if msgspec.structs.replace(read_back, design=read_design) != experiment:
        return None
    # The first variant is the baseline unless another is named.
    if experiment.baseline == experiment.variants[0].name:
        top["baseline"] = ""
    options = {**top, "target": target["path"], "size": target["size"], **given}
    words: list[str] = []
    for name, value in options.items():
        if value != "":
            words += [f"--{name}", str(value)]
    words += _repeated("--variant", variants) + condition_words(experiment)
    return [*words, *(f"--{name}" for name in placebo), "--", *fio]


def _repeated(option: str, values: Iterable[str]) -> list[str]:
    """Return an option once for each value."""
    return list(chain.from_iterable((option, value) for value in values))


def condition_words(experiment: Experiment) -> list[str]:
    """``--condition`` for each condition."""
    return _repeated("--condition", _conditions(experiment))


def _conditions(experiment: Experiment) -> list[str]:
    """Return the named conditions as ``--condition`` takes them: ``idle``, ``busy:stress-ng --cpu 1``."""
    named = [condition for condition in experiment.conditions if condition.name]
    return [
        (f"{each.name}:{shlex.join(each.background)}" if each.background else each.name)
        for each in named
    ]


def fio_words(experiment: Experiment) -> list[str]:
    """Return each option once for every value that it has in a cell, in the order of the cells."""
    options = list(chain.from_iterable(cell.options for cell in experiment.cells))
    values = grouped(dict.fromkeys(options), lambda option: option[0])
    return list(starmap(option_word, chain.from_iterable(values.values())))


def _setting(variant: Variant) -> str:
    """Return a variant as ``--variant`` takes it: ``deep:block.nr_requests=256,fio.iodepth=32``."""
    settings = [f"{name}={value}" for name, value in variant.knobs.items()]
    settings += [f"fio.{name}={value or '1'}" for name, value in variant.options]
    if not settings:
        return variant.name
    return f"{variant.name}:{','.join(settings)}"
