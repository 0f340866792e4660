"""Lines picked out of a report are results, as far as they go."""

from __future__ import annotations

import pytest
from told import told

from iodelta.ingest import read_bytes

GROUP = (
    "   READ: bw=33.1MiB/s (34.7MB/s), 33.1MiB/s-33.1MiB/s (34.7MB/s-34.7MB/s), io=33.1MiB (34.7MB), run=1001-1001msec"
)
OLD = "   READ: io=197536KB, aggrb=98718KB/s, minb=98718KB/s, maxb=98718KB/s, mint=2001msec, maxt=2001msec"


EXCERPTS = {
    "what grep found bears the names of its files": (
        """\
old/randread-4k.txt:  read: IOPS=8466, BW=33.1MiB/s (34.7MB/s)(33.1MiB/1001msec)
new/randread-4k.txt:  read: IOPS=9000, BW=33.1MiB/s (34.7MB/s)(33.1MiB/1001msec)
""",
        """\
1 old/randread-4k.txt: randread 4096B | read 1001ms iops=8466 MB/s=34.7078656
2 new/randread-4k.txt: randread 4096B | read 1001ms iops=9000 MB/s=34.7078656""",
    ),
    "a line bears the words above it": (
        """\
Before the patch:

  read: IOPS=8466, BW=33.1MiB/s (34.7MB/s)(33.1MiB/1001msec)

After:

  read: IOPS=8466, BW=33.1MiB/s (34.7MB/s)(33.1MiB/1001msec)
""",
        """\
3 Before the patch: | read 1001ms iops=8466 MB/s=34.7078656 !read.cut
7 After: | read 1001ms iops=8466 MB/s=34.7078656 !read.cut""",
    ),
    "pairs of name and number are a row": (
        """\
randread-4k-qd32: IOPS=345k BW=1348MiB/s lat=92us
randwrite-4k-qd32: iops=245k, lat=130us
""",
        """\
1 randread-4k-qd32: randread 4096B qd32 | read iops=345000 MB/s=1413.48045 lat mean=92
2 randwrite-4k-qd32: randwrite 4096B qd32 | write iops=245000 lat mean=130""",
    ),
    "a sentence with one number is no result": (
        "I saw IOPS=12 once, and set bs=4k\n",
        "1 refused: no result, and how to mend it",
    ),
}


@pytest.mark.parametrize("what", EXCERPTS)
def test_what_lines_out_of_reports_say(what: str) -> None:
    text, expected = EXCERPTS[what]
    assert told(text) == expected


@pytest.mark.parametrize(("line", "mib"), [(GROUP, 33.1), (OLD, 98718 / 1024)])
def test_a_status_group_gives_a_bandwidth_and_no_iops(line: str, mib: float) -> None:
    (run,) = read_bytes(f"> {line}\n".encode(), "x").runs
    (direction,) = run.directions
    assert direction.bandwidth.value / 2**20 == pytest.approx(mib, rel=0.01)
    assert direction.bandwidth.low < direction.bandwidth.value < direction.bandwidth.high
    assert direction.iops.value != direction.iops.value
