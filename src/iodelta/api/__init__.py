"""What a Python program calls: the functions of the command line, with frames and structs in place of text.

>>> from iodelta import api
>>> x = api.open("iodelta-20260102-030405")     # doctest: +SKIP
>>> x.answer, x.verdicts, x.trials()            # doctest: +SKIP

The names in ``__all__`` are stable: one that goes is deprecated for a minor version before. Errors are those of
``iodelta.errors``; a message says what happened, where, and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodelta.errors import IodeltaError, MeasureError, RefusedError, RequestError

if TYPE_CHECKING:
    from iodelta.api.calls import (
        agreement,
        audit,
        compare,
        open,
        open_fleet,
        open_history,
        read,
        run,
    )
    from iodelta.api.fleets import Agreement, Fleet, FleetRun
    from iodelta.api.histories import History
    from iodelta.api.results import Audit, Comparison, Experiment
    from iodelta.api.series import Series

__all__ = [
    "Agreement",
    "Audit",
    "Comparison",
    "Experiment",
    "Fleet",
    "FleetRun",
    "History",
    "IodeltaError",
    "MeasureError",
    "RefusedError",
    "RequestError",
    "Series",
    "agreement",
    "audit",
    "compare",
    "open",
    "open_fleet",
    "open_history",
    "read",
    "run",
]

_PLACES = {
    "Agreement": "fleets",
    "Audit": "results",
    "Comparison": "results",
    "Experiment": "results",
    "Fleet": "fleets",
    "FleetRun": "fleets",
    "History": "histories",
    "Series": "series",
    "agreement": "calls",
    "audit": "calls",
    "compare": "calls",
    "open": "calls",
    "open_fleet": "calls",
    "open_history": "calls",
    "read": "calls",
    "run": "calls",
}
"""Name -> the module of this package that has it."""

RENAMED: dict[str, str] = {}
"""A name of the minor version before -> what it is called now. It works, with a DeprecationWarning, until the next."""


def found(name: str, level: int) -> object:
    """Return what a name stands for; a deprecation is shown ``level`` callers up. Raises AttributeError, as Python
    wants it.
    """
    import importlib
    import warnings

    if name in RENAMED:
        now = RENAMED[name]
        text = f"{__name__}.{name} is now {now}; the old name goes with the next minor version"
        warnings.warn(text, DeprecationWarning, stacklevel=level + 1)
        return found(now, level)
    if name in __all__ and name in globals():
        return globals()[name]
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """The names are loaded when they are used, so that importing this costs nothing."""
    return found(name, 2)
