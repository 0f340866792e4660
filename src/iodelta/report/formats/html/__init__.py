"""The HTML report: one file that holds everything, opens offline, and loads nothing from the network."""

from __future__ import annotations

from iodelta.report.formats.html.write import report

__all__ = ["report"]
