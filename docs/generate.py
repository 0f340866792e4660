"""Write the reference pages from the code: commands, knobs, audit rules, JSON documents."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from iodelta import api
from iodelta.audit import rules
from iodelta.cli.main import cli
from iodelta.knob.registry import FAMILIES
from iodelta.part import commands as every_command
from iodelta.part import documents as every_document
from iodelta.report.documents import schema


def main(place: Path) -> None:
    """All pages, below ``place``."""
    (place / "schemas").mkdir(parents=True, exist_ok=True)
    for name, text in {
        "commands.md": commands(),
        "knobs.md": knobs(),
        "audit-rules.md": audit_rules(),
        "json.md": documents(),
        "python.md": python(),
    }.items():
        (place / name).write_text(text, encoding="utf-8")
    for name in every_document():
        (place / "schemas" / file_of(name)).write_text(json.dumps(schema(name), indent=1) + "\n", encoding="utf-8")


def commands() -> str:
    """Every command with its options, as ``--help`` says them."""
    parts = ["# Commands\n", "Made from the code. `iodelta COMMAND --help` says the same.\n"]
    for name, known in every_command().items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        parts.append(f"## iodelta {name}\n\n{known.help}\n")
        names = cli.context_settings["help_option_names"]
        context = click.Context(command, info_name=f"iodelta {name}", terminal_width=100, help_option_names=names)
        parts.append(f"```text\n{command.get_help(context)}\n```\n")
        for within in command.commands.values() if isinstance(command, click.Group) else ():
            inner = click.Context(within, info_name=within.name, parent=context, terminal_width=100)
            parts.append(f"```text\n{within.get_help(inner)}\n```\n")
    return "\n".join(parts)


def python() -> str:
    """The stable names of ``iodelta.api``, with their signatures."""
    parts = ["# Python\n", "The stable names of `iodelta.api`. [How to use them](../from-python.md).\n"]
    for name in api.__all__:
        made = getattr(api, name)
        parts.append(f"## {name}\n")
        if not inspect.isclass(made):
            parts.append(f"```python\n{name}{inspect.signature(made)}\n```\n")
        parts.append(f"{prose(inspect.getdoc(made) or '')}\n")
        if inspect.isclass(made) and not issubclass(made, Exception):
            for member in (one for one in dir(made) if not one.startswith("_")):
                said = prose(inspect.getdoc(getattr(made, member)) or "")
                parts.append(f"- `{member}`: {said}" if said else f"- `{member}`")
            parts.append("")
    return "\n".join(parts)


def knobs() -> str:
    """Every family of knobs: names and what its source says of it."""
    parts = [
        "# Knobs\n",
        "What a variant can set. `iodelta knobs --target DEVICE` says which of them can be set on this machine, to "
        "what, and why the rest cannot. In this order they are applied and put back.\n",
    ]
    for family in FAMILIES:
        parts.append(f"## {', '.join(f'`{name}`' for name in family.names)}\n")
        parts.append(f"{prose(inspect.getdoc(family) or '')}\n")
        head = inspect.getdoc(sys.modules[family.__module__]) or ""
        parts.append(f"{prose(head)}\n")
    return "\n".join(parts)


def audit_rules() -> str:
    """Every rule of ``iodelta audit``."""
    parts = ["# Audit rules\n", "`iodelta audit --rules` prints the same.\n"]
    parts += ["| rule | severity | says | needs | what to do |", "|---|---|---|---|---|"]
    for rule in sorted(rules(), key=lambda rule: rule.id):
        cells = (f"`{rule.id}`", rule.severity, rule.says, rule.needs, rule.remedy)
        parts.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*parts, ""])


def documents() -> str:
    """Every JSON document, field by field."""
    parts = [
        "# JSON documents\n",
        "Every command has `--format json`. A document names its `schema`; within a version fields are only added. "
        "Text is ASCII with escapes; what is not known, or infinite, is null. Shares are fractions (-0.02 is 2 % "
        "less), times nanoseconds, sizes bytes, rates per second unless a field says otherwise.\n",
    ]
    told: set[str] = set()
    for name, document in every_document().items():
        made = schema(name)
        file = file_of(name)
        parts.append(f"## {name}\n\nPrinted by `{document.printed_by}`. JSON Schema: [{file}](schemas/{file})\n")
        heads = {part: _head(str(own.get("description", ""))) for part, own in made["$defs"].items()}
        for part, described in made["$defs"].items():
            if part not in told:  # many documents hold findings and metrics: they are described where they come first
                parts += list(_fields(part, described, heads))
            told.add(part)
    return "\n".join(parts)


def _fields(name: str, described: dict[str, object], heads: dict[str, str]) -> Iterator[str]:
    properties = described.get("properties")
    if not isinstance(properties, dict):
        return
    yield f"### {name}\n"
    if text := described.get("description"):
        yield f"{prose(str(text))}\n"
    yield from ("| field | type | |", "|---|---|---|")
    for field, own in properties.items():
        kind = _type(own)
        said = str(own.get("description", "")) or heads.get(kind.removeprefix("list of ").removesuffix(" or null"), "")
        yield f"| `{field}` | {kind} | {prose(said).replace('|', chr(92) + '|')} |"
    yield ""


def _head(text: str) -> str:
    """The first sentence: what a field of that type is, where nothing else is said of it."""
    return re.split(r"(?<=[.:])\s", prose(text), maxsplit=1)[0].rstrip(":")


def _type(own: dict[str, object]) -> str:
    if "$ref" in own:
        return str(own["$ref"]).rpartition("/")[2]
    if "enum" in own:
        return " or ".join(f"`{value}`" for value in own["enum"])  # type: ignore[attr-defined]
    if "anyOf" in own:
        return " or ".join(_type(one) for one in own["anyOf"])  # type: ignore[attr-defined]
    kind = own.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array":
        items = own.get("items") or own.get("prefixItems")
        if isinstance(items, dict):
            return f"list of {_type(items)}"
        return f"list of ({', '.join(_type(one) for one in items)})" if isinstance(items, list) else "list"
    return str(kind)


def file_of(name: str) -> str:
    """``iodelta.verdict/1`` -> ``iodelta.verdict-1.json``."""
    return f"{name.replace('/', '-')}.json"


def prose(text: str) -> str:
    """A docstring as Markdown: reST's double backticks become single ones."""
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "reference")
