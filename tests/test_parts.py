"""A part is a folder: without it, everything but what it brings works."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from iodelta.part import parts

ROOT = Path(__file__).parents[1] / "src" / "iodelta"
OWN = [part.name for part in parts() if part.name != "core" and (ROOT / "parts" / part.name).is_dir()]
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import iodelta
assert iodelta.__file__.startswith(sys.argv[1]), iodelta.__file__
EXTRAS = ("sqlalchemy", "distributed", "dask", "deltalake", "starlette", "uvicorn", "psycopg", "yaml", "multipart")
for module in pkgutil.walk_packages(iodelta.__path__, "iodelta."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from iodelta.part import commands, documents, kinds, load, parts
for place in (place for part in parts() for rows in part[1:] for row in rows for place in row if ":" in place):
    if place.startswith("iodelta.") and " " not in place:
        load(place)
print(*commands())
"""


def above(name: str) -> set[str]:
    """Return the parts that import this one, which go with it."""
    graph = grimp.build_graph("iodelta", cache_dir=None)
    users = graph.find_downstream_modules(f"iodelta.parts.{name}", as_package=True)
    return {module.split(".")[2] for module in users if module.startswith("iodelta.parts.")}


@pytest.mark.parametrize("name", OWN)
def test_the_rest_lives_without_a_part(name: str, tmp_path: Path) -> None:
    gone = {name} | above(name)
    source = tmp_path / "iodelta"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("__pycache__"))
    for part in gone:
        shutil.rmtree(source / "parts" / part)
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_ALL, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    commands = {command.name for part in parts() if part.name not in gone for command in part.commands}
    assert set(done.stdout.split()) == commands
