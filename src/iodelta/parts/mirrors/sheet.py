"""Read policies as CSV: the catalogue, explanations, predictions, runs of the mirror and calibrated members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import csv_text

if TYPE_CHECKING:
    from iodelta.parts.mirrors.answers import (
        ExplainAnswer,
        MirrorAnswer,
        PolicyListAnswer,
        SimulationAnswer,
    )
    from iodelta.parts.mirrors.calibrate import Calibration

POLICIES = ("policy", "rule", "ties", "source", "parameters", "schema")
"""Of the catalogue of read policies."""


def of_policies(answer: PolicyListAnswer) -> str:
    """Return one row per policy."""
    rows = []
    for policy in answer.policies:
        parameters = " ".join(
            f"{parameter.name}={parameter.default}" for parameter in policy.parameters
        )
        rows.append(
            (
                policy.name,
                policy.rule,
                policy.ties,
                policy.source,
                parameters,
                "iodelta.policy-list.csv/1",
            )
        )
    return csv_text(POLICIES, rows)


EXPLAINED = tuple(
    """
    policy mechanism prediction confirm numbers repeat schema
    """.split()
)
"""Of explanations of policies."""


def of_explanations(answer: ExplainAnswer) -> str:
    """Return one row per mechanism."""
    constant = (answer.again, "iodelta.policy-explanation.csv/1")
    rows = []
    for policy in answer.policies:
        for explanation in policy.explanations:
            numbers = " ".join(
                f"{name}={value!r}" for name, value in explanation.numbers.items()
            )
            rows.append(
                (
                    policy.policy,
                    explanation.mechanism,
                    explanation.prediction,
                    explanation.confirm,
                    numbers,
                    *constant,
                )
            )
    return csv_text(EXPLAINED, rows)


PREDICTED = tuple(
    """
    policy iodepth rate iops least most worlds mean_ns p99_ns reads_by_member
    overloaded unfinished repeat schema
    """.split()
)
"""Of a simulation."""


def of_simulation(answer: SimulationAnswer) -> str:
    """Return one row per policy and depth."""
    constant = (answer.again, "iodelta.policy-simulation.csv/1")
    rows = []
    for prediction in answer.predictions:
        values = (
            prediction.policy,
            prediction.iodepth,
            prediction.rate,
            prediction.iops,
            prediction.least,
            prediction.most,
            len(answer.seeds),
            prediction.mean_ns,
        )
        shares = " ".join(f"{share:.6g}" for share in prediction.shares)
        rows.append(
            (
                *values,
                prediction.p99_ns,
                shares,
                int(prediction.overloaded),
                prediction.unfinished,
                *constant,
            )
        )
    return csv_text(PREDICTED, rows)


MIRRORED = tuple(
    """
    policy iodepth iops read_iops write_iops mean_ns p50_ns p99_ns p999_ns
    reads_by_member rules repeat schema
    """.split()
)
"""Of runs of the mirror."""


def of_mirror(answer: MirrorAnswer) -> str:
    """Return one row per run."""
    constant = (answer.again, "iodelta.policy-mirror.csv/1")
    rows = []
    for run in answer.runs:
        times = (run.mean_ns, run.p50_ns, run.p99_ns, run.p999_ns)
        reads = " ".join(str(member.reads) for member in run.members)
        rules = " ".join(
            dict.fromkeys(finding.rule for finding in (*answer.findings, *run.findings))
        )
        rates = (run.iops, run.read_iops, run.write_iops)
        rows.append((run.policy, run.iodepth, *rates, *times, reads, rules, *constant))
    return csv_text(MIRRORED, rows)


CALIBRATED = ("member", "iodepth", "reads_per_s", "closure", "schema")
"""Of a calibration of members."""


def of_calibration(calibration: Calibration) -> str:
    """Return one row per member and depth."""
    from iodelta.parts.mirrors.calibrate import DEPTHS

    rows = []
    for member in calibration.members:
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
