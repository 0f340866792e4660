"""What several processes read of a history is what one reads, in the same order, errors included."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from nights import opened
from test_foreign import THERE, result

from iodelta.errors import RequestError
from iodelta.history.checking import problems
from iodelta.history.log import Added, Log
from iodelta.history.reading import logged, nights_of

FILES = 9


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Of files with one night each."""
    made = Log(tmp_path / "decisions.jsonl")
    for number in range(FILES):
        path = result(tmp_path / f"{number}.json", iops=5000.0 + number, ended=1.7e9 + number)
        (night,) = nights_of(path, THERE, made)
        made.append(Added(time.time(), night.identifier, night.sha, night.folder, THERE))
    return made


def test_processes_read_the_same_nights_in_the_same_order(log: Log) -> None:
    alone = list(logged(log, processes=1))
    assert [night.identifier for night in alone] == list(log.added())
    assert list(logged(log, processes=2)) == alone


@pytest.mark.parametrize("processes", [1, 2])
def test_a_folder_that_is_gone_is_named_whoever_reads_it(log: Log, tmp_path: Path, processes: int) -> None:
    (tmp_path / "5.json").unlink()
    with pytest.raises(RequestError) as refused:
        list(logged(log, processes))
    assert refused.value.place == str(tmp_path / "5.json")


def test_a_rebuild_that_is_refused_leaves_the_history_as_it_was(log: Log, tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.replace_all(logged(log))
    before = store.lines()
    (tmp_path / "7.json").unlink()
    with pytest.raises(RequestError):
        store.replace_all(logged(log))
    assert (store.lines(), len(before) > 0) == (before, True)
    (said,) = problems(store, log)
    assert said.startswith(f"cannot be read: {tmp_path / '7.json'}: ")
    store.close()
