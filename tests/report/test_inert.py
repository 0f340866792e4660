"""One table of attacks, tried on every format: names and texts of others come out as letters and do nothing."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from reproducing import SHELL, plan_of, trials_of
from test_console import account, experiment, text

from iodelta.ingest.layouts import read_layout
from iodelta.ingest.layouts.model import Entry
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve
from iodelta.report.formats.render import rendered
from iodelta.reproducer.script import script
from iodelta.study.comparison import Comparison, compare
from iodelta.study.experiment import Account
from iodelta.study.paths import read_all
from iodelta.study.rows import Shown
from iodelta.study.runs import shown
from iodelta.study.words import inert
from iodelta.trial import Finding

ATTACKS = {
    "terminal escape": "\x1b[31mred\x1b]0;owned\x07\x9b31m",
    "carriage return": "fine\rworse\b\b\b",
    "new lines": "a\nb\r\nc\u2028d\u2029e\x85f\x0bg",
    "right to left": "abc\u202egpj.exe\u2066",
    "script tag": "<script>alert(1)</script>",
    "image that calls home": "<img src=x onerror=alert(1)>",
    "broken entity": "&lt;script&gt;&#60;b&#62;",
    "Markdown image": "![x](http://evil.example/x.png)",
    "Markdown link": "[click](javascript:alert(1)) <http://evil.example> www.evil.example",
    "Markdown table": "a|b|c\\|d || e",
    "Markdown emphasis": "**bold** _it_ `code` ~~no~~ __x__ ``",
    "Markdown block": "# head",
    "Markdown list": "- item",
    "Markdown number": "1. item",
    "Markdown fence": "```\n<b>x</b>",
    "mention": "@torvalds fixes #1 GH-2 :shit: $x^2$",
    "formula": "=HYPERLINK(A1)",
    "formula plus": "+1+cmd|' /C calc'!A0",
    "formula minus": "-2+3",
    "formula at": "@SUM(1)",
    "formula behind a tab": "\t=1+1",
    "formula behind a separator": 'x;=1+1,"=2',
    "wide formula": "\uff1d1+1",
    "shell": "$(touch pwned) `touch pwned`; touch pwned & '\"; touch pwned #",
    "shell line": "x\ntouch pwned\n",
    "mail": "From here\n-- \n.\n",
    "path": "../../../etc/passwd",
    "nothing": " ",
    "long": "x" * 700,
    "lone surrogate": "a\ud800b",
    "null": "a\0b",
}


def hostile_account(evil: str) -> Account:
    """An experiment as a stranger's folder may hold it: every name and text is the attack."""
    shown_ = account(experiment(), {})
    plan = shown_.plan
    cells = tuple(replace(cell, name=f"{evil}{n}") for n, cell in enumerate(plan.experiment.cells))
    names = {old.name: new.name for old, new in zip(plan.experiment.cells, cells, strict=True)}
    variants = tuple(replace(one, name=f"{evil}{one.name}") for one in plan.experiment.variants)
    question = replace(
        plan.experiment, question=evil, cells=cells, variants=variants, baseline=f"{evil}old", notes=(evil,)
    )
    finding = Finding(evil, "hard", evil, evil, evil)
    verdicts = tuple(
        replace(v, cell=names[v.cell], variant=f"{evil}new", baseline=f"{evil}old", findings=(finding,), phrase=evil)
        for v in shown_.judgement.verdicts
    )
    return replace(
        shown_,
        folder=evil,
        plan=replace(plan, experiment=question),
        judgement=replace(shown_.judgement, verdicts=verdicts),
        state=evil,
        abandoned={evil: evil},
        findings=(finding,),
        system=((inert(evil), inert(evil)),),
        measured_by=evil,
    )


def hostile_runs(place: Path, evil: str) -> tuple[Comparison, Shown]:
    """Results as a stranger may send them."""
    from fio_files import write

    for name in ("A", "B"):
        write(
            place / name / "x.json",
            name=evil.replace("\ud800", "?"),
            options={"description": evil.replace("\ud800", "?")},
        )
    layouts = [read_layout(str(place / name)) for name in ("A", "B")]
    named = [
        replace(one, entries=tuple(Entry(e.run, evil, evil, e.condition) for e in one.entries), kind="named")
        for one in layouts
    ]
    whole, audited = read_all([str(place / "A")])
    compared = replace(
        compare(named, ["A", "B"]), baseline=evil, unmatched=(evil,), paths=(evil, evil), variants=("B",)
    )
    return compared, replace(shown(whole, audited, each=True), paths=(evil,))


@pytest.fixture(params=ATTACKS, ids=list(ATTACKS))
def told(request: pytest.FixtureRequest, tmp_path: Path) -> list[Account | Comparison | Shown]:
    evil = ATTACKS[request.param]
    return [hostile_account(evil), *hostile_runs(tmp_path, evil)]


class Tags(HTMLParser):
    """The tags of a page and what a reader sees of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


LAYOUT = {"h2", "h3", "p", "strong", "br", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}


def test_a_mail_is_72_columns_of_plain_letters(told: list[Account | Comparison | Shown]) -> None:
    for one in told:
        lines = rendered(one, "mail").decode("ascii").split("\n")
        assert not [line for line in lines if not (line.isprintable() or not line)]
        assert not [line for line in lines if len(line) > 72]
        assert not [line for line in lines if line.startswith(("From ", "-- ", "---"))]


def test_markdown_renders_as_the_letters_themselves(told: list[Account | Comparison | Shown]) -> None:
    for one in told:
        source = rendered(one, "markdown").decode()
        page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(source)
        seen = Tags(page)
        assert seen.tags <= LAYOUT
        assert seen.attributes <= {"style", "class"}  # of table cells and of code
        without = re.sub(r"<!-- -->", "\0", source)
        assert not re.search(r"(?<![\w`])@\w|://\w|\bwww\.|#\d", re.sub(r"```sh.*?\n```", "", without, flags=re.DOTALL))


def test_no_cell_of_a_table_runs_in_a_spreadsheet(told: list[Account | Comparison | Shown]) -> None:
    for one in told:
        data = rendered(one, "csv").decode()
        rows = list(csv.reader(io.StringIO(data)))
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row):
            assert cell.isprintable() or not cell
            number = re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)
            assert number or not re.match(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]", cell)
            assert number or not re.search(r"[;,|]\s*[=+\-@]", cell)


def test_json_is_ascii_whatever_the_names_hold(told: list[Account | Comparison | Shown]) -> None:
    for one in told:
        data = rendered(one, "json")
        assert all(32 <= byte < 127 or byte == 10 for byte in data)
        json.loads(data)


def test_a_terminal_gets_letters(told: list[Account | Comparison | Shown]) -> None:
    said = text(told[0]) if isinstance(told[0], Account) else ""
    assert not [char for char in said if not (char.isprintable() or char == "\n")]


def test_markup_of_the_console_is_shown_and_not_obeyed() -> None:
    assert "[bold]x[/bold]" in text(hostile_account("[bold]x[/bold]"))


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_script_holds_them_as_words(attack: str, tmp_path: Path) -> None:
    evil = ATTACKS[attack]
    plan = plan_of()
    cells = tuple(replace(cell, name=evil) for cell in plan.experiment.cells)
    knobs = {"block.scheduler": inert(evil)}
    first, second = plan.experiment.variants
    first, second = (
        replace(first, name=f"{evil}1", knobs=knobs),
        replace(second, name=f"{evil}2", options=(("description", inert(evil)),)),
    )
    question = replace(plan.experiment, question=evil, cells=cells, variants=(first, second), baseline=f"{evil}1")
    schedule = replace(plan.schedule, rounds=())
    hostile = replace(plan, experiment=question, schedule=schedule)
    made = script(hostile, resolve(LocalMachine(), str(tmp_path)), trials_of(hostile, 0), evil, evil)
    path = tmp_path / "reproduce.sh"
    path.write_text(
        f"{made.partition('overwrite=no')[0]}\ncell_name 1\nprintf '\\n'\nvariant_name 1\n", "utf-8", "replace"
    )
    done = subprocess.run([SHELL, path], cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == inert(evil)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["reproduce.sh"]


def test_the_script_is_clean_for_shellcheck(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed: see scripts/setup")
    several = "[variant.a]\n'block.nr_requests' = '32'\n[variant.b]\ncpus = '0'\n'cgroup.io_max' = 'riops=9'"
    plan = plan_of(
        variants=several, more="[condition.idle]\n[condition.busy]\nbackground = 'dd if={target.path} of=/dev/null'"
    )
    path = tmp_path / "reproduce.sh"
    path.write_text(script(plan, resolve(LocalMachine(), str(tmp_path)), trials_of(plan, 2), "it is.", "3.33"))
    done = subprocess.run(["shellcheck", path], capture_output=True, text=True)
    assert done.stdout == ""
