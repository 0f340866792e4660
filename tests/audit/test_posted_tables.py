"""Tables that people posted: the read policy gist row by row, and the numbers of four other reports."""

from __future__ import annotations

from collections import Counter

import pytest
from posted import Row, gist

from iodelta.audit import Audit, audit
from iodelta.ingest import Run
from iodelta.trial import Place

RULES = {
    "R1": "little.mismatch",
    "R4": "percentile.unit",
    "R5": "bandwidth.mismatch",
    "R5s": "bandwidth.suffix",
    "R6": "number.missing",
}
"""Rules that the document lists row by row, and their names here."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return gist()


@pytest.fixture(scope="module")
def audited(rows: list[Row]) -> Audit:
    return audit(row.run for row in rows)


def _hits(audited: Audit, rule: str) -> list[int]:
    return [hit.runs[0] for hit in audited.hits if hit.finding.rule == rule]


def test_118_of_195_rows_fail_simple_arithmetic(rows: list[Row], audited: Audit) -> None:
    assert len(rows) == 195
    assert len(audited.failed()) == 118
    by_table = Counter(rows[index].table for index in audited.failed())
    assert by_table == {"T1": 11, "T2": 15, "T3": 5, "T5": 40, "T6": 47}


@pytest.mark.parametrize("code", sorted(RULES))
def test_each_rule_marks_exactly_the_rows_that_break_it(rows: list[Row], audited: Audit, code: str) -> None:
    expected = [index for index, row in enumerate(rows) if code in row.breaks]
    assert _hits(audited, RULES[code]) == expected


def test_submission_latency_passed_for_total_latency_breaks_markov_too(rows: list[Row], audited: Audit) -> None:
    slat = {index for index, row in enumerate(rows) if "R1" in row.breaks and row.table != "T1"}
    markov, above = set(_hits(audited, "mean.below-tail")), set(_hits(audited, "mean.above-percentile"))
    assert (len(slat), len(markov), len(above)) == (102, 67, 13)
    assert markov | above <= slat
    assert not markov & above


def test_a_mean_of_completion_latency_is_a_little_short(rows: list[Row], audited: Audit) -> None:
    short = _hits(audited, "little.gap")
    assert Counter(rows[index].table for index in short) == {"T5": 11, "T4": 3}
    assert {index for index in short if rows[index].table == "T4"} == {
        index for index, row in enumerate(rows) if "soft" in row.breaks
    }


def test_rows_that_rise_in_the_order_they_were_run_are_suspect(rows: list[Row], audited: Audit) -> None:
    first = _hits(audited, "order.trend")
    assert Counter(rows[index].table for index in first) == {"T1": 4, "T4": 1}


def test_rows_faster_under_load_than_without_are_noise(rows: list[Row], audited: Audit) -> None:
    hits = [hit for hit in audited.hits if hit.finding.rule == "load.faster"]
    assert [rows[hit.runs[0]].run.labels["Policy"] for hit in hits] == ["latency-rr", "pid"]
    assert "+6%" in hits[0].finding.explanation
    assert "+15%" in hits[1].finding.explanation


def test_cells_measured_on_two_days_show_the_floor_below_which_nothing_is_a_finding(audited: Audit) -> None:
    said = [hit.finding.explanation for hit in audited.hits if hit.finding.rule == "replicates.scatter"]
    assert len(said) == 2
    assert "-45%" in said[1]


def test_no_cell_of_the_gist_is_a_copy_of_another(audited: Audit) -> None:
    assert not _hits(audited, "cells.identical")


def test_device_counts_that_recur_to_the_last_digit_are_copied_cells() -> None:
    counts = {"pid": "313895", "rotation:4096": "313895", "latency": "672387"}
    rows = [
        Run(place=Place("mail", line), format="table", labels={"policy": policy, "devid 1": count, "devid 2": "0"})
        for line, (policy, count) in enumerate(counts.items(), 1)
    ]
    (hit,) = audit(rows).hits
    assert (hit.finding.rule, hit.runs) == ("cells.identical", (0, 1))


def test_repairs_are_those_that_are_exact(rows: list[Row], audited: Audit) -> None:
    repairs = {
        (rows[repair.run].table, rows[repair.run].run.place.line, repair.column): repair for repair in audited.repairs()
    }
    assert repairs["T2", 321, "Avg Lat (ms)"].mended == "13.8"
    assert repairs["T5", 388, "99% Lat (ms)"].mended == "99"
    assert repairs["T3", 341, "BW (KiB/s)"].mended == "2756608"
    assert repairs["T1", 261, "BW (KiB/s)"].mended == "261120"
    stalled = [key for key in repairs if key[:2] == ("T1", 277) and key[2] == "Avg Lat (ms)"]
    assert not stalled, "a run that stood still half of the time has no mean that could be computed"
