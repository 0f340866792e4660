"""``iodelta.api``: stable names, what the commands call, frames that agree with them, and the notebook."""

from __future__ import annotations

import ast
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pytest
from carried import carried
from click.testing import CliRunner
from fio_files import write

import iodelta
from iodelta import api
from iodelta.cli.main import cli
from iodelta.errors import IodeltaError

ROOT = Path(__file__).parents[2]

STABLE = (
    *("Agreement", "Audit", "Comparison", "Experiment", "Fleet", "FleetRun", "History", "IodeltaError", "MeasureError"),
    *("RefusedError", "RequestError", "Series", "agreement", "audit", "compare", "open", "open_fleet", "open_history"),
    *("read", "run"),
)
"""Names that a program may rely on. One that goes is deprecated first: it raises a DeprecationWarning for a minor
version."""

EXPERIMENT = (
    *("account", "answer", "exit_code", "findings", "histograms", "path", "question", "report", "state", "table"),
    *("trials", "verdicts"),
)

QUICK = """
[workload]
command = ["python3", "-c", "print({n})"]
only_reads = true
[variant.a]
"workload.n" = "1"
[variant.b]
"workload.n" = "2"
[design]
trial = "0.2s"
blocks = 2
seed = 1
carry-over = "tested"
metrics = ["cpu"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment that loses a fifth."""
    path = tmp_path_factory.mktemp("api") / "measured"
    carried(path, -0.2)
    return path


def said(*words: str | Path) -> str:
    done = CliRunner().invoke(cli, list(map(str, words)), prog_name="iodelta")
    return done.stdout


def test_the_stable_names_are_there() -> None:
    assert tuple(sorted(api.__all__)) == STABLE
    assert all(getattr(api, name) for name in STABLE)
    assert set(EXPERIMENT) <= set(dir(api.Experiment))
    for name in ("open", "run", "compare", "read", "open_history", "open_fleet", "agreement"):
        assert getattr(iodelta, name) is getattr(api, name)
    assert {*iodelta.__all__, "api"} <= set(dir(iodelta))
    assert set(STABLE) <= set(dir(api))
    assert iodelta.IodeltaError is api.IodeltaError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        iodelta.nothing  # noqa: B018


def test_a_name_of_the_version_before_works_and_says_what_it_is_called_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(api.RENAMED, "load", "open")
    for place in (api, iodelta):
        with pytest.warns(DeprecationWarning, match=r"^iodelta\.api\.load is now open") as warned:
            assert place.load is api.open
        assert warned[0].filename == __file__, "it is shown at the line that uses the name"


def test_importing_it_loads_nothing() -> None:
    code = "import sys, iodelta, iodelta.api; print(sorted({'numpy', 'polars', 'click', 'msgspec'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_experiment_is_what_the_command_reports(folder: Path) -> None:
    x = iodelta.open(folder)
    assert {verdict.word for verdict in x.verdicts} == {"regression"}
    assert (x.exit_code, x.question, x.state) == (1, "Is slow slower?", "complete")
    for format_ in ("markdown", "mail", "csv", "json", "junit", "ktap", "bmf"):
        assert x.report(format_) == said("report", folder, "--format", format_), format_
    assert x.report("html") == said("report", folder, "--format", "html")
    assert x.answer in x.report("markdown").replace("\\", "")
    columns = polars.read_csv(io.StringIO(said("report", folder, "--format", "csv"))).columns
    assert x.table().columns == columns
    assert len(x.table()) == len(x.verdicts)


def test_trials_are_those_of_the_file_and_histograms_hold_their_percentiles(folder: Path) -> None:
    x = iodelta.open(folder)
    said("rebuild", folder)
    assert x.trials().equals(polars.read_parquet(folder / "trials.parquet"))
    bins = x.histograms()
    assert bins.columns == ["trial", "cell", "variant", "block", "direction", "latency", "low", "high", "ios"]
    for trial in x.trials().iter_rows(named=True):
        own = bins.filter((polars.col("trial") == trial["trial"]) & (polars.col("latency") == "lat")).sort("low")
        half = own.filter(own["ios"].cum_sum() >= own["ios"].sum() / 2).row(0, named=True)
        assert half["low"] <= trial["lat_p50"] <= half["high"]
        assert (half["variant"], half["cell"], half["block"]) == (trial["variant"], trial["cell"], trial["block"])


def test_a_page_in_a_notebook_is_framed_and_inert(folder: Path) -> None:
    page = iodelta.open(folder)._repr_html_()
    assert page.startswith('<iframe srcdoc="&lt;!doctype html')
    assert page.count("<") == 2, "all of the page is in the attribute"
    assert 'sandbox="allow-scripts"' in page
    assert "&lt;svg" in page
    assert len(page) < 100_000


def test_results_are_pickled_and_become_frames_of_pandas(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    results = (iodelta.open(folder), iodelta.compare(tmp_path / "A", tmp_path / "B"), api.audit(tmp_path / "A"))
    for result in results:
        again = pickle.loads(pickle.dumps(result))
        assert (again.answer, again.report("json")) == (result.answer, result.report("json"))
        assert again.to_pandas().columns.to_list() == result.table().columns
    assert again.exit_code == results[-1].exit_code
    assert pickle.loads(pickle.dumps(results[0])).trials().equals(results[0].trials())


def test_a_margin_is_a_share_as_text_or_as_a_number(tmp_path: Path) -> None:
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    names = [tmp_path / "A", tmp_path / "B"]
    assert iodelta.compare(*names, margin=0.05).report("csv") == iodelta.compare(*names, margin="5%").report("csv")
    for wrong in (5, "5", "x", 0, True):
        with pytest.raises(iodelta.IodeltaError, match="margin: "):
            iodelta.compare(*names, margin=wrong)
        with pytest.raises(iodelta.IodeltaError, match="margin: "):
            iodelta.run(tmp_path / "x.toml", margin=wrong)


def test_results_of_others_are_read_compared_and_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    monkeypatch.chdir(tmp_path)
    assert iodelta.read("A", "B").columns == said("show", "A", "B", "--format", "csv").splitlines()[0].split(",")
    compared = iodelta.compare(Path("A"), "B", margin="2%")
    assert compared.report("csv") == said("compare", "A", "B", "--margin", "2%", "--format", "csv")
    assert (compared.exit_code, {one.word for one in compared.compared}) == (3, {"no verdict"})
    assert compared.report("html") == said("compare", "A", "B", "--margin", "2%", "--format", "html")
    audited = api.audit("A")
    assert audited.report("json") == said("audit", "A", "--format", "json")
    assert isinstance(audited.findings, tuple)


def test_mistakes_say_what_to_do(tmp_path: Path, folder: Path) -> None:
    for call, text in (
        (lambda: iodelta.open(tmp_path), "not an experiment folder"),
        (lambda: iodelta.compare(), "there is nothing to compare"),
        (lambda: iodelta.compare("a", "b", margin="much"), "margin"),
        (lambda: iodelta.read(tmp_path), "nothing here could be read"),
        (lambda: iodelta.open(folder).report("pdf"), "not a format: 'pdf'"),
        (lambda: iodelta.run(folder, margin="2%"), "the folder already defines the question"),
        (lambda: iodelta.open_history("mysql://x", log=tmp_path / "log"), "not a database"),
    ):
        with pytest.raises(IodeltaError, match=text):
            call()


class Heard:
    """A watcher that keeps the names of what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.told.append(name)


@pytest.mark.beside
def test_a_run_is_that_of_the_command_and_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    (tmp_path / "q.toml").write_text(QUICK)
    heard = Heard()
    x = iodelta.run(tmp_path / "q.toml", folder=tmp_path / "f", margin="3%", watcher=heard)
    assert (len(x.trials()), x.account.plan.rules.margin) == (4, 0.03)
    assert {"begin", "trial", "measured", "judged"} <= set(heard.told)
    assert (tmp_path / "f" / "verdict.json").exists()
    again = iodelta.run(tmp_path / "f")
    assert again.report("json") == x.report("json")
    writes = QUICK.replace("only_reads = true\n", "")
    (tmp_path / "w.toml").write_text(writes)
    with pytest.raises(api.RefusedError):
        iodelta.run(tmp_path / "w.toml", folder=tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_a_history_gives_frames(tmp_path: Path, folder: Path) -> None:
    with iodelta.open_history(tmp_path / "history") as history:  # type: ignore[attr-defined]
        assert history.series() == []
        (added,) = history.add(folder)
        assert added.outcome == "added"
        (series, *others) = history.series(variant="slow", metric="read.iops")
        assert {one.cell for one in (series, *others)} == {"iodepth=1", "iodepth=4"}
        assert series.points()["value"].is_not_null().all()
        assert series._repr_html_().startswith("<iframe ")
        assert "iodepth" in series._repr_html_()
        assert list(history.scan()) == []
    listed = json.loads(said("history", "export", "--history", tmp_path / "history", "--to", "json"))
    assert listed


USER = """
import iodelta
import polars

x: iodelta.Experiment = iodelta.open("folder")
words: list[str] = [verdict.word for verdict in x.verdicts]
trials: polars.DataFrame = x.trials()
page: str = x.report("html")
with_margin: iodelta.Comparison = iodelta.compare("a", "b", margin="2%")
for series in iodelta.open_history("h").series(metric="read.iops"):
    frame: polars.DataFrame = series.points()
reveal_type(x.state)
"""


def test_hosts_say_together_what_the_command_says(tmp_path: Path) -> None:
    hosts = [tmp_path / name for name in ("stor1", "stor2", "stor3")]
    for seed, host in enumerate(hosts, 1):
        carried(host, -0.2, seed=seed)
    together = iodelta.agreement(*hosts)
    assert {row.word for row in together.rows} == {"regression on these hosts"}
    assert together.exit_code == 1
    assert together.answer in said("fleet", "report", *hosts, "--format", "markdown")
    assert together.table().height == len(said("fleet", "report", *hosts, "--format", "csv").splitlines()) - 1
    assert together._repr_html_().startswith("<iframe ")
    with pytest.raises(api.RequestError, match="no hosts"):
        iodelta.agreement()


def test_a_fleet_is_run_as_by_the_command_and_what_was_measured_on_its_hosts_is_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        f"[host.stor{n}]\nssh = 'stor{n}.invalid'\ntags = ['rack{n}']\ntargets.nvme = '/dev/sdb'\n" for n in (1, 2, 3)
    ]
    (tmp_path / "fleet.toml").write_text("".join(lines))
    (tmp_path / "ask.toml").write_text(
        "[target]\npath = 'class:nvme'\n[workload]\nrw = 'randread'\n[variant.a]\ncpus = '0'\n[variant.b]\ncpus = '1'\n"
    )
    fleet = iodelta.open_fleet()
    assert [host.name for host in fleet.hosts("rack1,stor3")] == ["stor1", "stor3"]
    ran = fleet.run("ask.toml", hosts="stor1", folder="night", patience="1s")
    assert (ran.path, ran.exit_code) == (Path("night"), 4)
    (host,) = ran.status.hosts
    assert (host.name, host.state in ("lost", "failed")) == ("stor1", True)
    assert fleet.run("night", patience="1s").exit_code == 4, "a folder is continued"
    with pytest.raises(api.IodeltaError, match=r"no host .* been measured|nothing"):
        ran.agreement()
    with pytest.raises(api.RequestError, match="no host or tag is called 'nobody'"):
        fleet.run("ask.toml", hosts="nobody")
    with pytest.raises(api.RequestError, match="cannot read the inventory"):
        iodelta.open_fleet("other.toml")
    assert capsys.readouterr() == ("", "")


def test_a_program_of_a_user_is_checked_by_strict_mypy(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "user.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", "")


def run_notebook(path: Path) -> list[Any]:
    """The values that the cells show, each code cell run in order with the same names, as a kernel does."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = compile(ast.Expression(last.value), path.name, "eval")
            shown.append(eval(value, names))  # noqa: S307 (our own notebook)
    return shown


@pytest.mark.beside
def test_the_notebook_runs_and_shows_its_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    measured, answer, words, trials, means, table, compared, read = run_notebook(ROOT / "docs/from-python.ipynb")
    assert "worse" in answer
    assert {word for _, _, word, _ in words} == {"regression"}
    assert trials["variant"].unique().sort().to_list() == means["variant"].to_list() == ["few", "many"]
    assert table["word"].to_list() == ["regression"]
    assert read["iops.value"].to_list() == [41200, 39800]
    for result in (measured, compared):
        assert result._repr_html_().startswith("<iframe")
