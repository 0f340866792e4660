"""Read policies as CSV: the catalogue, explanations, predictions, runs of the mirror and calibrated members."""

from __future__ import annotations

from collections.abc import Iterable
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


def _listed(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


def of_policies(answer: PolicyListAnswer) -> str:
    """Return one row per policy."""
    return csv_text(
        ("policy", "rule", "ties", "source", "parameters", "schema"),
        [
            (
                *(each.name, each.rule, each.ties, each.source),
                _listed(
                    f"{parameter.name}={parameter.default}"
                    for parameter in each.parameters
                ),
                "iodelta.policy-list.csv/1",
            )
            for each in answer.policies
        ],
    )


def of_explanations(answer: ExplainAnswer) -> str:
    """Return one row per mechanism."""
    return csv_text(
        ("policy", "mechanism", "prediction", "confirm", "numbers", "repeat", "schema"),
        [
            (
                *(policy.policy, each.mechanism, each.prediction, each.confirm),
                _listed(f"{name}={value!r}" for name, value in each.numbers.items()),
                *(answer.again, "iodelta.policy-explanation.csv/1"),
            )
            for policy in answer.policies
            for each in policy.explanations
        ],
    )


def of_simulation(answer: SimulationAnswer) -> str:
    """Return one row per policy and depth."""
    columns = "policy iodepth rate iops least most worlds mean_ns p99_ns reads_by_member overloaded unfinished repeat schema"
    return csv_text(
        columns.split(),
        [
            (
                *(
                    each.policy,
                    each.iodepth,
                    each.rate,
                    each.iops,
                    each.least,
                    each.most,
                    len(answer.seeds),
                ),
                *(
                    each.mean_ns,
                    each.p99_ns,
                    _listed(f"{share:.6g}" for share in each.shares),
                ),
                *(
                    int(each.overloaded),
                    each.unfinished,
                    answer.again,
                    "iodelta.policy-simulation.csv/1",
                ),
            )
            for each in answer.predictions
        ],
    )


def of_mirror(answer: MirrorAnswer) -> str:
    """Return one row per run."""
    columns = "policy iodepth iops read_iops write_iops mean_ns p50_ns p99_ns p999_ns reads_by_member rules repeat schema"
    return csv_text(
        columns.split(),
        [
            (
                *(
                    each.policy,
                    each.iodepth,
                    each.iops,
                    each.read_iops,
                    each.write_iops,
                ),
                *(each.mean_ns, each.p50_ns, each.p99_ns, each.p999_ns),
                _listed(member.reads for member in each.members),
                _listed(
                    dict.fromkeys(
                        finding.rule for finding in (*answer.findings, *each.findings)
                    )
                ),
                *(answer.again, "iodelta.policy-mirror.csv/1"),
            )
            for each in answer.runs
        ],
    )


def of_calibration(calibration: Calibration) -> str:
    """Return one row per member and depth."""
    from iodelta.parts.mirrors.calibrate import DEPTHS

    return csv_text(
        ("member", "iodepth", "reads_per_s", "closure", "schema"),
        [
            (each.path, depth, rate, each.closure, "iodelta.policy-calibration.csv/1")
            for each in calibration.members
            for depth, rate in zip(DEPTHS, each.iops, strict=True)
        ],
    )
