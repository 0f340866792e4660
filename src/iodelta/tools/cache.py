"""Where things that can be made or fetched again are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache(*parts: str) -> Path:
    """A path below ``$IODELTA_CACHE``, else ``$XDG_CACHE_HOME/iodelta``, else ``~/.cache/iodelta``; not made here."""
    if given := os.environ.get("IODELTA_CACHE"):
        return Path(given).absolute().joinpath(*parts)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home).joinpath("iodelta", *parts)
