"""The difference of two environments in words, what most likely explains a result first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from iodelta.study.confounders import Differing, said
from iodelta.study.words import inert

WIDTH = 80


def lines(
    differing_facts: Sequence[Differing],
    baseline: str,
    variant: str,
    *,
    whole: bool = False,
) -> Iterator[str]:
    """Yield every group with why it matters and its values, ``before | after``."""
    if not differing_facts:
        yield "No recorded value differs."
        return
    yield from _wrapped(
        f"Left: {inert(baseline)}. Right: {inert(variant)}. Likely explanations of a different result come first."
    )
    likely = {fact.group for fact in differing_facts if fact.likely}
    for group, why, own in said(differing_facts, whole=whole):
        yield ""
        reason = f"{why}." if why else ""
        yield from _wrapped(
            f"{group}: {reason}"
            if group in likely
            else f"{group} (less likely): {reason}",
            "",
        )
        for line in own:
            yield from _wrapped(line, "  ")


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )


def differing(facts: Sequence[Differing]) -> Iterator[str]:
    """Yield what differs, a sentence for each group."""
    for group, why, lines in said(facts):
        reason = f" ({why})" if why else ""
        yield f"{group}{reason}: {'; '.join(lines)}"
