"""What a variant can set: read, apply, read back, restore."""

from iodelta.knob.base import Knob, KnobInfo, Saved
from iodelta.knob.registry import (
    Restored,
    catalogue,
    check,
    knob,
    order,
    restore,
    restore_all,
    turn,
)

__all__ = [
    "Knob",
    "KnobInfo",
    "Restored",
    "Saved",
    "catalogue",
    "check",
    "knob",
    "order",
    "restore",
    "restore_all",
    "turn",
]
