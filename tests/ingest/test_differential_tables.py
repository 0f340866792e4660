"""Every table that is read gives the numbers it was made of; what is not read is said."""

from __future__ import annotations

from collections import Counter

import generated_tables as made
from hypothesis import given, settings
from tiers import scaled

from iodelta.ingest import Imported, read_bytes

SPACED = ("wide spaces", "aligned right", "pandas", "R", "single spaces")


def numbers(found: Imported, *, by_direction: bool) -> Counter[tuple[str, made.Measure, float]]:
    """Variant, measure and value of every number that was read."""
    counted: Counter[tuple[str, made.Measure, float]] = Counter()
    for run in found.runs:
        names = [text.lstrip("0123456789 ") for text in run.labels.values()]  # pandas' index may stay before a name
        variants = [text for text in names if text in made.VARIANTS or text.startswith("column ")]
        for d in run.directions:
            of = f"/{d.kind.title()}" if d.kind.title() in made.KINDS and by_direction else ""
            lat = d.lat or d.clat
            quantities = {"iops": d.iops, "bw": d.bandwidth}
            if lat is not None:
                quantities |= {"mean": lat.mean} | {f"p{percent:g}": q for percent, q in lat.percentiles.items()}
            for name, quantity in quantities.items():
                if quantity.value == quantity.value:
                    counted[(variants[0] if variants else "") + of, name, float(f"{quantity.value:.9g}")] += 1  # type: ignore[index]
            assert lat is None or set(lat.percentiles) <= {99.0, 99.9}
    return counted


@settings(max_examples=scaled(1500))
@given(table=made.drawn())
def test_a_table_is_read_as_it_was_made_or_refused(table: made.Drawn) -> None:
    found = read_bytes(table.text.encode(), "x")
    expected = Counter((variant, kind, float(f"{value:.9g}")) for (variant, kind), value in table.numbers.items())
    read = numbers(found, by_direction=table.extra in ("sections", "two levels"))
    wrong = read - expected
    assert not wrong, f"{table.text}\nread {dict(wrong)}"
    lost = expected - read
    said = [f"refused: {refusal.place.line}" for refusal in found.refusals]
    said += [finding.rule for run in found.runs for finding in run.findings]
    assert not lost or said, f"{table.text}\nlost {dict(lost)} and said nothing"
    is_aligned = table.layout == "tab" and table.extra == "two levels"  # several tabs may be one gap
    if table.layout not in SPACED and table.extra not in ("blank line", "doubled") and not is_aligned:
        assert not lost, f"{table.text}\nlost {dict(lost)}, {said}"
