"""What the wheel and the sdist of iodelta say and hold, as an index would show it."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

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


def test_every_script_of_others_has_its_licence_in_the_packages_and_in_that_of_debian(
    wheel: zipfile.ZipFile, packages: Path, metadata: Message
) -> None:
    files = set(metadata.get_all("License-File", []))
    names = wheel.namelist()
    copyright_ = (ROOT / "packaging/debian/copyright").read_text()
    scripts = [name for name in names if name.endswith(".js") and ("vendor/" in name or name.endswith("vega.js"))]
    assert len(scripts) == 3
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    for script in scripts:
        licence = f"src/{script.removesuffix('.js')}.LICENSE"
        assert licence in files
        assert licence in held
        assert script in copyright_
    assert "LICENSE" in files
    versions = wheel.read("iodelta/report/formats/html/vega.LICENSE").decode()
    drawn = wheel.read("iodelta/report/formats/html/vega.js")[:100].decode()
    for name, version in re.findall(r"(Vega[\w-]*) ([\d.]+)", drawn):
        assert f"{name.lower()} {version}" in versions, "the record is of the scripts that are there"


def test_an_sdist_is_small(packages: Path) -> None:
    assert next(packages.glob("*.tar.gz")).stat().st_size < 3 << 20
