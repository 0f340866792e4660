"""An experiment as the text of an experiment file."""

from __future__ import annotations

from typing import Any

import msgspec

from iodelta.experiment.model import (
    PLACEBO,
    Cell,
    Condition,
    Experiment,
    Option,
)
from iodelta.experiment.shorthand import toml_text


def rendered(experiment: Experiment) -> str:
    """Return the text of an experiment file for it, with a workload for each cell of the first condition."""
    named = [condition for condition in experiment.conditions if condition.name]
    design = msgspec.to_builtins(experiment.design)
    target = msgspec.to_builtins(experiment.target)
    first = experiment.conditions[0].name
    cells = [cell for cell in experiment.cells if cell.condition == first]
    # The variants, without the placebo that a design adds by itself.
    tables: dict[str, dict[str, str]] = {}
    for variant in experiment.variants:
        if variant.name != PLACEBO or not experiment.design.placebo:
            tables[variant.name] = {
                **variant.knobs,
                **_options(variant.options, experiment.option_prefix),
            }
    if experiment.prepare is None:
        preparation = {}
    else:
        table = msgspec.to_builtins(experiment.prepare)
        if experiment.prepare.workload:
            table["workload"] = _options(experiment.prepare.workload)
        else:
            del table["workload"]
        preparation = {"prepare": table}
    return toml_text(
        {
            "question": experiment.question,
            "baseline": experiment.baseline,
            "margin": experiment.margin,
            "target": {key: value for key, value in target.items() if value},
            "workload": {
                f"cell-{number}": _workload(cell)
                for number, cell in enumerate(cells, 1)
            },
            **_measures(experiment),
            "variant": tables,
            "condition": {each.name: _condition(each) for each in named},
            "design": {
                key: value for key, value in design.items() if value not in (None, "")
            },
            **preparation,
        }
    )


def _workload(cell: Cell) -> dict[str, Any]:
    if cell.command is None:
        return _options(cell.options)
    command = cell.command
    table: dict[str, Any] = {"command": list(command.words)}
    if command.setup:
        table["setup"] = [list(words) for words in command.setup]
    if command.reset:
        table["reset"] = [list(words) for words in command.reset]
    table["timeout"] = command.timeout
    table["only_reads"] = command.only_reads
    return table | _options(cell.options)


def _measures(experiment: Experiment) -> dict[str, Any]:
    tables = {}
    for measure in experiment.measures:
        table = msgspec.to_builtins(measure)
        name = table.pop("name")
        tables[name] = {key: value for key, value in table.items() if value}
    if not tables:
        return {}
    return {"metric": tables}


def _options(options: tuple[Option, ...], prefix: str = "") -> dict[str, str]:
    """Options with a prefix; one without a value is a flag that is on."""
    table: dict[str, str] = {}
    for name, value in options:
        table[prefix + name] = "1" if value is None else value
    return table


def _condition(condition: Condition) -> dict[str, Any]:
    table: dict[str, Any] = {}
    background = list(condition.background) or _options(condition.background_fio)
    if background:
        table["background"] = background
    return table | condition.knobs
