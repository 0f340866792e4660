"""Without the native core everything else works, and what needs it says how to get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.errors import MeasureError
from iodelta.knob import catalogue
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.command import command
from iodelta.probe.native import MODULE
from iodelta.probe.topology import resolve


@pytest.fixture(autouse=True)
def _absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)


@pytest.mark.parametrize(
    "words", [("list",), ("simulate", "--member", "ssd", "--policy", "queue"), ("mirror", "/dev/null")]
)
def test_what_needs_the_core_says_what_to_install(words: tuple[str, ...]) -> None:
    with pytest.raises(MeasureError, match=r"pip install 'iodelta\[native\]'") as caught:
        CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert caught.value.exit_code == 4


def test_explanations_need_no_core() -> None:
    done = CliRunner().invoke(command, ["explain", "queue"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "tie-break decides" in " ".join(done.stdout.split())


def test_the_mirror_is_among_the_knobs_with_the_reason_why_not(tmp_path: Path) -> None:
    knobs = {info.name: info for info in catalogue(LocalMachine(), resolve(LocalMachine(), str(tmp_path)))}
    assert "iodelta[native]" in knobs["mirror.read_policy"].reason
