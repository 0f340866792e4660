"""A search whose answers a person gives: in words that may be wrong, or in numbers, over several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iodelta.bisect.byhand import Judging
from iodelta.bisect.model import Answer, Line, Rules
from iodelta.cli.by_hand import Once
from iodelta.cli.report import command as report_command
from iodelta.errors import RequestError

from .toy import Toy, asked, bisect, log, run, shown

CULPRIT = 41


@pytest.fixture
def history(repo: Toy) -> list[str]:
    """64 commits, and one more that they began from."""
    return repo.commits(*range(65))


def begin(repo: Toy, folder: Path, *more: object) -> None:
    done = bisect("--repo", repo.path, "--good", "HEAD~64", "--bad", "HEAD", "--by-hand", "--folder", folder, *more)
    assert done.code == 3, done.error
    assert "64 candidates" in done.err


def proposed(folder: Path, made: list[str]) -> int:
    """The place of the commit that is proposed."""
    text = bisect(folder, "--dry-run").out
    [place] = [place for place, sha in enumerate(made) if sha[:12] in text]
    return place


def truth(place: int) -> str:
    return "bad" if place >= CULPRIT else "good"


def answer_to_the_end(folder: Path, made: list[str], *, lie: int = -1, skips: frozenset[int] = frozenset()) -> int:
    """Answer as somebody who makes mistakes: how many answers it took."""
    for count in range(60):
        if "nothing is left" in bisect(folder, "--dry-run").out:
            return count
        place = proposed(folder, made)
        word = "skip" if place in skips else truth(place)
        if count == lie:
            word = {"good": "bad", "bad": "good"}[truth(place)]
        assert bisect(folder, word).code in (1, 3)
    raise AssertionError("no end")


def test_a_wrong_answer_and_skips_do_not_hide_the_culprit(repo: Toy, history: list[str], tmp_path: Path) -> None:
    out, before = tmp_path / "out", repo.untouched()
    begin(repo, out)
    count = answer_to_the_end(out, history, lie=3, skips=frozenset({CULPRIT - 1, 20}))
    done = bisect(out, "--show")
    text = " ".join(done.out.split())
    assert done.code == 1
    assert history[CULPRIT][:12] in text.partition("\n")[0]
    assert "1 of " in text
    assert "contradict" in text
    found = shown(out)
    [culprit] = found["culprits"]
    assert found["schema"] == "iodelta.bisect/2"
    assert culprit["item"] == history[CULPRIT]
    assert culprit["change"] is None
    assert culprit["p"] is None
    assert len(culprit["suspects"]) == 1 + (CULPRIT - 1 in {history.index(one["item"]) for one in found["skipped"]})
    assert 9 <= count <= 30
    assert repo.untouched() == before


def test_words_are_never_printed_as_a_percentage_of_change(repo: Toy, history: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin(repo, out)
    answer_to_the_end(out, history)
    shown = [bisect(out, "--show").out, run(report_command, out, "--format", "mail").out]
    for text in shown:
        assert history[CULPRIT][:12] in text
        assert "interval" not in text
        assert "median" not in text
        assert "nan" not in text
        assert "margin" not in text
    assert "answered by hand" in " ".join(shown[1].split())
    words = [line.split()[2] for line in bisect(out, "--format", "git").out.splitlines() if line.startswith("git bis")]
    assert words.count("bad") >= 2


def test_a_kill_at_the_prompt_loses_no_answer_and_the_next_process_asks_the_same(
    repo: Toy, history: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = f"bisect --repo {repo.path} --good {history[0]} --bad HEAD --by-hand --folder {out}".split()
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("iodelta")), *words],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        seen = 0
        for line in process.stderr:
            if not line.startswith("Next: "):
                continue
            seen += 1
            if seen == 3:
                break
            process.stdin.write("good\n" if seen == 1 else "skip\n")
            process.stdin.flush()
        process.send_signal(signal.SIGKILL)
    assert seen == 3
    kept = [line["answer"] for line in log(out) if line["type"] == "answered"]
    assert [(one["word"], bool(one["reason"])) for one in kept] == [("good", False), ("", True)]
    place = proposed(out, history)
    bisect(out, truth(place))
    assert asked(out)[-1] == history[place]
    assert len(asked(out)) == 3


def test_the_terminal_takes_answers_back_and_asks_again_after_one_that_is_none(
    repo: Toy, history: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    begin(repo, out)
    words = [str(Path(sys.executable).with_name("iodelta")), "bisect", str(out)]
    said = b"undo\nbad\nundo\nugly\n\ngood\nba"
    done = subprocess.run(words, input=said, capture_output=True, check=False)
    assert done.returncode == 3
    assert b"not an answer: 'ugly'" in done.stderr
    assert b"there are 0 answers to undo" in done.stderr
    assert done.stderr.count(b"undone:") == 1
    answers = [line["answer"]["word"] for line in log(out) if line["type"] == "answered"]
    assert answers == ["bad", "good"]
    first, second = asked(out)
    assert first == second


def test_an_answer_about_what_another_call_has_answered_is_not_kept() -> None:
    once = Once("a", "good")
    with pytest.raises(RequestError, match="another call"):
        once.line("b", ())


def test_an_end_that_numbers_are_compared_with_cannot_be_skipped(repo: Toy, history: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin(repo, out, "--better", "lower")
    before = (out / "log.jsonl").read_bytes()
    done = bisect(out, "skip")
    assert done.code == 2
    assert "cannot be skipped" in str(done.error)
    assert (out / "log.jsonl").read_bytes() == before


def test_what_was_answered_in_words_cannot_be_skipped_afterwards(repo: Toy, tmp_path: Path) -> None:
    """Contradicting answers have it asked again: that it cannot be tested would contradict them all."""
    repo.commits(*range(4))
    out = tmp_path / "out"
    bisect("--repo", repo.path, "--good", "HEAD~3", "--bad", "HEAD", "--by-hand", "--folder", out)
    words = iter(["bad", "good"] * 10)
    while "again: is it" not in bisect(out, "--dry-run").out:
        bisect(out, next(words))
    before = (out / "log.jsonl").read_bytes()
    done = bisect(out, "skip")
    assert done.code == 2
    assert "cannot be skipped" in str(done.error)
    assert "say good or bad again" in str(done.error)
    assert (out / "log.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("ugly",), "not an answer: 'ugly'"),
        (("good", "bad"), "one answer"),
        (("--value", "1234"), "answered in words"),
        (("--good", "HEAD"), "already"),
    ],
)
def test_an_answer_that_is_none_changes_nothing(
    repo: Toy, history: list[str], tmp_path: Path, words: tuple[str, ...], what: str
) -> None:
    out = tmp_path / "out"
    begin(repo, out)
    before = (out / "log.jsonl").read_bytes()
    done = bisect(out, *words)
    assert done.code == 2
    assert isinstance(done.error, RequestError)
    assert what in str(done.error)
    assert done.error.remedy
    assert (out / "log.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--measure", "true"), "--measure"),
        (("--wrong", "60%"), "--wrong"),
        (("--margin", "2%"), "--margin"),
        (("--better", "lower", "--wrong", "2%"), "--wrong"),
        (("--", "--rw=read"), "fio"),
    ],
)
def test_what_a_person_does_not_do_is_refused(
    repo: Toy, history: list[str], tmp_path: Path, more: tuple[str, ...], what: str
) -> None:
    out = tmp_path / "out"
    done = bisect("--repo", repo.path, "--good", history[0], "--bad", "HEAD", "--by-hand", "--folder", out, *more)
    assert done.code == 2
    assert isinstance(done.error, RequestError)
    assert what in f"{done.error} {done.error.place}"
    assert done.error.remedy
    assert not out.exists()


def test_an_answer_to_a_search_that_measures_by_itself_is_refused(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(1000, 1000)
    out = tmp_path / "out"
    bisect("--repo", repo.path, "--good", made[0], "--bad", "HEAD", "--folder", out, "--measure", "sh bench.sh",
           "--better", "higher", "--exact", "1%")  # fmt: skip
    done = bisect(out, "good")
    assert done.code == 2
    assert "measures automatically" in str(done.error)


def test_numbers_by_hand_are_searched_as_measured_ones(repo: Toy, history: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin(repo, out, "--better", "higher", "--exact", "0.1%", "--no-revert", "--first", "--seed", "1")
    assert "give a number" in str(bisect(out, "good").error)
    for _ in range(40):
        if "nothing is left" in bisect(out, "--dry-run").out:
            break
        speed = 900 if proposed(out, history) >= CULPRIT else 1000
        assert bisect(out, "--value", speed).code in (1, 3)
    [culprit] = shown(out)["culprits"]
    assert culprit["item"] == history[CULPRIT]
    assert culprit["change"]["value"] == pytest.approx(-0.1, abs=0.001)


def test_ends_that_are_not_what_was_said_are_named_so(repo: Toy, history: list[str], tmp_path: Path) -> None:
    for word, end in (("good", "bad end"), ("bad", "good end")):
        out = tmp_path / word
        begin(repo, out)
        for _ in range(30):
            if "nothing is left" in bisect(out, "--dry-run").out:
                break
            bisect(out, word)
        found = shown(out)
        assert not found["culprits"]
        assert end in found["refused"]


def judged(places: int, culprit: int, wrong: float, seed: int) -> tuple[int | None, int]:
    """A person who errs at random: the place named, and the answers that it took."""
    import random

    rng = random.Random(seed)
    line = Line(tuple(map(str, range(places))), (1.0,) * (places - 1))
    search = Judging(line, Rules(), wrong)
    course = search.run()
    ask, count = next(course), 0
    try:
        while True:
            bad = (int(ask.item) >= culprit) != (rng.random() < wrong)
            ask = course.send(Answer(None, word="bad" if bad else "good"))
            count += 1
    except StopIteration as end:
        found = end.value.culprit
    return (int(found.item) if found else None), count


@pytest.mark.parametrize("wrong", [0.05, 0.2])
def test_at_the_stated_error_rate_the_claims_hold_as_often_as_is_said(wrong: float) -> None:
    """Of claims at 95 % not many more than one in twenty name another commit; plain bisection would err far more."""
    said = [judged(65, 1 + seed * 7 % 64, wrong, seed) for seed in range(120)]
    claims = [place for place, _ in said if place is not None]
    right = [place == 1 + seed * 7 % 64 for seed, (place, _) in enumerate(said) if place is not None]
    assert len(claims) >= 100
    assert sum(right) / len(right) >= 0.90


def test_skips_alone_accuse_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bisect("--item", "5", "--item", "10", "--item", "20", "--by-hand", "--folder", out)
    for _ in range(3):
        if "nothing is left" not in bisect(out, "--dry-run").out:
            bisect(out, "skip")
    found = shown(out)
    assert found["exit_code"] == 3
    assert not found["culprits"]
    assert "end was skipped" in found["refused"]


def test_of_a_merge_the_commit_that_it_brought_in_is_named(repo: Toy, tmp_path: Path) -> None:
    main = repo.commits(*range(3))
    repo.git("checkout", "-q", "-b", "side")
    side = repo.commits(*range(10, 14))
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "merge of side", "side")
    guilty = {*side[2:], repo.git("rev-parse", "HEAD")}
    line = [*main, *side, repo.git("rev-parse", "HEAD")]
    out = tmp_path / "out"
    bisect("--repo", repo.path, "--good", main[0], "--bad", "HEAD", "--by-hand", "--folder", out)
    while "nothing is left" not in bisect(out, "--dry-run").out:
        bisect(out, "bad" if line[proposed(out, line)] in guilty else "good")
        assert len(asked(out)) < 30
    [culprit] = shown(out)["culprits"]
    assert culprit["item"] == side[2]
    assert "merge of side" in culprit["via"][0]
