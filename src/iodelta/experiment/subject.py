"""``[subject]``, the build that is measured, and the role of a variant."""

from __future__ import annotations

import re
from typing import Any, Literal

from iodelta.decoding import converted
from iodelta.experiment.model import Subject
from iodelta.experiment.source import Refuse, check_keys


def parse_subject(table: Any, refuse: Refuse) -> Subject:
    """Return the table of an experiment file as a Subject. Refuses with the key."""
    if not isinstance(table, dict):
        refuse('subject is a table: [subject] commit = "4f2a1c9"', "subject")
    check_keys(refuse, table, ("subject",), Subject.__struct_fields__)
    for key, value in table.items():
        if key not in ("dirty", "labels") and not _line(value):
            refuse(f"{key} is one line of text", "subject", key)
    if not isinstance(table.get("dirty", False), bool):
        refuse("dirty is true or false", "subject", "dirty")
    if not re.fullmatch(r"(?:[0-9a-f]{7,64})?", table.get("commit", "")):
        refuse(
            "commit is the hash of a commit, 7 to 64 of 0-9 and a-f",
            "subject",
            "commit",
        )
    labels = table.get("labels", {})
    if not isinstance(labels, dict) or not all(map(_line, labels.values())):
        refuse(
            'labels are a table of texts, as in labels = { branch = "next" }',
            "subject",
            "labels",
        )
    return converted(table, Subject)


def parse_role(name: str, value: Any, refuse: Refuse) -> Literal["", "reference"]:
    """Return the role of variant ``name``."""
    if value == "":
        return ""
    if value != "reference":
        refuse(
            f"{value!r} is not a role",
            "variant",
            name,
            "role",
            remedy='the only role is "reference"',
        )
    return "reference"


def _line(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value and "\0" not in value
