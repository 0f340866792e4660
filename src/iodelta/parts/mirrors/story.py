"""What ``iodelta policy`` says: the catalogue, explanations, predictions, a calibration, runs of a mirror."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from iodelta.parts.mirrors.answers import (
    ExplainAnswer,
    MirrorAnswer,
    Mirrored,
    PolicyListAnswer,
    Predicted,
    SimulationAnswer,
)
from iodelta.parts.mirrors.calibrate import (
    CLOSURE,
    DEPTHS,
    MIX,
    Calibration,
    HeldOut,
    MemberCurve,
)
from iodelta.parts.mirrors.catalogue import PolicyInfo
from iodelta.parts.mirrors.explain import Array, Explanation
from iodelta.plural import plural
from iodelta.report.stories.sources import findings, system_lines
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Item,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.study.words import inert

MODELS = "Members are models, not measured devices: the ranking may hold; absolute numbers are those of typical devices."

NAME = 27
"""Columns of a member's name; of a longer path the end is shown."""


def of_policies(answer: PolicyListAnswer, detail: Detail = PLAIN) -> Story:
    """Rule, tie-break, source and parameters of each policy."""
    count = f"{len(answer.policies)} read policies."
    return Story(
        question="",
        answer=count,
        tables=(),
        sections=section("Policies", map(_described, answer.policies)),
    )


def _described(policy: PolicyInfo) -> Item:
    parameters = (
        f"{parameter.name}={parameter.default}: {parameter.meaning}"
        for parameter in policy.parameters
    )
    return Item(
        policy.name,
        (policy.rule, f"ties: {policy.ties}", f"source: {policy.source}", *parameters),
    )


def of_explanations(answer: ExplainAnswer, detail: Detail = PLAIN) -> Story:
    """Return each mechanism with what would confirm it."""
    items: list[Item] = []
    for policy in answer.policies:
        items += [
            _explained(policy.policy, mechanism) for mechanism in policy.explanations
        ]
    decide = "decides" if len(items) == 1 else "decide"
    return Story(
        question="",
        answer=f"{plural(len(items), 'mechanism')} {decide} what is read from where.",
        tables=(),
        sections=(
            *section("Mechanisms", items),
            *system_lines(_array(answer.array)),
            *section("To do it again", (inert(answer.again),), commands=True),
        ),
    )


def _explained(policy: str, explanation: Explanation) -> Item:
    return Item(
        f"{inert(policy)}: {explanation.mechanism}",
        (f"{explanation.prediction}.", f"Look: {explanation.confirm}."),
    )


def _array(array: Array) -> Iterator[str]:
    yield f"array: {array.copies} copies of each byte{', striped' if array.raid10 else ''}"
    if array.rates:
        yield f"rates of the members alone: {', '.join(f'{rate:,.6g}/s' for rate in array.rates)}"
    yield f"load: {plural(array.jobs, 'job')} at depth {array.iodepth}, {array.length} bytes each"


def of_simulation(answer: SimulationAnswer, detail: Detail = PLAIN) -> Story:
    """Predictions, one row for each policy and depth, and how far they can be believed."""
    worlds = len(answer.seeds)
    overloads = [
        _overload(prediction)
        for prediction in answer.predictions
        if prediction.overloaded
    ]
    count = plural(len(answer.predictions), "prediction")
    return Story(
        question="",
        answer=f"{count} by simulation; no policy was measured.",
        tables=(_predictions(answer.predictions, worlds),),
        sections=(
            *section("Overloaded", overloads),
            *section("What this relies on", trust(answer.closure, answer.held_out)),
            *_members(answer.members),
            *section("To do it again", (inert(answer.again),), commands=True),
        ),
    )


def _members(members: Sequence[str]) -> tuple[Section, ...]:
    return system_lines(
        f"member {number}: {inert(member)}" for number, member in enumerate(members, 1)
    )


def _predictions(predictions: Sequence[Predicted], worlds: int) -> Table:
    rates = {prediction.rate for prediction in predictions}
    load = "depth" if rates <= {None} else "arrive/s"
    heads = (load, "IOPS", "over worlds", "mean", "p99", "reads by member")
    return Table(
        title="Predictions",
        first="policy",
        heads=heads,
        rows=tuple(_predicted(prediction, worlds) for prediction in predictions),
    )


def _predicted(prediction: Predicted, worlds: int) -> Row:
    asked = str(prediction.iodepth)
    if prediction.rate is not None:
        asked = f"{prediction.rate:,.6g}"
    spread = f"{prediction.least:,.0f} .. {prediction.most:,.0f}" if worlds > 1 else ""
    times = (_time(prediction.mean_ns), _time(prediction.p99_ns))
    if prediction.overloaded:
        # Latencies of an overload grow with the length of the run.
        times = ("-", "-")
    return _row(
        prediction.policy,
        (asked, f"{prediction.iops:,.0f}", spread, *times, _shares(prediction.shares)),
    )


def _overload(prediction: Predicted) -> str:
    return (
        f"{prediction.policy} does not keep up with {prediction.rate:,.6g} requests a second: {prediction.unfinished:,} had not "
        "finished at the end. Its latencies grow with --seconds."
    )


def trust(closure: float | None, held_out: Iterable[HeldOut]) -> Iterator[str]:
    """Yield how far a prediction can be believed."""
    if closure is None:
        yield MODELS
        return
    yield f"Closure: the calibrated members reproduce their own curves within {100 * closure:.1f} %."
    yield from map(_held_out, held_out)


def _held_out(held_out: HeldOut) -> str:
    mixed = f", {held_out.read_percent} % reads" if held_out.read_percent < 100 else ""
    return (
        f"Hold-out: {held_out.policy} at depth {held_out.iodepth}{mixed}: measured {held_out.measured:,.0f}, predicted "
        f"{held_out.predicted:,.0f} IOPS ({100 * held_out.error:+.0f} %)."
    )


def of_calibration(calibration: Calibration, detail: Detail = PLAIN) -> Story:
    """Return each member's rates by depth, then the errors."""
    good = sum(member.closure <= CLOSURE for member in calibration.members)
    rows = tuple(
        _row(_short(member.path), tuple(map("{:,.0f}".format, member.iops)))
        for member in calibration.members
    )
    table = Table(
        title="Random 4k reads per second at depth",
        first="member",
        heads=tuple(map(str, DEPTHS)),
        rows=rows,
        words=False,
    )
    return Story(
        question="",
        answer=f"The models of {good} of {len(calibration.members)} members are within {100 * CLOSURE:.0f} %.",
        tables=(table,),
        sections=(
            *section(
                "Reads during writes",
                filter(None, map(_reads_during_writes, calibration.members)),
            ),
            *section("Models", map(_model, calibration.members)),
            *section("What this relies on", map(_held_out, calibration.held_out)),
            *section("Findings", findings(calibration.findings)),
            *system_lines(
                f"member: {inert(member.path)}" for member in calibration.members
            ),
            *section("To do it again", (inert(detail.again),), commands=True),
        ),
    )


def _model(member: MemberCurve) -> str:
    verdict = "is" if member.closure <= CLOSURE else "is NOT"
    return f"{_short(member.path)}: its model {verdict} within {100 * CLOSURE:.0f} %: {100 * member.closure:.1f} %"


def _reads_during_writes(member: MemberCurve) -> str:
    """Mean latency of reads with writes, and of reads alone at the same depth; empty where no writes were measured."""
    model = member.member.empirical
    if model is None or model.read_beside is None:
        return ""
    alone = dict(zip(model.read.depths, model.read.latency, strict=True))
    pairs = zip(model.read_beside.depths, model.read_beside.latency, strict=True)
    parts = ", ".join(
        f"depth {depth} {_time(time)} ({_time(alone[depth])} alone)"
        for depth, time in pairs
    )
    return f"{_short(member.path)}: a read during writes, {MIX}/{100 - MIX}: {parts}"


def of_mirror(answer: MirrorAnswer, detail: Detail = PLAIN) -> Story:
    """Return one row for each run of the mirror."""
    run_findings = (
        *answer.findings,
        *chain.from_iterable(run.findings for run in answer.runs),
    )
    heads = ("depth", "IOPS", "mean", "p50", "p99", "p99.9", "reads by member")
    return Story(
        question="",
        answer="One run of each, in this order: a first look, not a verdict. --experiment prints the command for a verdict.",
        tables=(
            Table(
                title="Runs",
                first="policy",
                heads=heads,
                rows=tuple(map(_mirrored, answer.runs)),
            ),
        ),
        sections=(
            *section("Findings", findings(dict.fromkeys(run_findings))),
            *_members(answer.members),
            *section("To do it again", (inert(answer.again),), commands=True),
        ),
    )


def _mirrored(run: Mirrored) -> Row:
    total = sum(member.reads for member in run.members) or 1
    times = map(_time, (run.mean_ns, run.p50_ns, run.p99_ns, run.p999_ns))
    shares = _shares([member.reads / total for member in run.members])
    return _row(run.policy, (str(run.iodepth), f"{run.iops:,.0f}", *times, shares))


def _row(name: str, texts: Sequence[str]) -> Row:
    return Row(inert(name), tuple(map(Cell, texts)))


def _shares(parts: Sequence[float]) -> str:
    return " ".join(f"{100 * part:.0f}" for part in parts) + " %"


def _short(path: str) -> str:
    plain = inert(path)
    if len(plain) < NAME:
        return plain
    return "..." + plain[3 - NAME :]


def _time(ns: float) -> str:
    if ns != ns:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
