"""The options of a run, declared once: of the command line, of ``iodelta.api.run``, and keys of an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, get_type_hints


class Spec(NamedTuple):
    """What an option means: its table and key in an experiment file, the form of its value, and its help."""

    table: Literal["top", "target", "design"]
    form: Literal[
        "TIME", "SIZE", "SHARE", "NAME", "NAMES", "NUMBER", "TEXT", "PATH", "FLAG"
    ]
    help: str
    key: str = ""
    """The key, unless it is called like the option."""
    flag: str | bool = ""
    """What a flag stands for."""


class DesignOptions(TypedDict, total=False):
    """What is measured, for how long, and when it counts as a change. What is left out has its default."""

    target: Annotated[
        str,
        Spec(
            "target",
            "PATH",
            "Block device, file or directory to measure (default: a scratch file here).",
            "path",
        ),
    ]
    size: Annotated[
        str,
        Spec(
            "target",
            "SIZE",
            "How much of the target to use, in fio's units: 512m, 100g.",
        ),
    ]
    baseline: Annotated[
        str, Spec("top", "NAME", "The variant to compare with (default: the first).")
    ]
    margin: Annotated[
        str | float,
        Spec("top", "SHARE", "The smallest change that matters to you (default: 1%)."),
    ]
    budget: Annotated[
        str,
        Spec(
            "design",
            "TIME",
            "Total time, such as 30m (default: 10m). For a folder whose budget ended: extra, once.",
        ),
    ]
    placebo: Annotated[
        bool,
        Spec(
            "design",
            "FLAG",
            "Add a copy of the baseline, which must come out equal.",
            flag=True,
        ),
    ]
    trial: Annotated[
        str, Spec("design", "TIME", "Duration of one trial (default: 2s).")
    ]
    ramp: Annotated[
        str,
        Spec(
            "design", "TIME", "Warm-up before each trial, not counted (default: 500ms)."
        ),
    ]
    blocks: Annotated[
        int,
        Spec("design", "NUMBER", "Maximum number of blocks per cell (default: 80)."),
    ]
    seed: Annotated[
        int,
        Spec(
            "design",
            "NUMBER",
            "Seed of the order and the offsets (default: random; always recorded).",
        ),
    ]
    settle: Annotated[
        str, Spec("design", "TIME", "Pause after settings are changed (default: none).")
    ]
    metrics: Annotated[
        list[str],
        Spec(
            "design",
            "NAMES",
            "What to judge, such as read.iops,read.lat.p99 (default: by workload).",
        ),
    ]
    level: Annotated[
        str, Spec("design", "SHARE", "Confidence of the verdicts (default: 95%).")
    ]
    stalls: Annotated[
        str,
        Spec(
            "design",
            "SHARE",
            'How rare a stall may be that "equivalent" rules out (default: 10%).',
        ),
    ]
    superblocks: Annotated[
        bool,
        Spec(
            "design",
            "FLAG",
            "Let each variant run once uncounted first, where one run slows the next.",
            "carry-over",
            flag="superblocks",
        ),
    ]
    question: Annotated[
        str, Spec("top", "TEXT", "Your question in a sentence, for the report.")
    ]


QUICK: DesignOptions = {
    "trial": "1s",
    "ramp": "200ms",
    "budget": "45s",
    "margin": "5%",
    "stalls": "20%",
}
"""What ``--quick`` stands for: a first answer within a minute."""


def specs() -> dict[str, Spec]:
    """Return every option by name."""
    hints = get_type_hints(DesignOptions, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def tables(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the given options by the tables of an experiment file."""
    found: dict[str, dict[str, Any]] = {"top": {}, "target": {}, "design": {}}
    for name, spec in specs().items():
        value = given.get(name)
        if spec.form == "FLAG":
            value = spec.flag if value else None
        elif spec.form == "NAMES" and isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        if value not in (None, "", []):
            found[spec.table][spec.key or name] = value
    return found
