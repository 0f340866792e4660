"""A page of the documentation with the pages that belong to it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def whole(stem: str) -> str:
    """The text of ``docs/STEM.md`` and of the pages that its last line names, in that order."""
    first = (DOCS / f"{stem}.md").read_text()
    others = re.findall(rf"\(({stem}-[\w-]+\.md)\)", first.splitlines()[-1])
    return "\n".join([first, *((DOCS / name).read_text() for name in others)])
