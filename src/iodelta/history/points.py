"""From an experiment folder to the points of its night: one for every cell, variant and metric."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from iodelta.bundle.packed import is_nameless, opened
from iodelta.decoding import sound
from iodelta.errors import RequestError
from iodelta.experiment import Cell, Experiment, Subject, Variant
from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import PLACEBO
from iodelta.jobfile import canonical
from iodelta.lab.account import Account
from iodelta.lab.folder import JOURNAL
from iodelta.lab.integrity import integrity
from iodelta.lab.judged import counted_trials, read_plan, usable_trials
from iodelta.lab.plan import Plan
from iodelta.lab.seal import sha256
from iodelta.stats.guards import lag1, merge_until_clean
from iodelta.trial import Trial
from iodelta.verdict import Metric
from iodelta.verdict.series import Block, blocks_of, pairs_of

BUILT = "built"
"""Label of a subject: where what was built of its commit is kept, as it stands in the settings of variants."""

_HARDWARE = ("vendor", "product", "board", "bios")
_DISK = (
    "model",
    "vendor",
    "rev",
    "firmware",
    "firmware_rev",
    "serial",
    "wwid",
    "size_bytes",
)


class Key(msgspec.Struct, frozen=True):
    """What makes points comparable: they form one series. Names, seeds, paths and lengths of trials are not in it."""

    machine: str
    options: tuple[tuple[str, str | None], ...]
    condition: tuple[tuple[str, str], ...]
    knobs: tuple[tuple[str, str], ...]
    """Of the variant, without its kernel: that is the build whose history this is."""
    role: str
    metric: str
    target: str
    twin: str = ""
    """Name of the variant, where another one of the experiment has the same key."""

    @property
    def number(self) -> int:
        """63 bits of its hash: the series' name in the database."""
        return _number(self)


@lru_cache(maxsize=1 << 16)
def _number(key: Key) -> int:
    digest = hashlib.sha256(msgspec.json.encode(key)).digest()
    # SQLite's integers and PostgreSQL's bigint have a sign.
    return int.from_bytes(digest[:8], "big") >> 1


class Point(msgspec.Struct, frozen=True):
    """One series in one night. ``y`` is the mean logarithm of the blocks' values and ``r`` the mean log-ratio to the
    reference in the same blocks, positive where it is worse; each with its standard error."""

    key: Key
    cell: str
    variant: str
    better: str
    unit: str
    y: float
    se: float
    n: int
    lag1: float
    r: float | None = None
    r_se: float | None = None
    flags: tuple[str, ...] = ()
    """See ``HistoryPoint.flags``."""


class Night(msgspec.Struct, frozen=True):
    """One experiment: when, where, of which build, and its points."""

    identifier: str
    sha: str
    t: float
    machine: str
    epoch: str
    facts: dict[str, str]
    """What makes the epoch: hardware, firmware, disks, kernel configuration, fio."""
    subject: Subject
    folder: str
    state: str
    points: Sequence[Point]
    left_out: dict[str, str] = {}
    """Why a series has no point in this night."""
    identity: str = ""
    """Of the machine, which outlives its name; empty where none was recorded."""


def night_of(path: Path, given: str = "") -> Night:
    """Return the night in an experiment folder or bundle; ``given`` is the machine of a bundle that does not name it.
    Raises RequestError, MeasureError."""
    folder = opened(path)
    folder.check_times()
    plan, journal = read_plan(folder), Account(folder.events())
    if not journal.sessions:
        raise RequestError("nothing was measured in this folder yet", place=str(path))
    if len({session.machine for session in journal.sessions}) > 1:
        raise RequestError(
            "blocks of several machines are not one night", place=str(path)
        )
    trials = usable_trials(folder, journal)
    for finding in integrity(folder, journal):
        if finding.severity == "hard":
            raise RequestError(
                f"this folder is not what was measured: {finding.explanation}",
                place=str(folder.path),
                remedy="`iodelta report` of it says what was changed",
            )
    session = journal.sessions[0]
    environment = sound(folder.read_struct(session.environment, dict[str, Any]))
    counted = counted_trials(plan, journal, trials)
    host = environment.get("host", {})
    machine = session.machine or "".join(plan.experiment.machines[:1])
    if machine in ("", "local"):
        machine = host.get("name", "local")
    identity, sha = host.get("machine_id", ""), sha256(folder.read(JOURNAL))
    if is_nameless(folder):
        # What the machine of a bundle is called: every stranger's is ``host-1``, so each experiment has its own
        # until a person says which belong together.
        machine, identity = (given or f"{machine} of {plan.identifier[:8]}"), ""
        # Under another name it is another night.
        sha = sha256(f"{sha}{given}".encode()) if given else sha
    facts = facts_of(environment)
    target = environment.get("target", {}).get("kind", "")
    points, left_out = points_of(plan, counted, machine, target)
    return Night(
        identifier=plan.identifier,
        sha=sha,
        t=session.at,
        machine=machine,
        epoch=epoch_of(facts),
        facts=facts,
        subject=plan.experiment.subject,
        folder=str(path.resolve()),
        state=journal.state,
        points=points,
        left_out=left_out,
        identity=identity,
    )


def epoch_of(facts: Mapping[str, str]) -> str:
    """Return the name of the epoch with these facts."""
    return hashlib.sha256(msgspec.json.encode(sorted(facts.items()))).hexdigest()[:16]


def facts_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what begins an epoch when it changes. The kernel's release is not in it: it may be what is compared."""
    host, kernel = environment.get("host", {}), environment.get("kernel", {})
    facts = {f"host.{name}": str(host[name]) for name in _HARDWARE if name in host}
    for name, value in kernel.items():
        if name.startswith("config."):
            facts[f"kernel.{name}"] = str(value)
    facts["fio.version"] = str(environment.get("fio", {}).get("version", ""))
    for number, device in enumerate(environment.get("devices", ())):
        for name in _DISK:
            if name in device:
                facts[f"device.{number}.{name}"] = str(device[name])
    return facts


def points_of(
    plan: Plan, trials: Sequence[Trial], machine: str, target: str
) -> tuple[tuple[Point, ...], dict[str, str]]:
    """Return a point for every cell, variant and metric that has two blocks, and why others have none."""
    experiment = plan.experiment
    references = [variant.name for variant in experiment.variants if variant.role]
    reference = references[0] if references else None
    points: list[Point] = []
    left_out: dict[str, str] = {}
    for cell in experiment.cells:
        blocks = blocks_of(trial for trial in trials if trial.cell == cell.name)
        for variant in experiment.variants:
            for metric in plan.rules.metrics:
                key = key_of(experiment, cell, variant, metric, machine, target)
                against = experiment.baseline if variant.name == PLACEBO else reference
                point = _point(blocks, key, cell.name, variant.name, metric, against)
                if isinstance(point, Point):
                    points.append(point)
                else:
                    left_out[f"{cell.name}, {variant.name}, {metric.name}"] = point
    return apart(points), left_out


def apart(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points of one night; the names of their variants distinguish those of one key."""
    replace = msgspec.structs.replace
    counts = Counter(point.key for point in points)
    distinct: list[Point] = []
    for point in points:
        if counts[point.key] > 1:
            key = replace(point.key, twin=point.variant)
            distinct.append(replace(point, key=key))
        else:
            distinct.append(point)
    return tuple(distinct)


def key_of(
    experiment: Experiment,
    cell: Cell,
    variant: Variant,
    metric: Metric,
    machine: str,
    target: str,
) -> Key:
    """Return the canonical key of a series."""
    condition = experiment.condition(cell.condition)
    options = {canonical(name): value for name, value in cell.options}
    options |= {
        canonical(name): value and _general(experiment, value)
        for name, value in variant.options
    }
    tool = options.pop(TOOL, None)
    made_by = ("tool", "t/io_uring" if tool else "fio")
    if cell.command is not None:
        made_by = ("command", msgspec.json.encode(cell.command).decode())
    held = {
        **condition.knobs,
        **({"background": condition.load} if condition.load else {}),
    }
    knobs = {
        name: _general(experiment, value)
        for name, value in variant.knobs.items()
        if name != "kernel"
    }
    return Key(
        machine=machine,
        options=(made_by, *sorted(options.items())),
        condition=tuple(sorted(held.items())),
        knobs=tuple(sorted(knobs.items())),
        role=variant.role,
        metric=metric.name,
        target=target,
    )


def _general(experiment: Experiment, value: str) -> str:
    """Return a setting with the commit and the place of its build taken out again: they are the build whose history it
    is.
    """
    subject = experiment.subject
    for own, name in (
        (subject.labels.get(BUILT, ""), "{built}"),
        (subject.commit, "{commit}"),
    ):
        value = value.replace(own, name) if own else value
    return value


def _point(
    blocks: Mapping[int, Block],
    key: Key,
    cell: str,
    variant: str,
    metric: Metric,
    reference: str | None,
) -> Point | str:
    values = np.asarray(
        [own for _, own in pairs_of(blocks, metric, variant, variant)], dtype=float
    )
    if len(values) < 2:
        return "fewer than two blocks"
    if not np.all(np.isfinite(values) & (values > 0.0)):
        return "a block without I/O has no logarithm"
    y, se, lag1 = mean_and_error(np.log(values))
    point = Point(
        key, cell, variant, metric.better, metric.unit, y, se, len(values), lag1
    )
    if reference is None or reference == variant:
        return point
    pairs = np.asarray(
        pairs_of(blocks, metric, reference, variant), dtype=float
    ).reshape(-1, 2)
    ratios = pairs[:, 1] / pairs[:, 0]
    if len(ratios) < 2 or not np.all(np.isfinite(ratios) & (ratios > 0.0)):
        return point
    worse = -1.0 if metric.better == "higher" else 1.0
    r, r_se, _ = mean_and_error(worse * np.log(ratios))
    return msgspec.structs.replace(point, r=r, r_se=r_se)


def mean_and_error(blocks: Any) -> tuple[float, float, float]:
    """Mean of blocks, its standard error over batches that do not resemble their neighbours, and lag-1 correlation."""
    batches = merge_until_clean(blocks)
    error = float(np.std(batches, ddof=1)) / math.sqrt(len(batches))
    return float(np.mean(blocks)), error, lag1(np.asarray(blocks, dtype=float))[0]
