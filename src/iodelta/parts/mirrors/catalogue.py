"""The read policies of the native core, and the check of a policy's name."""

from __future__ import annotations

import msgspec

from iodelta.errors import RequestError
from iodelta.probe.native import native

POLICIES = ("pid", "round-robin", "latency", "latency-rr", "queue")
"""The policies of the benchmark of May 2025, in its order: the default."""


class Parameter(msgspec.Struct, frozen=True):
    """A numeric parameter of a policy. Where a policy's source leaves something open, ``meaning`` says so."""

    name: str
    default: str
    """Value when none is given."""
    meaning: str
    """Its meaning."""


class PolicyInfo(msgspec.Struct, frozen=True):
    """One read policy as the catalogue of the native core describes it."""

    name: str
    rule: str
    """How it chooses a member."""
    source: str
    """The code or text that it implements."""
    ties: str
    """What decides between equal members."""
    parameters: tuple[Parameter, ...]
    """Its parameters; empty without any."""


def policies() -> tuple[PolicyInfo, ...]:
    """Return every read policy. Raises MeasureError without the native core."""
    infos = []
    for entry in native().policies():
        parameters = tuple(Parameter(*parameter) for parameter in entry["parameters"])
        infos.append(
            PolicyInfo(
                entry["name"], entry["rule"], entry["source"], entry["ties"], parameters
            )
        )
    return tuple(infos)


def check_policy(text: str) -> str:
    """``text`` itself if it is a policy (``round-robin:256k``). Raises RequestError with the allowed names."""
    try:
        native().check_policy(text)
    except ValueError as error:
        raise RequestError(
            str(error),
            place="read policy",
            remedy="iodelta policy list shows all with their parameters",
        ) from error
    return text
