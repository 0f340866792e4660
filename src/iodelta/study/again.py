"""How to do an experiment again, as lines for a shell: with iodelta, and by hand with fio alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain, product

import msgspec

from iodelta.errors import IodeltaError, pasted
from iodelta.experiment import Cell, Experiment, Variant, parse, shorthand, size_bytes
from iodelta.experiment.model import PLACEBO
from iodelta.lab.bench import Requests
from iodelta.lab.plan import Plan
from iodelta.lab.scratch import SCRATCH_SIZE
from iodelta.lab.setup import tool_of
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
"""Words that say where fio writes: they change nothing of what is measured."""

SEED = "--randseed="


class Again(msgspec.Struct, frozen=True):
    """``run`` repeats everything. ``fio`` is what fio is given in every trial, ``parts`` what differs: by cell and,
    where variants have fio options of their own, by variant. ``settings`` are what variants and conditions set."""

    run: str
    fio: str
    parts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    backgrounds: tuple[tuple[str, str], ...]
    tool: str = "fio"
    """What makes the load: fio, `t/io_uring` by name or path, or a command."""


def again(plan: Plan, target: Target | None, version: tuple[int, int]) -> Again:
    """``target`` is the one that was measured; without one what the question names stands in for it."""
    experiment = plan.experiment
    fio, parts = _fio(plan, target or _unseen(experiment), version)
    arms = [(variant.name, variant.knobs) for variant in experiment.variants]
    arms += [
        (condition.name, condition.knobs)
        for condition in experiment.conditions
        if condition.knobs
    ]
    settings = tuple(
        (name, _settings(knobs)) for name, knobs in arms if experiment.knob_names()
    )
    backgrounds = tuple(
        (condition.name, condition.load)
        for condition in experiment.conditions
        if condition.load
    )
    tool = "command" if experiment.of_command else tool_of(experiment) or "fio"
    return Again(
        run=run_line(experiment, plan.seed),
        fio=fio,
        parts=parts,
        settings=settings,
        backgrounds=backgrounds,
        tool=tool,
    )


def size_of(experiment: Experiment, target: Target) -> int | None:
    """The size that fio gets; None for the whole of a device or file."""
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
    """The words of fio's command line in one trial, without where it writes. Raises RequestError for a foreign plan
    whose options iodelta would not pass on."""
    size = size_of(plan.experiment, target)
    request = Requests(
        experiment=plan.experiment,
        target=target,
        size=size,
        version=version,
        workdir=".",
    ).of(cell, variant, seed=seed)
    if request.tool == "command":
        return list(request.words)
    return [word for word in command_of(request) if not word.startswith(OURS)]


def _fio(
    plan: Plan, target: Target, version: tuple[int, int]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    experiment = plan.experiment
    # Then one without options has its line, too.
    own = any(variant.options for variant in experiment.variants)
    lines: dict[str, list[str]] = {}
    try:
        for cell, variant in product(
            experiment.cells, experiment.variants if own else experiment.variants[:1]
        ):
            name = f"{cell.name}, {variant.name}" if own else cell.name
            lines[name] = [
                word
                for word in words_of(plan, cell, variant, target, version)
                if SEED not in word
            ]
    except IodeltaError as error:
        return f"# no command line: {inert(error.what)}", ()
    if experiment.of_command:  # its words have an order, and no part can be taken out
        return _whole(lines)
    shared = set.intersection(*map(set, lines.values())) if lines else set()
    common = [word for word in next(iter(lines.values()), []) if word in shared]
    parts = tuple((name, _without(words, shared)) for name, words in lines.items())
    return shlex.join(common), parts if any(part for _, part in parts) else ()


def _whole(
    lines: Mapping[str, Sequence[str]],
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Command lines that are not options of one program: each in full, where they differ."""
    texts = {name: shlex.join(words) for name, words in lines.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values())), ()
    return "", tuple(texts.items())


def _settings(knobs: Mapping[str, str]) -> str:
    return (
        "; ".join(
            f"{knob} = {setting(knob, value)}" for knob, value in sorted(knobs.items())
        )
        or "as it is"
    )


def _without(words: Sequence[str], common: set[str]) -> str:
    return shlex.join(word for word in words if word not in common)


def _unseen(experiment: Experiment) -> Target:
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
    """``iodelta run`` with everything on its command line, where that says exactly this experiment; else the file of
    the folder."""
    try:
        words = _shorthand(experiment, seed)
        if words is not None:
            return shlex.join(["iodelta", "run", *words])
    except IodeltaError:
        pass  # such an experiment needs its file
    return f"{BY_FILE} --seed {seed}"


BY_FILE = "iodelta run FOLDER/experiment.toml"
"""What runs an experiment that needs its file, wherever its folder lies."""


def placed(line: str, folder: str) -> str:
    """A command to do it again as the reader of this very folder can paste it."""
    if not line.startswith(BY_FILE):
        return line
    return line.replace(BY_FILE, f"iodelta run {pasted(f'{folder}/experiment.toml')}")


def _shorthand(experiment: Experiment, seed: int) -> list[str] | None:
    if experiment.of_command:
        return None
    design, default = experiment.design, type(experiment.design)()
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
        "trial": _time(design.trial),
        "ramp": _time(design.ramp),
        "budget": _time(design.budget),
        "seed": seed,
    }
    if design.blocks != default.blocks:
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
    same = parse(text, "command line", numbered=False)
    if (
        msgspec.structs.replace(
            same, design=msgspec.structs.replace(same.design, seed=design.seed)
        )
        != experiment
    ):
        return None
    words = list(chain.from_iterable(("--variant", value) for value in variants))
    words += condition_words(experiment)
    tables: dict[str, str | int] = {
        **top,
        "target": target["path"],
        "size": target["size"],
        **given,
    }
    if experiment.baseline == experiment.variants[0].name:
        tables["baseline"] = ""
    words = (
        list(
            chain.from_iterable(
                (f"--{name}", str(value))
                for name, value in tables.items()
                if value != ""
            )
        )
        + words
    )
    return [*words, *(["--placebo"] if placebo else []), "--", *fio]


def condition_words(experiment: Experiment) -> list[str]:
    """``--condition`` for each condition."""
    return list(
        chain.from_iterable(("--condition", value) for value in _conditions(experiment))
    )


def _conditions(experiment: Experiment) -> list[str]:
    return [
        f"{condition.name}:{shlex.join(condition.background)}"
        if condition.background
        else condition.name
        for condition in experiment.conditions
        if condition.name
    ]


def fio_words(experiment: Experiment) -> list[str]:
    """Each option once for every value it takes over the cells, in the order of the cells."""
    values: dict[str, dict[str | None, None]] = {}
    for cell in experiment.cells:
        for name, value in cell.options:
            values.setdefault(name, {})[value] = None
    words = []
    for name, own in values.items():
        words += [
            f"--{name}" if value is None else f"--{name}={value}" for value in own
        ]
    return words


def _setting(variant: Variant) -> str:
    settings = [
        *variant.knobs.items(),
        *((f"fio.{name}", value or "1") for name, value in variant.options),
    ]
    if settings:
        return (
            f"{variant.name}:{','.join(f'{name}={value}' for name, value in settings)}"
        )
    return variant.name


def _time(seconds: float) -> str:
    return f"{seconds:g}s"
