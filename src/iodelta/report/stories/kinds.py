"""The story of any result."""

from __future__ import annotations

from typing import TypeAlias

from iodelta.part import kind_of, load
from iodelta.report.stories.story import PLAIN, Detail, Story

Result: TypeAlias = object
"""A struct that a part names in one of its ``kinds``."""


def story_of(result: Result, detail: Detail = PLAIN) -> Story:
    """Return the story of any result."""
    story: Story = load(kind_of(result).story)(result, detail)
    return story
