"""How many trials of a variant ran, how many of them stalled, and which share of stalls they do not exclude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iodelta.stats.stalls import episodes, excluded, trials_needed
from iodelta.verdict.units import Units


@dataclass(frozen=True)
class Counted:
    """Trials of the variant, the episodes of stalls among them, and the trials of the longest."""

    stalled: int
    trials: int
    longest: int = 0

    @property
    def chances(self) -> int:
        """Return how often an episode as long as the longest seen could have begun."""
        return self.trials // max(1, self.longest)

    @property
    def bound(self) -> float:
        """Return the share of stalls that they do not exclude: of single ones where none, or only single ones, were
        seen.
        """
        return excluded(self.stalled, self.chances)

    def enough_for(self, share: float) -> bool:
        """Return whether they exclude stalls in ``share`` of trials."""
        return self.chances >= trials_needed(share, stalled=self.stalled)


def counted(unit: Units, units: int) -> Counted:
    """Return the trials of all cells together. Where some of this cell's stalled, the cell itself may be the cause:
    then its trials alone count if they exclude less."""
    in_all, longest = unit.stalls_by(units)
    everywhere = Counted(in_all, unit.trials_by(units), longest)
    cell_stalls = unit.stalled_by(units)
    if cell_stalls is None or not cell_stalls[0]:
        return everywhere
    here = episodes(cell_stalls[0], unit.variant_at[:units].tolist())
    own = Counted(here[0], units, here[1])
    return max(own, everywhere, key=lambda count: count.bound)


def with_others(units: Sequence[Units]) -> list[Units]:
    """``units``, each with those of the same variant and quantity: reads and writes of one trial stall alike."""
    places: dict[tuple[str, str], list[Units]] = {}
    for unit in units:
        places.setdefault(_quantity(unit), []).extend(
            arm for arm in unit.singles if arm.refusal is None
        )
    return [
        replace(unit, others=tuple(places[_quantity(unit)]) or unit.others)
        for unit in units
    ]


def _quantity(unit: Units) -> tuple[str, str]:
    return unit.variant, unit.metric.name.partition(".")[2]
