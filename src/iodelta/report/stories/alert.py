"""An alert of a history as a story: the series, the commits in range, what was measured, how to find the commit."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.history.answers import Alert
from iodelta.report.stories.course import ends, noted_said, sized
from iodelta.report.stories.evidence import blocks_of
from iodelta.report.stories.story import Cell, Row, Story, Table, section
from iodelta.study.words import inert
from iodelta.verdict import Verdict

SHOWN = 40
"""Commits that a mail lists."""

SUSPECTED = "suspected: too few nights without a change to tell how much nights differ"


def of_alert(
    alert: Alert, bisect: str = "", verdict: Verdict | None = None, named: str = ""
) -> Story:
    """Return the alert; ``bisect`` is the command that finds its commit, ``verdict`` what the last experiment of both
    builds found in its cell and metric, where there are such, and ``named`` the options that name the history."""
    return Story(
        question="",
        answer=inert(_answer(alert)),
        tables=(*_tables(alert), *_blocks(verdict)),
        sections=(
            *section(
                "Noted in this range", (inert(noted_said(note)) for note in alert.notes)
            ),
            *section("Commits in range", map(inert, _commits(alert))),
            *section("Both builds in one experiment", map(inert, _experiments(alert))),
            *section("False alarms", (inert(_false_alarms(alert)),)),
            *section("To find the commit", (inert(bisect),), commands=True),
            *section(
                "To decide",
                (
                    " ".join(
                        filter(
                            None,
                            (
                                f"iodelta history decide {alert.id} WORD --why REASON",
                                named,
                            ),
                        )
                    ),
                ),
                commands=True,
            ),
        ),
    )


def _answer(alert: Alert) -> str:
    text = f"Alert {alert.id} ({alert.kind}): {alert.state}"
    if alert.steps:
        first = alert.steps[0]
        text += f". {first.metric} of {first.cell} on {first.machine} is {sized(first)}"
    elif alert.gone:
        more = f" and {len(alert.gone) - 1} more series" if len(alert.gone) > 1 else ""
        text += f". The step of {alert.gone[0]}{more} is gone; it was"
    if alert.last_good and alert.first_bad:
        text += f" {ends(alert.last_good, alert.first_bad)}"
    if alert.triage == "new":
        return f"{text}."
    return f"{text}. Decided: {alert.triage} {alert.why}".rstrip()


def _tables(alert: Alert) -> Iterator[Table]:
    rows = []
    for step in alert.steps:
        name = "  ".join(filter(None, step.name))
        doubts = (SUSPECTED,) if step.few and alert.state != "confirmed" else ()
        doubt = "; ".join((*doubts, *step.doubts))
        rows.append(Row(inert(name), (Cell(f"{step.z:.1f}"), Cell(sized(step))), doubt))
    if rows:
        yield Table(
            title="Series that step together",
            first="series",
            heads=("z", "step"),
            rows=tuple(rows),
        )


def _blocks(verdict: Verdict | None) -> Iterator[Table]:
    """Yield every block of the experiment; one in which a trial did no I/O has no change."""
    if verdict is None:
        return
    rows = []
    for block in blocks_of(verdict):
        first = "earlier" if block.baseline_first else "later"
        size = "no I/O" if block.idle else f"{100 * block.change:+.2f} %"
        rows.append(Row(str(block.number + 1), (Cell(first), Cell(size))))
    if rows:
        yield Table(
            title="Blocks of the last experiment",
            first="block",
            heads=("ran first", "change"),
            rows=tuple(rows),
        )


def _commits(alert: Alert) -> Iterator[str]:
    if alert.range_word:
        yield alert.range_word
    for commit in alert.commits[:SHOWN]:
        yield f"{commit.sha[:12]} {commit.subject} ({commit.author})"
    if len(alert.commits) > SHOWN:
        yield f"and {len(alert.commits) - SHOWN} more"


def _experiments(alert: Alert) -> Iterator[str]:
    for experiment in alert.experiments:
        yield f"{experiment.word}: {experiment.folder}"
        yield from experiment.verdicts


def _false_alarms(alert: Alert) -> str:
    alarms = alert.false_alarms
    measured = "nothing, there is no placebo series"
    if alarms.placebo_points:
        measured = f"{alarms.placebo_candidates} in {alarms.placebo_points} points of the machine's series without a change"
    own = f"; the clearest series has {alarms.of_series}"
    return f"{alarms.per_1000:g} expected in 1000 points by its rule, {alarms.rule}; measured: {measured}{own}"
