"""An error's message has two lines, what happened and what to do; quoted in another text, it is one."""

from __future__ import annotations

from iodelta.errors import MeasureError


def test_an_error_in_one_line_says_where_what_and_what_to_do() -> None:
    assert MeasureError("is gone", place="trial 1", remedy="bring it back\n  soon").sentence == (
        "trial 1: is gone; bring it back soon"
    )
    assert MeasureError("is gone").sentence == "is gone"
