"""Plugins: the example is built, installed and used; broken ones are one sentence, and the others go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fio_files import write
from msgspec.structs import replace

from iodelta import machine as machines
from iodelta import plugins
from iodelta.api import testing
from iodelta.audit.model import Mark, Rule
from iodelta.errors import RequestError
from iodelta.ingest import Run
from iodelta.knob.base import Saved
from iodelta.knob.files import FileKnob
from iodelta.machine import LocalMachine, Machine
from iodelta.trial import Place

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/plugin"

BROKEN = {
    "knobs": (
        "exits = acme_exits:Knob",
        "odd = acme_broken:Odd",
        "import_fails = acme_broken.missing:Knob",
        "shadow = acme_broken:Shadow",
        "raises = acme_broken:Raises",
    ),
    "rules": ("raises = acme_broken:raises", "shadow = acme_broken:shadow", "odd = acme_broken:odd"),
    "readers": ("raises = acme_broken:read", "exits = acme_exits:read"),
    "machines": ("nothing = acme_broken:no_machine", "ssh = acme_broken:machine", "odd = acme_broken:NOTHING"),
}

BROKEN_CODE = """
from iodelta.audit.model import Rule
from iodelta.knob.block import Scheduler
from iodelta.knob.files import FileKnob

class Shadow(Scheduler):
    pass

class Raises(FileKnob):
    names = ("acme.raises",)
    def paths(self):
        raise ValueError("no board")
    def absent(self):
        return ""
    def allowed(self):
        return ("0", "1")
    @classmethod
    def script_files(cls, name):
        return ()

class Odd(Raises):
    names = ("acme.odd",)
    def paths(self):
        return ("/proc/self/comm",)
    def read(self):
        return 5

odd = Rule("acme.odd", "hard", "says", "needs", "remedy", lambda evidence: 5)

def no_machine(place):
    from contextlib import nullcontext
    return nullcontext("nothing")

def find(evidence):
    raise KeyError("nobody thought of this")

raises = Rule("acme.raises", "hard", "says", "needs", "remedy", find)
shadow = Rule("order.trend", "hard", "says", "needs", "remedy", find)

def read(data, name):
    raise IndexError("too short")

NOTHING = None
machine = print
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip installed the example."""
    place = tmp_path_factory.mktemp("plugins") / "site"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*words, "--target", place, EXAMPLE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def both(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example, and a package in which everything is broken, as a path of Python's."""
    place = tmp_path_factory.mktemp("broken")
    (place / "acme_broken.py").write_text(BROKEN_CODE)
    (place / "acme_exits.py").write_text("import sys\nsys.exit('the licence\\nhas expired')\n")
    info = place / "acme_broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-broken\nVersion: 0.1\n")
    groups = [f"[iodelta.{kind}]\n" + "\n".join(lines) for kind, lines in BROKEN.items()]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    return f"{installed}:{place}"


def iodelta(path: Path | str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{path}", "IODELTA_STATE": str(cwd / "state")}
    code = "from iodelta.cli.main import main; main()"
    whole = [sys.executable, "-c", code, *words]
    return subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_the_example_passes_its_contracts(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{installed}"}
    options = ("-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull)
    words = [sys.executable, "-m", "pytest", *options, str(EXAMPLE / "tests")]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_an_installed_plugin_is_used_by_every_command(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "acme.txt").write_text("acme: randread bs=4k 41200 iops\n")
    read = iodelta(installed, "show", "acme.txt", "--format", "csv", cwd=tmp_path)
    assert "41200" in read.stdout, read.stdout + read.stderr
    assert "example.few-ios" in iodelta(installed, "audit", "--rules", cwd=tmp_path).stdout
    path = write(tmp_path / "few/x.json", 1000)
    path.write_text(re.sub(r'"total_ios": [1-9]\d*', '"total_ios": 50', path.read_text()))
    audited = iodelta(installed, "audit", "few", cwd=tmp_path)
    assert "[example.few-ios]" in audited.stdout, audited.stdout + audited.stderr
    knobs = iodelta(installed, "knobs", "--machine", "here:desk", cwd=tmp_path)
    assert "thp.enabled" in knobs.stdout, knobs.stdout + knobs.stderr
    assert "thp.enabled" not in iodelta("", "knobs", cwd=tmp_path).stdout
    words = ("run", "--dry-run", "--size", "4m", "--machine", "here:desk", "--variant", "a:thp.enabled=never")
    done = iodelta(installed, *words, "--variant", "b:thp.enabled=sometimes", "--", "--rw=randread", cwd=tmp_path)
    assert done.returncode == 2
    assert "thp.enabled" in done.stderr, done.stderr


def test_a_broken_plugin_is_one_sentence_that_names_it_and_the_others_go_on(both: str, tmp_path: Path) -> None:
    knobs = iodelta(both, "knobs", cwd=tmp_path)
    assert knobs.returncode == 0, knobs.stderr
    assert "thp.enabled" in knobs.stdout
    said = " ".join(knobs.stdout.split())
    assert "the knob raises of the package acme-broken 0.1 failed with ValueError: no board" in said
    assert "the knob odd of the package acme-broken 0.1 returned 5 (int), where str is expected" in said
    words = (
        "run",
        "--dry-run",
        "--size",
        "4m",
        "--variant",
        "a",
        "--variant",
        "b:acme.missing=1",
        "--",
        "--rw=randread",
    )
    unknown = iodelta(both, *words, cwd=tmp_path)
    assert unknown.returncode == 2
    sentence = "the knob import_fails of the package acme-broken 0.1 cannot be used: loading it failed with Module"
    assert sentence in unknown.stderr
    assert "block.scheduler is a knob of iodelta" in unknown.stderr
    assert "0.1 cannot be used: loading it failed with SystemExit: the licence has expired" in unknown.stderr
    assert "Traceback" not in unknown.stderr

    (tmp_path / "acme.txt").write_text("acme: randread bs=4k 41200 iops\n")
    audited = iodelta(both, "audit", "acme.txt", cwd=tmp_path)
    said = " ".join(audited.stdout.split())
    assert "the rule raises of the package acme-broken 0.1 failed with KeyError" in said, audited.stderr
    assert "the rule odd of the package acme-broken 0.1 returned 5 (int), where Iterable[Mark] is expected" in said
    assert audited.returncode == 0, "a broken rule is no hard finding"
    assert "41200" in iodelta(both, "show", "acme.txt", "--format", "csv", cwd=tmp_path).stdout

    lacks = "the machine nothing of the package acme-broken 0.1 returned str, which lacks append, directory"
    for name, text in (("odd:x", "the machine odd of the package acme-broken"), ("ssh:", ""), ("nothing:x", lacks)):
        done = iodelta(both, "knobs", "--machine", name, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert text in done.stderr
        assert "Traceback" not in done.stderr


def knob_that(**methods: object) -> type[FileKnob]:
    """A sound knob of a plugin, but for these methods."""
    sound: dict[str, object] = {
        "names": ("acme.knob",),
        "paths": lambda self: ("/proc/self/comm",),
        "absent": lambda self: "absent",
        "allowed": lambda self: ("a",),
        "check": check_letters,
        "script_files": classmethod(lambda cls, name: ("/proc/self/comm",)),
    }
    return type("Acme", (FileKnob,), {**sound, **methods})


def check_letters(self: FileKnob, value: str, beside: object = None) -> None:
    if not value.isalpha():
        raise RequestError("not letters")


def rule_that(find: object, **fields: object) -> Rule:
    words: dict[str, object] = {"id": "a.b", "severity": "hard", "says": "s", "needs": "n", "remedy": "r", **fields}
    return Rule(find=find, **words)  # type: ignore[arg-type]


def exits(*values: object, **options: object) -> None:
    raise SystemExit(3)


RUN = Run(place=Place("file.txt"), format="text")
COMMAND = LocalMachine().run(["true"])


class Board(LocalMachine):
    """Not a LocalMachine to iodelta, which would trust it."""


def board(**verbs: object) -> Callable[[str], AbstractContextManager[Machine]]:
    """A machine of a plugin that hands all but ``verbs`` to this one."""
    machine = SimpleNamespace(**{name: getattr(Board(), name) for name in plugins._members(Machine)} | verbs)
    return lambda place: nullcontext(cast(Machine, machine))


loose: Any = testing
loose_saved: Any = Saved
loose_mark: Any = Mark
no_machine: Any = nullcontext

WRONG: dict[str, tuple[Callable[[], None], str]] = {
    "available": (lambda: loose.check_knob(knob_that(available=lambda self: 3)), r"3 \(int\), where str \| None"),
    "allowed": (lambda: loose.check_knob(knob_that(allowed=lambda self: ["a"])), "where tuple"),
    "inner": (lambda: loose.check_knob(knob_that(allowed=lambda self: ("a", 3))), "is expected"),
    "read": (lambda: loose.check_knob(knob_that(read=lambda self: None)), "where str is expected"),
    "save": (
        lambda: loose.check_knob(knob_that(save=lambda self, values=(): loose_saved(1, "", (), ""))),
        "Saved.knob = 1",
    ),
    "names": (lambda: loose.check_knob(knob_that(names="acme.knob")), "its names"),
    "findings": (lambda: loose.check_knob(knob_that(findings=lambda self, values, size=None: [1])), "where Mapping"),
    "launcher": (lambda: loose.check_knob(knob_that(launcher=lambda self, value: "nice")), "where tuple"),
    "undo": (lambda: loose.check_knob(knob_that(undo_lines=classmethod(lambda cls, saved: ["rm"]))), "'rm'"),
    "knob exits": (lambda: loose.check_knob(knob_that(allowed=exits)), "Acme failed with SystemExit: 3"),
    "knob begins": (lambda: loose.check_knob(knob_that(__init__=exits)), "Acme failed with SystemExit: 3"),
    "rule": (lambda: loose.check_rule(rule_that(lambda evidence: None)), "where Iterable"),
    "rule exits": (lambda: loose.check_rule(rule_that(exits)), "SystemExit"),
    "rule later": (lambda: loose.check_rule(rule_that(lambda evidence: map(exits, evidence.runs))), "SystemExit"),
    "severity": (lambda: loose.check_rule(rule_that(lambda evidence: (), severity="loud")), "severity = 'loud'"),
    "mark": (
        lambda: loose.check_rule(rule_that(lambda e: [loose_mark(("0",), "x")] if e.runs else [])),
        r"\[0\]\.runs\[0\] = '0'",
    ),
    "run": (
        lambda: loose.check_rule(rule_that(lambda e: [loose_mark((7,), "x")] if e.runs else [])),
        "about run 7 of 2",
    ),
    "no run": (lambda: loose.check_rule(rule_that(lambda e: [loose_mark((), "x")] if e.runs else [])), "about no run"),
    "reader": (lambda: loose.check_reader(lambda data, name: None, b"x"), "returned None"),
    "reader exits": (lambda: loose.check_reader(exits, b"x"), "SystemExit"),
    "item": (lambda: loose.check_reader(lambda data, name: [RUN, "x"], b"x"), "returned .*'x'"),
    "field": (lambda: loose.check_reader(lambda data, name: [replace(RUN, jobname=3)], b"x"), r"\[0\]\.jobname = 3"),
    "no connection": (lambda: loose.check_machine(lambda place: None, "x"), "AbstractContextManager is expected"),
    "no machine": (lambda: loose.check_machine(lambda place: no_machine(), "x"), "lacks append, directory"),
    "machine exits": (lambda: loose.check_machine(board(run=exits), "x"), "SystemExit"),
    "verb": (lambda: loose.check_machine(board(run=lambda words, **limit: "done"), "x"), "where Completed is expected"),
    "output": (
        lambda: loose.check_machine(board(run=lambda words, **limit: replace(COMMAND, stdout="one two\n")), "x"),
        "Completed.stdout = 'one two",
    ),
    "attribute": (lambda: loose.check_machine(board(directory=b"/"), "x"), "where str is expected"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_contracts_find_each_wrong_answer(name: str) -> None:
    check, said = WRONG[name]
    with pytest.raises(AssertionError, match=said) as error:
        check()
    assert "\n" not in str(error.value)


def stubborn(*given: object, **options: object) -> None:
    while True:
        with suppress(Exception):
            time.sleep(60)


def run_on_a_machine_that_hangs() -> None:
    with machines.guarded("it", board(run=stubborn)("x")) as machine:
        machine.run(["true"], timeout=0.1)


@pytest.mark.parametrize(
    ("check", "seconds"),
    [
        (lambda: loose.check_reader(stubborn, b"x"), "0.2"),
        (lambda: loose.check_machine(board(time=stubborn), "x"), "0.2"),
        (run_on_a_machine_that_hangs, "0.3"),
    ],
    ids=["reader", "question to a machine", "command with a timeout"],
)
def test_a_plugin_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, check: Callable[[], None], seconds: str) -> None:
    monkeypatch.setattr(plugins, "SECONDS", 0.2)
    with pytest.raises((AssertionError, plugins.PluginError), match=rf"it took longer than {re.escape(seconds)}"):
        check()
