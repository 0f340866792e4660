"""Remove what loggers, build servers, diffs and comment marks put before every line, learned from fio's lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

LONGEST = 120
"""Most characters of a prefix."""
LEAST = 3
"""Fewest lines of fio with the same prefix."""
_LOOK = 10_000
"""Most lines of fio that are examined."""
_OURS = re.compile(
    r"(?:cpu +: usr=|IO depths +: 1=|submit +: 0=|complete +: 0=|issued rwts?: total="
    r"|submitter=\d|polled=\d, fixedbufs=|IOPS=[\d.]{1,12}[KM]?, (?:BW=[\d.]{1,12}[MG]iB/s, )?IOS/call="
    r'|"(?:fio version|jobname|groupid|io_bytes|total_ios)" ?:)'
)
"""Lines that fio begins with spaces only."""


def without(texts: Sequence[str]) -> Sequence[str]:
    """``texts``, one line each, without the prefixes that fio's lines share, apart from digits."""
    whole = "\n".join(texts)
    counts: Counter[str] = Counter()
    for ours in islice(_OURS.finditer(whole), _LOOK):
        begin = max(whole.rfind("\n", 0, ours.start()) + 1, ours.start() - LONGEST)
        prefix = whole[begin : ours.start()].strip()
        if prefix and not set('{"') & set(prefix):
            counts[_pattern(prefix)] += 1
    learned = [
        pattern for pattern, count in counts.most_common(LEAST) if count >= LEAST
    ]
    if not learned:
        return texts
    prefixes = re.compile(rf" *(?:{'|'.join(learned)}) ?")
    return [
        text[match.end() :] if (match := prefixes.match(text)) else text
        for text in texts
    ]


def _pattern(prefix: str) -> str:
    """Return a regular expression for all prefixes that differ from this one only in digits."""
    tokens = re.findall(r"\d+| +|[^\d ]+", prefix)
    return "".join(
        r"\d{1,20}" if t[0].isdigit() else " {1,8}" if t[0] == " " else re.escape(t)
        for t in tokens
    )
