"""A search of 200 commits with real fio: a build leaves a rate, and the kernel's throttle holds a loop device to it.

Two commits lower the rate, some do not build, one hangs. The effects are many times what a busy machine adds.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from .stand import LIMIT, Stand, shell, side_by_side

pytestmark = [pytest.mark.root, pytest.mark.beside, pytest.mark.night]

COMMITS = 200
FIRST, SECOND = 61, 148
RATES = (800, 480, 280)
"""Few I/Os a second: what others do with the CPUs hardly changes them."""
BROKEN = (*range(55, 60), 99, 101, 147, 170)
HANGS = 100

BUILD = """\
case $(cat source) in
broken) echo "source:1: error: expected ';'" >&2; exit 1 ;;
hang) sleep 600 ;;
*) cp source rate ;;
esac
"""

PUT = """\
# Usage: put.sh RATE_FILE GROUP MAJ:MIN
exec sh "$(dirname "$0")/limit.sh" "$(cat "$1")" "$2" "$3"
"""


def repository(place: Path) -> tuple[Path, list[str]]:
    """A repository whose commits have a rate, and their hashes."""
    path = place / "repo"
    path.mkdir()

    def git(*words: str, stdin: str = "") -> str:
        done = subprocess.run(["git", "-C", path, *words], input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    git("init", "-q", "-b", "main")
    stream = []
    for number in range(COMMITS):
        rate = str(RATES[(number >= FIRST) + (number >= SECOND)])
        source = "broken" if number in BROKEN else "hang" if number == HANGS else rate
        message = f"drivers: change {number}"
        stream.append(
            f"commit refs/heads/main\nmark :{number + 1}\n"
            f"committer A Tester <tester@example.org> {1700000000 + number} +0000\n"
            f"data {len(message)}\n{message}\n"
            f"M 100644 inline source\ndata {len(source) + 1}\n{source}\n\n"
            f"M 100644 inline number\ndata {len(str(number))}\n{number}\n"
            f"M 100755 inline build.sh\ndata {len(BUILD)}\n{BUILD}\n"
        )
    git("fast-import", "--quiet", stdin="".join(stream))
    git("reset", "-q", "--hard", "main")
    return path, git("rev-list", "--reverse", "main").split()


def test_two_culprits_among_200_commits_with_builds_that_fail_or_hang(tmp_path: Path) -> None:
    side_by_side(tmp_path, search, [0])


def search(stand: Stand, _: int) -> None:
    path, made = repository(stand.place)
    device = stand.loop()
    group, number = stand.group(device)
    (stand.place / "limit.sh").write_text(LIMIT)
    put = stand.place / "put.sh"
    put.write_text(PUT)
    index = (path / ".git" / "index").read_bytes()
    options = (
        *("--repo", str(path), "--good", made[0], "--bad", made[-1], "--folder", "folder", "--margin", "20%"),
        *("--build", "sh ./build.sh", "--build-timeout", "20s", "--artifact", "rate"),
        *("--put", f"sh {put} {{built}}/rate {group} {number}", "--seed", "1"),
        *("--target", device, "--trial", "300ms", "--ramp", "50ms", "--metric", "read.iops"),
    )
    fio = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=4")
    done = stand.run_in(group, "bisect", *options, "--", *fio)
    assert done.code == 1, done
    found = json.loads(stand.run("bisect", "folder", "--show", "--format", "json").out)
    if len(found["culprits"]) < 2:  # too noisy to prove both at once: the command that it names goes on
        assert "--rest 4" in done.out, done.out
        done = stand.run_in(group, "bisect", "folder", "--rest", "4")
        found = json.loads(stand.run("bisect", "folder", "--show", "--format", "json").out)
    culprits = found["culprits"]
    assert [one["item"] for one in culprits] == [made[FIRST], made[SECOND]], done.out
    assert len(culprits[0]["suspects"]) == 1
    assert len(culprits[1]["suspects"]) == 2  # its parent does not build
    for one, (before, after) in zip(culprits, itertools.pairwise(RATES), strict=True):
        assert abs(one["change"]["value"] - (after / before - 1)) < 0.1, done.out
    skipped = {one["item"]: one["reason"] for one in found["skipped"]}
    assert set(skipped) <= {made[number] for number in (*BROKEN, HANGS)}
    assert "the build ended with 1" in skipped[made[147]]
    assert all("hangs" in reason for item, reason in skipped.items() if item == made[HANGS])
    assert (path / ".git" / "index").read_bytes() == index
    assert shell("git", "-C", str(path), "worktree", "list").count("\n") == 1
    assert not stand.processes()
