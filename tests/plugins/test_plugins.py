"""Plugins: the example is built, installed and used; broken ones are one sentence, and the others go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fio_files import write

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/plugin"

BROKEN = {
    "knobs": ("import_fails = acme_broken.missing:Knob", "shadow = acme_broken:Shadow", "raises = acme_broken:Raises"),
    "rules": ("raises = acme_broken:raises", "shadow = acme_broken:shadow"),
    "readers": ("raises = acme_broken:read",),
    "machines": ("ssh = acme_broken:machine", "odd = acme_broken:NOTHING"),
}

BROKEN_CODE = """
from iodelta.audit.model import Rule
from iodelta.knob.block import Scheduler
from iodelta.knob.files import FileKnob

class Shadow(Scheduler):
    pass

class Raises(FileKnob):
    names = ("acme.raises",)
    def paths(self):
        raise ValueError("no board")
    def absent(self):
        return ""
    def allowed(self):
        return ("0", "1")
    @classmethod
    def script_files(cls, name):
        return ()

def find(evidence):
    raise KeyError("nobody thought of this")

raises = Rule("acme.raises", "hard", "says", "needs", "remedy", find)
shadow = Rule("order.trend", "hard", "says", "needs", "remedy", find)

def read(data, name):
    raise IndexError("too short")

NOTHING = None
machine = print
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip installed the example."""
    place = tmp_path_factory.mktemp("plugins") / "site"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*words, "--target", place, EXAMPLE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def both(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example, and a package in which everything is broken, as a path of Python's."""
    place = tmp_path_factory.mktemp("broken")
    (place / "acme_broken.py").write_text(BROKEN_CODE)
    info = place / "acme_broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-broken\nVersion: 0.1\n")
    groups = [f"[iodelta.{kind}]\n" + "\n".join(lines) for kind, lines in BROKEN.items()]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    return f"{installed}:{place}"


def iodelta(path: Path | str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{path}", "IODELTA_STATE": str(cwd / "state")}
    code = "from iodelta.cli.main import main; main()"
    whole = [sys.executable, "-c", code, *words]
    return subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_the_example_passes_its_contracts(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{installed}"}
    options = ("-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull)
    words = [sys.executable, "-m", "pytest", *options, str(EXAMPLE / "tests")]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_an_installed_plugin_is_used_by_every_command(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "acme.txt").write_text("acme: randread bs=4k 41200 iops\n")
    read = iodelta(installed, "show", "acme.txt", "--format", "csv", cwd=tmp_path)
    assert "41200" in read.stdout, read.stdout + read.stderr
    assert "example.few-ios" in iodelta(installed, "audit", "--rules", cwd=tmp_path).stdout
    path = write(tmp_path / "few/x.json", 1000)
    path.write_text(re.sub(r'"total_ios": [1-9]\d*', '"total_ios": 50', path.read_text()))
    audited = iodelta(installed, "audit", "few", cwd=tmp_path)
    assert "[example.few-ios]" in audited.stdout, audited.stdout + audited.stderr
    knobs = iodelta(installed, "knobs", "--machine", "here:desk", cwd=tmp_path)
    assert "thp.enabled" in knobs.stdout, knobs.stdout + knobs.stderr
    assert "thp.enabled" not in iodelta("", "knobs", cwd=tmp_path).stdout
    words = ("run", "--dry-run", "--size", "4m", "--machine", "here:desk", "--variant", "a:thp.enabled=never")
    done = iodelta(installed, *words, "--variant", "b:thp.enabled=sometimes", "--", "--rw=randread", cwd=tmp_path)
    assert done.returncode == 2
    assert "thp.enabled" in done.stderr, done.stderr


def test_a_broken_plugin_is_one_sentence_that_names_it_and_the_others_go_on(both: str, tmp_path: Path) -> None:
    knobs = iodelta(both, "knobs", cwd=tmp_path)
    assert knobs.returncode == 0, knobs.stderr
    assert "thp.enabled" in knobs.stdout
    said = " ".join(knobs.stdout.split())
    assert "the knob raises of the package acme-broken 0.1 failed with ValueError: no board" in said
    words = (
        "run",
        "--dry-run",
        "--size",
        "4m",
        "--variant",
        "a",
        "--variant",
        "b:acme.missing=1",
        "--",
        "--rw=randread",
    )
    unknown = iodelta(both, *words, cwd=tmp_path)
    assert unknown.returncode == 2
    sentence = "the knob import_fails of the package acme-broken 0.1 cannot be used: loading it failed with Module"
    assert sentence in unknown.stderr
    assert "block.scheduler is a knob of iodelta" in unknown.stderr
    assert "Traceback" not in unknown.stderr

    (tmp_path / "acme.txt").write_text("acme: randread bs=4k 41200 iops\n")
    audited = iodelta(both, "audit", "acme.txt", cwd=tmp_path)
    said = " ".join(audited.stdout.split())
    assert "the rule raises of the package acme-broken 0.1 failed with KeyError" in said, audited.stderr
    assert audited.returncode == 0, "a broken rule is no hard finding"
    assert "41200" in iodelta(both, "show", "acme.txt", "--format", "csv", cwd=tmp_path).stdout

    for name, text in (("odd:x", "the machine odd of the package acme-broken"), ("ssh:", "")):
        done = iodelta(both, "knobs", "--machine", name, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert text in done.stderr
        assert "Traceback" not in done.stderr
