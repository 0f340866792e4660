"""The table, in 80 columns for a terminal and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.verdicts.race import Heat, Result

WIDTHS = (16, -6, -7, -7, -6, -6, -6, -9, -7, -7)
"""Column widths, negative for numbers, which stand to the right: 77 in all."""

HEAD = ("rule", "order", "runs", "alarm", "1 %", "2 %", "3.5 %", "typical", "95 %", "even")
LIMIT = 1 / 3


def text(heats: Sequence[Heat], *, title: str) -> str:
    """All heats and the comparison, no line over 80 columns."""
    parts = [title, *(_heat(heat) for heat in heats), _summary(heats)]
    return "\n\n".join(parts) + "\n"


def markdown(heats: Sequence[Heat], *, title: str, notes: str) -> str:
    """The same as Markdown."""
    columns = "| " + " | ".join(HEAD) + " |"
    lines = [f"# {title}", "", notes, ""]
    for heat in heats:
        lines += [f"## {heat.noise}", "", _caption(heat), "", columns, "|---|---|" + "--:|" * 8]
        lines += ["| " + " | ".join(_cells(result)) + " |" for result in heat.results]
        lines.append("")
    head = "| noise | iodelta | best peer, 95 % | ratio | holds | best peer, even | ratio |"
    lines += ["## Against the best peer", "", head, "|---|--:|---|--:|---|---|--:|"]
    lines += ["| " + " | ".join(_comparison(heat)) + " |" for heat in heats]
    return "\n".join(lines) + "\n"


def _heat(heat: Heat) -> str:
    rows = [_line(cells, WIDTHS) for cells in (HEAD, *(_cells(result) for result in heat.results))]
    return "\n".join([f"{heat.noise.upper()}  {_caption(heat)}", *rows])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(
        cell.rjust(-width) if width < 0 else cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
    )


def _caption(heat: Heat) -> str:
    blocks = f", median {heat.blocks:.0f} blocks" if math.isfinite(heat.blocks) else ""
    return f"(no change: iodelta says equivalent in {_share(heat.equivalent)}{blocks})"


def _summary(heats: Sequence[Heat]) -> str:
    head = ("AGAINST THE BEST", "iodelta", "best peer, 95 %", "ratio", "holds", "best peer, even", "ratio")
    widths = (16, -8, -18, -7, -7, -18, -6)
    return "\n".join(_line(cells, widths) for cells in (head, *(_comparison(heat) for heat in heats)))


def _cells(result: Result) -> tuple[str, ...]:
    shares = (_share(result.alarms), *(_share(found) for found in result.found))
    name = result.rule if result.peer or result.rule == "iodelta" else f"({result.rule})"
    return (name, result.order, result.runs, *shares, _runs(result.typical), _runs(result.sure), _runs(result.even))


def _comparison(heat: Heat) -> tuple[str, ...]:
    """Noise, iodelta's typical runs, and the best peer's, certain of its answer and at even odds, with ratios.

    What must hold is said of the former: a third of the peer's runs at most, and no more than these on white noise.
    """
    certain, even = heat.best("sure"), heat.best("even")
    ratio = heat.own.typical / certain.sure if math.isfinite(certain.sure) else 0.0
    return (
        heat.noise,
        _runs(heat.own.typical),
        _named(certain.rule, certain.sure),
        f"{ratio:.2f}",
        "yes" if ratio <= (1.0 if heat.noise == "white" else LIMIT) else "NO",
        _named(even.rule, even.even),
        f"{heat.own.even / even.even:.2f}" if math.isfinite(even.even) else "0.00",
    )


def _named(rule: str, runs: float) -> str:
    return f"{rule} {runs:.0f}" if math.isfinite(runs) else "none"


def _share(share: float) -> str:
    return f"{100 * share:.1f}%" if 0 < share < 0.0995 else f"{100 * share:.0f}%"


def _runs(runs: float) -> str:
    return f"{runs:.0f}" if math.isfinite(runs) else "never"
