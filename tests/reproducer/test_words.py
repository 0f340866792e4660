"""Words of shell lines: data never becomes a command."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproducing import SHELL

import iodelta
from iodelta.errors import RequestError
from iodelta.knob.shell import Pattern, Shell, line_text

SOURCES = sorted(Path(iodelta.__file__).parent.rglob("*.py"))


def test_what_the_shell_interprets_is_a_literal_in_the_source() -> None:
    """An f-string, a name or a sum could carry data."""
    found = 0
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Shell":
                found += 1
                (text,) = node.args
                assert isinstance(text, ast.Constant), f"{path}:{node.lineno}"
    assert found > 10


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=4))
def test_data_arrives_as_the_words_it_was(texts: list[str]) -> None:
    line = line_text((Shell("printf '%s\\0'"), *texts)) if texts else ":"
    done = subprocess.run([SHELL, "-c", line], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{text}\0" for text in texts)


def test_only_a_star_of_a_pattern_is_expanded(tmp_path: Path) -> None:
    for name in ("a b$1", "a b$2", "other"):
        (tmp_path / name).touch()
    done = subprocess.run(
        [SHELL, "-c", line_text(("printf", "%s|", Pattern(f"{tmp_path}/a b$*")))], capture_output=True, text=True
    )
    assert done.stdout == f"{tmp_path}/a b$1|{tmp_path}/a b$2|"


def test_a_nul_is_in_no_line() -> None:
    with pytest.raises(RequestError, match="NUL"):
        line_text(("printf", "a\0b"))
