"""How many small mistakes in the code the tests notice: ``make mutants``, for a night.

python -m benchmarks.mutants [--count 20] [--seed 1] [MODULE ...]

Each mutant changes one comparison, boolean, sign or number of a module in a copy of the source; it is killed if tests
of the module fail. A survivor is a question: which promise is not tested, or which code is not needed?
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = {
    "iodelta/stats/effect.py": "tests/stats/test_effect.py",
    "iodelta/stats/sequential.py": "tests/stats/test_sequential.py",
    "iodelta/verdict/decide.py": "tests/verdict/test_judge.py tests/verdict/test_looks.py",
    "iodelta/lab/guard.py": "tests/lab/test_guard.py",
    "iodelta/lab/undo.py": "tests/lab/test_undo.py",
    "iodelta/lab/seal.py": "tests/lab/test_folder.py tests/lab/test_cut_journal.py",
}
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
}


def mutants(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, what is changed, and the module with that one change."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            several = value if isinstance(value, list) else [value]
            for at, old in enumerate(several):
                new: object = None
                if isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp)) and type(old) in OTHER:
                    new = OTHER[type(old)]()
                elif isinstance(node, ast.Constant) and field == "value" and type(old) in (int, float, bool):
                    new = not old if isinstance(old, bool) else old + 1
                if new is None:
                    continue
                setattr(node, field, [*several[:at], new, *several[at + 1 :]] if isinstance(value, list) else new)
                kinds = [one if isinstance(node, ast.Constant) else type(one).__name__ for one in (old, new)]
                yield getattr(node, "lineno", 0), f"{kinds[0]} -> {kinds[1]}", ast.unparse(tree)
                setattr(node, field, value)


def killed(source: Path, tests: str) -> bool:
    """Whether a test fails with this source, or does not end in ten minutes."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return True
    if done.returncode in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode != 0


def main() -> None:
    """Print the survivors, and the share of mutants that were killed, by module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", choices=[*TESTS, []], metavar="MODULE", help="default: all that it knows")
    parser.add_argument("--count", type=int, default=20, help="mutants of each module (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn (default 1)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iodelta-mutants-") as place:
        source = Path(shutil.copytree(ROOT / "src", Path(place, "src")))
        for name in given.modules or TESTS:
            path, original = source / name, (ROOT / "src" / name).read_text()
            if killed(source, TESTS[name]):
                raise SystemExit(f"{name}: its tests fail without a mutation")
            every = list(mutants(original))
            drawn = random.Random(given.seed).sample(every, min(given.count, len(every)))
            dead = 0
            for line, change, text in sorted(drawn):
                path.write_text(text)
                was_killed = killed(source, TESTS[name])
                dead += was_killed
                if not was_killed:
                    print(f"survived: {name}:{line}: {change}: {original.splitlines()[line - 1].strip()}", flush=True)
            path.write_text(original)
            print(f"{name}: {dead} of {len(drawn)} killed (of {len(every)} possible)", flush=True)


if __name__ == "__main__":
    main()
