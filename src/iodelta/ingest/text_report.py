"""Read fio's normal report, of fio 1.x to 3.42, anywhere in a text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from iodelta.ingest import text_lines as say
from iodelta.ingest.cleaning import Line
from iodelta.ingest.command_line import agrees, command_options
from iodelta.ingest.model import Disk, Refusal, Run, Sampler, unknown
from iodelta.ingest.notes import remarks
from iodelta.ingest.numbers import (
    Printed,
    Version,
    decimals,
    num2str,
    percentile,
    size,
    version_of,
    whole,
)
from iodelta.ingest.options import banner_options, workload
from iodelta.ingest.unified import without_sum
from iodelta.ingest.wording import clean, clean_all
from iodelta.plural import plural
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity
from iodelta.workload.fio_schema import rate

_ETA = re.compile(r"\[eta [^\[\]]{0,40}\]|\^C")


_CONTINUES = re.compile(r"\w{1,12} ?= ?\S")
_OWN_HEAD = re.compile(
    r"[^\W\d][\w ]{0,30}(?:\([^()]{1,12}\))? *: +\w{1,12} ?[=:] ?\d|.{0,40}\bmin ?[=:].{1,40}max ?[=:]|\W{0,4}\d[\d., ]{0,8}th\b"
)
"""A line with numbers of its own, and not the rest of one that was wrapped."""
_GROUP = re.compile(r"Run status group (\d{1,9})")
_GROUP_LINE = re.compile(r"(READ|WRITE|TRIM|MIXED): (?:bw|io)=")
_NAME_FAR = 12
"""Most lines above a report without a head in which its name is searched."""
_NO_NAME = re.compile(
    r"`{3}|~{3}|[\W_]*$|\[? ?\d{1,6}\.\d{3,9}\]|\[?\d{4}-\d\d-\d\d|\[?\d\d?:\d\d(?::\d\d)?|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? "
    r"|\w{3} +\d{1,2} \d\d:\d\d|.{0,60}\b(?:IOPS|iops|bw|BW|aggrb|min|avg|usr|th) ?=|Run status|Disk stats|fio-\d"
)
"""Lines that are no name: fences, timestamps, lines of fio."""

HINT = re.compile(
    r"\b(?:read|write|trim|mixed) ?: ?(?:IOPS=|io=)|\d ?th ?=|\bmin ?=.{1,40}max ?=.{1,40}avg ?="
)
"""A line of a report whose head is missing."""

ORDER = ("slat", "clat", "lat")
"""The order in which fio writes the latencies of a direction; its samples follow."""


class _Part:
    """Collects one direction of a job, or its syncs, line by line."""

    def __init__(self, rates: say.Rates | None) -> None:
        self.rates = rates
        self.times: dict[str, say.Statement] = {}
        self.percentiles: dict[str, tuple[int, str]] = {}
        self.samplers: list[say.Statement] = []

    def has(self, stated: say.Statement) -> bool:
        """Return whether a line of latencies repeats one of this direction: then it belongs to a direction without a
        line.
        """
        if head := say.percentile_head(stated):
            return head[0] in self.percentiles
        name = stated.head.partition("(")[0]
        if "avg" not in stated.fields or name not in ORDER:
            return False
        later = ORDER[ORDER.index(name) :]
        return bool(self.samplers) or any(time in self.times for time in later)

    def take(self, stated: say.Statement) -> None:
        """Add a line of latencies or samples."""
        name = stated.head.partition("(")[0]
        if name in ("slat", "clat", "lat", "sync") and "avg" in stated.fields:
            if stated.head[len(name) :] in ("(nsec)", "(usec)", "(msec)"):
                self.times[name] = stated
        elif stated.head.startswith("bw(") or stated.head == "iops":
            self.samplers.append(stated)


class _Job:
    """One job's block: its head, if it has one, and the statements below it."""

    def __init__(
        self, number: int, head: re.Match[str] | None, text: str, name: str = ""
    ) -> None:
        self.number = number
        self.has_head = head is not None
        self.name = name
        self.group: int | None = None
        self.jobs: int | None = None
        self.error, self.pid = 0, None
        if head is not None:
            self.name = _ETA.split(head[1] or "")[-1].strip()
            self.group, self.jobs, self.error, self.pid = (
                int(head[at]) for at in (2, 3, 4, 6)
            )
        self.lines, self.numbers = [text], [number]
        self.kinds: set[str] = set()
        self.wrapped = 0

    def add(self, number: int, text: str) -> bool:
        """Add a line: a new statement, or the rest of the previous one; False if it is neither."""
        stated = say.statement(text)
        if say.begins(stated) or (self.has_head and _OWN_HEAD.match(text)):
            self.lines.append(text)
            self.numbers.append(number)
            self.wrapped = 0
            return True
        if self.wrapped >= say.WRAPPED or (
            not self.has_head and not _CONTINUES.match(text)
        ):
            return False
        self.lines[-1] += " " + text
        self.wrapped += 1
        return True


class _Invocation:
    """The output of one start of fio."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.version: str | None = None
        self.banners: list[tuple[str, int, dict[str, str]]] = []
        self.jobs: list[_Job] = []
        self.names: set[str] = set()
        self.disks: list[Disk] = []
        self.groups: list[tuple[int, str, int]] = []
        """The lines of the run status: number of the group, text, and line."""
        self.stacked = False

    def again(self) -> _Invocation:
        """Return the same start of fio, for its next report."""
        now = _Invocation()
        now.said, now.version, now.banners = list(self.said), self.version, self.banners
        return now

    def options(self, job: _Job) -> dict[str, str]:
        """Options from the command line and a job's banner, found by name and group, by name, or by a unique group."""
        command = command_options(self.said)
        for wanted in ((job.name, job.group), (job.name, None), (None, job.group)):
            for name, group, options in self.banners:
                if wanted[0] in (name, None) and wanted[1] in (group, None):
                    if name != job.name and name in self.names:
                        continue
                    if not agrees(command, options):
                        return options
                    return {**command, **options}
        return command


def reports(lines: Sequence[Line], used: bytearray, file: str) -> list[Run | Refusal]:
    """Return every job of every normal report among ``lines``; their indexes are marked in ``used``."""
    collector = _Reports(lines, file)
    for index, line in enumerate(lines):
        text = line.text.strip()
        if text and not used[index] and collector.take(index, text):
            used[index] = 1
    return collector.end()


class _Reports:
    """Collects the normal reports of a text, line by line."""

    def __init__(self, lines: Sequence[Line], file: str) -> None:
        self._lines = lines
        self._file = file
        self._found: list[Run | Refusal] = []
        self._now = _Invocation()
        self._said: list[str] = []
        """fio's messages since the last report."""
        self._job: _Job | None = None
        self._in_disks = False
        self._group: int | None = None

    def end(self) -> list[Run | Refusal]:
        return self._found + _runs(self._now, self._file)

    def take(self, index: int, text: str) -> bool:
        """Return whether the line, whose text is not empty, is fio's."""
        banner = say.near(say.BANNER, self._lines, index, ": (g=")
        if banner:
            # The banner of a job: it begins the next start of fio if jobs were reported before.
            if self._now.jobs:
                self._found += _runs(self._now, self._file)
                self._now = _Invocation()
            name = _ETA.split(banner[1])[-1].strip()
            self._now.banners.append(
                (name, int(banner[2]), banner_options(*banner.groups()[2:]))
            )
            self._job, self._in_disks = None, False
            return True
        head = say.near(say.HEAD, self._lines, index, "(groupid=")
        if head:
            # The beginning of a job's results.
            number = self._lines[index].number
            # After disk statistics another report begins: of another client, or with status-interval.
            if self._in_disks and head[1] != "All clients":
                self._found += _runs(self._now, self._file)
                self._now, self._in_disks = self._now.again(), False
            self._job = _Job(number, head, text[:4000])
            self._now.jobs.append(self._job)
            self._now.names.add(self._job.name)
            self._now.said, self._said = self._now.said + self._said, []
            return True
        if say.END.match(text):
            self._job, self._in_disks = None, text.startswith("Disk stats")
            group = _GROUP.match(text)
            self._group = int(group[1]) if group else None
            self._said.append(text)
            return True
        if self._group is not None and _GROUP_LINE.match(text):
            if not any(
                job.group == self._group if job.has_head else job.kinds
                for job in self._now.jobs
            ):
                return False
            self._now.groups.append((self._group, text, self._lines[index].number))
            return True
        if self._takes(index, text[:4000]):
            return True
        if self._in_disks and ": ios=" in text:
            disk = say.disk(
                say.unwrapped(self._lines, index, text), member=self._now.stacked
            )
            if disk:
                self._now.disks.append(disk)
            # The members of a stacked device follow it.
            self._now.stacked = self._now.stacked or "aggrios=" in text
            return True
        return self._version(text) or self._remark(text)

    def _takes(self, index: int, text: str) -> bool:
        """Return whether a line belongs to the job above it, or begins one whose head is missing."""
        job, stated, number = self._job, say.statement(text), self._lines[index].number
        is_rate = stated.head in say.KINDS and say.rates(stated, None) is not None
        if job is not None and not (
            is_rate and not job.has_head and stated.head in job.kinds
        ):
            if is_rate:
                job.kinds.add(stated.head)
            if job.add(number, text):
                return True
            self._job = None if not job.has_head else job
            if job.has_head:
                return not re.search(r"\d", text)
        is_statement = (
            is_rate
            or ("avg" in stated.fields and say.begins(stated))
            or say.is_ranked(stated.text)
        )
        if not is_statement or self._in_disks:
            return False
        self._job = _Job(number, None, "", name_above(self._lines, index))
        self._job.kinds = {stated.head} if is_rate else set()
        self._now.jobs.append(self._job)
        return self._job.add(number, text)

    def _version(self, text: str) -> bool:
        version = None if self._now.jobs else say.VERSION.match(text)
        if version is None or not (version[1] or version[2] or self._now.banners):
            return False
        self._now.version = version[1] or version[2] or version[3]
        return True

    def _remark(self, text: str) -> bool:
        self._said.append(text)
        return say.STARTING.match(text) is not None


def _runs(now: _Invocation, file: str) -> list[Run | Refusal]:
    findings = remarks(now.said, file)
    # fio's own sum over its clients would count everything twice.
    jobs = [job for job in now.jobs if job.name != "All clients"] or now.jobs
    items = [_run(now, job, Place(file, job.number), findings) for job in jobs]
    for group, finding in _of_groups(now, version_of(now.version), file):
        first = next(
            (
                at
                for at, item in enumerate(items)
                if isinstance(item, Run) and item.group == group
            ),
            None,
        )
        if first is not None:
            changed = items[first]
            assert isinstance(changed, Run)
            items[first] = msgspec.structs.replace(
                changed, findings=(*changed.findings, finding)
            )
    for job, item in zip(jobs, list(items), strict=True):
        statements = list(map(say.statement, job.lines[1:]))
        unread, below_head = [], False
        for at, stated in enumerate(statements):
            is_ranked = stated.text.startswith("|") or say.is_ranked(stated.text)
            if say.unread(stated) or (is_ranked and not below_head):
                unread.append(at)
            below_head = say.percentile_head(stated) is not None or (
                is_ranked and below_head
            )
        if unread and isinstance(item, Run):
            quoted = clean(job.lines[1 + unread[0]].strip()[:100])
            words = f"{plural(len(unread), 'line')} of the report of {item.jobname!r} not understood: {quoted!r}"
            items.append(
                Refusal(Place(file, job.numbers[1 + unread[0]]), words, lost=True)
            )
    return items


def name_above(lines: Sequence[Line], index: int) -> str:
    """Return the nearest short line above that can be the name of a report without a head."""
    for line in reversed(lines[max(0, index - _NAME_FAR) : index]):
        text = line.text.strip()
        if (
            text
            and len(text) <= 100
            and not _NO_NAME.match(text)
            and not say.begins(say.statement(text))
        ):
            return clean(text.strip("#*`=_- :"))
    return ""


def _run(
    now: _Invocation, job: _Job, place: Place, findings: tuple[Finding, ...]
) -> Run | Refusal:
    version = version_of(now.version)
    statements = [say.statement(line) for line in job.lines[1:]]
    parts, sync, unread = _parts(statements, version)
    fields = {stated.head: stated.fields for stated in statements}
    options = now.options(job)
    target = fields.get("latency", {}).get("target", "0")
    if target.strip("0.ns"):
        options = {**options, "latency_target": target}
    asked = workload(options)
    issued = next(
        (counts for s in statements if (counts := say.issued(s))), ([], [], [])
    )
    # Whether this fio measured in ns (2.99 and later) or us; None if unknown.
    nanoseconds: bool | None
    if version is not None:
        nanoseconds = version >= (2, 99)
    elif any(
        "(nsec)" in s_.head or s_.head == "iops" or s_.head.startswith("issued rwts")
        for s_ in statements
    ):
        nanoseconds = True
    else:
        nanoseconds = False if any("runt" in s_.fields for s_ in statements) else None
    directions: list[Direction] = []
    for rates, part in _rated(parts):
        if rates.kind == "mixed" and directions:
            continue  # 3.27 to 3.38 print zeros for the sum of the directions
        if "clat" in part.percentiles.keys() - part.times and "lat" in part.times:
            del part.times["lat"]
            words = f"{rates.kind}: percentiles of clat, but of its two lines only one, called lat: it may be either; not read"
            findings += (Finding("read.cut", "warning", str(place), words),)
        direction = _direction(part, rates, issued, asked.bs, version, nanoseconds)
        if direction.iops.value or direction.bytes:
            directions.append(direction)
            findings += _disagreement(rates, direction, place)
    if not directions and not job.has_head:
        words = f"a report of fio without its head and its line of rates: {plural(len(statements), 'line')} not read"
        return Refusal(place, words, lost=True)
    if not directions and not job.error:
        return Refusal(
            place, f"the report of job {clean(job.name)!r} has no line with its rate"
        )
    if unread and directions:
        # The finding for a report in which the rate of a direction is unreadable.
        which = " and ".join(dict.fromkeys(kind or "a direction" for kind in unread))
        findings += (
            (
                Finding(
                    "read.cut",
                    "warning",
                    str(place),
                    f"the line with the rate of {which} is missing, cut or changed: what is below it was not read",
                )
            ),
        )
    if not issued[0] and directions:
        findings += (_shortened(directions, asked.rw, place),)
    cpu, depths = fields.get("cpu", {}), fields.get("IO depths", {})
    return Run(
        place=place,
        format="text",
        jobname=clean(job.name) or ("" if job.has_head else "excerpt"),
        group=job.group,
        jobs=job.jobs,
        directions=without_sum(directions, asked.rw),
        sync=_latency(sync, "sync", 0, version, nanoseconds) if sync else None,
        options=clean_all(options),
        workload=asked,
        fio_version=now.version,
        ended=say.when(job.lines[0]),
        local_time=say.when(job.lines[0]) is not None,
        pid=job.pid,
        error=job.error,
        usr_cpu=_percent(cpu.get("usr", "")),
        sys_cpu=_percent(cpu.get("sys", "")),
        context_switches=whole(cpu.get("ctx", "")),
        shares=tuple(_shares(statements)),
        depths={depth: _percent(share) for depth, share in depths.items()},
        disks=tuple(now.disks),
        samplers=_all_samplers(parts),
        findings=(*findings, *_own_remarks(fields, place)),
    )


def _shares(statements: Sequence[say.Statement]) -> Iterator[tuple[float, float]]:
    """fio's coarse histogram in ascending order; each key is the upper bound of its bucket."""
    for stated in statements:
        if (
            stated.head not in ("lat(nsec)", "lat(usec)", "lat(msec)")
            or "avg" in stated.fields
        ):
            continue
        step = say.STEP[stated.head[4]]
        for bound, share in stated.fields.items():
            percent = decimals(share.removesuffix("%"))
            if (
                percent is not None
                and percent.value > 0
                and bound.removeprefix(">=").isdigit()
            ):
                yield (
                    math.inf if bound.startswith(">=") else float(bound) * step,
                    percent.value,
                )


def _own_remarks(
    fields: Mapping[str, Mapping[str, str]], place: Place
) -> Iterator[Finding]:
    """fio's own statements about a job, other than its results."""
    where = str(place)
    ignored = whole(fields.get("errors", {}).get("total", ""))
    if ignored:
        yield Finding(
            "fio.errors",
            "warning",
            where,
            f"{plural(ignored, 'error')} ignored (continue_on_error)",
        )
    if fields.get("steadystate", {}).get("attained") == "no":
        yield Finding(
            "fio.steady-state",
            "warning",
            where,
            "steady state was requested, but not attained",
        )


def _shortened(
    directions: Sequence[Direction], rw: str | None, place: Place
) -> Finding:
    """Return the finding for a report without the line of issued I/Os, which every complete report has."""
    text = "its report has no line of the I/Os issued: it is cut, or was shortened; rates are known only as printed"
    both = (rw or "").removeprefix("rand") == "rw"
    if both and len(directions) == 1:
        return Finding(
            "read.cut",
            "warning",
            str(place),
            f"{text}, and only of {directions[0].kind}",
        )
    return Finding("read.cut", "note", str(place), text)


def _rated(parts: Sequence[_Part]) -> Iterator[tuple[say.Rates, _Part]]:
    for part in parts:
        if part.rates is not None:
            yield part.rates, part


def _parts(
    statements: Sequence[say.Statement], version: Version | None
) -> tuple[list[_Part], _Part | None, list[str]]:
    """Return the statements by direction; those of the syncs; and the directions with an unreadable line ("" if
    missing).

    Statements below an unreadable line do not belong to any other direction.
    """
    parts: list[_Part] = []
    unread: list[str] = []
    sync: _Part | None = None
    part = nameless = _Part(None)
    target = ""
    for stated in statements:
        head = say.percentile_head(stated)
        if stated.text.startswith("|") or say.is_ranked(stated.text):
            if target:
                step, text = part.percentiles[target]
                part.percentiles[target] = (step, f"{text} {stated.text}")
            continue
        target = ""
        rates = say.rates(stated, version)
        if rates is not None:
            part = _Part(rates)
            parts.append(part)
            continue
        if stated.head.startswith("fsync/"):
            part = sync = _Part(None)
            continue
        unreadable = say.is_rate(stated)
        if unreadable or part.has(stated):
            unread.append(stated.head if unreadable else "")
            if not unreadable and "clat" not in part.times:
                part.times.pop("lat", None)  # it may be clat without its first letter
            part = _Part(None)
        if head is not None:
            target = head[0]
            part.percentiles[target] = (head[1], stated.text.partition(":")[2])
        else:
            part.take(stated)
    if nameless.times:
        unread.insert(0, "")
    return parts, sync, unread


def _exact_bytes(rates: say.Rates, exact: int) -> int:
    """``exact``, the block size times the I/Os, if the printed amount can be this, rounded; else 0."""
    return exact if rates.amount.low <= exact <= rates.amount.high else 0


def _direction(
    part: _Part,
    rates: say.Rates,
    counts: tuple[list[int], list[int], list[int]],
    block: int | None,
    version: Version | None,
    nanoseconds: bool | None,
) -> Direction:
    ios, short, dropped = (_count(numbers, rates.kind) for numbers in counts)
    known = 0 if short or block is None else _exact_bytes(rates, block * ios)
    iops, speed = rates.iops.quantity("1/s"), bandwidth(rates)
    # Counts over the run time are finer than the rates as fio prints them.
    if ios and rates.runtime_ms:
        iops = rate(ios, rates.runtime_ms, "1/s")
    if known and rates.runtime_ms:
        speed = rate(known, rates.runtime_ms, "B/s")
    return Direction(
        kind=rates.kind,
        ios=ios,
        bytes=known or int(rates.amount.value),
        runtime_ms=rates.runtime_ms,
        iops=iops,
        bandwidth=speed,
        lat=_latency(part, "lat", ios, version, nanoseconds),
        clat=_latency(part, "clat", ios, version, nanoseconds),
        slat=_latency(part, "slat", ios, version, nanoseconds),
        short=short,
        dropped=dropped,
    )


def _count(numbers: Sequence[int], kind: Kind) -> int:
    """Return the count of one of read, write, trim, or their sum for ``mixed``."""
    if kind == "mixed":
        return sum(numbers[:3])
    place = ("read", "write", "trim").index(kind)
    if place < len(numbers):
        return numbers[place]
    return 0


def bandwidth(rates: say.Rates) -> Quantity:
    """Bandwidth in the interval on which both spellings and the amount over the run time agree."""
    # Bounds in bytes/s that all spellings of the bandwidth allow; the first is larger if they disagree.
    candidates = [*rates.bandwidth]
    if rates.runtime_ms > 1:
        bounds = (
            rates.amount.low * 1000 / (rates.runtime_ms + 1),
            rates.amount.high * 1000 / (rates.runtime_ms - 1),
        )
        candidates.append(
            Printed(rates.amount.value * 1000 / rates.runtime_ms, *bounds)
        )
    low, high = max(c.low for c in candidates), min(c.high for c in candidates)
    if low > high:
        return rates.bandwidth[0].quantity("B/s")
    return Quantity(min(max(rates.bandwidth[0].value, low), high), low, high, "B/s")


_APART = 1.1
"""Factor between rates that no rounding of any fio explains."""


def _disagreement(
    rates: say.Rates, direction: Direction, place: Place
) -> tuple[Finding, ...]:
    """Findings for printed rates that are not the amounts over the run time; hard if no rounding of any fio explains it."""
    findings = []
    printed = [("bandwidth", "B/s", speed) for speed in rates.bandwidth]
    exact = {"bandwidth": direction.bandwidth, "IOPS": direction.iops}
    if rates.runtime_ms > 1 and rates.amount.value:
        low, high = (
            bound * 1000 / (rates.runtime_ms + step)
            for bound, step in ((rates.amount.low, 1), (rates.amount.high, -1))
        )
        exact["bandwidth"] = Quantity(
            rates.amount.value * 1000 / rates.runtime_ms, low, high, "B/s"
        )
    for name, unit, number in (("IOPS", "1/s", rates.iops), *printed):
        known = exact[name]
        if (
            number.quantity(unit).overlaps(known)
            or (name == "bandwidth" and rates.runtime_ms < 2)
            or math.isnan(known.value)
        ):
            continue
        is_apart = number.low > _APART * known.high or number.high * _APART < known.low
        if name == "bandwidth" and not is_apart:
            continue
        source = "I/Os issued" if name == "IOPS" else "amount"
        text = f"{rates.kind}: {name} is printed as {number.value:.6g}, but the {source} over the run time makes {known.value:.6g}"
        remedy = "the totals are used; was the report edited? Read fio's own output"
        findings.append(
            Finding(
                "read.disagree",
                "hard" if is_apart else "warning",
                str(place),
                text,
                remedy,
            )
        )
        break
    return tuple(findings)


def _of_groups(
    now: _Invocation, version: Version | None, file: str
) -> Iterator[tuple[int, Finding]]:
    """Yield the group of each line of the run status that contradicts the jobs of the group, and the finding."""
    for group, text, line in now.groups:
        kind = text.partition(":")[0].lower()
        fields = dict(re.findall(r"(\w+)= ?([^, ]+)", text))
        jobs = [
            job
            for job in now.jobs
            if job.group == group and job.has_head and job.name != "All clients"
        ]
        stated = [
            say.rates(say.statement(row), version)
            for job in jobs
            for row in job.lines[1:]
        ]
        own = [rates for rates in stated if rates is not None and rates.kind == kind]
        kilo = 1000 if "bw" in fields else 1024
        amount = num2str(fields.get("io", ""), version, kilo=kilo, truncated=False)
        speed = num2str(fields.get("bw") or fields.get("aggrb", ""), version, kilo=kilo)
        if (
            amount is None
            or speed is None
            or not any(rates.amount.value for rates in own)
        ):
            continue
        low, high = (
            sum(rates.amount.low for rates in own),
            sum(rates.amount.high for rates in own),
        )
        words = ""
        if low > amount.high * 1.02 or high * 1.02 < amount.low:
            words = f"{kind}: the group moved {amount.value:.6g} bytes, but its jobs {sum(rates.amount.value for rates in own):.6g}"
        longest = max(rates.runtime_ms for rates in own)
        if longest > 1 and not words:
            least, most = low * 1000 / (longest + 1), high * 1000 / (longest - 1)
            if least > speed.high * _APART or most * _APART < speed.low:
                words = f"{kind}: the group's rate is {speed.value:.6g} B/s, but its jobs make {high * 1000 / longest:.6g}"
        if words:
            yield (
                group,
                Finding(
                    "read.group-sum",
                    "hard",
                    f"{file}:{line}",
                    words,
                    "was the report edited? Read fio's own output",
                ),
            )


def _latency(
    part: _Part,
    name: str,
    count: int,
    version: Version | None,
    nanoseconds: bool | None,
) -> Latency | None:
    stated = part.times.get(name)
    step, text = part.percentiles.get(name, (1, ""))
    spread = {
        percent: percentile(value, step, nanoseconds)
        for percent, value in say.percentiles(text)
    }
    if spread and not any(value.value for value in spread.values()):
        spread = {}  # zeros for all: none was measured
    if stated is None:
        if not spread:
            return None
        return Latency(count, *(unknown("ns"),) * 4, spread)
    unit = say.STEP[stated.head.partition("(")[2][:1]]
    fields = say.statistics(stated)
    bounds = [
        num2str(fields.get(key, ""), version, truncated=unit > 1)
        for key in ("min", "max")
    ]
    averages = [decimals(fields.get(key, "")) for key in ("avg", "stdev")]
    low, high, mean, stddev = (
        unknown("ns") if p is None else p.quantity("ns", unit)
        for p in (*bounds, *averages)
    )
    return Latency(count, mean, stddev, low, high, spread)


def _percent(text: str) -> Quantity:
    printed = decimals(text.removesuffix("%"))
    return unknown("%") if printed is None else printed.quantity("%")


def _all_samplers(parts: Sequence[_Part]) -> tuple[Sampler, ...]:
    return tuple(
        chain.from_iterable(
            _samplers(part, part.rates.kind) for part in parts if part.rates
        )
    )


def _samplers(part: _Part, kind: Kind) -> list[Sampler]:
    samplers: list[Sampler] = []
    for stated in part.samplers:
        scale = 1.0 if stated.head == "iops" else say.sampler_scale(stated)
        fields = say.statistics(stated)
        mean, stddev = (decimals(fields.get(key, "")) for key in ("avg", "stdev"))
        low, high = (size(fields.get(key, "")) for key in ("min", "max"))
        if None in (scale, mean, stddev, low, high):
            continue
        unit = "1/s" if stated.head == "iops" else "B/s"
        samplers.append(
            Sampler(
                kind,
                "iops" if stated.head == "iops" else "bw",
                mean.quantity(unit, scale),  # type: ignore[union-attr,arg-type]
                Quantity(low * scale, low * scale, (low + 1) * scale, unit),  # type: ignore[operator]
                Quantity(high * scale, high * scale, (high + 1) * scale, unit),  # type: ignore[operator]
                stddev.quantity(unit, scale),  # type: ignore[union-attr,arg-type]
                whole(stated.fields.get("samples", "")),
            )
        )
    return [s for s in samplers if math.isfinite(s.mean.value)]
