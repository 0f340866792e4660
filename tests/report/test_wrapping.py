"""Lines of text: what can be pasted is never cut, and everything else keeps to the width."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_console import account, experiment, text

from iodelta.report.formats.render import rendered
from iodelta.report.stories.story import Detail
from iodelta.study.words import wrap

WORDS = st.text("abc/-.%", min_size=1, max_size=200)


@given(st.lists(WORDS), st.lists(WORDS, min_size=1), st.lists(WORDS), st.integers(12, 100))
def test_a_command_stands_on_one_line_and_all_else_within_the_width(
    before: list[str], words: list[str], after: list[str], width: int
) -> None:
    command = f"`{' '.join(words)}`"
    lines = wrap(" ".join((*before, command, *after)), width, "  ")
    assert sum(command in line for line in lines) == 1
    assert all(len(line) <= width or line.strip() == command for line in lines)
    letters = "".join((*before, *words, *after))
    assert "".join(lines).replace(" ", "").replace("`", "") == letters


@pytest.mark.parametrize("length", [20, 70, 300])
@pytest.mark.parametrize("state", ["running", "budget", "interrupted"])
def test_no_report_cuts_a_command_however_long_the_path_of_its_folder_is(state: str, length: int) -> None:
    folder = f"/srv/{'x' * length}/results"
    found = msgspec.structs.replace(account(experiment(), {("iodepth=32", "new"): -0.05}), folder=folder, state=state)
    mail = rendered(found, "mail", Detail(folder=folder)).decode()
    screen = text(found, verbose=True)
    assert f"`iodelta run {folder}" in screen
    for said in (mail, screen):
        assert not [line for line in said.splitlines() if line.count("`") % 2]
