"""``scripts/setup`` says what it does while it does it: pip works for a minute and more."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/setup"

WORKS = """#!/bin/sh
echo "Obtaining file:///somewhere"
echo "Collecting numpy>=1.26"
echo "  Downloading numpy-2.4.0-cp311-manylinux.whl (16.9 MB)"
echo "Collecting scipy>=1.11"
echo "  Using cached scipy-1.17.0.whl (35.0 MB)"
echo "Installing collected packages: numpy, scipy"
"""
FAILS = '#!/bin/sh\necho "Collecting numpy>=1.26"\necho "ERROR: No matching distribution found for numpy" >&2\nexit 1\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose environment is there, and a pip of paper in it."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts/setup")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("python", "iodelta"):
        program(tmp_path / ".venv/bin" / name, "#!/bin/sh\necho iodelta 1\n")
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin/fio", "#!/bin/sh\necho fio-3.33\n")
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def setup(checkout: Path) -> subprocess.CompletedProcess[str]:
    path = f"{checkout}/bin:/usr/bin:/bin"
    return subprocess.run(
        ["sh", "scripts/setup", "demo"], cwd=checkout, capture_output=True, text=True, env={"PATH": path}
    )


def test_every_package_that_pip_fetches_is_a_line_of_its_own(checkout: Path) -> None:
    program(checkout / ".venv/bin/pip", WORKS)
    said = setup(checkout)
    assert said.returncode == 0, said
    lines = said.stdout.splitlines()
    for part in ("numpy>=1.26", "16.9 MB", "scipy>=1.11", "Installing collected packages", "done in"):
        assert any(line.startswith("setup: ") and part in line for line in lines), (part, lines)
    assert (checkout / ".venv/.installed-demo").exists()


def test_a_pip_that_fails_ends_the_setup_with_what_it_said(checkout: Path) -> None:
    program(checkout / ".venv/bin/pip", FAILS)
    said = setup(checkout)
    assert said.returncode != 0
    assert "No matching distribution found for numpy" in said.stderr
    assert not (checkout / ".venv/.installed-demo").exists()
