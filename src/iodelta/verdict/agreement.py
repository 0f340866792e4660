"""The joint word of many hosts on one comparison: whether machines that differ have the change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.agreement import FEWEST, Agreement, agree, differ, one_lacks
from iodelta.stats.effect import Estimate
from iodelta.stats.hosts import FEWEST_BLOCKS, kept, trimmed
from iodelta.stats.special import stdtrit
from iodelta.stats.total import Arms, log_total
from iodelta.verdict.model import Basis

Floats = NDArray[np.float64]

JointWord = Literal[
    "regression everywhere",
    "improvement everywhere",
    "equivalent everywhere",
    "depends on the machine",
    "regression on average",
    "improvement on average",
    "regression on these hosts",
    "improvement on these hosts",
    "equivalent on these hosts",
    "inconclusive",
]

FOR_ALL = 14
"""Hosts that a word about all hosts like them takes: if a fifth of such hosts were otherwise, 13 would miss them all in
5 of 100 fleets (0.8^13), whatever the distribution. Fewer hosts speak for themselves."""


TINY = 1e-9
"""A standard error below this is only rounding: the blocks do not vary."""

STRENGTH: tuple[JointWord, ...] = (
    "depends on the machine",
    "regression everywhere",
    "improvement everywhere",
    "regression on average",
    "improvement on average",
    "regression on these hosts",
    "improvement on these hosts",
    "inconclusive",
    "equivalent everywhere",
    "equivalent on these hosts",
)
"""Of two words the earlier one is used: a change shown in a typical trial or in all work is a change, and "equivalent"
needs both."""

WORK: dict[Basis, str] = {"typical": "a typical trial", "total": "all work together"}


class HostChange(msgspec.Struct, frozen=True):
    """The change that one host measured in its own blocks."""

    host: str
    value: float
    """Log-ratio, positive is worse."""
    error: float
    """Its standard error."""
    spare: float
    """Degrees of freedom of the error."""


class Joint(msgspec.Struct, frozen=True):
    """The joint word of the hosts on one comparison; ``together`` is None for fewer than three hosts."""

    word: JointWord
    together: Agreement | None
    apart: tuple[str, str] | None
    """The hosts whose changes most certainly differ by more than the margin: the worse first."""


def own_change(host: str, d: Floats) -> HostChange | None:
    """Return the trimmed mean of a host's log-ratios, one per block; None where it has too few blocks or they do not
    vary.
    """
    if len(d) < FEWEST_BLOCKS:
        return None
    (value,), (error,) = trimmed(d[None, :])
    return (
        HostChange(host, float(value), float(error), kept(len(d)) - 1)
        if error > TINY
        else None
    )


def own_total(host: str, arms: Arms) -> HostChange | None:
    """Return the log-ratio of a host's totals; None where it has too few blocks or they do not vary. ``arms`` have one
    row.
    """
    blocks = arms.old.shape[1]
    if blocks < FEWEST_BLOCKS:
        return None
    (value,), (error,) = log_total(arms)
    known = math.isfinite(value) and math.isfinite(error) and error > TINY
    return HostChange(host, float(value), float(error), blocks - 1) if known else None


def joint(changes: Sequence[HostChange], margin: float, *, level: float) -> Joint:
    """Return the word of these hosts; ``margin`` is a log-ratio, ``level`` that of all intervals it rests on.

    The strongest claim that holds: of every host like these (prediction interval), of the hosts' differences, of their
    mean. Fewer than ``FOR_ALL`` hosts claim nothing of others: one model in five may be missing among them. A change
    inside the margin claims nothing, however sure its sign is.
    """
    if len(changes) < FEWEST:
        return Joint("inconclusive", None, None)
    values, errors = (
        [change.value for change in changes],
        [change.error for change in changes],
    )
    together = agree(values, errors, level)
    pair = differ(values, errors, [change.spare for change in changes], margin, level)
    apart = (changes[pair[0]].host, changes[pair[1]].host) if pair else None
    word = _word(together, margin, differs=pair is not None)
    if len(changes) < FOR_ALL:
        word = _of_these(changes, margin, level, differs=pair is not None)
    elif _denied(word, changes, margin, level):
        word = "depends on the machine"
    elif word.endswith("everywhere") and not (
        all(
            -float(stdtrit(one.spare, (1.0 - level) / 2)) * one.error
            <= max(margin, abs(one.value))
            for one in changes
        )
    ):
        word = (
            "inconclusive"
            if word.startswith("equivalent")
            else _on_average(word, values, level)
        )
    elif word.endswith("on average"):
        word = _on_average(word, values, level)
    return Joint(word, together, apart)


def _of_these(
    changes: Sequence[HostChange], margin: float, level: float, *, differs: bool
) -> JointWord:
    """Return the word of few hosts about themselves: what all of them show, or their own mean with the errors of their
    blocks alone, where none of them is sure of the other way."""
    values, errors = (
        np.array([one.value for one in changes]),
        np.array([one.error for one in changes]),
    )
    spare = np.array([one.spare for one in changes])
    half = -stdtrit(spare, (1.0 - level) / 2 / len(changes)) * errors
    if np.all(np.abs(values) + half < margin):
        return "equivalent on these hosts"
    if differs or (np.any(values - half > 0.0) and np.any(values + half < 0.0)):
        return "depends on the machine"
    error = float(np.sqrt(np.sum(errors**2))) / len(changes)
    freedom = float(np.sum(errors**2) ** 2 / np.sum(errors**4 / spare))
    mean, reach = (
        float(values.mean()),
        -float(stdtrit(freedom, (1.0 - level) / 2)) * error,
    )
    if abs(mean) <= reach or abs(mean) + reach < margin:
        return "inconclusive"
    return "regression on these hosts" if mean > 0.0 else "improvement on these hosts"


def _on_average(word: JointWord, values: Sequence[float], level: float) -> JointWord:
    """Return the word about the mean, where the hosts' signs bear it too: few hosts of one kind among many of another
    make a normal model too sure. Each host's sign is turned at random (Fisher 1935), 4,000 times with a fixed seed."""
    y = np.asarray(values)
    signs = np.random.default_rng(len(y)).choice((-1.0, 1.0), (4000, len(y)))
    as_far = np.count_nonzero(np.abs(signs @ y) >= abs(y.sum()) * (1.0 - 1e-9))
    if (1 + as_far) / 4001 > max(1.0 - level, 2.0 / 4001):
        return "inconclusive"
    return (
        "regression on average"
        if word.startswith("regression")
        else "improvement on average"
    )


def _denied(
    word: JointWord, changes: Sequence[HostChange], margin: float, level: float
) -> bool:
    """Return whether some host shows that it lacks the change that the word claims for every host.

    A prediction interval can miss such a host: that of eight hosts at +22 % and a ninth at 0 lies above 0.
    """
    signs = {"regression everywhere": 1.0, "improvement everywhere": -1.0}
    if word not in signs:
        return False
    values = [signs[word] * change.value for change in changes]
    errors = [change.error for change in changes]
    spare = [change.spare for change in changes]
    return one_lacks(values, errors, spare, margin, level)


class Agreed(msgspec.Struct, frozen=True):
    """The one word for a typical trial and all work, which of the two it is about, and what the other shows."""

    word: JointWord
    basis: Basis
    says: str = ""


def agreed(
    typical: JointWord, total: JointWord | None, *, stalls_excluded: bool
) -> Agreed:
    """Return one word from the word of each estimand (None: no total is known), by the rules of a verdict.

    Opposite directions are a contradiction, and claim nothing. "Equivalent" also needs trials enough on every host to
    exclude rare stalls, which neither estimand shows.
    """
    word = Agreed(typical, "typical") if total is None else _of_both(typical, total)
    if word.word.startswith("equivalent") and not stalls_excluded:
        says = "inside the margin, but the trials of a host do not exclude rare stalls yet: it needs more blocks"
        return Agreed("inconclusive", word.basis, says)
    if word.word.startswith("improvement") and not stalls_excluded:
        says = "the trials of a host do not exclude rare stalls"
        return Agreed(word.word, word.basis, "; ".join(filter(None, (word.says, says))))
    return word


def _of_both(typical: JointWord, total: JointWord) -> Agreed:
    if typical == total:
        return Agreed(typical, "typical")
    if {typical.partition(" ")[0], total.partition(" ")[0]} == {
        "regression",
        "improvement",
    }:
        says = f"{WORK['typical']} says {typical}, {WORK['total']} says {total}"
        return Agreed("inconclusive", "typical", says)
    if STRENGTH.index(typical) < STRENGTH.index(total):
        return Agreed(typical, "typical", f"{WORK['total']}: {total}")
    return Agreed(total, "total", f"{WORK['typical']}: {typical}")


def _word(together: Agreement, margin: float, *, differs: bool) -> JointWord:
    if _inside(together.next, margin):
        return "equivalent everywhere"
    if together.next.low > 0:
        return "regression everywhere"
    if together.next.high < 0:
        return "improvement everywhere"
    if differs:
        return "depends on the machine"
    if together.mean.low > 0 and not _inside(together.mean, margin):
        return "regression on average"
    if together.mean.high < 0 and not _inside(together.mean, margin):
        return "improvement on average"
    return "inconclusive"


def _inside(estimate: Estimate, margin: float) -> bool:
    return max(-estimate.low, estimate.high) < margin


def worth_half(together: Agreement, margin: float) -> float:
    """Return the half width at which the mean's interval would settle a word: by excluding 0, or inside the margin."""
    size = abs(together.mean.value)
    return max(size, margin - size, math.log1p(1e-6))
