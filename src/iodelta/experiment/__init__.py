"""The experiment: its file and command-line shorthand, one schema, expanded into cells.

The file is TOML, the shorthand builds the same ``Experiment``; neither touches the machine. Options of fio keep
fio's names and spelling. Lists expand: every combination of listed values is a cell.
"""

from typing import TYPE_CHECKING

from iodelta.lazily import found_in

if TYPE_CHECKING:
    from iodelta.experiment.disk import parse_disk
    from iodelta.experiment.file import load, parse
    from iodelta.experiment.model import (
        Cell,
        Condition,
        Design,
        Experiment,
        Option,
        Prepare,
        Subject,
        Target,
        Variant,
    )
    from iodelta.experiment.prepare import DiskQuestion
    from iodelta.experiment.shorthand import disk_text, overridden, toml_text
    from iodelta.experiment.values import seconds, size_bytes

__all__ = [
    "Cell",
    "Condition",
    "Design",
    "DiskQuestion",
    "Experiment",
    "Option",
    "Prepare",
    "Subject",
    "Target",
    "Variant",
    "disk_text",
    "load",
    "overridden",
    "parse",
    "parse_disk",
    "seconds",
    "size_bytes",
    "toml_text",
]

if not TYPE_CHECKING:  # else mypy would take every name for one of this module's
    __getattr__ = found_in(
        __name__, "model", "values", "shorthand", "prepare", "file", "disk"
    )
