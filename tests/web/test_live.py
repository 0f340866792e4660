"""A run that is watched while it goes on: no word before its look, and a report at the end."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import PATIENCE
from carried import QUESTION, carried
from playwright.sync_api import Browser
from processes import paused
from waiting import LIMIT, until

from iodelta.lab.account import Account
from iodelta.lab.folder import Abandoned, Ended, Failed, Folder, Started
from iodelta.lab.judged import judge_folder, load_trials, rules_of
from iodelta.stats.effect import sign_flips
from iodelta.stats.replay import kept_replays
from iodelta.web.folders import Folders
from iodelta.web.live import Following, Tail

from .servers import Server, Visit, check_described, check_for_all, followed, serving, violations

pytestmark = pytest.mark.xdist_group("web")

ASKED = """
question = "Is it <img src=x onerror=alert(1)> slower?"
baseline = "fast"
[target]
path = "{path}"
[workload]
rw = "randread"
bs = "4k"
size = "8m"
ioengine = "psync"
[variant.fast]
"fio.rate_iops" = 2000
[variant.slow]
"fio.rate_iops" = 400
[design]
trial = "250ms"
ramp = 0
blocks = 8
seed = 3
metrics = ["read.iops"]
carry-over = "tested"
"""

CHANGES = {"iodepth=1": -0.2, "iodepth=4": 0.0}
"""The first is seen at once and must not be said; the second takes long."""

TWO_CELLS = QUESTION.replace("{path}", "/dev/nvme0n1").replace("{blocks}", "12")


def written(journal: Path) -> list[Any]:
    """What the whole lines of a journal say, without their seals."""
    lines = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    return [{name: value for name, value in line.items() if name not in ("files", "chain")} for line in lines]


def went_on(journal: Path, lines: int) -> bool:
    """Whether a run has written more than one trial since then, or has nothing more to write."""
    events = written(journal)
    return len(events) > lines + 2 or events[-1]["type"] == "ended"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    text = QUESTION.replace("{path}", "/dev/nvme0n1").replace("{blocks}", "20")
    return carried(tmp_path_factory.mktemp("live") / "x", CHANGES, text=text, blocks=20, secret=False)


def test_lines_are_read_once_wherever_a_write_was_cut(whole: Folder, tmp_path: Path) -> None:
    data = (whole.path / "journal.jsonl").read_bytes()
    growing = tmp_path / "journal.jsonl"
    tail, seen = Tail(growing), 0
    for end in itertools.chain(range(0, len(data), 997), [len(data)]):
        growing.write_bytes(data[:end])
        tail.read()
        assert len(tail.events) == data[:end].count(b"\n") >= seen
        seen = len(tail.events)
    assert tail.events == whole.events()
    assert (tail.state.state, tail.broken) == ("complete", "")


def test_a_torn_line_that_the_next_run_cuts_is_forgotten(whole: Folder, tmp_path: Path) -> None:
    lines = (whole.path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    torn = tmp_path / "journal.jsonl"
    torn.write_bytes(b"".join(lines[:8]) + lines[8][:40])
    tail = Tail(torn)
    tail.read()
    torn.write_bytes(b"".join(lines[:9]))
    tail.read()
    assert len(tail.events) == 9
    assert tail.broken == ""


def test_there_is_no_word_before_a_look_and_none_that_the_run_would_not_say(whole: Folder, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "x"
    shutil.copytree(whole.path, copy)
    journal, data = copy / "journal.jsonl", (whole.path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (place,) = Folders((tmp_path,)).all()
    first = json.loads((copy / "plan.json").read_bytes())["rules"]["looks"][0]
    found = Following(place)
    widths: list[float] = []
    for end in range(4, len(data), 23):
        journal.write_bytes(b"".join(data[:end]))
        found.tail.read()
        found.judge(Folder.open(copy))
        known = found.underway(writing=True)
        assert known is not None
        assert known.line == end
        for one in known.comparisons:
            assert one.blocks <= known.block
            assert not one.words or one.blocks >= first
            assert bool(one.looks) == (one.blocks >= first)
            assert len(one.each) >= one.blocks
        own = [one for one in known.comparisons if one.cell == "iodepth=4"]
        widths += [one.high - one.low for one in own if one.low is not None and one.high is not None]
    assert known is not None
    (early,) = (one for one in known.comparisons if one.cell == "iodepth=1")
    assert dict(early.words).keys() == {"IOPS", "mean latency"}
    assert set(dict(early.words).values()) == {"regression"}
    assert widths[-1] < widths[0]


def test_what_is_kept_of_the_trials_gives_the_words_of_all_that_was_measured(tmp_path: Path) -> None:
    text = QUESTION.replace("{path}", "/dev/nvme0n1").replace("{blocks}", "12")
    text = text.replace('"read.lat.mean"]', '"read.lat.mean", "read.lat.p99", "read.clat.p99.9"]')
    folder = carried(tmp_path / "x", CHANGES, text=text, secret=False, end=None)
    (place,) = Folders((tmp_path,)).all()
    follower = Following(place)
    follower.tail.read()
    follower.judge(folder)
    assert follower.known is not None
    plan, state = follower.known.plan, Account(folder.events()[: follower.known.line])
    trials = load_trials(folder, state.usable())
    assert follower.known.judgement == judge_folder(plan, rules_of(plan, state), state, trials)
    assert any(math.isfinite(verdict.change.value) for verdict in follower.known.judgement.verdicts if verdict.change)


def test_following_a_run_keeps_a_few_kib_of_a_trial_and_no_patterns(whole: Folder, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "x"
    shutil.copytree(whole.path, copy)
    lines = (whole.path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (place,) = Folders((tmp_path,)).all()

    def follow(follower: Following, share: float) -> int:
        (copy / "journal.jsonl").write_bytes(b"".join(lines[: int(share * len(lines))]))
        follower.tail.read()
        follower.judge(Folder.open(copy))
        assert follower.underway(writing=True) is not None
        assert follower.problem == ""
        gc.collect()
        return len(follower.tail.state.finished)

    follow(Following(place), 0.9)  # loads and makes all that stays
    tracemalloc.start(1)
    try:
        follower = Following(place)
        before, begun = follow(follower, 0.5), tracemalloc.get_traced_memory()[0]
        after, ended = follow(follower, 0.9), tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before >= 20
    assert (ended - begun) / (after - before) < 4096
    caches = (sign_flips, kept_replays)
    assert [cached.cache_info().currsize for cached in caches] == [0, 0]


def test_what_a_journal_says_is_text_and_nothing_else(browser: Browser, tmp_path: Path) -> None:
    folder = carried(
        tmp_path / "runs" / "x", 0.0, text=ASKED.replace("{path}", "/dev/x"), end=None, secret=False, blocks=2
    )
    bad = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
    with serving("--folders", "runs", cwd=tmp_path) as server, folder.writing():
        folder.append(Abandoned(9.0, bad, bad))
        folder.append(Started(9.0, 99, "randread 4k", 9, 0, 0, "slow", 1))
        visit = opened(browser, server, server.address("x"), 390, "light")
        visit.page.get_by_text("<script>alert(1)</script>").first.wait_for()
        folder.append(Failed(9.0, 99, bad))
        visit.page.get_by_text("between trials").wait_for()
        assert visit.page.locator("main script, main img").count() == 0
        assert "\u202e" not in visit.page.locator("main").inner_text()
        assert visit.wrong == []
        assert server.ask(f"{server.address('x')}/now", Accept="text/html").status == 200
        described = server.json("/openapi.json")
        now = server.ask(f"{server.address('x')}/now", Accept="application/json")
        assert now.status == 200
        check_described(described, "GET", "/experiment/{id}/now", now)
        visit.page.close()


@pytest.mark.night
def test_a_run_can_be_read_by_all_in_every_state(browser: Browser, whole: Folder, tmp_path: Path) -> None:
    """Begun, decided in part with a cell given up, unreadable, failed, and left by a killed run."""
    runs = tmp_path / "runs"

    def made(name: str, blocks: int) -> Folder:
        return carried(runs / name, CHANGES, text=TWO_CELLS, blocks=blocks, end=None, secret=False)

    begun, decided, forged, failed, left = made("a", 2), made("b", 9), made("c", 2), made("d", 3), made("e", 3)
    with failed.writing():
        failed.append(Ended(9e9, "failed: the disk is gone"))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving("--folders", "runs", cwd=tmp_path))
        for folder in (begun, decided, forged):
            stack.enter_context(folder.writing())
        journal = forged.path / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:5], lines[5].replace(b'"trial":', b'"trial":1'), *lines[6:]]))
        decided.append(Abandoned(9e9, "iodepth=4", "two blocks in a row could not be measured"))
        for name, said in (("a", "not yet looked"), ("b", "given up"), ("c", "cannot be read")):
            visit = opened(browser, server, server.address(name), 320, "light")
            visit.page.get_by_text(said).first.wait_for()
            check_for_all(visit, name, opened=True)
            assert visit.wrong == []
            visit.page.close()
        for name in ("d", "e"):
            visit = opened(browser, server, server.address(name), 390, "dark")
            visit.page.wait_for_selector("html[data-charts=drawn]")
            assert violations(visit.page) == []
            visit.page.close()
    assert left.events()[-1] != failed.events()[-1]


@contextlib.contextmanager
def running(place: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """A real ``iodelta run`` on a scratch file."""
    (place / "disk.img").write_bytes(os.urandom(8 << 20))
    (place / "asked.toml").write_text(ASKED.replace("{path}", str(place / "disk.img")))
    code = "from iodelta.cli.main import main; main()"
    command = [sys.executable, "-c", code, "run", "asked.toml", "--folder", f"runs/{name}"]
    env = {**os.environ, "IODELTA_STATE": str(place / "state")}
    process = subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=240)


def opened(browser: Browser, server: Server, path: str, width: int, scheme: Any) -> Visit:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit = Visit(page, server.url)
    page.goto(server.url.rstrip("/") + path)
    return visit


@pytest.mark.fio
def test_a_run_is_watched_from_its_start_to_its_verdict_though_the_server_is_killed(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    journal = tmp_path / "runs" / "x" / "journal.jsonl"
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(running(tmp_path, "x"))
        until(lambda: journal.exists() and journal.read_bytes().count(b'"finished"') >= 3)  # a round, and half of one
        with paused(run.pid):  # else it may be over before two browsers and a server are there
            server = stack.enter_context(serving("--folders", "runs", cwd=tmp_path))
            visits = [opened(browser, server, "/", 1280, "light"), opened(browser, server, "/", 390, "dark")]
            for visit in visits:
                followed(visit.page, visit.page.locator(".running a"))
                visit.page.get_by_text("not yet looked").wait_for()
                assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert violations(visits[0].page) == []
            plain = browser.new_page(java_script_enabled=False)
            plain.set_default_timeout(PATIENCE)
            plain.goto(visits[0].page.url)
            assert "not yet looked" in plain.locator("main").inner_text()
            plain.close()
            lines = len(written(journal))
        until(lambda: went_on(journal, lines))
        with paused(run.pid):
            server.process.kill()
            server.process.wait()
            lines = len(written(journal))
        until(lambda: went_on(journal, lines))
        stack.enter_context(serving("--folders", "runs", "--port", str(server.port), cwd=tmp_path))
        for visit in visits:
            visit.page.wait_for_selector("html[data-charts=drawn]")  # the report, at the same address
            assert "slow is slower than fast" in visit.page.locator("main").inner_text().replace("\u00a0", " ")
            assert visit.page.evaluate("performance.getEntriesByType('navigation').length") == 1
            outside = [one for one in visit.wrong if "ERR_CONNECTION_REFUSED" not in one]
            assert [one for one in outside if "ERR_" not in one] == []
            visit.page.close()
        assert run.wait(LIMIT) == 1
