"""A wrong request is refused before anything is filled or made."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.errors import IodeltaError

READS = ["--variant", "a:fio.bs=4k", "--variant", "b:fio.bs=8k", "--budget", "1m"]
FIO = ["--", "--rw=randwrite"]


@pytest.mark.fio
@pytest.mark.beside
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--target", "", *READS, *FIO], "names nothing"),
        (["run", "--target", "/etc", *READS, *FIO], "directory of the system"),
        (["run", "missing"], "there is nothing at this path"),
        (["run", "missing.toml"], "there is nothing at this path"),
        (["prepare", ""], "names no disk"),
        (["prepare", "/etc"], "is a directory"),
        (["prepare", "disk", "--destroy", "disk", *FIO, "--filesize=1g"], "past its"),
        (["prepare", "disk", "--destroy", "disk", *FIO, "--numjobs=9", "--offset_increment=16m"], "past its"),
        (["calibrate", "--target", "", *FIO], "names nothing"),
    ],
)
def test_a_wrong_request_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    (tmp_path / "disk").write_bytes(bytes(64 << 20))
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, IodeltaError), done.output
    assert done.exception.exit_code == 2
    assert said in str(done.exception)
    assert not Path("/iodelta-scratch").exists()
    assert not Path("/etc/iodelta-scratch").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"disk", "state"}
    assert not any((tmp_path / "disk").read_bytes())
