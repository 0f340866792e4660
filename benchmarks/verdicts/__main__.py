"""``python -m benchmarks.verdicts --seed N``: which decision rule answers, how often wrongly, and in how many runs."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.verdicts import hostile
from benchmarks.verdicts.noise import RECORDED, models, recorded_series
from benchmarks.verdicts.race import GRID, Heat, race
from benchmarks.verdicts.table import markdown, text

NOTES = """\
Every noise is run past every rule. As published, with `runs` runs of both arms together: `alarm` is the share of A/A
experiments called a change, either way; `1 %`, `2 %`, `3.5 %` the share of true slow-downs found.

Then every threshold is moved until the rule alarms exactly as often as iodelta does on the same noise, and the runs are
chosen knowing what is looked for: `95 %` and `even` are the runs at which 95 % and half of the experiments have the
right answer to a 2 % slow-down. `typical` is what an experiment costs: for iodelta the median of the runs after which
it stopped, for a fixed number of runs that number, at 95 % right answers. `never`: not in {most} runs.

In brackets: a reference that no fio tool uses. README.md says what each rule simplifies."""


RESULTS = Path("hostile.jsonl")


def hostile_options(options: argparse._ArgumentGroup) -> None:
    """What can be said of a run under hostile noise."""
    options.add_argument("--minutes", type=float, default=20.0, help="begin nothing after these (default 20)")
    options.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    options.add_argument("--only", action="append", default=[], help="scenarios whose name has this; may be repeated")
    options.add_argument("--group", action="append", default=[], help="scenarios of this group; may be repeated")
    options.add_argument(
        "--results", type=Path, default=RESULTS, help=f"file that results are added to (default {RESULTS})"
    )
    options.add_argument(
        "--continue", dest="go_on", action="store_true", help="keep the results that are there and add what is missing"
    )


def main() -> int:
    """Run the race and print its table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="everything random follows from it (default 1)")
    parser.add_argument(
        "--reps", type=int, default=400, help="experiments per cell (default 400; peers and A/A five times as many)"
    )
    parser.add_argument("--cv", type=float, default=2.0, help="run-to-run noise in percent (default 2)")
    parser.add_argument("--noise", action="append", help="only this noise; may be repeated")
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="folder of recorded A/A series")
    parser.add_argument("--markdown", type=Path, help="also write the table here as Markdown")
    parser.add_argument(
        "--hostile", action="store_true", help="error rates under noise that is meant to break a verdict"
    )
    hostile_options(parser.add_argument_group("with --hostile"))
    chosen = parser.parse_args()
    if chosen.hostile:
        order = hostile.Order(chosen.seed, chosen.reps, chosen.minutes, chosen.workers, chosen.results)
        return hostile.main(order, names=chosen.only, groups=chosen.group, go_on=chosen.go_on, table=chosen.markdown)
    try:
        found = models(chosen.recorded)
    except ValueError as error:
        parser.error(str(error))
    names = chosen.noise or list(found)
    unknown = [name for name in names if name not in found]
    if unknown:
        parser.error(f"no noise called {unknown[0]!r}; there are: {', '.join(found)}")
    heats: list[Heat] = []
    started = time.monotonic()
    for name in names:
        heats.append(race(name, found[name], seed=chosen.seed, reps=chosen.reps, cv=chosen.cv / 100))
        print(f"{name}: done after {time.monotonic() - started:.0f} s", file=sys.stderr)
    title = f"Verdicts: iodelta and its peers, CV {chosen.cv:g} %, seed {chosen.seed}, {chosen.reps} experiments"
    print(text(heats, title=title), end="")
    if not recorded_series(chosen.recorded):
        print(f"\nno recorded A/A series in {chosen.recorded}: the seventh noise was left out", file=sys.stderr)
    if chosen.markdown is not None:
        chosen.markdown.write_text(markdown(heats, title=title, notes=NOTES.format(most=2 * GRID[-1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
