"""The log of a history: each line synced and chained; of a kill a torn end remains; a changed line is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iodelta.errors import MeasureError
from iodelta.history.log import Added, Decided, Log

WRITER = """
import sys
from pathlib import Path
from iodelta.history.log import Decided, Log
for number in range(30):
    Log(Path(sys.argv[1])).append(Decided(1.0, f"{sys.argv[2]}-{number}", "fixed"))
"""


def added(number: int, folder: str = "") -> Added:
    """A folder that was added."""
    return Added(1.0 * number, f"experiment-{number}", f"sha-{number}", folder or f"/runs/{number}")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """An empty one."""
    return Log(tmp_path / "history" / "decisions.jsonl")


def test_entries_come_back_in_order(log: Log) -> None:
    log.append(added(1), added(2))
    log.append(Decided(3.0, "a1", "expected", "a fix of data corruption"))
    log.append(added(1, "/elsewhere"))
    assert log.entries() == ([added(1), added(2), Decided(3.0, "a1", "expected", "a fix of data corruption"),
                              added(1, "/elsewhere")], [])  # fmt: skip
    assert log.added() == {"experiment-1": added(1, "/elsewhere"), "experiment-2": added(2)}
    assert log.broken() == 0


def test_a_log_from_before_lines_were_chained_is_read_and_goes_on(log: Log) -> None:
    log.path.parent.mkdir()
    log.path.write_text('{"type":"added","at":1.0,"identifier":"experiment-1","sha":"sha-1","folder":"/runs/1"}\n')
    log.append(added(2))
    assert log.entries() == ([added(1), added(2)], [])
    assert log.broken() == 0


def test_what_a_kill_left_of_a_line_is_cut_by_the_next(log: Log) -> None:
    log.append(added(1))
    with open(log.path, "ab") as file:
        file.write(b'{"type":"added","at":2.0,"iden')
    assert log.entries() == ([added(1)], []), "what a kill left is no damage"
    log.append(added(3))
    assert log.entries() == ([added(1), added(3)], [])


@pytest.mark.parametrize("edit", ["changed", "removed", "doubled", "moved"])
def test_a_line_that_is_not_what_was_written_is_named_and_nothing_is_added(log: Log, edit: str) -> None:
    log.append(*map(added, range(4)))
    zero, one, two, three = log.path.read_bytes().splitlines(keepends=True)
    found = {
        "changed": [zero, one.replace(b"/runs/1", b"/runs/9"), two, three],
        "removed": [zero, two, three],
        "doubled": [zero, one, one, two, three],
        "moved": [zero, two, one, three],
    }
    log.path.write_bytes(b"".join(found[edit]))
    assert log.broken() == (3 if edit == "doubled" else 2)
    before = log.path.read_bytes()
    with pytest.raises(MeasureError, match="not the original line"):
        log.append(added(5))
    assert log.path.read_bytes() == before


def test_writers_wait_for_each_other_and_the_chain_holds(log: Log) -> None:
    words = [sys.executable, "-c", WRITER, str(log.path)]
    others = [subprocess.Popen([*words, name]) for name in "abc"]
    assert [other.wait() for other in others] == [0, 0, 0]
    entries, torn = log.entries()
    assert (len(entries), torn, log.broken()) == (90, [], 0)


def test_a_log_is_read_again_where_another_one_took_its_place(log: Log) -> None:
    log.append(added(1), added(2))
    assert list(log.added()) == ["experiment-1", "experiment-2"]
    log.path.unlink()
    assert log.added() == {}
    log.append(added(3))
    assert list(log.added()) == ["experiment-3"]
    Log(log.path).append(added(4))
    assert list(log.added()) == ["experiment-3", "experiment-4"]
    log.append(added(5))
    assert list(Log(log.path).added()) == ["experiment-3", "experiment-4", "experiment-5"]
    assert log.broken() == 0
