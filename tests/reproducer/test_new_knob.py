"""A knob added by the words of docs/extending.md: its class and its place in FAMILIES are all that is written."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from reproducing import READS, SHELL, plan_of, run, written

from iodelta.bundle.dangers import dangers
from iodelta.knob import files, registry
from iodelta.knob.base import EMPTY, Knob, Saved, check_text
from iodelta.knob.files import FileKnob
from iodelta.knob.registry import restore_script
from iodelta.knob.shell import Line, Script, Shell, Steps
from iodelta.machine import LocalMachine, Machine
from iodelta.probe.topology import Target, resolve

ORIGINAL = "as it was".ljust(53, ".")  # a kernel file is not cut off at what is written: both are as long
HOSTILE = "it's $(touch owned) `touch owned` \"; touch owned; # \\"
"""A value that any unquoted way into a shell would run."""


class Depth(FileKnob):
    """A setting in a file of the kernel's."""

    names = ("toy.depth",)
    harmless = True
    file = ""

    def paths(self) -> tuple[str, ...]:
        return (self.file,)

    def absent(self) -> str:
        return "there is no such file"

    def allowed(self) -> str:
        return "any text"

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (cls.file,)


class Light(Knob):
    """A setting made by commands, which also binds the load. It is not harmless."""

    names = ("toy.light",)
    file = ""

    def available(self) -> str | None:
        return None

    def allowed(self) -> str:
        return "any text"

    def read(self) -> str:
        return Path(self.file).read_text().strip()

    def save(self, values: Sequence[str] = ()) -> Saved:
        return self.record((("light", self.read()), ("where", self.file)))

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        check_text(self.name, value)

    def apply(self, value: str) -> None:
        self.machine.write(self.file, value)

    def verify(self, value: str) -> None:
        assert self.read() == value

    def launcher(self, value: str) -> tuple[str, ...]:
        return ("env", f"LIGHT={value}")

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        shut = ("printf", "%s\\n", ORIGINAL, Shell(">"), cls.file)
        return Script(
            values={value: (("printf", "%s\\n", value, Shell(">"), cls.file),) for value in values},
            release=(shut,),
            launchers={value: ("env", f"LIGHT={value}") for value in values},
            steps={name: Steps(restore=shut)},
        )

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        (_, text), (_, file) = saved.values
        machine.write(file, text)
        return "restored"

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        (_, text), (_, file) = saved.values
        yield ("printf", "%s\\n", text, Shell(">"), file)


Added = type[Depth] | type[Light]


@pytest.fixture(params=[Depth, Light], ids=["a file", "commands"])
def added(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Added:
    """One of the two in its place, its file in a sandbox whose name needs quoting."""
    kind: Added = request.param
    sandbox = tmp_path / "a sandbox's"
    sandbox.mkdir()
    file = sandbox / "setting"
    file.write_text(f"{ORIGINAL}\n")
    monkeypatch.setattr(kind, "file", str(file))
    monkeypatch.setattr(files, "ROOTS", (f"{sandbox}/",))
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, kind))
    return kind


def shown(kind: Added) -> str:
    return Path(kind.file).read_text().strip()


def turned(kind: Added) -> tuple[tuple[str, ...], Saved, Target]:
    """The machine turned to the hostile value as a run does: saved, then applied and verified."""
    machine, target = LocalMachine(), resolve(LocalMachine(), str(Path(kind.file).parent))
    knob = registry.knob(kind.names[0], machine, target)
    registry.check({knob.name: knob}, {knob.name: HOSTILE})
    saved = knob.save([HOSTILE])
    return registry.turn({knob.name: knob}, {knob.name: saved}, {knob.name: HOSTILE}), saved, target


def test_a_run_sets_it_and_restores_it(added: Added) -> None:
    words, saved, _ = turned(added)
    assert shown(added) == HOSTILE
    assert words == ((), ("env", f"LIGHT={HOSTILE}"))[added is Light]
    (restored,) = registry.restore_all(LocalMachine(), [saved])
    assert restored.error == ""
    assert shown(added) == ORIGINAL


def test_the_script_beside_the_undo_log_restores_it(added: Added, tmp_path: Path) -> None:
    _, saved, _ = turned(added)
    assert shown(added) == HOSTILE
    subprocess.run([SHELL, "-c", restore_script([saved])], cwd=tmp_path, check=True)
    assert shown(added) == ORIGINAL
    assert not list(tmp_path.rglob("owned"))


FIO = """#!/bin/sh
for word in "$@"; do
    case $word in
    --output=*) out=${word#*=} ;;
    esac
done
printf '%s|%s\\n' "$(cat "$SETTING")" "${LIGHT-}" >>"$SEEN"
printf '"read" : {\\n"iops" : 7,\\n' >"$out"
"""


def test_a_reproducer_script_sets_it_and_restores_it(
    added: Added, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "fio").write_text(FIO)
    (programs / "fio").chmod(0o755)
    monkeypatch.setenv("SETTING", added.file)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    (tmp_path / "target").write_bytes(bytes(4096))
    variants = f"[variant.left]\n[variant.set]\n'{added.names[0]}' = {toml(HOSTILE)}\n"
    plan = plan_of(READS + "\nsize = '4k'", variants)
    path = written(tmp_path, plan, str(tmp_path / "target"), blocks=2)
    done = run(path, str(tmp_path / "target"), "results", programs=programs)
    assert done.returncode == 0, done.stderr
    bound = HOSTILE if added is Light else ""
    seen = (tmp_path / "seen").read_text().splitlines()
    assert sorted(seen) == sorted([f"{ORIGINAL}|"] * 2 + [f"{HOSTILE}|{bound}"] * 2)
    assert shown(added) == ORIGINAL
    assert not list(tmp_path.rglob("owned"))


def toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def test_a_bundle_asks_about_it_unless_it_is_harmless(added: Added) -> None:
    plan = plan_of(variants=f"[variant.left]\n[variant.set]\n'{added.names[0]}' = '5'\n")
    asked = [(danger.place, danger.what) for danger in dangers(plan.experiment)]
    assert asked == ([] if added.harmless else [("variant set", f"{added.names[0]} = 5")])
