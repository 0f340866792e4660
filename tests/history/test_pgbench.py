"""A database's own benchmark as the workload, as the page on any benchmark shows it: its server is measured."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from pages import whole
from test_command import iodelta
from test_store import server as server

PAGE = whole("any-benchmark")

pytestmark = pytest.mark.beside


def test_pgbench_is_measured_and_reset_sets_what_the_variants_differ_in(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("pgbench") is None or shutil.which("psql") is None:
        pytest.skip("pgbench or psql is not installed")
    monkeypatch.setenv("PGHOST", parse_qs(urlsplit(server).query)["host"][0])
    monkeypatch.setenv("PGUSER", "iodelta")
    monkeypatch.setenv("PGDATABASE", "postgres")
    (text,) = (block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if "pgbench" in block)
    (tmp_path / "pgbench.toml").write_text(text.replace('trial = "1s"', 'trial = "1s"\ncarry-over = "tested"'))
    words = ("run", "pgbench.toml", "--folder", "folder", "--allow-commands", "--blocks", "2")
    done = iodelta(tmp_path, *words)
    assert done.returncode in (0, 1, 3), done.stderr
    said = json.loads(iodelta(tmp_path, "report", "folder", "--format", "json").stdout)
    verdicts = said["account"]["judgement"]["verdicts"]
    assert {one["metric"]["name"] for one in verdicts} == {"command.tps", "command.latency"}
    assert {one["blocks"] for one in verdicts} == {2}
