"""Effects that a text states in percent: each sentence once."""

from __future__ import annotations

import pytest

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
