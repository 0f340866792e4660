"""An error's message has two lines, what happened and what to do: it is printed, and no part of another text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import iodelta
from iodelta.errors import IodeltaError, MeasureError

SOURCE = Path(iodelta.__file__).parent
PRINTED = {
    "cli/main.py": "the end of every command",
    "cli/kernel.py": "a line on standard error",
    "policy/stand_in.py": "the end of a program",
}


def kinds(error: type[IodeltaError]) -> set[str]:
    found = {error.__name__}
    for one in error.__subclasses__():
        found |= kinds(one)
    return found


def _names(node: ast.expr | None) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} if node else set()


def spelled_out(tree: ast.AST, errors: set[str]) -> Iterator[int]:
    """Lines in which a caught error of ours becomes a text."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        if not _names(handler.type) & errors:
            continue
        for node in ast.walk(handler):
            value = node.value if isinstance(node, ast.FormattedValue) else None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
                value = node.args[0]
            if isinstance(value, ast.Name) and value.id == handler.name:
                yield value.lineno


def test_no_error_becomes_a_part_of_a_text_with_its_second_line() -> None:
    """A headline said ``trial 1: trial 1: ...\\x0a  bring the file back``."""
    errors, found = kinds(IodeltaError), []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if name not in PRINTED:
            found += [f"{name}:{line}" for line in spelled_out(ast.parse(path.read_text()), errors)]
    assert found == []


def test_the_check_sees_what_it_is_for() -> None:
    text = (
        "try: pass\nexcept MeasureError as error:\n    a = str(error)\n    b = f'x {error}'\n    c = error.sentence\n"
    )
    assert list(spelled_out(ast.parse(text), kinds(IodeltaError))) == [3, 4]


def test_an_error_in_one_line_says_where_what_and_what_to_do() -> None:
    assert MeasureError("is gone", place="trial 1", remedy="bring it back\n  soon").sentence == (
        "trial 1: is gone; bring it back soon"
    )
    assert MeasureError("is gone").sentence == "is gone"
