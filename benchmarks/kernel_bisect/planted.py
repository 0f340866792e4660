"""``python -m benchmarks.kernel_bisect.planted SOURCE``: make a kernel source tree a git repository in which one commit
adds a locked instruction to every I/O, and another one moves a counter of each CPU into one cache line.

Neither makes the path noticeably longer: a search by instructions finds neither, one by ``locks`` the first, and one by
``moved_lines`` (with ``null_blk.submit_queues=2``) the second.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.kernel_bisect.history import (
    Change,
    Edit,
    after_includes,
    comment,
    make,
    opening,
    unused,
)

BLK_MQ = "block/blk-mq.c"
SUBMIT = "void blk_mq_submit_bio(struct bio *bio)"

LOCKED = "blk-mq: count submissions with an atomic"
PACKED = "blk-mq: pack the counters of submissions"
"""Subjects of the two culprits."""

_COUNTERS = """\
static struct blk_mq_submissions {
	unsigned long ios;
} ____cacheline_aligned blk_mq_submissions[NR_CPUS];

static noinline int blk_mq_count_submission(void)
{
	unsigned long *ios = &blk_mq_submissions[raw_smp_processor_id()].ios;

	WRITE_ONCE(*ios, *ios + 1);
	return 0;
}

"""

_ATOMIC = """\
static DEFINE_PER_CPU_ALIGNED(atomic_t, blk_mq_submitted);

static noinline int blk_mq_count_atomically(void)
{
	atomic_inc(raw_cpu_ptr(&blk_mq_submitted));
	return 0;
}

"""


def packed(old: str) -> str:
    """Without the alignment the counters of eight CPUs lie in one line."""
    aligned = "} ____cacheline_aligned blk_mq_submissions"
    if old.count(aligned) != 1:
        raise SystemExit("the counters are not there")
    return old.replace(aligned, "} blk_mq_submissions")


def called(name: str, text: str) -> tuple[tuple[str, Edit], ...]:
    """A function and its call for each bio."""
    call = f"\tint {name}_ __maybe_unused = {name}();\n"
    return ((BLK_MQ, after_includes(text)), (BLK_MQ, opening(SUBMIT, call)))


def changes() -> Iterator[Change]:
    """The history, oldest first."""
    yield comment("block/blk-settings.c", "Limits are stacked from the lowest device up.")
    yield Change("blk-mq: count submissions by CPU", called("blk_mq_count_submission", _COUNTERS))
    yield comment("fs/aio.c", "Completions are read from the ring without a system call.")
    yield unused("block/genhd.c", "genhd_depth_below")
    yield Change(PACKED, ((BLK_MQ, packed),))
    yield comment("block/elevator.c", "A queue may have no elevator.")
    yield unused("drivers/block/null_blk/main.c", "null_depth_below")
    yield Change(LOCKED, called("blk_mq_count_atomically", _ATOMIC))
    yield comment("block/blk-core.c", "A bio without data has no segments.")
    yield unused("block/blk-merge.c", "merge_depth_below")
    yield comment("block/bio.c", "A bio is freed by the one who allocated it.")


def main() -> int:
    """Make it and say what it is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_bisect.planted", description=__doc__)
    parser.add_argument("source", type=Path, help="an unpacked kernel source; it becomes a repository")
    base, last = make(parser.parse_args().source, changes())
    print(f"{base[:12]}..{last[:12]}: {sum(1 for _ in changes())} commits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
