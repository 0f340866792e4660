"""The source holds nothing that only tests call: every function and name of a module is used by the source itself."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
NOT_CALLED_HERE = {
    "iodelta.cli.main": "the console script of pyproject.toml",
    "iodelta.api.testing": "for authors of plugins",
    "iodelta.parts.mirrors.gist": "worlds of a published benchmark, for benchmarks/policy",
}
CHARTS = "iodelta.report.formats.charts.", {"chart", "figures"}
"""Modules of charts are loaded by their names, and then one of these is called."""

SINGLE = "iodelta.verdict.judge", "judge"
"""One series without its family: benchmarks of a single comparison and tests ask for it."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The names that a module defines at its top, but for those that a decorator hands on."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.decorator_list:
            yield node.name, node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node


def names_of(tree: ast.AST) -> Counter[str]:
    """How often each name is read or set."""
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def imported_by(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of what a file imports, or reads from a module that it imports."""
    modules: dict[str, str] = {}
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.ImportFrom, ast.Attribute))]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.module, alias.name
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id], node.attr


def loaded_by_name(text: str, tree: ast.Module) -> Iterator[str]:
    """Strings of a file that looks names up in modules: charts and stories are loaded so."""
    if "getattr(" in text or "import_module(" in text or "iodelta.part import" in text:
        strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        yield from (value.rpartition(":")[2] for value in strings if isinstance(value, str))


def unused() -> list[tuple[str, str]]:
    sources = {
        path: path.read_text() for path in (*SOURCE.rglob("*.py"), *ROOT.glob("docs/*.py"), ROOT / "scripts/man")
    }
    trees = {path: ast.parse(text) for path, text in sources.items()}
    imports = {pair for tree in trees.values() for pair in imported_by(tree)}
    by_name = {text for path, tree in trees.items() for text in loaded_by_name(sources[path], tree)}
    missing = []
    for path, tree in trees.items():
        if not path.is_relative_to(SOURCE):
            continue
        module, names = module_of(path), names_of(tree)
        for name, definition in definitions(tree):
            called = (module, name) in imports or names[name] > names_of(definition)[name]
            is_chart = module.startswith(CHARTS[0]) and name in CHARTS[1]
            if not called and name not in by_name and not is_chart:
                missing.append((module, name))
    return missing


def test_nothing_in_the_source_is_for_tests_alone() -> None:
    left = [(module, name) for module, name in unused() if not name.startswith("__")]
    assert [pair for pair in left if pair[0] not in NOT_CALLED_HERE and pair != SINGLE] == []


def test_a_name_that_nothing_uses_is_found() -> None:
    tree = ast.parse("def used(): pass\n\ndef alone(): alone()\n\nLEFT = 1\nused()\n")
    names = names_of(tree)
    found = [name for name, definition in definitions(tree) if names[name] == names_of(definition)[name]]
    assert found == ["alone", "LEFT"]
