"""Members: which share of the reads each member device of an array served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iodelta.report.formats.charts.distribution import place
from iodelta.report.formats.charts.model import Figure, Source, label, number, some
from iodelta.trial import Trial

if TYPE_CHECKING:
    import altair as alt

NAMED = 0.07
"""A narrower part than this is not wide enough for its name."""


def chart() -> alt.LayerChart:
    """A bar per variant, its parts named; shades of one ink tell the members apart."""
    import altair as alt

    from iodelta.report.formats.charts import build

    rows = build.names("variant")
    low = alt.X(
        field="low",
        type="quantitative",
        title="share of the reads, %",
        scale=alt.Scale(domain=[0, 100]),
        axis=alt.Axis(grid=False),
    )
    part = (
        alt.Chart()
        .mark_rect(style="member", height=alt.RelativeBandSize(band=0.8))
        .encode(
            x=low,
            x2=alt.X2("high"),
            y=rows,
            fillOpacity=alt.FillOpacity(field="shade", type="quantitative", scale=None),
            tooltip=build.tips("variant", "member", "said=share"),
        )
    )
    name = (
        alt.Chart()
        .mark_text(style="label")
        .encode(
            x=alt.X(field="middle", type="quantitative"),
            y=rows,
            text=alt.Text(field="text", type="nominal"),
        )
    )
    return build.layered(part, name, height=alt.Step(26))


def figures(source: Source) -> Iterator[Figure]:
    """One for each telling cell."""
    if len(source.members) < 2:
        return
    shares_by_cell: dict[str, dict[str, list[float]]] = {}
    for cell, trials in source.by_cell().items():
        for variant in source.variants:
            shares = _shares(source, trials, variant)
            if shares:
                shares_by_cell.setdefault(cell, {})[variant] = shares
    shown = source.telling(among=list(shares_by_cell))
    note = some("cells", len(shown), len(shares_by_cell))
    for cell in shown:
        yield _figure(source, cell, shares_by_cell[cell], note)


def _shares(source: Source, trials: Sequence[Trial], variant: str) -> list[float]:
    """Each member's share of the variant's reads, all trials together; empty where nothing was read or counted."""
    reads = [0.0] * len(source.members)
    for trial in trials:
        if trial.variant == variant:
            for place, name in enumerate(source.members):
                reads[place] += trial.counters.get(f"disk.{name}.read_ios", 0.0)
    total = sum(reads)
    return [count / total for count in reads] if total else []


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _figure(
    source: Source, cell: str, shares: dict[str, list[float]], note: str
) -> Figure:
    rows = []
    for variant, of_members in shares.items():
        below = 0.0
        for index, share in enumerate(of_members):
            member = source.members[index]
            text = f"{label(member, 10)} {100 * share:.0f} %"
            rows.append(
                {
                    "variant": label(variant),
                    "member": label(member),
                    "low": number(100 * below),
                    "high": number(100 * (below + share)),
                    "middle": number(100 * (below + share / 2)),
                    "shade": 0.12 + 0.36 * index / (len(source.members) - 1),
                    "text": text if share >= NAMED else "",
                    "said": _percent(share),
                }
            )
            below += share
    even = 1 / len(source.members)
    farthest, most = max(
        ((variant, max(of_members)) for variant, of_members in shares.items()),
        key=lambda entry: entry[1],
    )
    return Figure(
        name=f"members-{place(source, cell)}",
        spec="members",
        title=label(cell),
        alt=f"Farthest from even: {label(farthest)}, {100 * most:.0f} % on one member.",
        about=f"Share of the reads that each member device served; an even share would be {100 * even:.0f} % each.",
        rows=rows,
        texts={},
        head=("variant", *map(label, source.members)),
        table=[
            (label(variant), *map(_percent, of_members))
            for variant, of_members in shares.items()
        ],
        note=note,
    )
