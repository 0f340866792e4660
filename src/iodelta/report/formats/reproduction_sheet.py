"""A reproduction as CSV: a row per change that both sides have; and the same of many hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import records_text

if TYPE_CHECKING:
    from iodelta.study.fleet import FleetRow
    from iodelta.study.fleet_reproduction import FleetReproduced, ReproducedHost
    from iodelta.study.reproduction import Effect, Matched, Reproduced
    from iodelta.verdict import Change
    from iodelta.verdict.reproduction import Estimand

REPRODUCED = tuple(
    """
    cell variant metric baseline word basis there there_low there_high there_basis
    here here_low here_high here_basis ratio ratio_low ratio_high same_size_up_to says
    margin repeat schema
    """.split()
)
"""Changes are fractions; a ratio is here over there, and the same size up to that factor."""

_NOTHING: dict[str, object] = dict.fromkeys(REPRODUCED, "")


def of_reproduction(reproduced: Reproduced) -> str:
    """Return one row per change that both sides have; then those of one side only."""
    of_all = {
        "margin": reproduced.margin,
        "repeat": "; ".join(reproduced.again),
        "schema": "iodelta.reproduction.csv/1",
    }
    rows = _reproduced(reproduced, reproduced.there.baseline)
    return records_text(REPRODUCED, (row | of_all for row in rows))


def _reproduced(
    reproduced: Reproduced | ReproducedHost, baseline: str
) -> Iterator[dict[str, object]]:
    for match in reproduced.matched:
        yield _NOTHING | {"baseline": baseline} | _matched(match)
    sides = (("there", reproduced.only_there), ("here", reproduced.only_here))
    for side, changes in sides:
        for name in changes:
            yield _NOTHING | {"cell": name, "word": f"measured {side} only"}


def _matched(match: Matched) -> dict[str, object]:
    there, here, compared = match.there, match.here, match.found
    ratio = compared.difference
    return {
        "cell": there.cell,
        "variant": there.variant,
        "metric": there.metric,
        "word": match.word,
        "basis": compared.basis,
        **_bounds("there", there, compared.basis),
        "there_basis": there.basis,
        **_bounds("here", here, compared.basis),
        "here_basis": here.basis,
        "ratio": math.exp(ratio.value),
        "ratio_low": math.exp(ratio.low),
        "ratio_high": math.exp(ratio.high),
        "same_size_up_to": math.exp(compared.tolerance),
        "says": compared.says,
    }


def of_fleet_reproduction(reproduced: FleetReproduced) -> str:
    """Return the rows of every host; a host without any has one that says why. Then what the hosts say together."""
    of_all = {
        "margin": reproduced.margin,
        "repeat": "; ".join(reproduced.again),
        "schema": "iodelta.fleet-reproduction.csv/1",
    }
    rows: list[dict[str, object]] = []
    for host in reproduced.hosts:
        of_host = {"host": host.host, "host_word": host.word}
        changes = list(_reproduced(host, reproduced.there.baseline))
        without = [_NOTHING | {"says": host.why}]
        rows += [change | of_host for change in changes or without]
    rows += map(_together, reproduced.fleet.rows)
    columns = ("host", "host_word", *REPRODUCED)
    return records_text(columns, (row | of_all for row in rows))


def _together(row: FleetRow) -> dict[str, object]:
    """Return what the hosts say together of one comparison: the mean over hosts stands below ``here``."""
    mean = _limits("here", row.together.mean) if row.together else {}
    return {
        **_NOTHING,
        "host": "",
        "host_word": "",
        "cell": row.cell,
        "variant": row.variant,
        "metric": row.metric.name,
        "baseline": row.baseline,
        "word": row.word or "",
        "basis": row.basis,
        **mean,
        "here_basis": "hosts",
        "says": row.says,
    }


def _bounds(side: str, effect: Effect, basis: Estimand) -> dict[str, object]:
    if basis == "total" and effect.total is not None:
        return _limits(side, effect.total)
    return _limits(side, effect)


def _limits(side: str, change: Effect | Change) -> dict[str, object]:
    return {
        side: change.value,
        f"{side}_low": change.low,
        f"{side}_high": change.high,
    }
