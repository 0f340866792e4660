"""Settings that only the user's own commands can make."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine

from .rooted import on_sda


def writing(file: Path, text: str, back: str) -> str:
    """A command that makes ``file`` say ``text``, and back again; apply also adds a line to a log beside it."""
    script = 'printf %s "$1" > "$0"; echo "$1" >> "$0.log"'
    return json.dumps(
        {
            "apply": ["sh", "-c", script, str(file), text],
            "verify": ["grep", "-qx", text, str(file)],
            "restore": ["sh", "-c", script, str(file), back],
        }
    )


def test_a_command_is_undone_between_variants_and_at_the_end(machine: LocalMachine, tmp_path: Path) -> None:
    file = tmp_path / "state"
    red, blue = writing(file, "red", "plain"), writing(file, "blue", "plain")
    knobs = {"command": on_sda("command", machine)}
    saved = {"command": knobs["command"].save([red, blue])}
    for settings in ({}, {"command": red}, {"command": red}, {"command": blue}, {}, {}):
        knob.turn(knobs, saved, settings)
    log = Path(f"{file}.log").read_text().split()
    assert log == ["red", "plain", "blue", "plain"]
    assert knob.restore(machine, saved["command"]).startswith("ran sh -c")
    assert file.read_text() == "plain"


def test_a_command_that_did_not_do_it_is_caught(machine: LocalMachine, tmp_path: Path) -> None:
    lame = json.dumps({"apply": ["true"], "restore": ["true"], "verify": ["sh", "-c", "echo not set >&2; exit 3"]})
    command = on_sda("command", machine)
    command.apply(lame)
    with pytest.raises(KnobError, match=r"verify sh -c .* ended with 3: not set"):
        command.verify(lame)
    with pytest.raises(KnobError, match="apply false ended with 1: it printed nothing"):
        command.apply(json.dumps({"apply": ["false"], "restore": ["true"]}))


def test_what_a_reboot_leaves_is_restored_after_it(machine: LocalMachine, tmp_path: Path) -> None:
    file = tmp_path / "state"
    command = on_sda("command", machine)
    saved = command.save([writing(file, "red", "plain")])
    command.apply(writing(file, "red", "plain"))
    knob.restore(machine, msgspec.structs.replace(saved, boot="another"))
    assert file.read_text() == "plain"


def test_what_cannot_be_undone_does_not_keep_the_others_from_it(machine: LocalMachine, tmp_path: Path) -> None:
    file = tmp_path / "state"
    applied = writing(file, "red", "plain")
    never = [json.dumps({"apply": ["true"], "restore": words}) for words in (["false"], ["/no/such/program"])]
    saved = on_sda("command", machine).save([applied, *never])
    with pytest.raises(KnobError, match=r"/no/such/program.*; restore false ended with 1"):
        knob.restore(machine, saved)
    assert file.read_text() == "plain"


def test_a_record_from_another_machine_runs_nothing_here(machine: LocalMachine, tmp_path: Path) -> None:
    file = tmp_path / "state"
    saved = on_sda("command", machine).save([writing(file, "red", "plain")])
    stranger = msgspec.structs.replace(saved, values=(("machine", "0" * 32), *saved.values[1:]))
    assert "another machine" in knob.restore(machine, stranger)
    assert not file.exists()


@pytest.mark.parametrize(
    "value",
    [
        "rm -rf x",
        "[]",
        "{}",
        '{"apply": ["true"]}',
        '{"apply": [], "restore": ["true"]}',
        '{"apply": "a", "restore": ["b"]}',
        '{"apply": ["a"], "restore": ["b"], "after": ["c"]}',
        '{"apply": ["a\\u0000"], "restore": ["b"]}',
    ],
)
def test_commands_are_argument_lists_with_a_way_back(machine: LocalMachine, value: str) -> None:
    with pytest.raises(RequestError, match=r"allowed: \{apply = "):
        on_sda("command", machine).check(value)
