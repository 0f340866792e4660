"""The native core, where it is installed; everything else of iodelta works without it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

from iodelta.errors import MeasureError

MODULE = "iodelta_native"

INSTALL = "scripts/native install in the source tree, after `make demo`; once published, pip install 'iodelta[native]'"
"""How to get it."""


def native() -> Any:
    """Return the module ``iodelta_native``. Raises MeasureError that says how to get it."""
    try:
        module: ModuleType = importlib.import_module(MODULE)
    except ImportError as error:
        raise MeasureError(
            f"read policies need the native core, which is not installed ({error})",
            place="iodelta policy",
            remedy=INSTALL,
        ) from error
    return module


@lru_cache
def native_function(name: str) -> Callable[..., Any] | None:
    """Return the native core's function ``name``, for tasks that Python can do, too; None where the core is missing or
    older.
    """
    try:
        if not installed():
            return None
        return getattr(native(), name, None)
    except MeasureError:
        return None


def installed() -> bool:
    """Return whether the native core can be imported, without importing it."""
    return importlib.util.find_spec(MODULE) is not None
