"""Manual pages: every command and every option that ``--help`` shows has its place."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]


def test_every_command_has_a_page_with_all_its_options_and_no_stray_request(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts/man", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    commands = runpy.run_path(str(ROOT / "scripts/man"))["commands"]
    from iodelta.cli.main import cli

    expected = dict(commands(cli, ("iodelta",)))
    assert {path.name for path in tmp_path.iterdir()} == {f"{'-'.join(words)}.1" for words in expected}
    requests = {".TH", ".SH", ".PP", ".TP", ".B", ".BR", ".nf", ".fi"}
    for words, context in expected.items():
        text = (tmp_path / f"{'-'.join(words)}.1").read_text()
        for option in context.command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1].replace("-", "\\-") in text, (words, option.opts)
        assert {line.split()[0] for line in text.splitlines() if line.startswith(".")} <= requests


def test_the_name_of_a_command_is_followed_by_one_sentence() -> None:
    """`man -k` shows it on a line: that of `history export` was a paragraph."""
    commands = runpy.run_path(str(ROOT / "scripts/man"))["commands"]
    from iodelta.cli.main import cli

    long = {
        words: said
        for words, context in commands(cli, ("iodelta",))
        if len(said := context.command.get_short_help_str(300)) > 150
    }
    assert long == {}


def test_a_page_lists_options_alone_and_leads_to_its_neighbours_with_a_sentence_each(tmp_path: Path) -> None:
    # In a process of its own: a command keeps the names of --help that it was first asked with.
    subprocess.run([sys.executable, ROOT / "scripts/man", tmp_path], check=True)
    run = (tmp_path / "iodelta-run.1").read_text()
    assert ".B \\-h, \\-\\-help\n" in run
    assert "WHAT" not in run.partition(".SH OPTIONS")[2].partition(".SH EXAMPLES")[0]
    assert ".SH SEE ALSO\n.BR iodelta (1)" in run
    assert ".BR iodelta\\-kernel\\-list (1)\nList the kernels" in (tmp_path / "iodelta-kernel.1").read_text()
