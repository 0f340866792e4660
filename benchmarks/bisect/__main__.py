"""``python -m benchmarks.bisect --seed N``: who finds the culprit, how often, and in how many runs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bisect.peers import bayesect, git_bisect_run
from benchmarks.bisect.simulate import History, found, history, play
from iodelta.bisect.model import Rules

POSITIONS = 1000
MARGIN = 0.5

CASES: tuple[tuple[str, tuple[float, ...], dict[str, float], float], ...] = (
    ("effect / noise 1", (1.0,), {}, 0.4),
    ("effect / noise 2", (2.0,), {}, 1.0),
    ("effect / noise 3", (3.0,), {}, 1.0),
    ("2, 15 % unbuildable", (2.0,), {"broken": 0.15}, 1.0),
    ("1, drift 0.15 sd a run", (1.0,), {"walk": 0.15}, 0.3),
    ("2, drift 0.15 sd a run", (2.0,), {"walk": 0.15}, 0.6),
    ("two culprits of 2", (2.0, 2.0), {}, 0.5),
    ("2, then half as large", (2.0, 1.0), {}, 0.3),
    ("nothing to find", (), {}, 0.5),
)
"""Name, steps in noise sd, options of the history, and the share of histories that are simulated."""

PEERS: dict[str, Callable[[int, Callable[[int], float], float], tuple[int, int]]] = {
    "git bisect run": lambda n, run, middle: git_bisect_run(n, run, middle),
    "mean of 5": lambda n, run, middle: git_bisect_run(n, run, middle, 5),
    "mean of 15": lambda n, run, middle: git_bisect_run(n, run, middle, 15),
    "git_bayesect to 0.95": lambda n, run, middle: bayesect(n, run, middle, 0.95, 1000),
    "git_bayesect, 250 runs": lambda n, run, middle: bayesect(n, run, middle, 2.0, 250),
}


def main() -> int:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="everything random follows from it (default 1)")
    parser.add_argument("--reps", type=int, default=500, help="histories of a cheap case (default 500)")
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    chosen = parser.parse_args()
    rows = []
    for number, (name, sizes, options, part) in enumerate(CASES):
        begun = time.monotonic()
        count = max(4, round(chosen.reps * part))
        rows.append(ours(name, sizes, options, count, [chosen.seed, number]))
        print(rows[-1], flush=True)
        if len(sizes) == 1 and not options:
            for peer in PEERS:
                rows.append(theirs(name, peer, sizes[0], count, [chosen.seed, number, 99]))
                print(rows[-1], flush=True)
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    head = (
        "| history | method | histories | all culprits | any | false culprit | runs to the first | p90 | all runs "
        "| range |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    table = "\n".join([head, *rows])
    print(table)
    if chosen.markdown is not None:
        chosen.markdown.write_text(
            f"# Searches of simulated histories of {POSITIONS} commits\n\n"
            f"`python -m benchmarks.bisect --seed {chosen.seed} --reps {chosen.reps}`; see README.md.\n\n{table}\n"
        )
    return 0


def ours(name: str, sizes: tuple[float, ...], options: dict[str, float], count: int, seed: list[int]) -> str:
    """One row for iodelta: gate, search, test against the parent, and the look for others all counted."""
    whole, some, false, first, runs, spans = 0, 0, 0, [], [], []
    for number in range(count):
        rng = np.random.default_rng([*seed, number])
        truth = history(rng, POSITIONS, sizes, **options)
        outcome, search = play(truth, Rules(margin=MARGIN, seed=number), rng)
        hits = found(truth, outcome)
        whole += all(hits.values()) if sizes else not outcome.culprits
        some += any(hits.values())
        false += any(not any(f"c{p}" in one.suspects for p in truth.steps) for one in outcome.culprits)
        runs.append(len(search.store.runs))
        first.append(outcome.culprits[0].runs if outcome.culprits else runs[-1])
        spans += [len(one.suspects) for one in outcome.culprits]
    span = f"{np.mean(spans):.1f}" if spans else "-"
    return (
        f"| {name} | **iodelta** | {count} | {whole / count:.3f} | {some / count:.3f} | {false / count:.3f} | "
        f"{np.mean(first):.0f} | {np.quantile(first, 0.9):.0f} | {np.mean(runs):.0f} | {span} |"
    )


def theirs(name: str, peer: str, size: float, count: int, seed: list[int]) -> str:
    """One row for another rule on histories of the same kind."""
    hits, runs = 0, []
    for number in range(count):
        rng = np.random.default_rng([*seed, number])
        truth: History = history(rng, POSITIONS, (size,))
        [culprit] = truth.steps

        def run(at: int, culprit: int = culprit, rng: np.random.Generator = rng) -> float:
            return size * (at >= culprit) + float(rng.standard_normal())

        named, spent = PEERS[peer](POSITIONS, run, size / 2)
        hits += named == culprit
        runs.append(spent)
    share = hits / count
    return (
        f"| {name} | {peer} | {count} | {share:.3f} | {share:.3f} | {1 - share:.3f} | {np.mean(runs):.0f} | "
        f"{np.quantile(runs, 0.9):.0f} | {np.mean(runs):.0f} | 1 |"
    )


if __name__ == "__main__":
    sys.exit(main())
