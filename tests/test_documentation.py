"""The documentation, tried out: every example of docs, README and ``--help`` runs; every link leads somewhere.

A line after ``$`` or ``#`` in a ``console`` block, and a line of a help's examples, is an example. It runs in a scratch
folder that holds what the examples name. A disk is a loop device here, and the times of a run are short.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from fio_files import write
from waiting import LIMIT
from workshop import Workshop, loops_in

from iodelta.audit import RULES
from iodelta.cli.main import cli
from iodelta.errors import IodeltaError
from iodelta.experiment import facts
from iodelta.knob.registry import FAMILIES
from iodelta.part import commands, documents

ROOT = Path(__file__).parents[1]
TOP = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES = sorted([*TOP, *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")])
DISK = re.compile(r"/dev/(?:sd[a-z]|loop\d+|nvme\d+n\d+|ublkb\d+|nullb\d+)\b")
FOLDER, OTHER, THEIRS = "iodelta-20260102-030405", "iodelta-20260203-040506", "theirs.iodelta.tar.zst"

ELSEWHERE = {
    "--machine (ssh|vm):|ssh:": "needs another machine; run by tests/ssh",
    "--clock instructions|--functions|iodelta kernel (fetch|build|sweep)": "boots guests; run by tests/vm",
    "iodelta report shared --lines|--paths|--footprint": "needs guests; run by tests/vm",
    "make ": "the target of CI itself, of `make demo`, of the site",
    "xclip ": "needs a desktop",
    "iodelta fio build": "builds for a minute; run by scripts/setup",
    "iodelta bisect": "needs programs to build; run by tests/bisection",
    "iodelta attribute": "needs programs to build; run by tests/bisection",
    "iodelta calibrate --workload": "measures a command of your own; run by tests/bisection",
    r"iodelta reproduce (?!.*--dry-run)": "asks, and measures for as long as somebody did; run by tests/bundle",
    "iodelta policy (calibrate|defrag|mirror|.* --calibration)": "needs disks of its own; run by tests/policy",
    "iodelta prepare (?!.*--dry-run)": "writes for half an hour; run by tests/acceptance",
    "iodelta(-| )fleet": "needs hosts; run by tests/fleet",
    "iodelta serve": "answers until it is ended; run by tests/web",
    "iodelta scenario run": "measures for a minute or two; run by tests/scenarios",
    "iodelta run --leave-out policy.toml|/mnt/pool": "needs a btrfs whose kernel offers several policies",
    "sh reproduce.sh": "run by tests/reproducer",
}
"""Examples that are only parsed: what is in them, as a regular expression, and why."""

FOR_CONTRIBUTORS = [*TOP[1:], *sorted((ROOT / "docs").glob("extending*.md"))]

PLACES_OF_CODE = [ROOT, ROOT / "src", ROOT / "src/iodelta", ROOT / "native/src/policy"]

FILE_TYPES = {"md", "py", "rs", "toml", "json", "jsonl", "html", "csv", "parquet"}

DEFINED = r"\b(?:def|class|fn|enum|struct) {name}\b|^\s*{name}\b.*[:=]|[\"']{name}\b"
"""Where a name is defined, as a pattern: a function, a type, an assignment, a key or a word of an option."""

NATIVE = pytest.mark.skipif(find_spec("iodelta_native") is None, reason="needs the native core: iodelta[native]")

MEASURED = (f"iodelta run experiment.toml --folder {FOLDER}",)
"""Runs that are made in full; others are planned (the target resolved, the knobs checked), and not begun."""


def joined(lines: Iterator[str]) -> Iterator[str]:
    """Lines with their continuations."""
    for line in lines:
        while line.endswith("\\"):
            line = f"{line[:-1].rstrip()} {next(lines).strip()}"
        yield line


def of_page(path: Path) -> Iterator[str]:
    for indent, block in re.findall(r"^( *)```console\n(.*?)^ *```", path.read_text(), re.MULTILINE | re.DOTALL):
        lines = (line.removeprefix(indent) for line in block.splitlines())
        yield from (line[2:] for line in joined(iter(lines)) if line.startswith(("$ ", "# ")))


def of_help(name: str) -> Iterator[str]:
    command = cli.get_command(click.Context(cli), name) if name else cli
    assert command is not None
    text = f"{command.help if not name else ''}\n{command.epilog or ''}"
    lines = (line.strip() for line in text.splitlines())
    yield from (line for line in joined(lines) if line.startswith(("iodelta ", "fio ")))


def examples() -> list[str]:
    found = [line for page in PAGES for line in of_page(page)]
    found += [line for name in ("", *commands()) for line in of_help(name)]
    return list(dict.fromkeys(re.sub(r"\s+# .*$", "", line) for line in found))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with everything that examples name, and a disk (the folder itself where there is no root)."""
    place = tmp_path_factory.mktemp("documentation")
    for name in ("old", "new", "results-6.12", "results-6.18"):
        write(place / name / "x.json", 10_000 if "old" in name or "12" in name else 9_700)
    for variant in ("none", "dl"):
        write(place / "results" / variant / "qd32-1.json")
        write(place / "everything" / variant / "qd32-1.json")
    windows = "".join(f"{500 * at}, 10240, 1, 0, 0\n" for at in range(1, 21))
    for log in ("logs/fill_bw.1.log", "logs-6.12/fill_bw.1.log", "logs-6.18/fill_bw.1.log"):
        (place / log).parent.mkdir(exist_ok=True)
        (place / log).write_text(windows)
    for name in ("old.json", "new.json", "result.json"):
        write(place / name)
    rows = ["RandRead 4k QD1 | pid | 65 | 260", "RandRead 4k QD1 | queue | 1181 | 4726"]
    rows += ["SeqRead 1M QD16 | pid | 255 | 261120", "SeqRead 1M QD16 | queue | 265 | 271360"]
    table = "\n".join(f"| {row} |" for row in ("test | policy | IOPS | BW (KiB/s)", "--|--|--|--", *rows))
    for name in ("table.md", "blog-table.md", "table.txt", "table-from-a-mail.txt", "mail.txt"):
        (place / name).write_text(table)
    with tarfile.open(place / "old.tar.gz", "w:gz") as archive:
        archive.add(place / "old", "old")
    (place / "job.fio").write_text("[one]\nioengine=null\nrw=read\nsize=4k\n")
    variants = "[variant.a]\n'fio.ioengine' = 'libaio'\n[variant.b]\n'fio.ioengine' = 'io_uring'\n"
    (place / "experiment.toml").write_text(
        f"[target]\nsize = '1m'\n[workload]\nrw = 'randread'\ndirect = 1\niodepth = [1, 32]\n{variants}"
    )
    workshop = Workshop(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IODELTA_STATE", str(place / "state"))
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        patch.chdir(place)
        try:
            disk = workshop.loop(4) if os.geteuid() == 0 else str(place)
            assert run(f"iodelta run experiment.toml --folder {FOLDER}", place, disk) in (0, 1, 3)
            for copy in (OTHER, "sweep"):
                shutil.copytree(place / FOLDER, place / copy)
            assert run(f"iodelta pack {FOLDER} -o {THEIRS}", place, disk) == 0
            assert run(f"iodelta history add {FOLDER}", place, disk) == 0  # its examples may run alone
            yield place, disk
        finally:
            workshop.close()
            for node in loops_in(place):  # an example of the README makes one
                subprocess.run(["losetup", "--detach", node], check=True)


def shortened(command: str) -> str:
    """A run in as few seconds as it takes to see that it runs; most runs, up to their plan."""
    words = command.split()
    if words[:2] == ["iodelta", "calibrate"]:
        made = re.sub(r" --(trial|ramp|budget) \S+", "", command)
        size = "" if "--target" in words else "--size 1m "
        return made.replace("calibrate", f"calibrate {size}--trial 200ms --ramp 0 --budget 3s --folder made", 1)
    if words[:2] != ["iodelta", "run"] or words[2] == FOLDER or "--dry-run" in words:
        return command
    if command in MEASURED:
        return f"iodelta run --trial 200ms --ramp 0 --budget 60s --blocks 1 {command.removeprefix('iodelta run ')}"
    return f"iodelta run --dry-run {command.removeprefix('iodelta run ')}"


def run(command: str, place: Path, disk: str) -> int:
    """The exit code of an example."""
    packed = (path for path in place.glob("*.zst") if path.name != THEIRS)
    written = (place / name for name in re.findall(r"(?:-o|--output|--repair|--charts) ([^/\s]+)", command))
    for left in (*packed, *written, place / "made"):  # of an example that ran before
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    command, _, into = DISK.sub(disk, shortened(command)).partition(" > ")
    if "|" in command or not command.startswith("iodelta "):
        return subprocess.run(command, shell=True, cwd=place, capture_output=True, timeout=LIMIT).returncode  # noqa: S602
    done = CliRunner().invoke(cli, shlex.split(command)[1:], prog_name="iodelta")
    if into:
        (place / into).write_bytes(done.stdout_bytes)
    if isinstance(done.exception, IodeltaError):
        return done.exception.exit_code
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code


def elsewhere(command: str) -> bool:
    return any(re.search(pattern, command) for pattern in ELSEWHERE)


def needs(command: str) -> list[pytest.MarkDecorator]:
    """What an example cannot do without."""
    native = [NATIVE] if re.match("iodelta policy (list|simulate)", command) else []
    return [*native, *([pytest.mark.root] if DISK.search(command) else [])]


@pytest.mark.fio
@pytest.mark.parametrize("command", [pytest.param(one, marks=needs(one)) for one in examples() if not elsewhere(one)])
def test_an_example_runs(command: str, stage: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    place, disk = stage
    monkeypatch.chdir(place)
    allowed = {0, 1, 3} | ({4} if "iodelta calibrate" in command else set())  # in a second no first look is reached
    assert run(command, place, disk) in allowed


@pytest.mark.parametrize("command", [line for line in examples() if elsewhere(line) and line.startswith("iodelta ")])
def test_an_example_that_runs_elsewhere_has_options_that_exist(command: str) -> None:
    _, name, *words = shlex.split(command)
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    while isinstance(found, click.Group):
        found, words = found.commands[words[0]], words[1:]
    assert found.make_context(name, words).params


@pytest.mark.parametrize("command", [line for line in examples() if line.startswith("iodelta ") and " -- " in line])
def test_an_example_measures_what_it_asks_for(command: str) -> None:
    """Also one that runs elsewhere: the facts of the plan know its fio options."""
    words = [word.removeprefix("--").partition("=") for word in shlex.split(command.partition(" -- ")[2])]
    values = {name: value.split(",")[-1] or "1" for name, _, value in words}
    engines = re.findall(r"fio.ioengine=(\w+)", command) or [None]
    for engine in engines:
        options = facts.given(*values.items(), *([("ioengine", engine)] if engine else []))
        assert [
            fact for fact in (*facts.of_workload(options), *facts.of_target(options, 512, 0, 0)) if fact.refused
        ] == []


def test_the_examples_are_found() -> None:
    found = examples()
    assert len(found) > 40
    assert [name for name in commands() if not any(f"iodelta {name}" in line for line in found)] == []
    assert all(any(line.startswith(begin) for line in found) for begin in ("iodelta run", "fio ", "xclip"))


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_is_short_enough_to_be_read(page: Path) -> None:
    """The page of pictures is made by a program: a heading, two pictures and a command each."""
    assert page.name == "gallery.md" or len(page.read_text().split()) <= 900


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"https?:|reference/", target):
            assert (page.parent / target).exists(), target


def test_the_list_of_decisions_names_every_record_under_its_topic() -> None:
    listed = re.findall(
        r"^- \[(.+)\]\(([a-z]+\.md)#.+\)$", (ROOT / "docs/decisions/README.md").read_text(), re.MULTILINE
    )
    pages = sorted(page for page in (ROOT / "docs/decisions").glob("*.md") if page.name != "README.md")
    records = [
        (title, page.name) for page in pages for title in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    ]
    assert sorted(listed) == sorted(records)


def test_systemd_takes_the_units_of_the_pages(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    found = []
    for block in re.findall(
        r"^```ini\n(.*?)^```", "".join(page.read_text() for page in PAGES), re.DOTALL | re.MULTILINE
    ):
        for name, unit in re.findall(
            r"^# /etc/systemd/system/(\S+)\n(.*?)(?=^# /etc/|\Z)", block, re.DOTALL | re.MULTILINE
        ):
            # The program is installed elsewhere here.
            (tmp_path / name).write_text(re.sub(r"=/\S+/iodelta ", f"={sys.executable} ", unit))
            found.append(tmp_path / name)
    assert {path.suffix for path in found} == {".service", ".timer"}
    done = subprocess.run(["systemd-analyze", "verify", *found], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if any(path.name in line for path in found)]
    assert (done.returncode, said) == (0, [])


def test_the_reference_names_every_command_knob_rule_and_document(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "docs/generate.py"))["main"](tmp_path)
    page = {path.name: path.read_text() for path in tmp_path.glob("*.md")}
    assert all(f"## iodelta {name}" in page["commands.md"] for name in commands())
    assert all(f"`{name}`" in page["knobs.md"] for family in FAMILIES for name in family.names)
    assert all(f"`{rule.id}`" in page["audit-rules.md"] for rule in RULES)
    assert all(f"## {name}" in page["json.md"] for name in documents())
    linked = {target for text in page.values() for target in re.findall(r"\]\((schemas/[^)]+)\)", text)}
    assert linked
    assert all((tmp_path / target).is_file() for target in linked)


def code_of(page: Path) -> list[tuple[str, set[str]]]:
    """What each paragraph, row or list item of a page sets in backticks, with the folders that it names."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    paragraphs = [" ".join(text.split()) for text in re.split(r"\n\s*\n|\n(?=[|\d-])", prose)]
    named = [re.findall(r"`([^`]+)`", text) for text in paragraphs]
    return [(word, {re.sub(r"[^/]+$", "", path) for path in words}) for words in named for word in words]


@pytest.mark.parametrize("page", FOR_CONTRIBUTORS, ids=lambda page: page.name)
def test_every_path_that_a_page_for_contributors_names_exists(page: Path) -> None:
    """A file without its folder is in one that the same paragraph names."""
    missing = []
    for word, folders in code_of(page):
        if re.fullmatch(r"\.?[\w/-]+/[\w.-]*|[\w-]+\.(?:py|rs|md|toml)", word):
            parts = {""} if "/" in word else {""} | folders
            if not any((place / part / word).exists() for place in PLACES_OF_CODE for part in parts):
                missing.append(word)
    assert missing == []


@pytest.mark.parametrize("page", FOR_CONTRIBUTORS, ids=lambda page: page.name)
def test_every_name_that_a_page_for_contributors_uses_is_defined(page: Path) -> None:
    """A class, function, field, constant, room, command or marker; ``a.b`` is a name of the module ``a``."""
    patterns = ("src/**/*.py", "tests/**/*.py", "native/src/**/*.rs", "pyproject.toml")
    sources = [path for pattern in patterns for path in ROOT.glob(pattern)]
    texts = {path: path.read_text() for path in sources}
    known = {part for path in sources for part in (path.stem, path.parent.name)}
    missing = []
    for word, _ in code_of(page):
        name = re.fullmatch(r"(?:([a-z_.]+)\.)?([A-Za-z_]\w*)(?:\(.*\))?", word)
        if name is None or name[2] in known or name[2] in FILE_TYPES:
            continue
        module = (name[1] or "").replace(".", "/")
        defined = re.compile(DEFINED.format(name=name[2]), re.MULTILINE)
        if not any(defined.search(text) for path, text in texts.items() if module in str(path.with_suffix(""))):
            missing.append(word)
    assert missing == []


def test_every_call_in_the_way_of_an_experiment_is_a_function_of_its_room() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text().partition("sequenceDiagram")[2].partition("```")[0]
    calls = re.findall(r"->>(\w+): (\w+):", drawn)
    assert len(calls) > 7
    for room, function in calls:
        modules = (ROOT / "src/iodelta" / room).glob("*.py")
        assert any(re.search(rf"^def {function}\(", path.read_text(), re.MULTILINE) for path in modules), function


def test_the_picture_of_the_rooms_shows_every_room() -> None:
    picture = (ROOT / "ARCHITECTURE.md").read_text().partition("```mermaid")[2].partition("```")[0]
    rooms = {path.parent.name for path in (ROOT / "src/iodelta").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"<b>(\w+)</b>", picture))
