"""What loggers, build servers, diffs and comment marks put before every line: learned from fio's own lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

LONGEST = 120
"""Characters of a prefix."""
LEAST = 3
"""Lines of fio that have it before them."""
_LOOK = 10_000
"""Lines of fio that are looked at."""
_OURS = re.compile(
    r"(?:cpu +: usr=|IO depths +: 1=|submit +: 0=|complete +: 0=|issued rwts?: total="
    r"|submitter=\d|polled=\d, fixedbufs=|IOPS=[\d.]{1,12}[KM]?, (?:BW=[\d.]{1,12}[MG]iB/s, )?IOS/call="
    r'|"(?:fio version|jobname|groupid|io_bytes|total_ios)" ?:)'
)
"""Lines of fio that begin with nothing but spaces."""


def without(texts: Sequence[str]) -> Sequence[str]:
    """``texts``, a line each, without the prefixes that fio's lines among them have in common but for their digits."""
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
    """The expression of every prefix that differs from this one in its digits alone."""
    tokens = re.findall(r"\d+| +|[^\d ]+", prefix)
    return "".join(
        r"\d{1,20}" if t[0].isdigit() else " {1,8}" if t[0] == " " else re.escape(t)
        for t in tokens
    )
