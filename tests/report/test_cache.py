"""What was found in a folder is said again only while nothing in it, and nothing in the code, is another."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from test_console import account, experiment

import iodelta
from iodelta.lab.folder import Folder
from iodelta.report import cache
from iodelta.report.formats.charts import figures
from iodelta.report.formats.charts.model import Charts
from iodelta.report.formats.charts.sources import of_account
from iodelta.report.formats.html.pages import html_of
from iodelta.study.experiment import Account


@pytest.fixture(scope="module")
def told() -> tuple[Account, Charts]:
    found = account(experiment(), {("iodepth=32", "new"): -0.05})
    return found, tuple(figures(of_account(found, (), {})))


@pytest.fixture
def folder(tmp_path: Path, told: tuple[Account, Charts]) -> Folder:
    (tmp_path / "raw").mkdir()
    for name in ("experiment.toml", "plan.json", "journal.jsonl", "environment.json", "raw/000001.fio.json.zst"):
        (tmp_path / name).write_text("as it was measured")
    opened = Folder.open(tmp_path)
    cache.keep(opened, *told, cache.key_of(opened))
    return opened


def test_the_same_folder_says_the_same(folder: Folder, told: tuple[Account, Charts]) -> None:
    found = cache.kept(folder)
    assert found is not None
    assert found.account == msgspec.structs.replace(told[0], folder=str(folder.path))
    drawn = msgspec.msgpack.decode(found.charts, type=Charts)
    assert html_of(found.account, drawn) == html_of(*told)


def rewritten(name: str) -> Callable[[Path], None]:
    """Other bytes of the same length and modification time: only ctime tells."""

    def change(path: Path) -> None:
        before = (path / name).stat()
        (path / name).write_text("as somebody likes!")
        os.utime(path / name, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


@pytest.mark.parametrize(
    "change",
    [
        rewritten("raw/000001.fio.json.zst"),
        rewritten("journal.jsonl"),
        rewritten("plan.json"),
        rewritten("environment.json"),
        lambda path: (path / "raw" / "000002.fio.json.zst").write_text("one more"),
        lambda path: (path / "raw" / "000001.fio.json.zst").unlink(),
        lambda path: (path / cache.FILE).write_bytes(b"damaged"),
        lambda path: (path / cache.FILE).write_bytes((path / cache.FILE).read_bytes()[:-9]),
        lambda path: (path / cache.FILE).unlink(),
    ],
    ids=["raw", "journal", "plan", "environment", "more", "less", "damaged", "cut", "gone"],
)
def test_a_folder_that_is_another_is_judged_again(folder: Folder, change: Callable[[Path], None]) -> None:
    change(folder.path)
    assert cache.kept(folder) is None


def test_other_code_judges_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iodelta, "__version__", "another")
    cache._code.cache_clear()
    assert cache.kept(folder) is None
    monkeypatch.undo()
    cache._code.cache_clear()
    assert cache.kept(folder) is not None
