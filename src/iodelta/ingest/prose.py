"""Read numbers from the prose of a report: stated changes and effects, and listed rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.numbers import half_unit
from iodelta.ingest.table_titles import Column, column
from iodelta.ingest.vocabulary import RATES, TIMES
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import facts
from iodelta.trial import Direction, Kind, Latency, Place, Quantity

LONGEST = 1 << 16
"""Most characters of a text that are read."""
MOST = 500
"""Most changes that are read from a text."""

_STEP = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_UNIT = (
    r"(?:(?:IOPS|IOP/s|I?Os?/s(?:ec)?|I/Os?/s(?:ec)?)|[KMGT]?i?B(?:yte)?s?(?:/s(?:ec|econd)?|ps)"
    r"|[nuµμm](?:s|secs?)|secs?(?=\b)|(?:micro|milli|nano)seconds?)"
)
_NUMBER = r"(?<![\d.,/])(\d[\d,]{0,24}(?:\.\d{1,12})?)"
_VALUE = rf"(?:~|≈|about )?{_NUMBER} ?([kKMG](?![A-Za-z]|[ ]?[KMGT]?i?[Bb]/)|[kKMG](?=I[Oo]))? ?((?i:{_UNIT}))?(?![\w/%])"
_RATE = re.compile(
    rf"(?<![\w.])\d[\d.,]{{0,20}} ?(?:[kKMG]? ?IOPS|[KMG]i?B/s)\b(?! ?=)|\d ?(?:→|⇒|➜|-+>|=+>) ?\d[\d.,]{{0,20}} ?{_UNIT}(?!\w)"
)
_GIVEN = r"(?: ?\(([^()]{1,40})\))?"
_ARROW = r"(?:→|⇒|➜|➔|⟶|-+>|=+>|\.{2,3}|…)"
_RISES = r"(?:went|goes|go|improv|drop|fell|fall|rose|ris|increas|decreas|chang|reduc|regress|grew|jump|degrad|mov|shrank|down|up)"
_CHANGES = (
    re.compile(rf"{_VALUE} ?{_ARROW} ?(?:\w+: ?)?{_VALUE}{_GIVEN}"),
    re.compile(rf"\bfrom {_VALUE} (?:down |up )?to {_VALUE}{_GIVEN}"),
    re.compile(rf"\b{_RISES}\w* (?:by half )?{_VALUE} to {_VALUE}{_GIVEN}"),
    re.compile(rf"{_VALUE} (?:vs\.?|versus) {_VALUE}{_GIVEN}"),
    re.compile(
        rf"\b(?:before|old|base(?:line)?)\b ?[:=]? ?{_VALUE}[ ,;/|]{{1,3}}(?:and )?(?:after|new|patched)\b ?[:=]? ?{_VALUE}{_GIVEN}",
        re.I,
    ),
    re.compile(
        rf"\bgood\b[^.]{{1,60}}? {_VALUE}(?=[ ,.]).{{1,80}}?\bbad\b[^.]{{1,60}}? {_VALUE}(?=[ ,.]){_GIVEN}"
    ),
)
"""A pair of numbers, before and after; ``from`` and arrows give the order, as ``vs`` does by convention."""
_CLOSE = 10.0
"""Largest factor between two numbers of a pair whose prefix is written once."""
_NOT_IO = re.compile(
    r"\b(?:ping|rtt|network|upload|download|bandwidth of the (?:link|network)|tcp|udp|http|icmp|wi-?fi|ethernet|loss|compil\w*)\b",
    re.I,
)
"""Words that make a pair of numbers something other than storage I/O."""
_DIRECTION = re.compile(
    r"(?:\b|\brand(?:om)?|\bseq(?:uential)?)_?(read|write|trim|rw|mixed)s?\b"
)
_CLAUSE = re.compile(r"[.;,] |\b(?:and|while|but)\b")
_RANKED = re.compile(
    r"\bp(?P<p>\d{2}(?:\.\d{1,3})?)\b"
    r"|\b(?P<th>\d{2}(?:\.\d{1,3})?) ?(?:th\b|%(?=-?(?:ile| (?:lat|perc))))"
    r"|\bmedian\b"
)
_RANKED_AFTER = re.compile(
    rf"[ (]{{1,2}}(?:(?:at|for|in|on) )?(?:the )?(?:{_RANKED.pattern})"
)
_NO_MEAN = re.compile(
    r"\b(?:max\w*|min(?:imum)?|worst|best|tail|peak|std\w*|deviation|jitter|range|run ?time|duration|elapsed|boot\w*"
    r"|took|takes|taking|interval|time ?out|period|setup|startup|sleep|spent|slat|submission|cpu)\b",
    re.I,
)
"""Words that make a time something other than the mean latency."""
_CELL = re.compile(r"\b(?:iodepth|qd|depth) ?=? ?\d+", re.IGNORECASE)
_LISTED = re.compile(rf"(?<!/)\b([A-Za-z]\w{{0,19}}): {_VALUE}")
_BESIDE = re.compile(rf" ?[,;/|(] ?{_VALUE}")
_PAIRED = re.compile(
    rf"(?P<names>(?:\w{{1,20}} ){{0,3}}(?P<first>read|write|r|w) ?/ ?(?P<second>read|write|r|w)\b[^:=\d]{{0,30}})[:=] ?"
    rf"{_VALUE} ?/ ?{_VALUE}",
    re.IGNORECASE,
)
"""``Sequential Read/Write: 536MiB/s / 512MiB/s``: two directions, two numbers."""
_ANOTHER = re.compile(
    r"[.;:] |\b(?:bs|blocks?|sizes?|depth|qd|jobs?|threads?|kernel|version|linux|fio|lat\w*|bandwidth|bw|throughput|"
    r"upgrad\w*|commit|p99|cpu|sectors?)\b",
    re.IGNORECASE,
)
"""Words between IOPS and a number that may own the number instead."""
EFFECT = re.compile(
    r"(?:(?:more|less|about|around|over|under|up|at least|nearly|almost|than|to) ){0,4}"
    r"(?:(?<![\d.])\d{1,4}(?:\.\d{1,4})? ?%? ?[-–~] ?)?[~≈]?(?<![\d.])\d{1,4}(?:\.\d{1,4})? ?% "
    r"(?:\w{1,20} ){0,2}(?:regression|improvement|slower|faster|drop|loss|gain)s?",
    re.IGNORECASE,
)
"""An effect in percent."""
HEADLINE = re.compile(r"Subject(?:: ?|(?=[\[\w]))")
"""The beginning of a mail's subject; some archives print it without the colon and the space."""
SENTENCE = 160
"""Most characters of a sentence that are kept."""


class Change(NamedTuple):
    """One stated change, with its line, its depth of mail quotes (which tells the speaker) and its cell."""

    before: Quantity
    after: Quantity
    stated: str
    line: int
    quoted: int
    cell: str
    words: str = ""
    """The original words."""
    rank: float = 0
    """The percentile of a latency; 0 for its mean."""
    kind: Kind = "mixed"
    """The direction that the preceding words name."""

    def percent(self) -> tuple[float, float, float]:
        """Return the change in percent of the value before: lowest, as written, highest."""
        a, b = self.before, self.after
        return (
            100 * (b.low / a.high - 1),
            100 * (b.value / a.value - 1),
            100 * (b.high / a.low - 1),
        )


class Paragraph(NamedTuple):
    """Lines of one speaker as one text; ``starts`` has the offset and line number of the beginning of each line."""

    text: str
    quoted: int
    starts: tuple[tuple[int, int], ...]

    def line(self, offset: int) -> int:
        """Return the line of the file that contains the character at ``offset``."""
        return max(number for at, number in self.starts if at <= offset)


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a text: consecutive lines of equal quoting without a blank line between them."""
    parts: list[str] = []
    starts: list[tuple[int, int]] = []
    depth = length = 0
    for number, line in enumerate([*text[:LONGEST].split("\n"), ""], 1):
        # How deeply a mail quotes a line, and its words.
        quote = re.match(r"(?:\s*>)*", line)
        end = quote.end() if quote else 0
        marks, words = line[:end].count(">"), " ".join(line[end:].split())
        is_below_headline = (
            bool(parts) and HEADLINE.match(parts[0]) is not None
        ) and not line.startswith((" ", "\t"))
        is_next = not words or marks != depth or is_below_headline
        if parts and is_next:
            yield Paragraph(" ".join(parts), depth, tuple(starts))
            parts, starts, length = [], [], 0
        if words:
            starts.append((length, number))
            parts.append(words)
            length += len(words) + 1
            depth = marks


def changes(text: str) -> tuple[Change, ...]:
    """Return the changes that a text states: ``554 IOPS → 535 IOPS (-3.4 %)``, ``from 36M to 13M``, a good and a bad
    case.
    """
    stated = chain.from_iterable(map(_changes_in, paragraphs(text)))
    return tuple(islice(stated, MOST))


def _changes_in(paragraph: Paragraph) -> Iterator[Change]:
    taken: list[range] = []
    for pattern in _CHANGES:
        for match in pattern.finditer(paragraph.text):
            if any(match.start() in span for span in taken):
                continue
            change = _change(paragraph, match)
            if change is not None:
                taken.append(range(match.start(), match.end()))
                yield change


def _change(paragraph: Paragraph, match: re.Match[str]) -> Change | None:
    """Return the change in a match; None if its numbers have no unit, different ones, or units that are not clear."""
    text_before = paragraph.text[: match.start()]
    pair = _pair_of(match.groups()[:3], match.groups()[3:6], text_before)
    if pair is None:
        nearest = paragraph.text[max(0, match.start() - 60) : match.start(1)]
        if match[3] or match[6] or not _are_iops(nearest, match):
            return None
        pair = _pair_of((match[1], match[2], "IOPS"), (match[4], match[5], "IOPS"), "")
    if (
        pair is None
        or not pair[0].low > 0
        or _NOT_IO.search(_CLAUSE.split(text_before)[-1])
    ):
        return None
    rank = (
        _rank(text_before, paragraph.text[match.end() :])
        if pair[0].unit == "ns"
        else 0.0
    )
    if rank is None:
        return None
    cells = _CELL.findall(text_before)
    return Change(
        *pair,
        match[7] or "",
        paragraph.line(match.start()),
        paragraph.quoted,
        cells[-1] if cells else "",
        match[0][:SENTENCE],
        rank,
        _direction_of(text_before),
    )


def _pair_of(
    first: Sequence[str | None], second: Sequence[str | None], before: str
) -> tuple[Quantity, Quantity] | None:
    """Two numbers in their unit; None without one, with two kinds of units, or where a unit or prefix that only one has
    may not be meant for the other.

    A unit that stands once belongs to both numbers (``210 -> 180 us``), also if the words ``before`` name it; a prefix
    that stands once does if the numbers are then alike (``100 -> 120k``), and does not if they are alike without it
    (``900 -> 1.2k``).
    """
    numbers = [
        _plain(first[0] or "", second[0] or ""),
        _plain(second[0] or "", first[0] or ""),
    ]
    prefixes = [(first[1] or "").lower(), (second[1] or "").lower()]
    units = [_unit(first[2]), _unit(second[2])]
    if not all(numbers):
        return None
    if units == [None, None]:
        # The words right before a pair that may name its measure: `clat (us): 210 -> 180`.
        match = re.search(
            r"(?:[A-Za-z0-9.%]{1,20} ){0,2}[A-Za-z0-9.%]{1,20} ?[(\[][A-Za-zµμ/]{1,8}[)\]] ?[:=]? ?$",
            before,
        )
        named = column(match[0].strip(" :=") if match else "")
        if named is None or named.scale is None:
            return None
        is_iops = named.stat == "iops"
        kind = "IOPS" if is_iops else "B/s" if named.of == "rate" else "ns"
        units = [(kind, named.scale)] * 2
    one = units[0] or units[1]
    both = [unit or one for unit in units]
    if one is None or both[0] is None or both[1] is None or both[0][0] != both[1][0]:
        return None
    scales = [both[0][1] * _STEP[prefixes[0]], both[1][1] * _STEP[prefixes[1]]]
    values = [float(number) for number in numbers]
    if None in units:
        ratio = values[0] * scales[0] / (values[1] * scales[1]) if values[1] else 1.0
        if not 1 / 30 < ratio < 30 and not any(prefixes):
            return None
    if (bool(prefixes[0]) != bool(prefixes[1])) and None in units + [None] * (
        one[0] == "IOPS"
    ):
        bare = 0 if prefixes[1] else 1
        step = _STEP[prefixes[1 - bare]]
        ratio = values[bare] * scales[bare] / (values[1 - bare] * scales[1 - bare])
        if 1 / _CLOSE <= ratio * step <= _CLOSE:
            scales[bare] *= step
        elif not 1 / _CLOSE <= ratio <= _CLOSE and units[bare] is None:
            return None
    made = []
    for number, scale in zip(numbers, scales, strict=True):
        value, half = float(number), half_unit(number)
        made.append(
            Quantity(
                value * scale, (value - half) * scale, (value + half) * scale, one[0]
            )
        )
    return made[0], made[1]


def _plain(digits: str, beside: str) -> str:
    """Digits with a point before decimals: a comma precedes decimals unless groups of three digits follow it, here and in
    the number ``beside`` it."""
    is_decimal = any(
        re.fullmatch(r"\d+,(?:\d{1,2}|\d{4,})|0,\d+", text) for text in (digits, beside)
    )
    text = digits.strip(",")
    if is_decimal and text.count(",") == 1 and "." not in text:
        return text.replace(",", ".")
    return text.replace(",", "")


def _unit(name: str | None) -> tuple[str, float] | None:
    """Return the kind and the scale of a unit: ``ms`` is a time of 1e6 ns."""
    if not name:
        return None
    lowered = re.sub(
        r"^(micro|milli|nano)seconds?$",
        lambda m: {"mi": "us", "na": "ns"}[m[1][:2]],
        name.lower(),
    )
    if name.lower().startswith("milli"):
        lowered = "ms"
    if lowered in TIMES:
        return "ns", TIMES[lowered]
    if (
        lowered.rstrip("second").endswith("o")
        or lowered.startswith("io")
        or lowered.startswith("i/o")
    ):
        return "IOPS", 1.0
    rate = re.sub(r"bytes?|bs", "b", lowered)
    rate = re.sub(r"/s\w*$|ps$", "/s", rate)
    scale = RATES.get(rate)
    # Mbps are megabits to most people.
    if scale is None or re.fullmatch(r"[KMGT]?b(?:ps|/s)", name.replace("bytes", "B")):
        return None
    return "B/s", scale


def _direction_of(before: str) -> Kind:
    """Return the direction that the last words of a sentence name."""
    kinds: dict[str, Kind] = {"read": "read", "write": "write", "trim": "trim"}
    named = _DIRECTION.findall(before.rpartition(". ")[2].lower())
    if not named:
        return "mixed"
    return kinds.get(named[-1], "mixed")


def _rank(before: str, after: str) -> float | None:
    """Return the percentile that the words around two times name; 0 without one, None if the times are not latencies."""
    clause = _CLAUSE.split(before)[-1]
    ranks = [*_RANKED.finditer(clause)] or [*filter(None, [_RANKED_AFTER.match(after)])]
    if _NO_MEAN.search(clause) or len({rank[0] for rank in ranks}) > 1:
        return None
    if not ranks:
        return 0.0
    return float(ranks[0]["p"] or ranks[0]["th"] or 50)


def _are_iops(before: str, match: re.Match[str]) -> bool:
    """Return whether numbers without a unit are IOPS: the words ``before`` them name only IOPS, and the numbers are
    too large for a version, a depth or a block size."""
    _, named, between = before.upper().rpartition("IOPS")
    if named and re.fullmatch(r"\s?[:=]?\s?", between):
        return True
    large = all(
        match[at + 1] or len(re.sub(r"\D", "", match[at].partition(".")[0])) > 4
        for at in (1, 4)
    )
    return bool(named) and large and _ANOTHER.search(between) is None


def rows(text: str, file: str) -> tuple[Run, ...]:
    """Runs from prose: tables written as lists (a heading per row, below it ``RR: 780 MB/s - RW: 754 MB/s``), and both
    sides of changes; without such numbers, the effects that are stated in percent."""
    runs = (*listed(text, file), *_sides(text, file))
    return runs or tuple(_effects(text, file))


def unread(text: str, runs: Sequence[Run]) -> list[int]:
    """Return the numbers of lines with a rate that is in none of ``runs``."""
    lines = text[:LONGEST].split("\n")
    places = {
        (run.place.line - 1, run.labels.get("cell", ""), "setting" in run.labels)
        for run in runs
    }
    for at, words, is_listed in sorted(places):
        whole = words and words in lines[at]
        lines[at] = lines[at].replace(words, "") if whole else ""
        if not whole and not is_listed and at + 1 < len(lines):
            lines[at + 1] = ""  # where the words may go on
    return [number for number, line in enumerate(lines, 1) if _RATE.search(line)]


def _quantity(
    digits: str | None, prefix: str | None, unit: str | None
) -> Quantity | None:
    if not digits:
        return None
    plain = _plain(digits, "")
    kind, scale = _unit(unit) or ("1", 1.0)
    scale *= _STEP[(prefix or "").casefold()]
    value, half = float(plain), half_unit(plain)
    return Quantity(value * scale, (value - half) * scale, (value + half) * scale, kind)


def _listed_rates(words: str) -> Iterator[tuple[Kind, Quantity, Quantity | None]]:
    """Direction, bandwidth and IOPS of each rate in a line; of several with one name the last."""
    rates = {}
    for match in _LISTED.finditer(words):
        name, *first = match.groups()
        beside = _BESIDE.match(words, match.end())
        both = (_quantity(*first), _quantity(*beside.groups()) if beside else None)
        by_unit = {quantity.unit: quantity for quantity in both if quantity is not None}
        if both[0] is not None:
            rates[name] = by_unit
    for name, by_unit in rates.items():
        kind = _kind(name)
        if kind and "B/s" in by_unit:
            yield kind, by_unit["B/s"], by_unit.get("IOPS")


def listed(text: str, file: str) -> Iterator[Run]:
    """Rows of a table that is written as a list of headings, each with a line of rates."""
    case = heading = ""
    is_read = False  # whether the heading has at least one line of rates
    for number, line in enumerate(text[:LONGEST].split("\n"), 1):
        words = " ".join(line.split())
        pair = _PAIRED.search(words)
        if pair is not None:
            # Both directions of `Read/Write: 536 / 512 MiB/s`; empty if a number is not a rate.
            _, _, _, *numbers = pair.groups()
            first, second = numbers[:3], numbers[3:]
            if not first[2] and second[2]:
                first = [first[0], first[1] or second[1], second[2]]
            quantities = [_quantity(*first), _quantity(*second)]
            named = column(pair["names"].strip())
            kinds = [_kind(pair["first"]), _kind(pair["second"])]
            both = [
                _one_of(kind, quantity, named)
                for kind, quantity in zip(kinds, quantities, strict=True)
            ]
            directions = tuple(filter(None, both))
            if kinds[0] != kinds[1] and len(directions) == 2:
                # The run of a line with the numbers of both directions; `titles` are those of its table and itself.
                titles = (case, heading)
                place = Place(file, number)
                case_, heading_ = titles
                labels = (
                    {"setting": clean(heading_ or case_)} if heading_ or case_ else {}
                )
                asked = facts({}, pair["names"].replace("/", " / "))
                pattern = re.match("rand|seq", pair["names"].lower())
                yield (
                    Run(
                        place=place,
                        format="table",
                        table=clean(case_),
                        labels=labels | {"numbers": clean(words[:SENTENCE])},
                        directions=directions,
                        workload=Workload(
                            rw=_MIXED_MODES[pattern[0]] if pattern else None,
                            bs=asked.bs,
                            iodepth=asked.iodepth,
                            numjobs=asked.numjobs,
                        ),
                    )
                )
            continue
        rates = list(_listed_rates(words))
        if rates and heading:
            yield Run(
                place=Place(file, number),
                format="table",
                table=clean(case),
                labels={"setting": clean(heading)}
                | {f"{kind} MB/s": f"{rate.value / 1e6:g}" for kind, rate, _ in rates},
                directions=tuple(
                    _direction(kind, iops, rate) for kind, rate, iops in rates
                ),
            )
            is_read = True
        elif words.endswith(":") and len(words) < 120:
            case = case if is_read else heading or case
            heading, is_read = words.rstrip(": "), False
        elif is_read:
            heading, is_read = "", False


_MIXED_MODES = {"rand": "randrw", "seq": "rw"}


def _kind(name: str) -> Kind | None:
    if name.upper() in ("RR", "READ", "R"):
        return "read"
    return "write" if name.upper() in ("RW", "WRITE", "W") else None


def _one_of(
    kind: Kind | None, quantity: Quantity | None, named: Column | None
) -> Direction | None:
    """Return one direction of a pair; None if neither its number nor the preceding words name the unit of a rate."""
    if kind is None or quantity is None:
        return None
    # A number without a unit is in that of the preceding words, if these name a rate.
    if quantity.unit == "1" and named and named.scale and named.of == "rate":
        unit = "IOPS" if named.stat == "iops" else "B/s"
        bounds = (quantity.value, quantity.low, quantity.high)
        value, low, high = (bound * named.scale for bound in bounds)
        quantity = Quantity(value, low, high, unit)
    if quantity.unit == "IOPS":
        return _direction(
            kind, Quantity(quantity.value, quantity.low, quantity.high, "1/s")
        )
    if quantity.unit != "B/s":
        return None
    return _direction(kind, None, quantity)


def _effects(text: str, file: str) -> Iterator[Run]:
    """Effects in percent, each with its sentence, as runs without directions: the numbers behind them are unknown. An
    effect in the headline is omitted if the text repeats it."""
    parts = list(paragraphs(text))
    repeated = set()
    for part in parts:
        if not HEADLINE.match(part.text):
            repeated |= {match[0].lower() for match in EFFECT.finditer(part.text)}
    for part in parts:
        headline = HEADLINE.match(part.text)
        for match in EFFECT.finditer(part.text):
            if headline and match[0].lower() in repeated:
                continue
            begin = part.text.rfind(". ", 0, match.start()) + 1
            begin = max(begin, headline.end() if headline else 0)
            sentence = part.text[begin : match.end()].strip()[-SENTENCE:]
            yield Run(
                place=Place(file, part.line(match.start())),
                format="table",
                table="effects stated in percent",
                labels={"stated": clean(match[0]), "sentence": clean(sentence)},
                workload=facts({}, sentence.replace("_", " ")),
            )


def _sides(text: str, file: str) -> Iterator[Run]:
    cells: dict[str, list[Change]] = {}
    for change in changes(text):
        of_cell = cells.setdefault(change.cell or change.words, [])
        # A second change of the same measure belongs to another cell.
        if any(_is_alike(change, other) for other in of_cell):
            of_cell = cells.setdefault(change.words, [])
        stated_before = [(other.before, other.after) for other in of_cell]
        if (change.before, change.after) not in stated_before:
            of_cell.append(change)
    for cell, stated in cells.items():
        depth = re.findall(r"\d+", stated[0].cell)
        for side in ("before", "after"):
            numbers = {change.before.unit: getattr(change, side) for change in stated}
            times = {
                change.rank: getattr(change, side)
                for change in stated
                if change.before.unit == "ns"
            }
            latency = _latency(times)
            yield Run(
                place=Place(file, stated[0].line),
                format="table",
                table="changes stated in the text",
                labels={"cell": clean(cell), "side": side},
                workload=Workload(iodepth=int(depth[0]) if depth else None),
                directions=(
                    _direction(
                        stated[0].kind, numbers.get("IOPS"), numbers.get("B/s"), latency
                    ),
                ),
            )


def _is_alike(first: Change, other: Change) -> bool:
    """Return whether two changes have the same measure and different numbers."""
    measures = [(change.before.unit, change.rank) for change in (first, other)]
    return measures[0] == measures[1] and (first.before, first.after) != (
        other.before,
        other.after,
    )


def _latency(times: dict[float, Quantity]) -> Latency | None:
    """Return the latency with these times by percentile; 0 is the mean."""
    nothing = unknown("ns")
    ranked = {rank: time for rank, time in sorted(times.items()) if rank}
    if not times:
        return None
    return Latency(0, times.get(0, nothing), nothing, nothing, nothing, ranked)


def _direction(
    kind: Kind,
    iops: Quantity | None,
    bandwidth: Quantity | None = None,
    latency: Latency | None = None,
) -> Direction:
    return Direction(
        kind, 0, 0, 0, iops or unknown("1/s"), bandwidth or unknown("B/s"), latency
    )
