"""One protocol, three histories: a file, a server of databases, and ``iodelta serve`` as another program sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from carried import carried
from nights import night
from test_store import server, url
from web.servers import serving

import iodelta
from iodelta.api.histories import History
from iodelta.errors import RequestError
from iodelta.history.store import Store, url_of

__all__ = ["server", "url"]

pytestmark = pytest.mark.xdist_group("protocol")

TOKEN = "run-" + "t" * 24


def filled(place: str) -> None:
    """Thirty nights with a step of 5 %."""
    store = Store(place)
    store.prepare()
    store.add_all([night(number, r=0.05 * (number >= 20)) for number in range(30)])
    store.close()


@contextlib.contextmanager
def served(place: Path) -> Iterator[History]:
    """Behind a login, under a prefix."""
    (place / "history").mkdir()
    filled(str(url_of(place / "history" / "history.db")))
    tokens = place / "tokens"
    tokens.write_text(f"run ci {TOKEN}\n")
    tokens.chmod(0o600)
    words = ("--history", "history", "--write", "--token-file", "tokens", "--prefix", "/bench")
    with serving(*words, cwd=place) as running:
        for wrong in ("", "x" * 24):
            with pytest.raises(RequestError, match="log in"):
                iodelta.open_history(running.url, token=wrong).series()
        yield iodelta.open_history(running.url, token=TOKEN)


@pytest.fixture(params=["sqlite", "postgresql", "served"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[History]:
    """The same nights, kept in three ways."""
    if request.param == "served":
        with served(tmp_path) as found:
            yield found
        return
    if request.param == "sqlite":
        (tmp_path / "history").mkdir()
        filled(str(url_of(tmp_path / "history" / "history.db")))
        found = iodelta.open_history(tmp_path / "history")
    else:
        where = request.getfixturevalue("server")
        filled(where)
        found = iodelta.open_history(where, log=tmp_path / "log")
    yield found
    found.close()


def test_every_history_says_the_same(history: History, tmp_path: Path) -> None:
    (line,) = history.series()
    assert (line.machine, line.cell, line.variant, line.metric) == ("stor3", "randread 4k", "new", "read.iops")
    assert history.series(metric="read.bw") == history.series(machine="x") == []
    frame = line.points()
    with contextlib.closing(iodelta.open_history(tmp_path / "other")) as other:
        filled(str(url_of(tmp_path / "other" / "history.db")))
        (same,) = other.series(metric="read.iops")
        assert frame.equals(same.points())
        assert list(history.scan()) == list(other.scan())
        (step,) = history.scan()
        assert step.last_good.describe == "v6.19"
        folder = tmp_path / "measured"
        carried(folder, -0.2)
        (added,), (own,) = history.add(folder), other.add(folder)
        assert (added.outcome, added.points, added.folder) == ("added", own.points, str(folder))
        assert history.add(folder)[0].outcome == "known"
        assert len(history.series()) == len(other.series()) > 1
        names = [
            [(one.machine, one.cell, one.variant, one.metric) for one in each.series()] for each in (history, other)
        ]
        assert sorted(names[0]) == sorted(names[1])
    with pytest.raises(RequestError):
        history.add(tmp_path / "nowhere")


def test_a_server_that_is_away_or_another_is_said(tmp_path: Path) -> None:
    from iodelta.errors import MeasureError

    with pytest.raises(MeasureError, match="does not answer"):
        iodelta.open_history("http://127.0.0.1:1/").series()
    with serving(cwd=tmp_path) as without, pytest.raises(RequestError, match="nothing at this address"):
        iodelta.open_history(without.url).series()
