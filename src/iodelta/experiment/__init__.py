"""The experiment: its file and command-line shorthand, one schema, expanded into cells.

The file is TOML, the shorthand builds the same ``Experiment``; neither touches the machine. Options of fio keep
fio's names and spelling. Lists expand: every combination of listed values is a cell.
"""

from iodelta.experiment.file import load, parse
from iodelta.experiment.model import Cell, Condition, Design, Experiment, Option, Subject, Target, Variant
from iodelta.experiment.shorthand import overridden, shorthand, toml_text
from iodelta.experiment.values import seconds, size_bytes

__all__ = [
    "Cell",
    "Condition",
    "Design",
    "Experiment",
    "Option",
    "Subject",
    "Target",
    "Variant",
    "load",
    "overridden",
    "parse",
    "seconds",
    "shorthand",
    "size_bytes",
    "toml_text",
]
