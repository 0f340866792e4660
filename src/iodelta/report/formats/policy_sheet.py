"""Read policies as CSV: the catalogue, explanations, predictions, runs of the mirror and calibrated members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import csv_text

if TYPE_CHECKING:
    from iodelta.policy.answers import (
        ExplainAnswer,
        MirrorAnswer,
        PolicyListAnswer,
        SimulationAnswer,
    )
    from iodelta.policy.calibrate import Calibration

POLICIES = ("policy", "rule", "ties", "source", "parameters", "schema")
"""Of the catalogue of read policies."""


def of_policies(answer: PolicyListAnswer) -> str:
    """One row per policy."""
    rows = []
    for one in answer.policies:
        parameters = " ".join(
            f"{parameter.name}={parameter.default}" for parameter in one.parameters
        )
        rows.append(
            (
                one.name,
                one.rule,
                one.ties,
                one.source,
                parameters,
                "iodelta.policy-list.csv/1",
            )
        )
    return csv_text(POLICIES, rows)


EXPLAINED = (
    "policy",
    "mechanism",
    "prediction",
    "confirm",
    "numbers",
    "repeat",
    "schema",
)
"""Of explanations of policies."""


def of_explanations(answer: ExplainAnswer) -> str:
    """One row per mechanism."""
    constant = (answer.again, "iodelta.policy-explanation.csv/1")
    rows = []
    for policy in answer.policies:
        for one in policy.explanations:
            numbers = " ".join(
                f"{name}={value!r}" for name, value in one.numbers.items()
            )
            rows.append(
                (
                    policy.policy,
                    one.mechanism,
                    one.prediction,
                    one.confirm,
                    numbers,
                    *constant,
                )
            )
    return csv_text(EXPLAINED, rows)


PREDICTED = (
    *(
        "policy",
        "iodepth",
        "rate",
        "iops",
        "least",
        "most",
        "worlds",
        "mean_ns",
        "p99_ns",
        "reads_by_member",
    ),
    *("overloaded", "unfinished", "repeat", "schema"),
)
"""Of a simulation."""


def of_simulation(answer: SimulationAnswer) -> str:
    """One row per policy and depth."""
    constant = (answer.again, "iodelta.policy-simulation.csv/1")
    rows = []
    for one in answer.predictions:
        values = (
            one.policy,
            one.iodepth,
            one.rate,
            one.iops,
            one.least,
            one.most,
            len(answer.seeds),
            one.mean_ns,
        )
        shares = " ".join(f"{share:.6g}" for share in one.shares)
        rows.append(
            (
                *values,
                one.p99_ns,
                shares,
                int(one.overloaded),
                one.unfinished,
                *constant,
            )
        )
    return csv_text(PREDICTED, rows)


MIRRORED = (
    *(
        "policy",
        "iodepth",
        "iops",
        "read_iops",
        "write_iops",
        "mean_ns",
        "p50_ns",
        "p99_ns",
        "p999_ns",
    ),
    *("reads_by_member", "rules", "repeat", "schema"),
)
"""Of runs of the mirror."""


def of_mirror(answer: MirrorAnswer) -> str:
    """One row per run."""
    constant = (answer.again, "iodelta.policy-mirror.csv/1")
    rows = []
    for one in answer.runs:
        times = (one.mean_ns, one.p50_ns, one.p99_ns, one.p999_ns)
        reads = " ".join(str(member.reads) for member in one.members)
        rules = " ".join(
            dict.fromkeys(finding.rule for finding in (*answer.findings, *one.findings))
        )
        rates = (one.iops, one.read_iops, one.write_iops)
        rows.append((one.policy, one.iodepth, *rates, *times, reads, rules, *constant))
    return csv_text(MIRRORED, rows)


CALIBRATED = ("member", "iodepth", "reads_per_s", "closure", "schema")
"""Of a calibration of members."""


def of_calibration(found: Calibration) -> str:
    """One row per member and depth."""
    from iodelta.policy.calibrate import DEPTHS

    rows = []
    for member in found.members:
        for depth, rate in zip(DEPTHS, member.iops, strict=True):
            rows.append(
                (
                    member.path,
                    depth,
                    rate,
                    member.closure,
                    "iodelta.policy-calibration.csv/1",
                )
            )
    return csv_text(CALIBRATED, rows)
