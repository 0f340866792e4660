"""A machine keeps its series when it is renamed; two machines of one name keep theirs apart."""

from __future__ import annotations

from pathlib import Path

from nights import night, on

from iodelta.bundle.identity import kind_of
from iodelta.history.log import Log
from iodelta.history.points import Night
from iodelta.history.reading import named
from iodelta.probe.host import machine_id

ONE, OTHER = "1" * 32, "2" * 32


def seen(number: int, name: str, identity: str) -> Night:
    """The night of that number on a machine with that identity."""
    return on(name, night(number), identity=identity)


def test_a_renamed_machine_goes_on_with_its_series(tmp_path: Path) -> None:
    log = Log(tmp_path / "decisions.jsonl")
    first = named(seen(1, "stor3", ONE), log, write=True)
    later = named(seen(2, "rack2-stor3", ONE), log, write=True)
    assert (first.machine, later.machine) == ("stor3", "stor3")
    assert first.points[0].key.number == later.points[0].key.number


def test_two_machines_of_one_name_are_two_whoever_comes_first(tmp_path: Path) -> None:
    log = Log(tmp_path / "decisions.jsonl")
    first = named(seen(1, "stor3", ONE), log, write=True)
    other = named(seen(2, "stor3", OTHER), log, write=True)
    assert first.machine == "stor3"
    assert other.machine.startswith("stor3-2222")
    assert first.points[0].key.number != other.points[0].key.number
    # Read again, in any order and without writing: the log says the same.
    assert named(seen(3, "anything", OTHER), Log(log.path)).machine == other.machine
    assert named(seen(3, "anything", ONE), Log(log.path)).machine == "stor3"


def test_nights_from_before_machines_had_identities_are_joined(tmp_path: Path) -> None:
    log = Log(tmp_path / "decisions.jsonl")
    old = named(seen(1, "stor3", ""), log, write=True)
    new = named(seen(2, "stor3", ONE), log, write=True)
    assert old.points[0].key.number == new.points[0].key.number


def test_what_is_recorded_does_not_give_the_machine_id_away_and_is_left_out_of_bundles() -> None:
    raw = "0123456789abcdef0123456789abcdef"
    found = machine_id(raw)
    assert len(found) == 32
    assert raw not in found
    assert found != machine_id(raw[::-1])
    assert kind_of(("host", "machine_id"), found) == "serial"
    for text in ("", "uninitialized", raw[:-1], raw.upper()):
        assert machine_id(text) == ""
