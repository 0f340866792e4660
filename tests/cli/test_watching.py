"""What a run says while it works: whole lines in a log, and no cell called decided that was not."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from iodelta.cli import awaiting, progress, watching
from iodelta.experiment import parse
from iodelta.lab.plan import Plan, make_plan
from iodelta.study.words import duration
from iodelta.trial import Direction, Quantity, Trial
from iodelta.verdict import Judgement, judge_all

PLAN = make_plan(parse('[workload]\nrw = "randread"\nnumjobs = [1, 2]\n[variant.a]\n[variant.b]\n[design]\nseed = 1'))
FIRST = PLAN.rules.looks[0]


class Pipe(io.StringIO):
    """A log that asks for colour, as CI does."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(stream: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    with watching.watcher("console") as watcher:
        watcher.begin(PLAN, "somewhere", 0)
        for share in (0.0, 0.3, 1.0):
            watcher.preparing("writing a file", share)
        watcher.judged(judge_all([], PLAN.rules, baseline="a"), 10.0, 20.0)
    return str(stream.getvalue())


def build(stream: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    with progress.Progress(log=True) as line:
        for share in (0.1, 0.6, None):
            line.step("fetching", share)
    return str(stream.getvalue())


def read(stream: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(awaiting, "AT_ONCE", 0.0)
    with awaiting.awaited(["."]):
        pass
    return str(stream.getvalue())


@pytest.mark.parametrize("work", [run, build, read])
@pytest.mark.parametrize(("stream", "term"), [(Pipe, "xterm"), (Terminal, "dumb")])
def test_where_no_line_can_be_written_over_every_line_ends_and_nothing_moves_a_cursor(
    work: Callable[[Any, pytest.MonkeyPatch], str],
    stream: type[io.StringIO],
    term: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Colour may be forced in a log (FORCE_COLOR); a cursor cannot."""
    for name, value in (("FORCE_COLOR", "1"), ("TTY_COMPATIBLE", "1"), ("TERM", term)):
        monkeypatch.setenv(name, value)
    said = work(stream(), monkeypatch)
    assert said == "" or said.endswith("\n")
    assert "\x1b" not in said
    assert "\r" not in said
    assert work is read or said


def test_a_terminal_has_one_line_of_a_step_and_none_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    assert build(stream, monkeypatch).split("\r\x1b[K") == ["", "fetching 10 %", "fetching 60 %", "fetching", ""]


def test_progress_is_silent_in_a_pipe_unless_it_is_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Pipe()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.Progress() as line:
        line.step("measuring", 0.5, "queue at iodepth 4")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("share", "seconds", "said"),
    [
        (None, 60.0, ""),
        (0.05, 60.0, ""),
        (0.5, 4.0, ""),
        (1.0, 60.0, ""),
        (0.25, 10.0, ", about 30 s left"),
        (0.5, 3600.0, ", about 60 min left"),
    ],
)
def test_the_time_left_is_that_of_the_same_pace(share: float | None, seconds: float, said: str) -> None:
    assert progress.time_left(share, seconds) == said


def log() -> tuple[watching.RunWatcher, io.StringIO]:
    stream = io.StringIO()
    return watching.RunWatcher(lambda line: print(line, file=stream)), stream


def blocks_of(plan: Plan, count: int) -> Judgement:
    made = []
    for block in range(count):
        for cell in plan.experiment.cells:
            made += [_trial(2 * block, cell.name, "a", block), _trial(2 * block + 1, cell.name, "b", block)]
    return judge_all(made, plan.rules, baseline="a")


def test_a_run_of_few_blocks_is_announced_with_their_time_as_in_its_plan() -> None:
    """The plan said at most 26 s, and the line that begins the run 2 min 00 s: the budget, which was not needed."""
    few = make_plan(parse(f'[workload]\nrw = "randread"\n[variant.a]\n[variant.b]\n[design]\nblocks = {FIRST}'))
    watcher, stream = log()
    watcher.begin(few, "somewhere", 0)
    assert f"at most about {duration(few.rules.max_blocks * few.per_round * few.trial_seconds)};" in stream.getvalue()


def test_cells_without_a_verdict_are_not_called_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cell that fio could not run it was said: 1 of 1 cells decided."""
    monkeypatch.setenv("TERM", "dumb")
    assert "0 of 2 cells decided" in run(Pipe(), monkeypatch)


@pytest.mark.parametrize(("blocks", "projected"), [(2, False), (FIRST - 1, False), (FIRST, True)])
def test_before_the_first_result_a_log_says_when_it_comes_and_projects_nothing(blocks: int, projected: bool) -> None:
    watcher, stream = log()
    watcher.begin(PLAN, "somewhere", 0)
    slow = 3 * PLAN.trial_seconds  # as in a guest: every trial takes longer than it was planned to
    round_ = slow * sum(len(slot.order) for slot in PLAN.schedule.rounds[0])
    watcher.judged(blocks_of(PLAN, blocks), blocks * round_, 20.0)
    seconds = (FIRST - blocks) * round_
    first = f"block {blocks} of {FIRST} before the first result, about {duration(seconds)} left"
    assert ("about 20 s left" if projected else first) in stream.getvalue().splitlines()[-1]


@pytest.mark.parametrize(("seconds", "short"), [(2.0, False), (80.0, True)])
@pytest.mark.parametrize("live", [False, True])
def test_a_budget_that_ends_before_the_first_result_is_said_after_the_first_round(
    seconds: float, short: bool, live: bool
) -> None:
    """The plan reckoned 17 s for a trial that took 80 s with its boot: the budget ended without a look, unannounced."""
    design = replace(PLAN.experiment.design, budget=1200.0)
    plan = replace(PLAN, experiment=replace(PLAN.experiment, design=design))
    watcher, stream = log()
    if live:
        watcher = watching.RunWatcher(print, stream)
    watcher.begin(plan, "somewhere", 0)
    for _ in range(2):
        watcher.judged(blocks_of(plan, 1), plan.per_round * seconds, 900.0)
    assert stream.getvalue().count("before the first result, which takes") == short


def test_a_terminal_has_one_line_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    watcher = watching.RunWatcher(print, stream)
    watcher.begin(PLAN, "somewhere", 0)
    for number in range(3):
        watcher.trial(PLAN.schedule.rounds[number][0], "a", number)
        watcher.tick(1.0)
    watcher.close()
    after = stream.getvalue().split("continues it\n")[1]
    assert "\n" not in after
    assert f"block 3 of {FIRST} before the first result" in after
    assert all(len(line) < 80 for line in after.split("\r\x1b[K"))
    assert after.endswith("\r\x1b[K")


def _trial(number: int, cell: str, variant: str, block: int) -> Trial:
    rate = 1000.0 + (37 * number) % 101
    iops, bandwidth = Quantity.exact(rate, "IOPS"), Quantity.exact(rate * 4096, "B/s")
    read = Direction("read", 1000, 4096000, 1000, iops, bandwidth)
    return Trial(number, cell, variant, block, number % 2, number, number * 3.0, 3.0, (read,))


def test_a_log_has_a_line_for_each_quarter_and_every_note(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with progress.Progress(say=said.append) as line:
        for number in range(1, 9):
            line.note(f"boot {number}")
            line.step("booting", number / 8)
    steps = [text for text in said if text.startswith("booting")]
    assert [text.partition(",")[0] for text in steps] == [f"booting {share} %" for share in (0, 25, 50, 75, 100)]
    assert [text for text in said if text.startswith("boot ")] == [f"boot {number}" for number in range(1, 9)]
