"""Every JSON document against its published schema, and every field of a document documented."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from fio_files import write
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from test_console import account, experiment

from iodelta.cli.main import cli
from iodelta.lab.calibration import Calibration, Injection
from iodelta.part import documents as known
from iodelta.report.documents import schema, written
from iodelta.report.formats.render import rendered
from iodelta.report.stories.calibration import CalibrationAnswer


def said(*words: str, cwd: Path) -> Any:
    """What a command prints as JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        done = CliRunner().invoke(cli, [*words, "--format", "json"], prog_name="iodelta")
    assert done.exit_code in (0, 1, 3, 4), done.output
    return json.loads(done.stdout_bytes)


def documents(place: Path) -> dict[str, Any]:
    """One of each kind that needs no experiment folder, by schema."""
    write(place / "A" / "x.json", 1000)
    write(place / "B" / "x.json", 900, depth=16)
    (place / "table.md").write_text(
        "| policy | IOPS | BW (KiB/s) |\n|---|---|---|\n| pid | 65 | 260 |\n| queue | 9 | 9M |\n"
    )
    injections = (Injection(-0.01, "equivalent", None, 0.1, 9),)
    calibration = Calibration("k", "randread", "vda", 1.0, 60, 1, (), injections)
    found = [
        json.loads(rendered(account(experiment(), {("iodepth=32", "new"): -0.05}), "json")),
        json.loads(rendered(account(experiment(variants=("old", "new", "c")), {}, sd=0.3, blocks=2), "json")),
        said("compare", "A", "B", cwd=place),
        said("show", "A", "table.md", cwd=place),
        said("audit", "A", "table.md", cwd=place),
        said("env", cwd=place),
        said("knobs", cwd=place),
        said("restore", cwd=place),
        json.loads(written(CalibrationAnswer(calibration, math.nan))),
    ]
    return {f"{one['schema']} {number}": one for number, one in enumerate(found)}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IODELTA_STATE", str(tmp_path_factory.mktemp("state")))
        return documents(tmp_path_factory.mktemp("results"))


def test_every_document_is_valid_by_its_schema(printed: dict[str, Any]) -> None:
    for name, document in printed.items():
        Draft202012Validator(schema(name.partition(" ")[0])).validate(document)


def test_the_schemas_themselves_are_valid() -> None:
    for name in known():
        made = schema(name)
        Draft202012Validator.check_schema(made)
        assert made["title"] == name


def test_every_field_of_every_document_has_a_sentence() -> None:
    without = [
        f"{name}: {part}.{field}"
        for name in known()
        for made in (schema(name),)
        for part, struct in made["$defs"].items()
        for field, own in struct.get("properties", {}).items()
        if not (own.get("description") or _refers(own, made).get("description", "")).endswith(".")
    ]
    assert without == []


def _refers(own: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """What a field that is nothing but a struct refers to: it is described there."""
    found: dict[str, Any] = made["$defs"].get(own.get("$ref", "").rpartition("/")[2], {})
    return found


def test_a_document_that_lost_a_field_or_has_a_wrong_one_is_refused(printed: dict[str, Any]) -> None:
    document = next(one for name, one in printed.items() if name.startswith("iodelta.verdict/1"))
    validator = Draft202012Validator(schema("iodelta.verdict/1"))
    without = {key: value for key, value in document.items() if key != "headline"}
    with pytest.raises(ValidationError):
        validator.validate(without)
    wrong = copy.deepcopy(document)
    wrong["account"]["judgement"]["verdicts"][0]["word"] = "faster"
    with pytest.raises(ValidationError):
        validator.validate(wrong)


def test_what_is_not_known_is_null_and_every_byte_is_ascii() -> None:
    class Odd(msgspec.Struct):
        a: float
        b: dict[int, str]

    data = written(Odd(math.inf, {1: "é\u202e\x9b\U0001f600\ud800"}))
    assert data.isascii()
    assert json.loads(data) == {"a": None, "b": {"1": "é\u202e\x9b\U0001f600?"}}


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, those of groups by both names."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for own in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), own)
        assert found is not None
        yield from leaves(found, f"{name} {own}")


def test_every_command_has_a_form_for_programs() -> None:
    without = [
        name
        for name, command in leaves(cli, "iodelta")
        if not any("json" in getattr(one.type, "choices", ()) for one in command.params)
    ]
    assert without == []
