"""``scripts/stale-words``: quotes in tests that the sources no longer say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "stale-words"

BEFORE = """\
def check(path):
    \"\"\"the file is no file\"\"\"
    raise ValueError(f"{path}: the file "
                     "is no file", "try again")
"""
QUOTES = """\
def test():
    assert "the file is no file" in said
    assert "try again" in said
    assert "never said anywhere" in said
    assert re.match("(?s).*file is no.* again", said)
"""


def test_a_quote_of_a_message_that_was_reworded_is_listed_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/a.py").write_text(BEFORE)
    (tmp_path / "tests/test_a.py").write_text(QUOTES)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
    assert listed(tmp_path) == []
    (tmp_path / "src/a.py").write_text(BEFORE.replace('"is no file"', '"does not exist"'))
    assert listed(tmp_path) == ["tests/test_a.py:2: the file is no file", "tests/test_a.py:5: file is no"]


def git(place: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place, check=True)


def listed(place: Path) -> list[str]:
    done = subprocess.run([sys.executable, SCRIPT], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
