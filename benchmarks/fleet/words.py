"""``python -m benchmarks.fleet.words [FLEETS] > benchmarks/fleet/words.md``: joint words on fleets that are not normal.

On average over all hosts like these nothing changes, so every word about all of them, or about their mean, is false.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from iodelta.verdict.agreement import joint, own_change

Floats = NDArray[np.float64]

MARGIN, BLOCKS, NOISE = 0.01, 16, 0.01
HOSTS = (3, 5, 8, 13, 14, 20, 40)


def truths(kind: str, hosts: int, rng: np.random.Generator) -> Floats:
    """The true changes of some hosts, log-ratios."""
    if kind == "normal, tau 2 %":
        return 0.02 * rng.standard_normal(hosts)
    if kind == "one model in five":
        return rng.choice([-0.03, 0.12], hosts, p=[0.8, 0.2])
    if kind == "two halves":
        return rng.choice([-0.03, 0.03], hosts)
    if kind == "racks of four":
        racks = 0.03 * rng.standard_normal(-(-hosts // 4))
        return np.repeat(racks, 4)[:hosts]
    return 0.01 * rng.standard_t(2, hosts)


KINDS = ("normal, tau 2 %", "one model in five", "two halves", "racks of four", "heavy tails (t, 2)")


def main() -> None:
    """Print the table."""
    fleets = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(
        f"# Joint words of fleets that are not normal\n\n{fleets} fleets a line, margin 1 %, 16 blocks of 1 % noise.\n"
    )
    print("| hosts | true changes | false: everywhere | false: on average | depends | on these hosts | inconclusive |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for kind in KINDS:
        for hosts in HOSTS:
            rng = np.random.default_rng([hosts, KINDS.index(kind)])
            words: Counter[str] = Counter()
            for _ in range(fleets):
                noise = NOISE * rng.standard_normal((hosts, BLOCKS))
                own = [own_change(f"h{n}", truth + noise[n]) for n, truth in enumerate(truths(kind, hosts, rng))]
                word = joint([one for one in own if one is not None], MARGIN, level=0.95).word
                words[next(end for end in ENDS if word.endswith(end))] += 1
            cells = " | ".join(f"{100 * words[end] / fleets:.1f} %" for end in ENDS)
            print(f"| {hosts} | {kind} | {cells} |", flush=True)


ENDS = ("everywhere", "on average", "depends on the machine", "on these hosts", "inconclusive")

if __name__ == "__main__":
    main()
