"""Contract tests for the author of a plugin: each raises AssertionError with the sentence that does not hold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from iodelta.audit import engine
from iodelta.audit.model import Evidence, Rule
from iodelta.decoding import from_json
from iodelta.errors import IodeltaError, RequestError
from iodelta.ingest import Refusal, Run, reading
from iodelta.knob import registry
from iodelta.knob.base import Knob, Saved
from iodelta.knob.shell import NoScript, Script
from iodelta.machine import LocalMachine, Machine
from iodelta.machine import unusable as unusable_machine
from iodelta.probe.topology import resolve
from iodelta.trial import Place

NONSENSE = "\x1b$(nonsense)"


def check_knob(kind: type[Knob]) -> None:
    """A knob, without changing anything: it says why it is not available, or reads, saves and refuses nonsense; its
    record survives a file; a script and the undo log have its lines."""
    _fits(registry.unusable("", kind))
    with tempfile.TemporaryDirectory() as place:
        for name in kind.names:
            assert "." in name, f"the name {name} has no dot"
            knob = kind(LocalMachine(), resolve(LocalMachine(), place), name)
            reason = knob.available()
            assert reason is None or reason, "available() says why it is not, or None"
            if reason is None:
                _check_settable(knob)


def _check_settable(knob: Knob) -> None:
    assert isinstance(knob.read(), str), "read() returns text"
    try:
        knob.check(NONSENSE)
    except RequestError:
        pass
    else:
        raise AssertionError("check() takes a value that it cannot know")
    saved = knob.save()
    again = from_json(msgspec.json.encode(saved), Saved)
    assert again == saved, "the record of save() does not survive a file"
    assert saved.knob == knob.name, "the record names another knob"
    lines = list(knob.undo_lines(saved))
    assert all(isinstance(line, tuple) for line in lines), (
        "undo_lines() yields tuples of words"
    )
    allowed = knob.allowed()
    values = allowed[:1] if isinstance(allowed, tuple) else ()
    assert isinstance(knob.script(knob.name, values), Script | NoScript), (
        "script() returns a Script, or NoScript"
    )


def check_rule(rule: Rule) -> None:
    """A rule: its id has a dot and is its own, it marks nothing without runs, and no run makes it raise."""
    _fits(engine.unusable("", rule))
    assert "." in rule.id, "the id of a rule has a dot: package.what"
    assert all((rule.says, rule.needs, rule.remedy)), (
        "says, needs and remedy are sentences"
    )
    assert list(rule.find(Evidence(()))) == [], (
        "it marks something where there is nothing"
    )
    bare = Run(place=Place("bare"), format="text")
    for mark in rule.find(Evidence((bare, bare))):
        assert set(mark.runs) <= {0, 1}, "a mark is about runs that there are"


def check_reader(read: Callable[[bytes, str], Iterable[Any]], output: bytes) -> None:
    """A reader: it finds runs in ``output``, with the place that it was given, and raises for nothing: not for the
    same cut off at any length, nor for other data."""
    _fits(reading.unusable("", read))
    items = list(read(output, "file.txt"))
    assert any(isinstance(item, Run) for item in items), (
        "it finds no run in its own output"
    )
    for item in items:
        assert isinstance(item, Run | Refusal), f"it yields a {type(item).__name__}"
        assert item.place.file == "file.txt", "a run has the place that it was given"
    step = max(1, len(output) // 2000)
    for length in range(0, len(output), step):
        list(read(output[:length], "file.txt"))
    for other in (
        b"",
        b"\0" * 99,
        bytes(range(256)),
        b'{"jobs": []}',
        output.swapcase(),
        output[::-1],
    ):
        list(read(other, "file.txt"))


def check_machine(
    reach: Callable[[str], AbstractContextManager[Machine]], place: str
) -> None:
    """A machine: it runs a command, takes a file, reads it, and says what is missing."""
    _fits(unusable_machine("", reach))
    with reach(place) as machine:
        done = machine.run(["echo", "one two"])
        assert done.stdout == b"one two\n", (
            "run() does not return what a command prints"
        )
        file = f"{machine.directory}/iodelta-contract"
        with tempfile.NamedTemporaryFile() as local:
            local.write(b"text\n")
            local.flush()
            machine.put(local.name, file)
        assert machine.read(file) == "text\n", "a file is not what was put there"
        machine.run(["rm", "-f", file])
        try:
            machine.read(file)
        except (IodeltaError, OSError):
            return
        raise AssertionError("a file that is not there is read")


def _fits(reason: str) -> None:
    assert not reason, reason
