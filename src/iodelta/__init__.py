"""iodelta: did this change make my I/O slower or faster, by how much, how sure is that, where and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iodelta.api import (
        Comparison,
        Experiment,
        IodeltaError,
        MeasureError,
        RefusedError,
        RequestError,
        agreement,
        compare,
        open,
        open_fleet,
        open_history,
        read,
        run,
    )

__version__ = "0.1.0"
__all__ = [
    "Comparison",
    "Experiment",
    "IodeltaError",
    "MeasureError",
    "RefusedError",
    "RequestError",
    "__version__",
    "agreement",
    "compare",
    "open",
    "open_fleet",
    "open_history",
    "read",
    "run",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "api"})


def __getattr__(name: str) -> object:
    """Names of ``iodelta.api``, loaded when they are used. ``audit`` is not among them: it is a package of this one."""
    import importlib

    if name != "api":  # which `from iodelta import api` asks for before it is loaded
        api = importlib.import_module(f"{__name__}.api")
        if name in __all__ or name in api.RENAMED:
            return api.found(name, 2)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
