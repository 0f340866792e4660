"""Searching commits of a real repository: what is found, and what is left alone whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workshop import Workshop, unmount

from iodelta.errors import MeasureError, RequestError

from .toy import READ, Toy, asked, bisect, log, searched, shown

FAST, SLOW, SLOWER = 1000, 970, 940


def test_two_culprits_are_found_and_nothing_of_the_checkout_is_touched(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 12, *[SLOW] * 10, *[SLOWER] * 8)
    (repo.path / "speed").write_text("dirty\n")
    (repo.path / "new").write_text("not added\n")
    (repo.path / "staged").write_text("added\n")
    repo.git("add", "staged")
    before = repo.untouched()
    done = searched(repo, made[0], tmp_path / "out")
    assert done.code == 1
    assert "2 culprits of 29 candidates" in done.out
    assert "uncommitted changes" in done.err
    found = shown(tmp_path / "out")
    assert [one["item"] for one in found["culprits"]] == [made[12], made[22]]
    assert [one["change"]["value"] for one in found["culprits"]] == pytest.approx([-0.03, -0.032], abs=0.002)
    assert found["culprits"][0]["commit"]["email"] == "tester@example.org"
    assert repo.untouched() == before
    assert not (tmp_path / "out" / "tree").exists()


def test_a_culprit_is_taken_out_on_top_of_the_bad_end_as_a_second_proof(repo: Toy, tmp_path: Path) -> None:
    """Later commits touch another file, so the revert applies; the bad end is as fast as good without it."""
    made = [repo.commit(FAST, f"change {n}", **{f"file{n}": ""}) for n in range(6)]
    made += [repo.commit(SLOW, f"change {n}", **{f"file{n}": ""}) for n in range(6, 12)]
    before = repo.untouched()
    done = searched(repo, made[0], tmp_path / "out")
    assert done.code == 1
    [culprit] = shown(tmp_path / "out")["culprits"]
    assert culprit["item"] == made[6]
    proof = culprit["revert"]
    assert proof["shown"], proof["reason"]
    assert proof["change"]["value"] == pytest.approx(SLOW / FAST - 1, abs=0.002)
    assert "Second proof: at the bad end it makes -3.0" in " ".join(done.out.split())
    assert repo.untouched() == before


def test_a_culprit_that_cannot_be_reverted_on_top_of_the_bad_end_is_one_all_the_same(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6, SLOW + 1)
    done = searched(repo, made[0], tmp_path / "out")
    found = shown(tmp_path / "out")
    [culprit] = found["culprits"]
    assert culprit["item"] == made[6]
    assert culprit["revert"]["reason"].endswith("does not apply: conflicts in speed"), culprit["revert"]
    assert "could not be measured: does not apply" in " ".join(done.out.split())
    assert not found["skipped"]


def test_an_exactness_that_two_runs_of_one_commit_contradict_is_dropped_with_a_word(repo: Toy, tmp_path: Path) -> None:
    """The number repeats to within 4 %, and 0.1 % was promised."""
    (repo.path / "bench.sh").write_text(
        f"echo x >>{tmp_path}/count; n=$(wc -l <{tmp_path}/count); echo $(($(cat speed) + n * 7919 % 41))\n"
    )
    made = repo.commits(*[FAST] * 20)
    done = searched(repo, made[0], tmp_path / "out")
    text = " ".join(done.out.split())
    assert "Runs were to repeat to within 0.1 %, but two of" in text
    assert "That promise is dropped" in text
    assert "That promise is dropped" in " ".join(done.err.split())
    found = shown(tmp_path / "out")
    assert not found["culprits"]


def test_git_itself_comes_to_the_same_culprit_from_the_log_that_is_exported(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 9, "crash", *[SLOW] * 14)
    searched(repo, made[0], tmp_path / "out")
    exported = bisect(tmp_path / "out", "--format", "git")
    (tmp_path / "git.log").write_text(exported.out)
    words = ["git", "bisect", "replay", str(tmp_path / "git.log")]
    told = subprocess.run(words, cwd=repo.path, capture_output=True, text=True, check=False).stdout
    assert "The first bad commit could be any of" in told
    assert {made[9], made[10]} <= set(told.split())
    assert made[9][:12] in exported.out


def test_what_cannot_be_tested_is_skipped_and_never_called_bad(repo: Toy, tmp_path: Path) -> None:
    """Around the culprit: one that crashes, one that prints no number, one that hangs, one that does not build."""
    made = repo.commits(*[FAST] * 6, "crash", "rubbish", "hang", "unbuildable", *[SLOW] * 6)
    # Only what hangs takes so long, also where a busy machine stands still for some seconds.
    options = ("--measure-timeout", "20s", "--build", "grep -vq unbuildable speed")
    done = searched(repo, made[0], tmp_path / "out", *options)
    assert done.code == 1
    found = shown(tmp_path / "out")
    [culprit] = found["culprits"]
    assert culprit["item"] == made[10]
    assert len(culprit["suspects"]) == 5
    reasons = {one["item"]: one["reason"] for one in found["skipped"]}
    assert "ended with 3" in reasons[made[6]]
    assert "'many'" in reasons[made[7]]
    assert "hangs" in reasons[made[8]]
    assert "the build ended with 1" in reasons[made[9]]
    assert "or one of 4 before it that could not be tested" in done.out


def test_an_end_that_cannot_be_measured_stops_the_search_and_blames_no_commit(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits("crash", *[FAST] * 6)
    done = searched(repo, made[0], tmp_path / "out")
    assert isinstance(done.error, MeasureError)
    assert "both ends of the range must work" in str(done.error)
    answers = [line["answer"] for line in log(tmp_path / "out") if line["type"] == "answered"]
    assert all(answer["value"] is not None for answer in answers)


def test_what_was_measured_before_and_fails_now_is_the_machines_fault(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6)
    measure = f"sh -c 'test $(ls {tmp_path}/out/output | wc -l) -lt 8 && sh bench.sh'"
    done = searched(repo, made[0], tmp_path / "out", "--measure", measure)
    assert isinstance(done.error, MeasureError)
    assert "measured before" in str(done.error) or "both ends of the range" in str(done.error)
    assert log(tmp_path / "out")[-1]["reason"].startswith("failed:")


def test_a_search_killed_again_and_again_ends_as_one_that_was_left_alone(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 20, "crash", *[SLOW] * 15)
    args = ("--repo", str(repo.path), "--good", made[0], "--bad", "HEAD", *READ)
    alone = bisect(*args, "--folder", tmp_path / "alone")
    assert alone.code == 1
    folder = tmp_path / "killed"
    words = [str(Path(sys.executable).with_name("iodelta")), "bisect"]
    kills = 0
    for attempt in range(40):
        given = [*args, "--folder", str(folder)] if attempt == 0 else [str(folder)]
        process = subprocess.Popen([*words, *given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = len(asked(folder)) + 4 if (folder / "log.jsonl").exists() else 3
        while process.poll() is None and (not (folder / "log.jsonl").exists() or len(asked(folder)) < wanted):
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        if process.wait() != -signal.SIGKILL:
            break
    assert kills >= 2
    assert asked(folder) == asked(tmp_path / "alone")
    assert bisect(folder).code == 1
    assert repo.git("worktree", "list").count("\n") == 0


def test_a_line_torn_by_a_kill_is_cut_and_the_run_asked_for_again(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6)
    folder = tmp_path / "out"
    searched(repo, made[0], folder, "--no-revert")
    whole = asked(folder)
    lines = (folder / "log.jsonl").read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"answered"' in line)
    (folder / "log.jsonl").write_bytes(b"".join(lines[:last]) + lines[last][:25])
    assert bisect(folder, "--show").code == 3
    assert bisect(folder).code == 1
    assert asked(folder) == whole


def test_an_answer_taken_back_is_asked_for_again_and_stays_on_record(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6)
    folder = tmp_path / "out"
    searched(repo, made[0], folder, "--no-revert")
    last = asked(folder)[-1]
    assert f"undone: {last[:12]}" in bisect(folder, "--undo", 1).err
    planned = bisect(folder, "--dry-run")
    assert planned.code == 0
    assert last[:12] in planned.out
    assert "confirm" in planned.out
    count = len(log(folder))
    assert bisect(folder, "--dry-run").out == planned.out
    assert len(log(folder)) == count  # to plan writes nothing
    assert bisect(folder).code == 1
    assert [line["type"] for line in log(folder)].count("undone") == 1
    assert isinstance(bisect(folder, "--undo", 999).error, RequestError)


def test_a_question_or_a_log_that_was_changed_is_not_gone_on_with(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6)
    folder = tmp_path / "out"
    searched(repo, made[0], folder)
    text = (folder / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    first = next(line for line in lines if line["type"] == "answered")
    first["item"] = made[3]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "not the original line" in str(bisect(folder).error)
    bare = [{key: value for key, value in line.items() if key != "chain"} for line in lines]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in bare))
    assert "did not ask for" in str(bisect(folder).error)
    (folder / "log.jsonl").write_text(text)
    question = (folder / "question.json").read_text()
    (folder / "question.json").write_text(question.replace('"higher"', '"lower"'))
    assert "it was changed after the search began" in str(bisect(folder).error)


def test_ends_that_do_not_differ_are_no_search(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 20)
    done = searched(repo, made[0], tmp_path / "out")
    assert done.code == 0
    assert "the ends do not differ" in done.out
    assert len(set(asked(tmp_path / "out"))) == 5  # the ends, and the quarter points between them


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("main~3", "nowhere", "'nowhere' is not a commit"),
        ("main", "main~3", "exchange --good and --bad"),
        ("main", "main", "the same commit"),
        ("side", "main", "ask with that as --good"),
        ("--output=x", "main", "is not a commit"),
    ],
)
def test_revisions_that_make_no_line_are_refused_with_what_to_do(
    repo: Toy, tmp_path: Path, good: str, bad: str, said: str
) -> None:
    repo.commits(*[FAST] * 5)
    repo.git("switch", "-q", "-c", "side", "main~2")
    repo.commit(1)
    repo.git("switch", "-q", "main")
    done = bisect("--repo", repo.path, f"--good={good}", f"--bad={bad}", "--folder", tmp_path / "out", *READ)
    assert isinstance(done.error, RequestError)
    assert said in str(done.error)
    assert not (tmp_path / "out").exists()


def test_a_shallow_clone_is_told_how_to_get_the_rest(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 9)
    subprocess.run(["git", "clone", "-q", "--depth", "3", f"file://{repo.path}", tmp_path / "shallow"], check=True)
    done = bisect("--repo", tmp_path / "shallow", "--good", made[2], "--bad", "HEAD", *READ)
    assert "git fetch --unshallow" in str(done.error)
    assert isinstance(done.error, RequestError)


def test_no_repository_is_a_plain_refusal(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = bisect("--repo", tmp_path / "empty", "--good", "a", "--bad", "b", *READ)
    assert isinstance(done.error, RequestError)
    assert "not a git repository" in str(done.error)


def test_a_commit_whose_objects_are_missing_is_skipped_and_a_broken_history_is_named(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, "only here", *[SLOW] * 6)
    blob = repo.git("rev-parse", f"{made[6]}:speed")
    (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    folder = tmp_path / "out"
    done = searched(repo, made[0], folder)
    assert done.code == 1
    [culprit] = shown(folder)["culprits"]
    assert culprit["item"] == made[7]
    assert len(culprit["suspects"]) == 2
    (repo.path / ".git" / "objects" / made[6][:2] / made[6][2:]).unlink()
    done = searched(repo, made[0], tmp_path / "other")
    assert "git fsck" in str(done.error)


def test_submodules_are_those_of_the_commit_under_test(
    repo: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COUNT", "1"), ("KEY_0", "protocol.file.allow"), ("VALUE_0", "always")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    part = Toy(tmp_path / "part")
    part.commit(FAST)
    repo.commit(0)
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part.path), "part")
    made = [repo.commit(0, f"change {n}") for n in range(6)]
    part.commit(SLOW)
    repo.git("-C", "part", "pull", "-q")
    made += [repo.commit(0, f"change {n}") for n in range(6, 12)]
    before = repo.untouched()
    assert searched(repo, made[0], tmp_path / "out", "--measure", "cat part/speed").code == 1
    found = shown(tmp_path / "out")
    assert [one["item"] for one in found["culprits"]] == [made[6]]
    assert repo.untouched() == before


def test_a_merge_is_followed_to_the_guilty_commit_of_its_branch(repo: Toy, tmp_path: Path) -> None:
    base = repo.commits(*[FAST] * 4)
    repo.git("switch", "-q", "-c", "topic")
    for n in range(5):
        repo.commit(FAST if n < 3 else SLOW, f"topic {n}")
    guilty = repo.git("rev-parse", "topic~1")
    repo.git("switch", "-q", "main")
    repo.commit(FAST, "main goes on", other="x")
    repo.git("merge", "-q", "--no-ff", "-m", "Merge branch 'topic'", "topic")
    merge = repo.git("rev-parse", "HEAD")
    for n in range(4):
        repo.commit(SLOW, f"after {n}", other=str(n))
    folder = tmp_path / "out"
    done = searched(repo, base[0], folder)
    [culprit] = shown(folder)["culprits"]
    assert culprit["item"] == guilty
    assert culprit["via"] == [f"{merge[:12]} (\"Merge branch 'topic'\")"]
    assert "brought in by" in done.out


def test_artifacts_are_built_once_and_kept(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6)
    builds = tmp_path / "builds"
    build = f"sh -c 'echo $IODELTA_ITEM >>{builds}; mkdir -p bin && cp speed bin/speed'"
    options = ("--build", build, "--artifact", "bin/speed", "--measure", "cat {built}/bin/speed")
    done = searched(repo, made[0], tmp_path / "out", *options)
    assert done.code == 1
    built = builds.read_text().split()
    assert sorted(built) == sorted(set(asked(tmp_path / "out")))
    assert len(asked(tmp_path / "out")) > len(built)


@pytest.mark.root
def test_a_full_disk_blames_no_commit_and_the_search_goes_on_when_there_is_room(
    repo: Toy, tmp_path: Path, workshop: Workshop
) -> None:
    made = repo.commits(*[FAST] * 6, *[SLOW] * 6)
    place = tmp_path / "small"
    place.mkdir()
    workshop.run("mount", "-t", "tmpfs", "-o", "size=40m", "none", place)
    workshop.undo(lambda: unmount(place))
    filler = place / "filler"
    once = f"test -e {filler}.done || {{ touch {filler}.done; head -c 60m /dev/zero >{filler}; }}"
    done = searched(repo, made[0], place / "out", "--measure", f"sh -c '{once} && sh bench.sh'")
    assert isinstance(done.error, MeasureError)
    assert done.code == 4
    assert "full" in str(done.error) or "No space" in str(done.error)
    assert not any(line["answer"]["value"] is None for line in log(place / "out") if line["type"] == "answered")
    filler.unlink()
    assert bisect(place / "out").code == 1


def test_the_environment_of_a_git_hook_redirects_nothing(
    repo: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = repo.commits(*[FAST] * 4, *[SLOW] * 4)
    other = Toy(tmp_path / "other")
    other.commit(1)
    hook = repo.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    done = searched(repo, made[0], tmp_path / "out")
    assert done.code == 1
    assert not (tmp_path / "hooked").exists()
    assert not os.path.exists(tmp_path / "index")


def test_the_mail_is_plain_text_for_the_author_and_carries_no_escapes(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(*[FAST] * 5)
    made.append(repo.commit(SLOW, "block: \x1b[31mred\x1b[0m \u202egnp.exe"))
    made += repo.commits(*[SLOW] * 4)
    folder = tmp_path / "out"
    done = searched(repo, made[0], folder)
    mail = bisect(folder, "--format", "mail").out
    assert mail.startswith("To: A Tester <tester@example.org>\nSubject: [REGRESSION] the number -3.00 % since ")
    assert f"#regzbot introduced: {made[5][:12]}" in mail
    assert f"# first bad commit: [{made[5]}]" in mail
    assert "sh bench.sh" in mail
    environment = mail.partition("\nEnvironment:\n\n")[2].partition("\n\n")[0]
    assert re.search(r"^  CPU: ", environment, re.MULTILINE)
    assert re.search(rf"^  kernel: {re.escape(os.uname().release)}$", environment, re.MULTILINE)
    for text in (mail, done.out, done.err):
        assert "\x1b[31m" not in text
        assert "\u202e" not in text
