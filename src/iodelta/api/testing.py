"""Contract tests for the author of a plugin: each raises AssertionError with the sentence that does not hold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec

from iodelta import machine as machines
from iodelta.audit import engine
from iodelta.audit.model import Evidence, Rule
from iodelta.decoding import from_json
from iodelta.errors import IodeltaError, RequestError
from iodelta.ingest import Run, reading
from iodelta.ingest.model import Item
from iodelta.knob import registry
from iodelta.knob.base import Knob, Saved
from iodelta.machine import LocalMachine, Machine
from iodelta.plugins import PluginError, guarded
from iodelta.probe.topology import resolve
from iodelta.trial import Place

NONSENSE = "\x1b$(nonsense)"


@contextmanager
def _contract() -> Iterator[None]:
    """Turn what iodelta would say of a plugin to a user into a failed assertion."""
    try:
        yield
    except PluginError as error:
        raise AssertionError(error.what) from error


@_contract()
def check_knob(kind: type[Knob]) -> None:
    """Check a knob without changing anything: it says why it is not available, or reads, saves and refuses nonsense; its
    record survives a file; a script and the undo log have its lines; every method returns what ``Knob`` says."""
    _fits(registry.unusable("", kind))
    checked = registry.guarded(kind.__name__, kind)
    with tempfile.TemporaryDirectory() as place:
        for name in kind.names:
            assert "." in name, f"the name {name} has no dot"
            knob = checked(LocalMachine(), resolve(LocalMachine(), place), name)
            checked.catalogue(knob.machine, knob.target)
            checked.danger(name)
            checked.covers(name, "other.knob")
            reason = knob.available()
            assert reason is None or reason, "available() says why it is not, or None"
            if reason is None:
                _check_settable(knob)


def _check_settable(knob: Knob) -> None:
    knob.read()
    try:
        knob.check(NONSENSE)
    except PluginError:
        raise
    except RequestError:
        pass
    else:
        raise AssertionError("check() takes a value that it cannot know")
    saved = knob.save()
    again = from_json(msgspec.json.encode(saved), Saved)
    assert again == saved, "the record of save() does not survive a file"
    assert saved.knob == knob.name, "the record names another knob"
    list(knob.undo_lines(saved))
    allowed = knob.allowed()
    values = allowed[:1] if isinstance(allowed, tuple) else ()
    for value in values:
        knob.check(value)
        knob.launcher(value)
    knob.findings(values, 0)
    knob.script(knob.name, values)


@_contract()
def check_rule(rule: Rule) -> None:
    """Check a rule: its id has a dot and is its own, it marks nothing without runs, and no run makes it raise."""
    _fits(engine.unusable("", rule))
    assert "." in rule.id, "the id of a rule has a dot: package.what"
    assert all((rule.says, rule.needs, rule.remedy)), (
        "says, needs and remedy are sentences"
    )
    assert engine.checked(rule.id, rule, Evidence(())) == [], (
        "it marks something where there is nothing"
    )
    bare = Run(place=Place("bare"), format="text")
    engine.checked(rule.id, rule, Evidence((bare, bare)))


@_contract()
def check_reader(read: Callable[[bytes, str], Iterable[Any]], output: bytes) -> None:
    """Check a reader: it finds runs in ``output``, with the place that it was given, and raises for nothing: not for the
    same cut off at any length, nor for other data."""
    _fits(reading.unusable("", read))
    checked = guarded("it", read, Iterable[Item])
    items = checked(output, "file.txt")
    assert any(isinstance(item, Run) for item in items), (
        "it finds no run in its own output"
    )
    assert all(item.place.file == "file.txt" for item in items), (
        "a run has the place that it was given"
    )
    step = max(1, len(output) // 2000)
    others = (
        b"",
        b"\0" * 99,
        bytes(range(256)),
        b'{"jobs": []}',
        output.swapcase(),
        output[::-1],
    )
    for other in (
        *others,
        *(output[:length] for length in range(0, len(output), step)),
    ):
        checked(other, "file.txt")


@_contract()
def check_machine(
    reach: Callable[[str], AbstractContextManager[Machine]], place: str
) -> None:
    """Check a machine: it runs a command, takes a file, reads it, and says what is missing."""
    _fits(machines.unusable("", reach))
    connection = guarded("it", reach, AbstractContextManager)(place)
    with machines.guarded("it", connection) as machine:
        assert machine.time() > 0.0, "time() is not in Unix seconds"
        assert machine.directory.startswith("/"), "its directory is not absolute"
        assert machine.state.startswith("/"), "its state is not an absolute path"
        assert machine.patience >= 0.0, "its patience is below 0"
        done = machine.run(["echo", "one two"], timeout=60.0)
        assert done.stdout == b"one two\n", (
            "run() does not return what a command prints"
        )
        assert machine.run(["false"], timeout=60.0).returncode == 1, (
            "run() does not return the exit code"
        )
        file = f"{machine.directory}/iodelta-contract"
        with tempfile.NamedTemporaryFile() as local:
            local.write(b"text\n")
            local.flush()
            machine.put(local.name, file)
        assert machine.read(file) == "text\n", "a file is not what was put there"
        assert machine.read_bytes(file) == b"text\n", "a file is not what was put there"
        assert machine.glob(f"{file}*") == [file], (
            "glob() does not list a file that is there"
        )
        machine.run(["rm", "-f", file], timeout=60.0)
        try:
            machine.read(file)
        except PluginError:
            raise
        except (IodeltaError, OSError):
            return
        raise AssertionError("a file that is not there is read")


def _fits(reason: str) -> None:
    assert not reason, reason
