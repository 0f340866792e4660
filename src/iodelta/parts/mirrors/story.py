"""What ``iodelta policy`` says: the catalogue, explanations, predictions, a calibration, runs of a mirror."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iodelta.parts.mirrors.answers import (
    ExplainAnswer,
    MirrorAnswer,
    PolicyListAnswer,
    SimulationAnswer,
)
from iodelta.parts.mirrors.calibrate import CLOSURE, DEPTHS, MIX, Calibration, HeldOut
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
    items = [
        Item(
            policy.name,
            (
                policy.rule,
                f"ties: {policy.ties}",
                f"source: {policy.source}",
                *(
                    f"{each.name}={each.default}: {each.meaning}"
                    for each in policy.parameters
                ),
            ),
        )
        for policy in answer.policies
    ]
    return Story(
        "", f"{len(answer.policies)} read policies.", (), section("Policies", items)
    )


def of_explanations(answer: ExplainAnswer, detail: Detail = PLAIN) -> Story:
    """Return each mechanism with what would confirm it."""
    items = [
        Item(
            f"{inert(policy.policy)}: {each.mechanism}",
            (f"{each.prediction}.", f"Look: {each.confirm}."),
        )
        for policy in answer.policies
        for each in policy.explanations
    ]
    array = answer.array
    lines = [
        f"array: {array.copies} copies of each byte{', striped' if array.raid10 else ''}"
    ]
    if array.rates:
        lines.append(
            f"rates of the members alone: {', '.join(f'{rate:,.6g}/s' for rate in array.rates)}"
        )
    lines.append(
        f"load: {plural(array.jobs, 'job')} at depth {array.iodepth}, {array.length} bytes each"
    )
    decide = "decides" if len(items) == 1 else "decide"
    return Story(
        "",
        f"{plural(len(items), 'mechanism')} {decide} what is read from where.",
        (),
        (*section("Mechanisms", items), *system_lines(lines), *_again(answer.again)),
    )


def of_simulation(answer: SimulationAnswer, detail: Detail = PLAIN) -> Story:
    """Predictions, one row for each policy and depth, and how far they can be believed."""
    rows, overloads = [], []
    for each in answer.predictions:
        asked = str(each.iodepth) if each.rate is None else f"{each.rate:,.6g}"
        spread = (
            f"{each.least:,.0f} .. {each.most:,.0f}" if len(answer.seeds) > 1 else ""
        )
        times = (_time(each.mean_ns), _time(each.p99_ns))
        if each.overloaded:
            # Latencies of an overload grow with the length of the run.
            times = ("-", "-")
            overloads.append(
                f"{each.policy} does not keep up with {each.rate:,.6g} requests a second: {each.unfinished:,} had not "
                "finished at the end. Its latencies grow with --seconds."
            )
        rows.append(
            _row(
                each.policy,
                (asked, f"{each.iops:,.0f}", spread, *times, _shares(each.shares)),
            )
        )
    load = (
        "depth" if all(each.rate is None for each in answer.predictions) else "arrive/s"
    )
    heads = (load, "IOPS", "over worlds", "mean", "p99", "reads by member")
    trust: Iterable[str] = (MODELS,)
    if answer.closure is not None:
        closure = f"Closure: the calibrated members reproduce their own curves within {100 * answer.closure:.1f} %."
        trust = (closure, *map(_held_out, answer.held_out))
    return Story(
        "",
        f"{plural(len(answer.predictions), 'prediction')} by simulation; no policy was measured.",
        (Table(title="Predictions", first="policy", heads=heads, rows=tuple(rows)),),
        (
            *section("Overloaded", overloads),
            *section("What this relies on", trust),
            *_members(answer.members),
            *_again(answer.again),
        ),
    )


def of_calibration(calibration: Calibration, detail: Detail = PLAIN) -> Story:
    """Return each member's rates by depth, what a read takes during writes, then the errors."""
    rows, beside, models = [], [], []
    for each in calibration.members:
        name = (
            plain
            if len(plain := inert(each.path)) < NAME
            else "..." + plain[3 - NAME :]
        )
        rows.append(_row(name, tuple(map("{:,.0f}".format, each.iops))))
        verdict = "is" if each.closure <= CLOSURE else "is NOT"
        models.append(
            f"{name}: its model {verdict} within {100 * CLOSURE:.0f} %: {100 * each.closure:.1f} %"
        )
        model = each.member.empirical
        if model is not None and model.read_beside is not None:
            alone = dict(zip(model.read.depths, model.read.latency, strict=True))
            pairs = zip(
                model.read_beside.depths, model.read_beside.latency, strict=True
            )
            parts = ", ".join(
                f"depth {depth} {_time(time)} ({_time(alone[depth])} alone)"
                for depth, time in pairs
            )
            beside.append(f"{name}: a read during writes, {MIX}/{100 - MIX}: {parts}")
    good = sum(member.closure <= CLOSURE for member in calibration.members)
    table = Table(
        title="Random 4k reads per second at depth",
        first="member",
        heads=tuple(map(str, DEPTHS)),
        rows=tuple(rows),
        words=False,
    )
    return Story(
        "",
        f"The models of {good} of {len(calibration.members)} members are within {100 * CLOSURE:.0f} %.",
        (table,),
        (
            *section("Reads during writes", beside),
            *section("Models", models),
            *section("What this relies on", map(_held_out, calibration.held_out)),
            *section("Findings", findings(calibration.findings)),
            *system_lines(
                f"member: {inert(member.path)}" for member in calibration.members
            ),
            *_again(detail.again),
        ),
    )


def of_mirror(answer: MirrorAnswer, detail: Detail = PLAIN) -> Story:
    """Return one row for each run of the mirror."""
    rows, seen = [], list(answer.findings)
    for run in answer.runs:
        total = sum(member.reads for member in run.members) or 1
        times = map(_time, (run.mean_ns, run.p50_ns, run.p99_ns, run.p999_ns))
        shares = _shares([member.reads / total for member in run.members])
        rows.append(
            _row(run.policy, (str(run.iodepth), f"{run.iops:,.0f}", *times, shares))
        )
        seen += run.findings
    heads = ("depth", "IOPS", "mean", "p50", "p99", "p99.9", "reads by member")
    return Story(
        "",
        "One run of each, in this order: a first look, not a verdict. --experiment prints the command for a verdict.",
        (Table(title="Runs", first="policy", heads=heads, rows=tuple(rows)),),
        (
            *section("Findings", findings(dict.fromkeys(seen))),
            *_members(answer.members),
            *_again(answer.again),
        ),
    )


def _again(line: str) -> tuple[Section, ...]:
    return section("To do it again", (inert(line),), commands=True)


def _members(members: Sequence[str]) -> tuple[Section, ...]:
    return system_lines(
        f"member {number}: {inert(member)}" for number, member in enumerate(members, 1)
    )


def _held_out(run: HeldOut) -> str:
    mixed = f", {run.read_percent} % reads" if run.read_percent < 100 else ""
    return (
        f"Hold-out: {run.policy} at depth {run.iodepth}{mixed}: measured {run.measured:,.0f}, predicted "
        f"{run.predicted:,.0f} IOPS ({100 * run.error:+.0f} %)."
    )


def _row(name: str, texts: Sequence[str]) -> Row:
    return Row(inert(name), tuple(map(Cell, texts)))


def _shares(parts: Sequence[float]) -> str:
    return " ".join(f"{100 * part:.0f}" for part in parts) + " %"


def _time(ns: float) -> str:
    if ns != ns:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
