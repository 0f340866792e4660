"""Options mean one thing in every command; what is missing or doubled is said; no file is lost; JSON is JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from fio_files import write
from jsonschema import Draft202012Validator
from test_console import account, experiment
from test_documents import leaves

from iodelta.cli.commands import FORMS
from iodelta.cli.delivery import ENDINGS
from iodelta.cli.main import cli
from iodelta.cli.watching import RunWatcher
from iodelta.errors import IodeltaError
from iodelta.experiment import parse
from iodelta.lab.folder import Folder
from iodelta.lab.plan import make_plan
from iodelta.report.documents import schema
from iodelta.report.formats.console import lines
from iodelta.study.again import Again, again

ODD = "my results; $(x) 'y'"
"""A folder's name that a shell would take apart."""


class Said(msgspec.Struct):
    code: int
    out: bytes
    error: str


def call(*words: str | Path, cwd: Path) -> Said:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        done = CliRunner().invoke(cli, list(map(str, words)), prog_name="iodelta")
    if isinstance(done.exception, IodeltaError):
        return Said(done.exception.exit_code, done.stdout_bytes, str(done.exception))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Said(done.exit_code, done.stdout_bytes, done.stderr)


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    return tmp_path


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The folder of an experiment without a trial."""
    Folder.begin(tmp_path / ODD, "", make_plan(experiment()))
    return tmp_path / ODD


# ------------------------------------------------------------------------------------------------ files and folders


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_files_ending_implies_its_format(ending: str, sides: Path) -> None:
    done = call("compare", "A", "B", "-o", f"report{ending}", cwd=sides)
    assert done.code == 3, done.error
    asked = call("compare", "A", "B", "--format", ENDINGS[ending], cwd=sides)
    assert (sides / f"report{ending}").read_bytes() == asked.out
    assert set(ENDINGS.values()) == {*FORMS["REPORT"].split("|"), "junit", "ktap"} - {"console"}


def test_an_ending_that_says_nothing_is_asked_about_before_anything_is_read(sides: Path) -> None:
    done = call("compare", "A", "nowhere", "-o", "report.doc", cwd=sides)
    assert done.code == 2
    assert "report.doc: the extension of this file does not select a format" in done.error
    done = call("compare", "A", "B", "-o", "report.doc", "--format", "csv", cwd=sides)
    assert (sides / "report.doc").read_text().startswith("cell,"), done.error


def test_a_file_is_never_of_another_format_than_its_name_says(sides: Path) -> None:
    done = call("compare", "A", "B", "-o", "report.csv", "--format", "html", cwd=sides)
    assert done.code == 2
    assert "report.csv: a file with this extension holds csv, not html" in done.error
    assert not (sides / "report.csv").exists()
    assert call("compare", "A", "B", "-o", "report.txt", "--format", "markdown", cwd=sides).code == 3


WRITERS: tuple[tuple[str, ...], ...] = (
    ("compare", "A", "B", "-o", "taken.html"),
    ("show", "table.md", "-o", "taken.html"),
    ("report", "table.md", "-o", "taken.html"),
    ("audit", "table.md", "--repair", "taken.html"),
    ("audit", "table.md", "-o", "taken.html"),
    ("reproduce", "table.md", "--against", "table.md", "-o", "taken.html"),
    ("pack", "begun", "-o", "taken.html"),
    ("report", "begun", "--reproducer", "-o", "taken.html"),
    ("policy", "calibrate", "m1", "m2", "-o", "taken.html"),
    ("scenario", "run", "queue-depth-sweep", "-o", "taken.html"),
    ("run", "--variant", "a", "--variant", "b:fio.nice=1", "-o", "taken.html", "--", "--rw=randread"),
    ("prepare", "table.md", "--destroy", "table.md", "-o", "taken.html"),
    ("calibrate", "-o", "taken.html"),
    ("history", "show", "-o", "taken.html"),
    ("fleet", "report", "begun", "-o", "taken.html"),
)


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("link", [False, True])
def test_no_command_writes_over_a_file_unless_it_is_forced(words: tuple[str, ...], link: bool, sides: Path) -> None:
    Folder.begin(sides / "begun", "", make_plan(experiment()))
    (sides / "table.md").write_text("| policy | IOPS | BW (KiB/s) |\n|---|---|---|\n| pid | 65 | 260 |\n")
    taken = sides / "taken.html"
    if link:
        taken.symlink_to("kept")
        (sides / "kept").write_text("a year of work")
    else:
        taken.write_text("a year of work")
    before = sorted(path.name for path in sides.iterdir())
    done = call(*words, cwd=sides)
    assert done.code == 2
    assert "taken.html: this file exists, and iodelta did not write it" in done.error
    assert taken.read_text() == "a year of work"
    assert sorted(path.name for path in sides.iterdir()) == before


def test_every_command_that_writes_a_file_is_tried_above() -> None:
    options = ("--output", "--repair")
    writers = {
        name.removeprefix("iodelta ")
        for name, command in leaves(cli, "iodelta")
        if any(word in param.opts for param in command.params for word in options)
    }
    groups = ("policy", "scenario", "history", "fleet")
    assert writers == {words[0] if words[0] not in groups else " ".join(words[:2]) for words in WRITERS}


def test_a_file_that_iodelta_wrote_is_replaced_until_somebody_edits_it(sides: Path) -> None:
    for format_ in ("csv", "md", "json", "html", "txt"):
        for _ in range(2):
            assert call("compare", "A", "B", "-o", f"report.{format_}", cwd=sides).code == 3
    with (sides / "report.csv").open("a") as file:
        file.write("a note of mine")
    assert "iodelta did not write it" in call("compare", "A", "B", "-o", "report.csv", cwd=sides).error


def test_a_forced_file_is_replaced_and_a_pipe_is_just_written(sides: Path) -> None:
    (sides / "report.csv").write_text("old")
    assert call("compare", "A", "B", "-o", "report.csv", "--force", cwd=sides).code == 3
    assert (sides / "report.csv").read_text().startswith("cell,")
    assert call("compare", "A", "B", "-o", "/dev/null", "--format", "csv", cwd=sides).code == 3
    assert not Path("/dev/null").is_file()
    done = call("compare", "A", "B", "-o", "A", "--format", "csv", "--force", cwd=sides)
    assert "this is a folder, not a file to write" in done.error


def test_a_bundle_that_cannot_be_made_leaves_the_old_one(sides: Path) -> None:
    Folder.begin(sides / "begun", "", make_plan(experiment()))
    (sides / "old.tar.zst").write_text("old")
    done = call("pack", "begun", "-o", "old.tar.zst", "--force", cwd=sides)
    assert done.code != 0
    assert (sides / "old.tar.zst").read_text() == "old"


def test_pictures_of_another_report_are_not_replaced(sides: Path) -> None:
    (sides / "pictures").mkdir()
    (sides / "pictures/sweep.svg").write_text("old")
    done = call("compare", "A", "B", "--charts", "pictures", cwd=sides)
    assert done.code == 2
    assert "it contains pictures that iodelta did not write, such as sweep.svg" in done.error


# --------------------------------------------------------------------------------------------- missing and doubled


def takes_fio() -> list[str]:
    return [name for name, command in leaves(cli, "iodelta") if any(param.name == "fio" for param in command.params)]


@pytest.mark.parametrize("name", takes_fio())
def test_fios_options_without_the_dashes_before_them_are_told_where_they_belong(name: str, tmp_path: Path) -> None:
    done = call(*name.split()[1:], "--rw=randread", cwd=tmp_path)
    assert done.code == 2
    assert f"Options of fio itself come after --, as in: {name} ... -- --rw=..." in done.error


def test_a_mistyped_option_of_ours_is_not_taken_for_fios(tmp_path: Path) -> None:
    done = call("run", "--vriant", "a", "--", "--rw=randread", cwd=tmp_path)
    assert done.code == 2
    assert "--variant" in done.error
    assert "fio itself" not in done.error
    assert "fio itself" not in call("show", "--rw=randread", cwd=tmp_path).error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "--variant", "a", "--variant", "a:fio.nice=1"), "--variant: 'a' is given twice"),
        (("run", "--variant", "a:fio.nice=1,fio.nice=2", "--variant", "b"), "'fio.nice' is given twice"),
        (("run", "--condition", "x", "--condition", "x:fio.nice=1"), "--condition: 'x' is given twice"),
        (("policy", "simulate", "--policy", "pid", "--policy", "pid", "--member", "ssd"), "'pid' is given twice"),
        (("policy", "explain", "pid", "pid"), "'pid' is given twice"),
        (("policy", "simulate", "--iodepth", "1,1", "--member", "ssd"), "'1' is given twice"),
        (("scenario", "run", "jbod-mmap", "--vm", "--kernel", "6.1", "--kernel", "6.1"), "a kernel is given twice"),
        (("bisect", "--item", "1", "--item", "1", "--measure", "x", "--better", "higher"), "'1' is on the list twice"),
    ],
)
def test_what_is_given_twice_is_refused(words: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    """The second of two variants of one name replaced or joined the first, and nothing was said."""
    variants = ("--variant", "y", "--variant", "z") if "--condition" in words else ()
    fio = ("--dry-run", "--", "--rw=randread") if words[0] == "run" else ()
    done = call(*words, *variants, *fio, cwd=tmp_path)
    assert done.code == 2, done.error
    assert expected in done.error
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------------ JSON


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("audit", "--rules"), "iodelta.audit-rules/1"),
        (
            ("run", "--dry-run", "--size", "1m", "--variant", "a", "--variant", "b:fio.nice=1", "--seed", "7"),
            "iodelta.plan/1",
        ),
        (
            ("bisect", "--dry-run", "--item", "1", "--item", "2", "--measure", "echo 1", "--better", "higher"),
            "iodelta.search-plan/1",
        ),
    ],
    ids=["rules", "plan", "search"],
)
@pytest.mark.fio
def test_what_is_asked_for_as_json_is_a_document_with_a_schema(
    words: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    fio = ("--", "--rw=randread", "--ioengine=libaio", "--iodepth=1,2") if words[0] == "run" else ()
    done = call(*words, "--format", "json", *fio, cwd=tmp_path)
    assert done.code == 0, done.error
    document = json.loads(done.out)
    assert document["schema"] == name
    Draft202012Validator(schema(name)).validate(document)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("report", "begun", "--explain", "x", "--format", "json"),
        ("report", "begun", "--reproducer", "--format", "json"),
        ("report", "begun", "--explain", "x", "-o", "x.txt"),
        ("policy", "mirror", "a", "b", "--experiment", "--format", "json"),
    ],
)
def test_a_format_that_would_be_ignored_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    Folder.begin(tmp_path / "begun", "", make_plan(experiment()))
    done = call(*words, cwd=tmp_path)
    assert done.code == 2, done.error
    assert done.out == b""


# ------------------------------------------------------------------------------------------------------ exit codes


def test_a_report_of_nothing_is_no_success(begun: Path) -> None:
    assert call("report", begun, cwd=begun.parent).code == 4


# ------------------------------------------------------------------------------------- names that can be pasted


def test_the_folder_in_a_message_can_be_pasted(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell takes what is printed for the one path, wherever it stands and however wide the screen is."""
    monkeypatch.chdir(begun.parent)
    said: list[str] = []
    RunWatcher(said.append).begin(make_plan(experiment()), ODD, 0)
    assert shlex.split(said[0].partition("; folder ")[2]) == [ODD]
    for words in (("report", ODD, "--reproducer"), ("reproduce", ODD)):
        message = call(*words, cwd=begun.parent).error
        command = message.partition("`")[2].partition("`")[0]
        assert shlex.split(command)[2:] == [ODD], message


@pytest.mark.parametrize("sides", [(f"{ODD}a", f"{ODD}b"), ("-a", "b")])
def test_the_command_that_repeats_a_comparison_can_be_pasted(sides: tuple[str, str], tmp_path: Path) -> None:
    for side in sides:
        write(tmp_path / side / "x.json", 1000)
    done = call("compare", "--format", "markdown", "--", *sides, cwd=tmp_path)
    (line,) = (line for line in done.out.decode().splitlines() if line.startswith("iodelta compare "))
    again = call(*shlex.split(line)[1:], "--format", "markdown", cwd=tmp_path)
    assert (again.code, again.out.count(b"\n")) == (done.code, done.out.count(b"\n"))


@pytest.mark.parametrize("folder", ["-run", "my run", "a/b", "--verbose"])
def test_every_command_of_a_report_names_its_folder_as_a_shell_takes_it(folder: str) -> None:
    """`iodelta report -run` is an option that nobody knows, and FOLDER is no folder of the reader's."""
    told = Again("iodelta run FOLDER/experiment.toml --seed 7", "fio --rw=randread", (), (), ())
    shown = msgspec.structs.replace(account(experiment(), {}), folder=folder, state="interrupted", again=told)
    text = "\n".join(line.plain for line in lines(shown, verbose=True))
    assert "FOLDER" not in text
    commands = re.findall(r"^ *`?(iodelta (?:run|report|pack) [^`\n]*)", text, re.MULTILINE)
    named = [next(word for word in shlex.split(command)[2:] if not word.startswith("-")) for command in commands]
    assert len(named) >= 2
    assert {os.path.normpath(name.removesuffix("/experiment.toml")) for name in named} == {os.path.normpath(folder)}


def test_a_baseline_without_fio_options_has_its_own_line_by_hand() -> None:
    """The one line to do a trial by hand was that of the other variant, and did not say so."""
    plan = make_plan(parse('[workload]\nrw = "randread"\nbs = "4k"\n[variant.a]\n[variant.b]\n"fio.iodepth" = 8'))
    found = again(plan, None, (3, 33))
    assert "--iodepth=8" not in found.fio
    assert {name.rsplit(", ", 1)[1]: part for name, part in found.parts} == {"a": "", "b": "--iodepth=8"}
