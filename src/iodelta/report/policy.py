"""What ``iodelta policy`` says on a terminal: tables of predictions and runs, explanations, findings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from iodelta.policy.answers import Mirrored, PolicyExplanation, Predicted
from iodelta.policy.calibrate import CLOSURE, DEPTHS, MIX, Calibration, HeldOut, MemberCurve
from iodelta.policy.catalogue import PolicyInfo
from iodelta.report.formats.columns import columns
from iodelta.study.words import inert
from iodelta.trial import Finding

WIDTH = 80
WIDE = 120
"""Columns of a table of policies, whose names hold their parameters."""


def catalogue(policies: Iterable[PolicyInfo]) -> Iterator[str]:
    """Rule, tie-break, source and parameters of each."""
    for policy in policies:
        yield policy.name
        yield from (f"    {policy.rule}", f"    ties: {policy.ties}", f"    source: {policy.source}")
        for parameter in policy.parameters:
            yield f"    {parameter.name}={parameter.default}: {parameter.meaning}"


def explanations(policies: Iterable[PolicyExplanation]) -> Iterator[str]:
    """Each mechanism with what would confirm it."""
    for policy in policies:
        for one in policy.explanations:
            yield f"{inert(policy.policy)}: {one.mechanism}"
            yield _wrapped(f"{one.prediction}.")
            yield _wrapped(f"Look: {one.confirm}.")


def predictions(found: Iterable[Predicted], worlds: int) -> Iterator[str]:
    """One line for each policy and depth."""
    found = tuple(found)
    load = "arrive/s" if any(one.rate is not None for one in found) else "depth"
    rows = [("policy", load, "IOPS", "over worlds", "mean", "p99", "reads by member")]
    for one in found:
        asked = f"{one.iodepth}" if one.rate is None else f"{one.rate:,.6g}"
        spread = f"{one.least:,.0f} .. {one.most:,.0f}" if worlds > 1 else ""
        # Latencies of an overload say how long the run was, and no more.
        times = ("-", "-") if one.overloaded else (_time(one.mean_ns), _time(one.p99_ns))
        rows.append((one.policy, asked, f"{one.iops:,.0f}", spread, *times, _shares(one.shares)))
    yield from columns(rows, "<>><>><", WIDE)
    for one in found:
        if one.overloaded:
            yield _wrapped(
                f"{one.policy} does not keep up with {one.rate:,.6g} requests a second: {one.unfinished:,} had not "
                "ended in the end. Its latencies grow with --seconds.",
                indent="",
            )


def trust(closure: float | None, held_out: Iterable[HeldOut]) -> Iterator[str]:
    """How far a prediction can be believed."""
    if closure is None:
        yield "Members are models, not measured: ranking may hold, sizes are those of usual devices."
        return
    yield f"Closure: the calibrated members give their own curves back within {100 * closure:.1f} %."
    for one in held_out:
        mixed = f", {one.read_percent} % reads" if one.read_percent < 100 else ""
        yield (
            f"Hold-out: {one.policy} at depth {one.iodepth}{mixed}: measured {one.measured:,.0f}, predicted "
            f"{one.predicted:,.0f} IOPS ({100 * one.error:+.0f} %)."
        )


def calibration(found: Calibration) -> Iterator[str]:
    """Each member's rates by depth, then the errors."""
    rows = [("random 4k reads/s at depth", *map(str, DEPTHS))]
    rows += [(_short(member.path), *(f"{rate:,.0f}" for rate in member.iops)) for member in found.members]
    yield from columns(rows, "<" + ">" * len(DEPTHS), WIDE)
    for member in found.members:
        yield from _beside_writes(member)
    for member in found.members:
        verdict = "is" if member.closure <= CLOSURE else "is NOT"
        yield f"{_short(member.path)}: its model {verdict} within 10 %: {100 * member.closure:.1f} %"
    yield from list(trust(max(member.closure for member in found.members), found.held_out))[1:]
    yield from findings(found.findings)


def _beside_writes(member: MemberCurve) -> Iterator[str]:
    """Where writes were measured: a read's mean latency beside them, and alone at the same depth."""
    model = member.member.empirical
    if model is not None and model.read_beside is not None:
        alone = dict(zip(model.read.depths, model.read.latency, strict=True))
        pairs = zip(model.read_beside.depths, model.read_beside.latency, strict=True)
        parts = ", ".join(f"depth {depth} {_time(time)} ({_time(alone[depth])} alone)" for depth, time in pairs)
        yield f"{_short(member.path)}: a read beside writes, {MIX}/{100 - MIX}: {parts}"


def runs(found: Iterable[Mirrored]) -> Iterator[str]:
    """One line for each run of the mirror."""
    rows: list[Sequence[str]] = [("policy", "depth", "IOPS", "mean", "p50", "p99", "p99.9", "reads by member")]
    for one in found:
        total = sum(member.reads for member in one.members) or 1
        times = map(_time, (one.mean_ns, one.p50_ns, one.p99_ns, one.p999_ns))
        shares = _shares([member.reads / total for member in one.members])
        rows.append((one.policy, str(one.iodepth), f"{one.iops:,.0f}", *times, shares))
    yield from columns(rows, "<>>>>>><", WIDE)


def findings(found: Iterable[Finding]) -> Iterator[str]:
    """Severity, place, what and what to do."""
    for finding in dict.fromkeys(found):
        text = f"{finding.severity}: {finding.place}: {finding.explanation}"
        text += f"; {finding.remedy}" if finding.remedy else ""
        yield _wrapped(f"{inert(text)} [{finding.rule}]", indent="")


def _shares(parts: Sequence[float]) -> str:
    return " ".join(f"{100 * part:.0f}" for part in parts) + " %"


def _wrapped(text: str, indent: str = "    ") -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)


def _short(path: str) -> str:
    plain = inert(path)
    return plain if len(plain) < 27 else "..." + plain[-24:]


def _time(ns: float) -> str:
    if ns != ns:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
