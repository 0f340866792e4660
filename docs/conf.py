"""Sphinx builds the site from the Markdown files beside this one; the reference is written from the code first."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

generate.main(HERE / "reference")

project = "iodelta"
extensions = ["myst_parser"]
exclude_patterns = ["_site"]
html_theme = "furo"
html_title = "iodelta"
html_extra_path = ["reference/schemas"]
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]


def list_decisions(app: Sphinx, page: str, source: list[str]) -> None:
    """Put every topic below the page that lists them; the page itself stays plain Markdown."""
    if page == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[a-z]*\n```\n"


def setup(app: Sphinx) -> None:
    """What Sphinx calls first."""
    app.connect("source-read", list_decisions)
