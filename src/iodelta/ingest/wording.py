"""Make foreign words safe to show: without control characters and terminal escapes, and not too long."""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 500
"""Most characters of a name or cell that are kept."""

_UNFIT = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


def clean(text: str) -> str:
    """``text`` with each unfit character replaced by U+FFFD, cut to ``LONGEST``."""
    if text.isascii() and text.isprintable() and len(text) <= LONGEST:
        return text
    short = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return _UNFIT.sub("\ufffd", short)


def clean_all(words: Mapping[str, str]) -> dict[str, str]:
    """``clean`` of every key and value."""
    return {clean(key): clean(value) for key, value in words.items()}
