"""Names of a package that are imported on first use, so that whoever needs one module does not wait for all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def found_in(package: str, *modules: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose ``__all__`` names what its ``modules`` hold, searched in this order."""

    def found(name: str) -> Any:
        # Python asks for a module of the package here first, before it imports it.
        for module in modules if name in sys.modules[package].__all__ else ():
            loaded = importlib.import_module(f"{package}.{module}")
            if hasattr(loaded, name):
                return getattr(loaded, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return found
