"""Runs that are too short to say anything."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.audit.model import Evidence, Mark, rule

FEWEST = 100


@rule(
    "example.few-ios",
    "warning",
    says="a run made very few I/Os",
    needs="the number of I/Os",
    remedy="measure longer",
)
def few_ios(evidence: Evidence) -> Iterator[Mark]:
    for index, run in enumerate(evidence.runs):
        count = sum(direction.ios for direction in run.directions)
        if 0 < count < FEWEST:  # 0: the source does not say
            yield Mark((index,), f"{count} I/Os")
