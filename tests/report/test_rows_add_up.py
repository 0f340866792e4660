"""What is printed adds up: in no row of any format do baseline, variant and change contradict each other."""

from __future__ import annotations

import csv
import io
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_console import account, experiment, text

from iodelta.report.formats import sheet
from iodelta.report.formats.mail import mail
from iodelta.report.formats.markdown import markdown
from iodelta.report.stories import experiment as telling
from iodelta.report.stories.experiment import RATIOS
from iodelta.study.experiment import Account

SCALES = {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30}
UNIT = " (?:[num]?s|[KMG]iB/s)"
NUMBER = r"(-?\d[\d,.]*(?:e[+-]?\d+)?)"
CHANGE = r"([+-][\d.]+|0(?:\.0+)?) %"
"""Nothing has no sign."""
PLACES = 5e-4
"""Half of the last of four digits, as a share, in the worst case."""

accounts = st.builds(
    lambda change, sd, blocks, names: account(
        experiment(variants=names),
        {("iodepth=1", names[-1]): change, ("iodepth=32", names[-1]): -change / 7},
        sd=sd,
        blocks=blocks,
    ),
    st.sampled_from([-0.4, -0.02, -0.003, 0.0, 0.004, 0.3]),
    st.sampled_from([0.001, 0.02, 0.3]),
    st.sampled_from([2, 9, 14, 20]),
    st.sampled_from([("old", "new"), ("old", "new", "newer")]),
)


def value(shown: str) -> float | None:
    found = re.fullmatch(rf"{NUMBER}(?: (\S+))?", shown.strip())
    return float(found[1].replace(",", "")) * SCALES[found[2] or ""] if found else None


def contradiction(baseline: str, variant: str, change: str) -> float:
    """By how much more than rounding the change differs from the ratio of the values; 0 where it does not."""
    old, new, share = value(baseline), value(variant), re.fullmatch(CHANGE, change.strip())
    if old is None or new is None or share is None:
        return 0.0
    half = 0.5 * 10.0 ** -len(share[1].partition(".")[2]) / 100
    allowed = half + 2.1 * PLACES * new / old
    return max(0.0, abs(new / old - 1 - float(share[1]) / 100) - allowed)


def test_the_check_itself_finds_a_row_that_does_not_add_up() -> None:
    assert contradiction("100 us", "101 us", "+1.0 %") == 0
    assert contradiction("10,000", "10,100", "-1.0 %") > 0.01
    assert contradiction("900 us", "1.2 ms", "+33 %") == 0
    assert contradiction("900 us", "1.2 ms", "+30 %") > 0


@settings(max_examples=15, deadline=None)
@given(accounts)
def test_rows_of_every_format_add_up(shown: Account) -> None:
    console = re.findall(rf"^.*? +({NUMBER}(?:{UNIT})?) +({NUMBER}(?:{UNIT})?) +({CHANGE})", text(shown), re.MULTILINE)
    assert console
    rows = [(old, new, change) for old, _, new, _, change, _ in console]
    story = telling.of_account(shown)
    for table in story.tables:
        heads = table.heads
        if "change" in heads and heads[0] == "n":
            rows += [tuple(cell.text for cell in row.cells[1:4]) for row in table.rows]  # type: ignore[misc]
    assert [row for row in rows if contradiction(*row)] == []
    for line in csv.DictReader(io.StringIO(sheet.of_account(shown))):
        if line["change"] and line["baseline_median"]:
            ratio = float(line["variant_median"]) / float(line["baseline_median"]) - 1
            assert ratio == pytest.approx(float(line["change"]), abs=1e-9)
    for verdict in shown.judgement.verdicts:
        if verdict.change is not None and verdict.baseline_value is not None and verdict.variant_value is not None:
            assert verdict.variant_value == pytest.approx(verdict.baseline_value * (1 + verdict.change.value))


def test_medians_whose_ratio_has_the_other_sign_are_explained_in_every_laid_out_format() -> None:
    shown = account(experiment(variants=("old", "new", "newer")), {}, sd=0.02)
    first = shown.judgement.verdicts[0]
    assert first.change is not None
    assert first.baseline_value is not None
    against = first.baseline_value * (1 - 0.02 * (1 if first.change.value > 0 else -1))
    odd = msgspec.structs.replace(first, variant_measured=against)
    judgement = msgspec.structs.replace(shown.judgement, verdicts=(odd, *shown.judgement.verdicts[1:]))
    story = telling.of_account(msgspec.structs.replace(shown, judgement=judgement))
    for laid_out in (mail(story), markdown(story)):
        assert RATIOS in " ".join(laid_out.split())
