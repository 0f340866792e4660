"""The native core, where it is installed; everything else of iodelta works without it."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

import msgspec

from iodelta.errors import MeasureError, RequestError
from iodelta.knob.mirror import INSTALL

MODULE = "iodelta_native"


def native() -> Any:
    """The module ``iodelta_native``. Raises MeasureError that says how to get it."""
    try:
        module: ModuleType = importlib.import_module(MODULE)
    except ImportError as error:
        raise MeasureError(
            f"read policies need the native core, which is not installed ({error})",
            place="iodelta policy",
            remedy=INSTALL,
        ) from error
    return module


def installed() -> bool:
    """Whether the native core can be imported, without importing it."""
    return importlib.util.find_spec(MODULE) is not None


class Parameter(msgspec.Struct, frozen=True):
    """A number that a policy takes; what its source leaves open is one, and ``meaning`` says so."""

    name: str
    default: str
    """Value when none is given."""
    meaning: str
    """What it stands for."""


class PolicyInfo(msgspec.Struct, frozen=True):
    """One read policy as the catalogue of the native core describes it."""

    name: str
    rule: str
    """How it chooses a member."""
    source: str
    """Code or text it was taken from."""
    ties: str
    """What decides between equal members."""
    parameters: tuple[Parameter, ...]
    """Numbers it takes; empty when it takes none."""


def policies() -> tuple[PolicyInfo, ...]:
    """Every read policy. Raises MeasureError without the native core."""
    found = []
    for entry in native().policies():
        parameters = tuple(Parameter(*one) for one in entry["parameters"])
        found.append(PolicyInfo(entry["name"], entry["rule"], entry["source"], entry["ties"], parameters))
    return tuple(found)


def check_policy(text: str) -> str:
    """``text`` itself when it is a policy (``round-robin:256k``). Raises RequestError with what is allowed."""
    try:
        native().check_policy(text)
    except ValueError as error:
        raise RequestError(
            str(error), place="read policy", remedy="iodelta policy list shows all with their parameters"
        ) from error
    return text
