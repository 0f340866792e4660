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
    from iodelta.api.calls import audit, compare, open, open_history, read, run
    from iodelta.api.histories import History, Series
    from iodelta.api.results import Audit, Comparison, Experiment

__all__ = [
    "Audit",
    "Comparison",
    "Experiment",
    "History",
    "IodeltaError",
    "MeasureError",
    "RefusedError",
    "RequestError",
    "Series",
    "audit",
    "compare",
    "open",
    "open_history",
    "read",
    "run",
]

_CALLS = ("audit", "compare", "open", "open_history", "read", "run")
_RESULTS = ("Audit", "Comparison", "Experiment")


def __getattr__(name: str) -> object:
    """The names are loaded when they are used, so that importing this costs nothing."""
    import importlib

    if name in _CALLS:
        return getattr(importlib.import_module("iodelta.api.calls"), name)
    if name in _RESULTS:
        return getattr(importlib.import_module("iodelta.api.results"), name)
    if name in ("History", "Series"):
        return getattr(importlib.import_module("iodelta.api.histories"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
