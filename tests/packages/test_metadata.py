"""What the wheel and the sdist of iodelta say and hold, as an index would show it."""

from __future__ import annotations

import email
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from fio_files import write

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("packages")
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", place], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def wheel(packages: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(packages.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_the_readme_is_whole_outside_the_repository(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 30
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_authors_addresses_and_classifiers_are_said(metadata: Message) -> None:
    assert metadata["Author"]
    assert {url.partition(",")[0] for url in metadata.get_all("Project-URL", [])} >= {
        "Source",
        "Documentation",
        "Issues",
    }
    said = metadata.get_all("Classifier", [])
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)} <= set(said)


def test_every_script_of_others_is_the_recorded_one_and_its_licences_are_in_every_package(
    wheel: zipfile.ZipFile, packages: Path, metadata: Message
) -> None:
    declared = metadata.get_all("License-File", [])
    assert "LICENSE" in declared
    about_debian = (ROOT / "packaging/debian/copyright").read_text()
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    recorded = set()
    for record in [name for name in wheel.namelist() if name.endswith("/javascript.json")]:
        folder = record.removesuffix("javascript.json")
        said = json.loads(wheel.read(record))
        licences = ""
        for name, digest in said["files"].items():
            path = folder + name
            data = wheel.read(path)
            assert hashlib.sha256(data).hexdigest() == digest, f"{path}: run scripts/javascript"
            assert f"src/{path}" in held
            if name.endswith(".LICENSE"):
                assert f"src/{path}" in declared
                licences += data.decode()
            else:
                recorded.add(path)
                assert path in about_debian
        for name, package in said["packages"].items():
            alone = f"{name.partition('.')[0]}.LICENSE" in said["files"]
            assert alone or re.search(rf"(?m)^(.*, )?{name}[,:]", licences), f"the licence of {name} is missing"
            assert package["licence"] in metadata["License-Expression"]
            assert package["version"]
            assert package["source"].startswith("https://github.com/")
            assert package["integrity"].startswith("sha512-")
    assert {"vega.js", "htmx.js", "uplot.js", "uplot.css"} == {path.rpartition("/")[2] for path in recorded}


def test_an_sdist_is_small(packages: Path) -> None:
    assert next(packages.glob("*.tar.gz")).stat().st_size < 3 << 20


def test_the_wheel_holds_what_git_has_and_makes_a_report(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    files = subprocess.check_output(["git", "ls-files", "src/iodelta"], cwd=ROOT, text=True).split()
    assert len(files) > 400
    assert {name.removeprefix("src/") for name in files} <= set(wheel.namelist())
    wheel.extractall(tmp_path)
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    code = """
import importlib.metadata, iodelta, sys
print(iodelta.__file__, iodelta.compare("A", "B").report("html")[:15])
[entry] = next(importlib.metadata.distributions(name="iodelta", path=sys.path[:2])).entry_points
sys.argv[1:] = ["--version"]
entry.load()()
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path}/iodelta/__init__.py <!doctype html>\niodelta, version ")
