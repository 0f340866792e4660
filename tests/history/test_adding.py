"""An experiment costs the same to add and to continue, however many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import nights
import pytest
import sqlalchemy as sa
from nights import key, night

from iodelta.history import adding
from iodelta.history.log import Given, Log
from iodelta.history.points import Night
from iodelta.history.store import Store

FEW, MANY = 20, 600


class Steps:
    """Counts what is executed: lines of iodelta, and instructions of SQLite's virtual machine in tens."""

    def __init__(self, engine: sa.Engine) -> None:
        self.lines = self.instructions = 0
        sa.event.listen(engine, "checkout", self._watch)

    def of(self, work: Callable[[], object]) -> tuple[int, int]:
        """So many of both in ``work``."""
        self.lines = self.instructions = 0
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            work()
        finally:
            sys.settrace(before)
        return self.lines, self.instructions

    def _watch(self, connection: Any, *_: object) -> None:
        connection.set_progress_handler(self._more, 10)

    def _more(self) -> int:
        self.instructions += 1
        return 0

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if "iodelta" not in frame.f_code.co_filename:
            return None
        self.lines += event == "line"
        return self._trace


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Store, Log]]:
    """An empty history."""
    store = nights.opened(tmp_path)
    yield store, Log(tmp_path / "decisions.jsonl")
    store.close()


@pytest.mark.parametrize("kind", ["complete", "foreign"])
def test_an_experiment_costs_the_same_however_many_there_are(
    opened: tuple[Store, Log], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    store, log = opened
    steps = Steps(store._engine)

    def add(one: Night) -> None:
        monkeypatch.setattr(adding, "nights_of", lambda *_, **__: (one,))
        adding.add(Path(one.folder), Given(), store, log)

    def costs(number: int) -> tuple[int, ...]:
        new, grown = (made(number, kind, grown=grown) for grown in (False, True))
        return *steps.of(lambda: add(new)), *steps.of(lambda: add(grown))

    few: tuple[int, ...] = ()
    many: tuple[int, ...] = ()
    for number in range(MANY + 1):
        if number == FEW:
            few = costs(number)
        elif number == MANY:
            many = costs(number)
        else:
            add(made(number, kind))
    assert len(store.experiments()) == MANY + 1
    assert min(few) >= 5
    assert max(after / before for before, after in zip(few, many, strict=True)) < 2.0


def test_the_nights_of_a_machine_cost_the_same_however_many_machines_there_are(opened: tuple[Store, Log]) -> None:
    store, _ = opened
    steps, costs = Steps(store._engine), []
    for number in range(MANY):
        if number in (FEW, MANY - 1):
            costs.append(steps.of(lambda: store.lines(machine="machine-1")))
        one = made(number, "complete")
        store.add(msgspec.structs.replace(one, machine=f"machine-{number}"))
    (few, _), (many, _) = costs
    assert len(store.lines(machine="machine-1")) == 1
    assert 5 <= many < 1.5 * few


def made(number: int, kind: str, *, grown: bool = False) -> Night:
    """A night of its own folder with a series of its own."""
    one = night(number, grown=grown)
    own = tuple(msgspec.structs.replace(point, key=key(twin=str(number))) for point in one.points)
    return msgspec.structs.replace(one, points=own, state=kind)
