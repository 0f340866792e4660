"""The figure of what order makes of a ranking, from a folder of the scenario read-policy-order.

``python -m benchmarks.policy.order FOLDER docs/pictures/read-policy-order.png``
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from iodelta.lab.account import Account
from iodelta.lab.folder import EXPERIMENT, Folder
from iodelta.lab.judged import read_plan, usable_trials
from iodelta.parts.scenarios.read_policy_order import as_made

DEPTH = 1
BLOCKS = "randomised blocks, fresh seeds"
TITLES = {
    "as posted": "as posted: one order, the same offsets",
    "placebo: random in every slot": "placebo: the same random choice in all slots",
    "as posted, in reversed order": "the same in reversed order",
    "as posted, but with fresh offsets": "the same with fresh offsets",
}


def rows(folder: Folder) -> Iterator[dict[str, Any]]:
    """One bar each: panel, place, label, IOPS measured, simulated (or None), least and most."""
    for name, slots, rates, predicted in as_made(folder.read(EXPERIMENT).decode()):
        for place, policy in enumerate(slots):
            real, model = rates[DEPTH][place], predicted[DEPTH][place]
            yield {"panel": TITLES[name], "slot": f"{place + 1} {policy}", "iops": real, "simulated": model}
    plan, journal = read_plan(folder), Account(folder.events())
    names = [variant.name for variant in plan.experiment.variants]
    trials = usable_trials(folder, journal)
    cell = next(one.name for one in plan.experiment.cells if one.option("iodepth") == str(DEPTH))
    for place, name in enumerate(names):
        found = [
            read.iops.value
            for number in journal.counted(names)
            if (trial := trials[number]).cell == cell and trial.variant == name
            if (read := trial.direction("read")) is not None
        ]
        middle = statistics.median(found)
        yield {"panel": BLOCKS, "slot": f"{place + 1} {name}", "iops": middle, "low": min(found), "high": max(found)}


def chart(data: list[dict[str, Any]]) -> Any:
    """Five panels with one scale."""
    x = alt.X("slot:N", title=None, sort=None, axis=alt.Axis(labelAngle=-40))
    y = alt.Y("iops:Q", title="4k random reads/s at depth 1")
    base = alt.Chart()
    bars = base.mark_bar(color="#4c78a8").encode(x=x, y=y)
    ticks = base.mark_tick(color="#f58518", thickness=3, width=26).encode(x=x, y="simulated:Q")
    ranges = base.mark_rule(color="#222222").encode(x=x, y="low:Q", y2="high:Q")
    return alt.layer(bars, ticks, ranges, data=alt.InlineData(values=data)).properties(width=150, height=220)


def main() -> None:
    folder, out = Folder.open(Path(sys.argv[1])), Path(sys.argv[2])
    panels = alt.Facet("panel:N", title=None, sort=[*TITLES.values(), BLOCKS])
    drawn = chart(list(rows(folder))).facet(panels, columns=5).resolve_scale(x="independent")
    subtitle = "bars: a real mirror of 600 and 200 reads/s behind a warming cache (line: least to most of the blocks)"
    title = alt.Title("Five ways to run one benchmark of five read policies", subtitle=f"{subtitle}; ticks: simulated")
    out.write_bytes(vl_convert.vegalite_to_png(drawn.properties(title=title).to_json(), scale=1.5))


if __name__ == "__main__":
    main()
