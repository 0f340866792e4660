"""Every kind of result has every format."""

from __future__ import annotations

import importlib

from iodelta.report.documents import PLACES
from iodelta.report.formats.sheet import SHEETS
from iodelta.report.stories.kinds import STORIES


def test_every_kind_that_is_told_has_rows_and_a_schema() -> None:
    assert set(STORIES) == set(SHEETS)
    documents = {struct for _, struct, _ in PLACES.values()}
    assert set(STORIES) - {"Account"} <= documents  # an experiment's document adds its headline


def test_every_kind_names_a_function_that_exists() -> None:
    for module, function in STORIES.values():
        assert callable(getattr(importlib.import_module(f"iodelta.report.stories.{module}"), function))
