"""Lines picked out of a report are results, as far as they go."""

from __future__ import annotations

import pytest

from iodelta.ingest import Run
from iodelta.ingest.report import read_text

RATE = "  read: IOPS=8466, BW=33.1MiB/s (34.7MB/s)(33.1MiB/1001msec)"
GROUP = (
    "   READ: bw=33.1MiB/s (34.7MB/s), 33.1MiB/s-33.1MiB/s (34.7MB/s-34.7MB/s), io=33.1MiB (34.7MB), run=1001-1001msec"
)
OLD = "   READ: io=197536KB, aggrb=98718KB/s, minb=98718KB/s, maxb=98718KB/s, mint=2001msec, maxt=2001msec"


def runs_of(text: str) -> list[Run]:
    return [item for item in read_text(text.encode(), "x") if isinstance(item, Run)]


def test_what_grep_found_bears_the_names_of_its_files() -> None:
    runs = runs_of(f"old/randread-4k.txt:{RATE}\nnew/randread-4k.txt:{RATE.replace('8466', '9000')}\n")
    assert [(run.jobname, run.workload.rw, run.workload.bs) for run in runs] == [
        ("old/randread-4k.txt", "randread", 4096),
        ("new/randread-4k.txt", "randread", 4096),
    ]
    assert [run.directions[0].iops.value for run in runs] == pytest.approx([8466, 9000], abs=1)
    assert all(run.directions[0].runtime_ms == 1001 for run in runs)


def test_a_line_bears_the_words_above_it() -> None:
    runs = runs_of(f"Before the patch:\n\n{RATE}\n\nAfter:\n\n{RATE}\n")
    assert [run.jobname for run in runs] == ["Before the patch", "After"]


@pytest.mark.parametrize(("line", "mib"), [(GROUP, 33.1), (OLD, 98718 / 1024)])
def test_a_status_group_gives_a_bandwidth_and_no_iops(line: str, mib: float) -> None:
    (run,) = runs_of(f"> {line}\n")
    (direction,) = run.directions
    assert direction.bandwidth.value / 2**20 == pytest.approx(mib, rel=0.01)
    assert direction.bandwidth.low < direction.bandwidth.value < direction.bandwidth.high
    assert direction.iops.value != direction.iops.value


def test_pairs_of_name_and_number_are_a_row() -> None:
    one, two = runs_of("randread-4k-qd32: IOPS=345k BW=1348MiB/s lat=92us\nrandwrite-4k-qd32: iops=245k, lat=130us\n")
    assert (one.jobname, one.workload.iodepth, one.directions[0].iops.value) == ("randread-4k-qd32", 32, 345e3)
    assert one.directions[0].lat is not None
    assert one.directions[0].lat.mean.value == 92e3
    assert two.directions[0].kind == "write"


def test_a_sentence_with_one_number_is_no_result() -> None:
    assert runs_of("I saw IOPS=12 once, and set bs=4k\n") == []
