"""The figures of ``scripts/density`` on a file that can be counted by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "density"

PLAIN = '''"""Its docstring is not code."""


def one(x):  # the way in, the if, the and, the loop: complexity 4
    """Nor is this."""
    if x and x > 1:
        return 0
    for y in x:
        print(y)


def two(x):  # the way in and the comprehension: complexity 2
    return [y for y in x]
'''
NESTED = "def three(x):\n    return [[z for z in y] for y in x], {z for y in x for z in y}\n"
LONG = "def four(x):\n" + "".join(f"    if x == {n}:\n        return {n}\n" for n in range(10))


def row(path: Path, text: str) -> list[str]:
    path.write_text(text)
    printed = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=True).stdout
    return printed.splitlines()[1].split()


def test_code_complexity_and_comments_are_counted(tmp_path: Path) -> None:
    # 7 lines of code, all in functions; 6 decisions; two comments.
    assert row(tmp_path / "plain.py", PLAIN) == ["plain.py", "7", "0.86", "0.0", "%", "0", "28.6"]


def test_comprehensions_within_one_or_with_several_for_are_nested(tmp_path: Path) -> None:
    assert row(tmp_path / "nested.py", NESTED)[-2] == "2"


def test_functions_over_the_limit_are_a_share(tmp_path: Path) -> None:
    assert row(tmp_path / "long.py", LONG)[3] == "100.0"
    assert row(tmp_path / "short.py", LONG.replace("    if x == 9:\n        return 9\n", ""))[3] == "0.0"
