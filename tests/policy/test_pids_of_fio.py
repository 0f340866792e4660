"""The pids of fio's jobs, which decide what the pid policy does: real fio's are in a row, and so are the mirror's."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from iodelta.parts.mirrors.mirror import Request, pids_of
from iodelta.parts.mirrors.model import pids_in_a_row

STARTS, ROWS = 100, 3


def pids(job: Path, jobs: int) -> list[int]:
    words = ["fio", "--name=pids", f"--filename={job}", "--size=64k", "--rw=randread", f"--numjobs={jobs}"]
    done = subprocess.run([*words, "--output-format=normal"], check=True, capture_output=True, text=True)
    return sorted(int(pid) for pid in re.findall(r"err= 0: pid=(\d+):", done.stdout))


@pytest.mark.fio
@pytest.mark.parametrize("jobs", [2, 4])
def test_fio_forks_its_jobs_in_a_row_so_that_they_take_turns_over_the_mirrors(tmp_path: Path, jobs: int) -> None:
    in_a_row: list[list[int]] = []
    for _ in range(STARTS):
        found = pids(tmp_path / "read", jobs)
        assert len(found) == jobs
        # Another process that starts in between breaks a row; pids by chance would make one in ten thousand starts.
        if found[-1] - found[0] == jobs - 1:
            in_a_row.append(found)
        if len(in_a_row) == ROWS:
            break
    assert len(in_a_row) == ROWS
    split = [len({pid % 2 for pid in one}) for one in in_a_row]
    assert split == [2] * len(in_a_row), "never all on one of two mirrors"


@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
def test_jobs_of_the_mirror_have_pids_like_those_of_fio(jobs: int) -> None:
    firsts = set()
    for seed in range(20):
        one = pids_of(Request(members=(), policy="pid", jobs=jobs, seed=seed))
        assert one == tuple(range(one[0], one[0] + jobs))
        assert one == pids_in_a_row(random.Random(seed), jobs)
        firsts.add(one[0] % 2)
    assert firsts == {0, 1}, "the first is chance"
