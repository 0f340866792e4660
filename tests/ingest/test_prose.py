"""Effects that a text states in percent: each sentence once."""

from __future__ import annotations

import pytest
from told import told

from iodelta.ingest import read_bytes

BODY = """Comparing with kernel 2.6.32, fio mmap randread 64k has more than 40% regression with
2.6.33-rc1. It introduces about 20% regression on another machine.
"""


@pytest.mark.parametrize("head", ["Subject", "Subject: "])
def test_a_headline_is_no_word_of_the_text_and_what_it_says_counts_once(head: str) -> None:
    """An archive printed the subject without a colon: "Subjectfio" was a word, and its effect a second one."""
    text = f"{head}fio mmap randread 64k more than 40% regression with 2.6.33-rc1\n{BODY}"
    runs = read_bytes(text.encode(), "mail.txt").runs
    assert [run.labels["stated"] for run in runs] == ["more than 40% regression", "about 20% regression"]
    assert runs[0].labels["sentence"].startswith("Comparing with kernel 2.6.32")
    assert not any("Subject" in value for run in runs for value in run.labels.values())


def test_what_only_the_headline_says_is_read_from_it() -> None:
    runs = read_bytes(b"Subject: randread 4k 12% slower on 6.12\nWe saw this on two machines.\n", "mail.txt").runs
    assert [run.labels["sentence"] for run in runs] == ["randread 4k 12% slower"]


READ = {
    "the p99 latency went from 1.2ms to 3.4 ms.\n": """\
1 /before: | mixed lat p99=1200
1 /after: | mixed lat p99=3400""",
    "the 99th percentile latency went from 1.2ms to 3.4 ms.\n": """\
1 /before: | mixed lat p99=1200
1 /after: | mixed lat p99=3400""",
    "latency went from 1.2ms to 3.4 ms at p99.9.\n": """\
1 /before: | mixed lat p99.9=1200
1 /after: | mixed lat p99.9=3400""",
    "99.9% latency went from 1.2ms to 3.4 ms.\n": """\
1 /before: | mixed lat p99.9=1200
1 /after: | mixed lat p99.9=3400""",
    "the median rose from 1.2ms to 3.4 ms.\n": """\
1 /before: | mixed lat p50=1200
1 /after: | mixed lat p50=3400""",
    "average latency rose from 1.2ms to 3.4 ms.\n": """\
1 /before: | mixed lat mean=1200
1 /after: | mixed lat mean=3400""",
    "max latency went from 1.2ms to 3.4 ms.\n": "1 refused: no result, and how to mend it",
    "tail latency went from 1.2ms to 3.4 ms.\n": "1 refused: no result, and how to mend it",
    "the runtime went from 1.2ms to 3.4 ms.\n": "0 refused: no result",
    "latency stddev went from 1.2ms to 3.4 ms.\n": "1 refused: no result, and how to mend it",
    "p50/p99 went from 1.2ms to 3.4 ms.\n": "1 refused: no result, and how to mend it",
    "the boot went from 1.2ms to 3.4 ms.\n": "0 refused: no result",
    "At QD32 reads went from 36k IOPS to 13k IOPS and writes from 20k IOPS to 18k IOPS.\n": """\
1 /before: qd32 | read iops=36000
1 /after: qd32 | read iops=13000
1 /before: qd32 | write iops=20000
1 /after: qd32 | write iops=18000
1 refused: 1 line with rates in sentences that iodelta does not understand: not read""",
    "IOPS: 708 -> 436 (-38%)\n": """\
1 /before: | mixed iops=708
1 /after: | mixed iops=436""",
    """\
Latency rose from 1.2 ms to 3.4 ms.

On the other machine it is 100k IOPS and then 90k IOPS.
""": """\
1 /before: | mixed lat mean=1200
1 /after: | mixed lat mean=3400
3 refused: 1 line with rates in sentences that iodelta does not understand: not read""",
    """\
Sequential:
Read: 2786 MB/s
Write: 2,301.45 MB/s
4K:
Read: 51.7 MB/s
Write: 131 MB/s
""": """\
2 /Sequential [Sequential]: | read MB/s=2786
3 /Sequential [Sequential]: | write MB/s=2301.45
5  [4K]: | read MB/s=51.7
6  [4K]: | write MB/s=131""",
    """\
Sequential:
Read: 2786 MB/s
Write: 2,301.45 MB/s

4K:
Read: 51.7 MB/s
Write: 131 MB/s
""": """\
2 /Sequential [Sequential]: | read MB/s=2786
3 /Sequential [Sequential]: | write MB/s=2301.45
6  [4K]: | read MB/s=51.7
7  [4K]: | write MB/s=131""",
    """\
Sequential:
------
Read: 2786 MB/s
Write: 2,301.45 MB/s
======
4K:
------
Read: 51.7 MB/s
Write: 131 MB/s
""": """\
3 /Sequential [Sequential]: | read MB/s=2786
4 /Sequential [Sequential]: | write MB/s=2301.45
8  [4K]: | read MB/s=51.7
9  [4K]: | write MB/s=131""",
    """\
Sequential:
Read: 2786 MB/s, 12.5k IOPS
""": "2 /Sequential [Sequential]: | read iops=12500 MB/s=2786",
    """\
Sequential:
Read: 12.5k IOPS / 2786 MB/s
""": "2 /Sequential [Sequential]: | read iops=12500 MB/s=2786",
    """\
Sequential:
Read: 2786 MB/s (12.5k IOPS)
""": "2 /Sequential [Sequential]: | read iops=12500 MB/s=2786",
    """\
Sequential:
Read: 2786 MB/s
the writes reached 2301 MB/s
""": """\
2 /Sequential [Sequential]: | read MB/s=2786
3 refused: 1 line with rates in sentences that iodelta does not understand: not read""",
    "randread latency: 210 -> 180 us\n": """\
1 /before: | read lat mean=210
1 /after: | read lat mean=180""",
    "512 -> 600 MB/s\n": """\
1 /before: | mixed MB/s=512
1 /after: | mixed MB/s=600""",
    "latency went from 210 to 180 us\n": """\
1 /before: | mixed lat mean=210
1 /after: | mixed lat mean=180""",
    "clat 2 -> 3 ms\n": """\
1 /before: | mixed lat mean=2000
1 /after: | mixed lat mean=3000""",
    "randwrite: 210µs → 180µs\n": """\
1 /before: | write lat mean=210
1 /after: | write lat mean=180""",
    "from 210us to 180\n": """\
1 /before: | mixed lat mean=210
1 /after: | mixed lat mean=180""",
    "clat (us): 210 -> 180\n": """\
1 /before: | mixed lat mean=210
1 /after: | mixed lat mean=180""",
    "latency from 1,2 ms to 0,9 ms\n": """\
1 /before: | mixed lat mean=1200
1 /after: | mixed lat mean=900""",
    "1,234 -> 2,345 IOPS\n": """\
1 /before: | mixed iops=1234
1 /after: | mixed iops=2345""",
    "IOPS 100 -> 120k\n": """\
1 /before: | mixed iops=100000
1 /after: | mixed iops=120000""",
    "900 -> 1.2k IOPS\n": """\
1 /before: | mixed iops=900
1 /after: | mixed iops=1200""",
    "from 100 to 120 kIOPS\n": """\
1 /before: | mixed iops=100000
1 /after: | mixed iops=120000""",
    "throughput improved 512 to 600 MB/s\n": """\
1 /before: | mixed MB/s=512
1 /after: | mixed MB/s=600""",
    "512 vs 600 MiB/s\n": """\
1 /before: | mixed MB/s=536.870912
1 /after: | mixed MB/s=629.1456""",
    "before: 512 MB/s, after: 600 MB/s\n": """\
1 /before: | mixed MB/s=512
1 /after: | mixed MB/s=600""",
    "kernel 6.8 -> 6.9: 210 -> 180 us\n": """\
1 /before: | mixed lat mean=210
1 /after: | mixed lat mean=180""",
    "210 -> 1.8 ms\n": "0 refused: no result",
    "30 -> 1.2k IOPS\n": "1 refused: no result, and how to mend it",
    "900 -> 1.2 GB/s\n": "1 refused: no result, and how to mend it",
    "100 -> 120 Mbps\n": "0 refused: no result",
    "ping 2 -> 3 ms\n": "0 refused: no result",
    "512..600 MB/s\n": "1 refused: no result, and how to mend it",
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read_of_sentences_and_lines_of_rates(text: str) -> None:
    assert told(text) == READ[text]
