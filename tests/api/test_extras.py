"""What `pip install iodelta` brings without extras is enough to measure, report, show, compare and audit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OF_EXTRAS = ("polars", "vl_convert", "scipy", "sqlalchemy", "distributed", "deltalake", "starlette", "pandas", "altair")


def plainly(cwd: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python where nothing of an extra can be imported."""
    lines = f"import sys\nsys.modules.update(dict.fromkeys({OF_EXTRAS!r}))\n{code}"
    environment = {**os.environ, "IODELTA_STATE": str(cwd / "state")}
    return subprocess.run([sys.executable, "-c", lines], cwd=cwd, env=environment, capture_output=True, text=True)


def iodelta(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return plainly(cwd, f"sys.argv[1:] = {words!r}\nfrom iodelta.cli.main import main\nmain()")


@pytest.mark.fio
def test_the_core_measures_and_reports_and_names_the_extra_for_the_rest(tmp_path: Path) -> None:
    variants = ("--variant", "a:fio.ioengine=psync", "--variant", "b:fio.ioengine=sync")
    design = ("--trial", "0.2s", "--blocks", "3", "--size", "1m", "--folder", "x", "--fail-on", "nothing")
    run = ("run", *variants, *design, "--", "--rw=randread", "--bs=4k")
    done = iodelta(tmp_path, *run)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "x/trials.parquet").exists()
    for words in (("report", "x"), ("show", "x"), ("audit", "x"), ("report", "x", "-o", "page.html"), ("rebuild", "x")):
        done = iodelta(tmp_path, *words)
        assert done.returncode == 0, (words, done.stderr)
    assert "trials.parquet needs polars: pip install 'iodelta[frames]'" in done.stderr
    for code, extra in (
        ("iodelta.open('x').report('csv'), iodelta.open('x').trials()", "frames"),
        ("iodelta.open('x').histograms()", "frames"),
        ("iodelta.open('x').table()", "frames"),
        ("iodelta.read('x')", "frames"),
        ("iodelta.open_history('x')", "history"),
    ):
        done = plainly(tmp_path, f"import iodelta\ntry: {code}\nexcept iodelta.api.RequestError as error: print(error)")
        assert f"iodelta[{extra}]" in done.stdout, (code, done.stdout, done.stderr)
    charts = iodelta(tmp_path, "report", "x", "--charts", "charts")
    assert (charts.returncode, charts.stderr.count("\n")) == (2, 2), charts.stderr
    assert "drawing a chart as SVG or PNG needs vl_convert" in charts.stderr
    assert "iodelta[pictures]" in charts.stderr
