"""A note stands at a time or a commit, and with the steps that it may explain: terminal, page, mail."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import nights
from terminals import on_terminal
from test_alerts import DAY, alerts, line, stepping
from test_command import iodelta, surroundings

from iodelta.history.commits import Order
from iodelta.history.log import Annotated, Entry, LoggedCommit, Ordered
from iodelta.history.notes import placed
from iodelta.report.formats.mail import mail
from iodelta.report.formats.pictures import BARS
from iodelta.report.stories.alert import of_alert

STEP = 20
FIRST = 1.7e9
FIRMWARE = Annotated(1.0, "new firmware", t=FIRST + DAY * (STEP - 0.5))


def at_commit(number: int, text: str = "merged the new scheduler") -> Annotated:
    """A note at the commit of that night."""
    return Annotated(1.0, text, commit=f"{number:040x}")


def noted(*entries: Entry) -> list[str]:
    """Of the one alert of a series that steps in night ``STEP``."""
    (alert,) = alerts([line("one", stepping(STEP, 0.05))], entries)
    return [note.text for note in alert.notes]


def test_a_note_between_the_two_nights_of_an_alert_is_with_it() -> None:
    assert noted(FIRMWARE) == ["new firmware"]
    assert noted(Annotated(1.0, "long before", t=FIRST)) == []
    assert noted(Annotated(1.0, "long after", t=FIRST + DAY * 30)) == []
    assert noted(at_commit(STEP)) == ["merged the new scheduler"]
    assert noted(at_commit(STEP - 1), at_commit(STEP + 1)) == []


def test_a_note_at_a_commit_that_no_night_measured_is_placed_by_the_line_of_commits() -> None:
    """Two commits a night, of which the second one was measured."""
    shas = [f"{number:040x}" for night in range(40) for number in (night + 1000, night)]
    commits = tuple(LoggedCommit(sha, 1.0, "A. Author", "subject") for sha in shas)
    order = Ordered(1.0, "linux", "", commits)
    assert noted(order, at_commit(1000 + STEP)) == ["merged the new scheduler"]
    assert noted(order, at_commit(1000 + STEP + 1)) == []
    points = line("one", stepping(STEP)).points
    (note,) = placed([order, at_commit(1000 + STEP)], points, Order([order]))
    assert note.t == points[STEP].t
    (unknown,) = placed([at_commit(1000 + STEP)], points, Order())
    assert unknown.t is None


def test_a_mail_says_what_was_noted_in_the_range() -> None:
    (alert,) = alerts([line("one", stepping(STEP, 0.05))], [FIRMWARE])
    text = mail(of_alert(alert))
    assert "Noted in this range" in text
    assert "2023-12-04 10:13: new firmware" in text


def test_the_terminal_and_the_page_show_notes_with_the_steps_that_they_may_explain(tmp_path: Path) -> None:
    nights.filled(tmp_path / "iodelta-history", nights.stepping(0.2))
    for words in (
        ("new \x1b[31mfirmware</script>", "--at", "2023-12-04T10:00Z"),
        ("another disk", "--at", "2023-11-20T10:00Z"),
        ("not measured yet", "--commit", "abcdef1"),
    ):
        assert iodelta(tmp_path, "history", "annotate", *words).returncode == 0
    shown = on_terminal("history", "show", cwd=tmp_path, around=surroundings(tmp_path)).replace("\r\n", "\n")
    step = shown[shown.index("candidate, alert ") : shown.index("note 1")]
    assert "noted there: 2023-12-04 10:00: new" in step
    assert "another disk" not in step
    lines = shown.splitlines()
    marks = next(below for bars, below in pairwise(lines) if set(BARS) & set(bars))
    assert not set(BARS) & set(iodelta(tmp_path, "history", "show").stdout), "none in a pipe"
    assert (marks.count("*"), marks.count("^")) == (1, 1)  # the other note stands at the night of the step
    listed = shown[shown.index("note 1") :]
    assert "2023-11-20 10:00: another disk" in listed
    assert "commit abcdef1, which no night measured: not measured yet" in listed
    assert "\x1b" not in shown
    assert iodelta(tmp_path, "history", "show", "-o", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    for text in ("another disk", "not measured yet", "Noted there"):
        assert text in page
    assert "firmware</script>" not in page
    said = iodelta(tmp_path, "history", "scan").stdout
    assert "noted: 2023-12-04 10:00: new" in said
    assert "another disk" not in said
