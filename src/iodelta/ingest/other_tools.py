"""Read the results of elbencho and dbench, and refuse those of some other tools by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, Workload, unknown
from iodelta.ingest.numbers import decimals, whole
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Kind, Latency, Place, Quantity

_OWN_TABLE = "put its numbers into a CSV with the columns test, IOPS, BW (MiB/s), lat (us), one row a run"
_CBT = "give the json_output files that its fio wrote, in the folder of the run"
_SHORT = "its runs are too short for a comparison; run the same workloads with fio"
_DEVICE = "it shows what a device did, not what a benchmark measured; give the benchmark's own output"
_LONGEST = 1000
"""Most characters of a line that are read."""
_REFUSED: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "vdbench",
        re.compile(
            r"Vdbench (?:distribution|summary|totals|generated)|reqrate {1,20}rate {1,20}MB/sec"
            r"|\binterval {1,20}i/o {1,20}MB/sec {1,20}bytes|\brate {1,20}1024\*\*2 {1,20}i/o"
        ),
        _OWN_TABLE,
    ),
    (
        "CBT",
        re.compile(
            r"Comparati?ve Performance Report|IOps@\d|\"(?:latency_at_max_iops|maximum_iops)\""
        ),
        _CBT,
    ),
    (
        "CrystalDiskMark",
        re.compile(r"CrystalDiskMark \d|\(Q= {0,3}\d{1,4}, ?T= {0,3}\d{1,4}\) ?: "),
        _SHORT,
    ),
    ("AS SSD", re.compile(r"^AS SSD Benchmark \d"), _SHORT),
    (
        "hdparm",
        re.compile(r"^\s{0,9}Timing (?:buffered|O_DIRECT) disk reads: "),
        _SHORT,
    ),
    (
        "iostat",
        re.compile(
            r"Device:? {1,30}(?:\S{1,12} {1,12}){0,6}r/s .{0,200}(?:%util|await)"
        ),
        _DEVICE,
    ),
    ("IOzone", re.compile(r"Iozone: Performance Test of File I/O"), _OWN_TABLE),
    (
        "sysbench",
        re.compile(
            r"^\s{0,40}\d{1,3}th percentile: {3,60}\d|^\s{0,40}Threads fairness:\s{0,9}$|^File operations:\s{0,9}$"
        ),
        _OWN_TABLE,
    ),
    ("diskspd", re.compile(r"\bbytes\s+\|\s+I/Os\s+\|.{0,60}I/O per s"), _OWN_TABLE),
    ("sar", re.compile(r"\bDEV {1,30}tps .{0,120}(?:rd_sec/s|areq-sz)"), _DEVICE),
    ("rados bench", re.compile(r"^Total (?:writes|reads) made:"), _OWN_TABLE),
    (
        "SPDK",
        re.compile(r"Device Information {1,60}: {1,20}IOPS|\(Core Mask 0x"),
        _OWN_TABLE,
    ),
    ("ioping", re.compile(r"ioping statistics ---"), _SHORT),
    ("YCSB", re.compile(r"^\[OVERALL\], Throughput\(ops/sec\)"), _OWN_TABLE),
    (
        "bonnie++",
        re.compile(r"-Sequential Output-{1,20} {0,3}-{1,20}Sequential Input-"),
        _OWN_TABLE,
    ),
)
"""Name of the tool, a pattern of its output, and what to do instead."""
_NETWORK = "it measures a network, not storage"
_NOT_IO = "it does not measure storage I/O"
_CACHE = (
    "it measures the page cache and one thread at best; run the same workload with fio"
)
_PARTS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "bench.sh",
        re.compile(r"^\s{0,20}(?:average |avg\.? )?I/O speed\b[^:|]{0,30}:", re.I),
        _CACHE,
    ),
    (
        "dd",
        re.compile(
            r"\d bytes? (?:\(.{1,40}\) )?(?:copied|transferred)\b|^\d{1,12}\+\d{1,9} records (?:in|out)\b"
        ),
        _CACHE,
    ),
    (
        "hdparm",
        re.compile(r"^\s{0,9}Timing (?:cached|buffered|O_DIRECT)\b.{0,20} reads: "),
        _SHORT,
    ),
    (
        "iostat",
        re.compile(
            r"\bKB/t {1,9}(?:xfr|tps) {1,9}MB(?:/s)?\b|\btps {1,20}(?:[kM]B|Blk)_read/s|\br/s {1,20}w/s {1,20}[kM]r/s"
            r"|\bL\(q\) {1,9}ops/s|% tm_act {1,20}Kbps|^\s{0,40}operations {1,20}bandwidth\b"
            r"|\balloc {1,20}free {1,20}read {1,20}write|Total DISK READ|-dsk/total-|\bDisk IO\b.{0,30}\btps\b"
        ),
        _DEVICE,
    ),
    (
        "ping",
        re.compile(
            r"^PING \S|bytes from .{1,80}(?:icmp_)?seq[= ]|\d packets transmitted|\b(?:rtt|round-trip) min/avg/max"
            r"|^Reply from .{1,60} time[=<]|^Pinging \S|^\s{0,9}Minimum = \d+ ?ms, Maximum|^traceroute to |\bLoss% {1,9}Snt\b"
        ),
        _NETWORK,
    ),
    (
        "a network test",
        re.compile(
            r"\[ ?ID\] {1,4}Interval {1,20}Transfer|^\[ {0,3}(?:\d{1,3}|SUM)\] {1,6}[\d.]+- {0,3}[\d.]+ {1,6}sec\b"
            r"|Speedtest by Ookla|speedtest-cli|(?:TCP|UDP)_(?:STREAM|RR|MAERTS)\b"
            r"|^\W{0,20}(?:Download|Upload|Idle Latency|Ping|Hosted by)\b[^|]{0,40}: {1,12}[\d.]+ ?(?:[KMG]bit/s|[KMG]bps|ms)\b"
            r"|\b(?:Upload|Download|Send|Recv|Receive)(?: Speed)?\b.{1,40}\b(?:Upload|Download|Send|Recv|Receive)\b"
            r"|\bNode Name\b.{0,60}\bSpeed\b|\b(?:RTT|Jitter|Packet loss)\b.{0,60}\b(?:Mbps|Mbit/s|ms)\b",
            re.I,
        ),
        _NETWORK,
    ),
    (
        "Geekbench",
        re.compile(r"\bGeekbench \d|\b(?:Single|Multi)[- ]Core(?: Score)?\b", re.I),
        _NOT_IO,
    ),
    (
        "UnixBench",
        re.compile(
            r"System Benchmarks (?:Partial )?Index|^Dhrystone 2 using|^(?:File Copy|File Read) \d+ bufsize"
        ),
        _NOT_IO,
    ),
    (
        "a test of memory or CPU",
        re.compile(
            r"^Function {1,9}Best Rate MB/s|^(?:Copy|Scale|Add|Triad): {1,20}[\d.]+|\bbogo ops|bogo-ops|\bevents per second:"
            r"|MEMCPY\s+Elapsed:|^type {1,20}16 bytes"
        ),
        _NOT_IO,
    ),
    (
        "sysbench",
        re.compile(
            r"^sysbench \d|^\s{0,9}(?:reads|writes|fsyncs)/s: {1,30}\d|^\s{0,9}(?:read|written), MiB/s: {1,30}\d"
            r"|^\s{0,9}(?:queries|transactions): {1,30}\d|Requests/sec executed|^Threads fairness:"
        ),
        _OWN_TABLE,
    ),
    (
        "a test of a server",
        re.compile(
            r"^Requests(?:/sec| per second):|Thread Stats {1,9}Avg|^tps = [\d.]+|^latency average = [\d.]+ ms|requests per second$"
            r"|^ALL STATS$|^Percentage of the requests served"
        ),
        _NOT_IO,
    ),
    ("filebench", re.compile(r"\bIO Summary: {1,9}\d"), _OWN_TABLE),
    (
        "IOR",
        re.compile(
            r"^Max (?:Write|Read): {1,9}[\d.]+ MiB/sec|^access {1,9}bw\(MiB/s\)"
        ),
        _OWN_TABLE,
    ),
    ("ATTO", re.compile(r"ATTO Disk Benchmark"), _SHORT),
    ("winsat", re.compile(r"^> Disk {1,3}(?:Sequential|Random) "), _SHORT),
)
"""The same of tools whose output is a paragraph: what stands elsewhere in the file is read."""
_FOREIGN_TITLES = re.compile(
    r"\b(?:[tqr]ps|tpm\w?|txns?(?:/s)?|transactions?|queries|requests?|req/s|score|points|fps|upload|download|ping|jitter|packets?"
    r"|rtt|hops?|ttl|[KMG]bit\w*|node name|provider|isp|http|tcp|udp|rows/s|msgs?/s|inserts?|selects?)\b",
    re.I,
)


_FOREIGN_TOOLS = re.compile(
    r"\b(?:sysbench|pgbench|geekbench|iperf3?|speedtest|unixbench|stress-ng|redis|memcached|mysql|postgres\w*|oltp)\b",
    re.I,
)


def foreign_measure(titles: Sequence[str], table: str) -> str:
    """Return the word in the titles of a table that shows it to be of something other than storage I/O; empty without
    one.
    """
    is_of_io = any(
        re.search(r"iops|i/?os?/s|\bfio\b", title, re.I) for title in (*titles, table)
    )
    for title in (*titles, table):
        words = title.replace("_", " ")
        match = _FOREIGN_TOOLS.search(words) or (
            not is_of_io and _FOREIGN_TITLES.search(words)
        )
        if match:
            return match[0]
    return ""


_ELBENCHO = "ISO date,"
_PHASE = re.compile(
    r"([A-Z][A-Z\d]{2,20}) {1,20}Elapsed (?:ms {1,20}: {1,20}\d{1,18} {1,20}(?P<ms>\d{1,18})"
    r"|time {1,20}: {1,20}[\d.dhms]{2,30} {1,20}(?P<time>[\d.dhms]{2,30}))$"
)
"""elbencho printed milliseconds before release 3, and prints ``30m0.279s`` since."""
_ELAPSED = re.compile(
    r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?"
)
_ROW = re.compile(
    r"(IOPS|Throughput MiB/s|MiB/s)(?: (write|read))? {1,20}: {1,20}(\d{1,18}) {1,20}(\d{1,18})$"
)
_IO_LATENCY = re.compile(
    r"IO(?: (wr|rd))? lat(?:ency)?(?: us)? {1,20}: \[ min=(\S{1,20}) avg=(\S{1,20}) max=(\S{1,20}) \]"
)
_TIME = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(us|ms|s)?")
_DBENCH = re.compile(
    r"Throughput ([\d.]{1,20}(?:e[+-]?\d{1,3})?) MB/sec((?: \(sync \w{1,9}\)){0,2}) {1,4}"
    r"(?:(\d{1,9}) clients? {1,4})?(\d{1,9}) procs(?: {1,4}max_latency=([\d.]{1,20}) ms)?"
)


def refused(
    lines: Sequence[Line], used: bytearray, file: str
) -> tuple[list[Refusal], bool]:
    """Return a refusal for each tool whose results are among ``lines`` and cannot be read, and whether they may be
    anywhere in the text. Paragraphs of other tools are marked in ``used``."""
    refusals: dict[str, Refusal] = {}
    everywhere = False
    for at, line in enumerate(lines):
        text = line.text[:_LONGEST]
        if used[at] or not text.strip():
            continue
        for name, pattern, remedy in (*_REFUSED, *_PARTS):
            if not pattern.search(text):
                continue
            if (name, pattern, remedy) in _PARTS:
                first, last = at, at
                while first and _goes_on(lines[first - 1], used[first - 1]):
                    first -= 1
                while last + 1 < len(lines) and _goes_on(
                    lines[last + 1], used[last + 1]
                ):
                    last += 1
                used[first : last + 1] = b"\1" * (last + 1 - first)
            else:
                everywhere = True
            if name not in refusals:
                words = f"results of {name}, which are not read: {remedy}"
                refusals[name] = Refusal(Place(file, line.number), words)
            break
    return list(refusals.values()), everywhere


def _goes_on(line: Line, taken: int) -> bool:
    """Return whether a line next to another tool's may be of the same paragraph, and is not fio's or of another table."""
    return (
        bool(line.text.strip())
        and not taken
        and not _OF_STORAGE.search(line.text[:_LONGEST])
    )


_OF_STORAGE = re.compile(r"\biops\b|\bBW=|\(groupid=|\|.*\||\bbw[= (]|\bfio\b", re.I)


def results(
    lines: Sequence[Line], used: bytearray, file: str
) -> list[list[Run | Refusal]]:
    """The runs of elbencho and dbench, table by table; the indexes of their lines are marked in ``used``."""
    tables: list[list[Run | Refusal]] = []
    index = 0
    while index < len(lines):
        text = lines[index].text
        if text.startswith(_ELBENCHO) and ",operation," in text:
            rows = list(_elbencho_csv(lines, index, file))
            end = index + 1
            while end < len(lines) and lines[end].text.strip():
                end += 1
        elif match := _PHASE.match(text.strip()[:_LONGEST]):
            end = _phase_end(lines, index)
            rows = list(_elbencho_text(lines, index, end, match, file))
        elif match := _DBENCH.match(text.strip()[:_LONGEST]):
            # The run of a line of dbench: megabytes of 10^6 bytes, reads and writes together.
            place = Place(file, lines[index].number)
            speed = decimals(match[1])
            bandwidth = unknown("B/s") if speed is None else speed.quantity("B/s", 1e6)
            clients = int(match[3] or match[4])
            labels = {"clients": str(clients)} | (
                {"mode": match[2].strip(" ()")} if match[2] else {}
            )
            if match[5]:
                labels["max latency of an operation (ms)"] = match[5]
            rows, end = (
                [
                    (
                        Run(
                            place=place,
                            format="table",
                            jobname=f"dbench {clients} clients",
                            jobs=clients,
                            directions=(
                                Direction("mixed", 0, 0, 0, unknown("1/s"), bandwidth),
                            ),
                            workload=Workload(numjobs=clients),
                            labels=labels,
                            table="dbench",
                        )
                    )
                ],
                index + 1,
            )
        else:
            index += 1
            continue
        tables.append(rows)
        used[index:end] = b"\1" * (end - index)
        index = end
    return [rows for rows in tables if rows]


_DISK_MARK = re.compile(
    r"^\s{0,20}(Sequential|Random) {1,9}(\d{1,6}) ([KM])i?B \(Q= {0,3}(\d{1,4}), ?T= {0,3}(\d{1,4})\): {1,12}([\d.]{1,15}) MB/s"
    r" \[ {0,12}([\d.]{1,15}) IOPS\](?: < {0,12}([\d.]{1,15}) us>)?"
)
_DISK_MARK_KINDS = {"[Read]": "read", "[Write]": "write", "[Mix]": "mixed"}


def disk_mark(lines: Sequence[Line], used: bytearray, file: str) -> list[Run]:
    """Return the runs of KDiskMark, which prints what fio measured in the form of CrystalDiskMark, which does not run
    fio.
    """
    runs: list[Run] = []
    kind: Kind | None = None
    is_fio = False
    for at, line in enumerate(lines):
        text = line.text.strip()[:_LONGEST]
        if "DiskMark" in text:
            is_fio = "KDiskMark" in text
        named = _DISK_MARK_KINDS.get(text.partition(" ")[0])
        kind = named if named else kind  # type: ignore[assignment]
        match = _DISK_MARK.match(line.text[:_LONGEST]) if is_fio and kind else None
        used[at] |= is_fio and (match is not None or "DiskMark" in text)
        if match is None or kind is None:
            continue
        depth, threads = int(match[4]), int(match[5])
        mean = decimals(match[8] or "")
        lat = (
            Latency(0, mean.quantity("ns", 1e3), *(unknown("ns"),) * 3)
            if mean and mean.value
            else None
        )
        speed, rate = decimals(match[6]), decimals(match[7])
        assert speed is not None
        assert rate is not None
        mode = {"read": "read", "write": "write", "mixed": "rw"}[kind]
        runs.append(
            Run(
                place=Place(file, line.number),
                format="table",
                jobname=clean(" ".join(text.partition(":")[0].split())),
                jobs=threads,
                directions=(
                    Direction(
                        kind,
                        0,
                        0,
                        0,
                        rate.quantity("1/s"),
                        speed.quantity("B/s", 1e6),
                        lat,
                    ),
                ),
                workload=Workload(
                    rw=f"rand{mode}" if match[1] == "Random" else mode,
                    bs=int(match[2]) << {"K": 10, "M": 20}[match[3]],
                    iodepth=depth,
                    numjobs=threads,
                ),
                labels={
                    "test": clean(" ".join(text.partition(":")[0].split())),
                    "direction": kind,
                },
                table="KDiskMark",
            )
        )
    return runs


def _elbencho_csv(
    lines: Sequence[Line], index: int, file: str
) -> Iterator[Run | Refusal]:
    titles = next(csv.reader([lines[index].text]))
    for line in lines[index + 1 :]:
        if not line.text.strip():
            return
        if line.text.startswith(_ELBENCHO):
            continue  # another start appended to the file
        place = Place(file, line.number)
        cells = next(csv.reader([line.text.replace("\0", "")]), [])
        if (
            len(cells) < len(titles) - 2
        ):  # the last cell, the command, may contain commas
            yield Refusal(place, "a row of elbencho with too few cells: it is cut")
            continue
        yield _elbencho_row(dict(zip(titles, cells, strict=False)), place)


def _elbencho_row(row: Mapping[str, str], place: Place) -> Run | Refusal:
    operation = row.get("operation", "").upper()
    kinds: dict[str, Kind] = {"READ": "read", "WRITE": "write"}
    kind = "write" if operation.startswith("RWMIX") else kinds.get(operation)
    # The directions of a phase; in a mixed phase the reads have separate columns.
    directions = [] if kind is None else [_elbencho_direction(row, kind, "")]
    if row.get("rwmix read IOPS [last]", "").strip():
        directions.append(_elbencho_direction(row, "read", "rwmix read "))
    directions = [d for d in directions if d.iops.value > 0 or d.bandwidth.value > 0]
    if not directions:
        return Refusal(
            place,
            f"elbencho's phase {clean(operation)!r} has no rate of reads or writes: not read",
        )
    random = "rand" if row.get("random") == "1" else ""
    rw = "rw" if len(directions) > 1 else str(directions[0].kind)
    label = row.get("label", "").strip()
    if label.lower() == "none":
        label = ""  # elbencho writes it if there is no label
    else:
        pass
    threads = (_count(row, "threads") or 1) * (_count(row, "hosts") or 1)
    return Run(
        place=place,
        format="table",
        jobname=clean(label or operation.lower()),
        jobs=threads,
        directions=tuple(directions),
        workload=Workload(
            rw=f"{random}{rw}",
            bs=_count(row, "block size"),
            iodepth=_count(row, "IO depth"),
            numjobs=threads,
            direct={"1": True, "0": False}.get(row.get("direct IO", "")),
            size=_count(row, "file size"),
        ),
        labels={
            **({"label": clean(label)} if label else {}),
            "operation": operation.lower(),
            "done": "last",
        },
        table="elbencho",
    )


def _elbencho_direction(row: Mapping[str, str], kind: Kind, of: str) -> Direction:
    """Return the rates at the end of the last thread: all work over all time."""
    lat = None
    mean, low, high = (
        _whole(row, f"{of}IO lat us [{name}]", "ns", 1e3)
        for name in ("avg", "min", "max")
    )
    if mean.value > 0:
        lat = Latency(0, mean, unknown("ns"), low, high)
    return Direction(
        kind=kind,
        ios=0,
        bytes=0,
        runtime_ms=_count(row, "time ms [last]") or 0,
        iops=_whole(row, f"{of}IOPS [last]", "1/s", 1.0),
        bandwidth=_whole(row, f"{of}MiB/s [last]", "B/s", 2.0**20),
        lat=lat,
    )


def _count(row: Mapping[str, str], title: str) -> int | None:
    return whole(row.get(title, ""))


def _whole(row: Mapping[str, str], title: str, unit: str, scale: float) -> Quantity:
    """Return a number that elbencho truncated to an integer."""
    count = _count(row, title)
    if count is None:
        return unknown(unit)
    return Quantity(count * scale, count * scale, (count + 1) * scale, unit)


def _phase_end(lines: Sequence[Line], index: int) -> int:
    for at in range(index + 1, len(lines)):
        text = lines[at].text.strip()
        if text.startswith("---") or _PHASE.match(text) or not text:
            return at
    return len(lines)


def _elbencho_text(
    lines: Sequence[Line], index: int, end: int, phase: re.Match[str], file: str
) -> Iterator[Run | Refusal]:
    """Yield the output of elbencho for one phase, from the column of the last thread."""
    row: dict[str, str] = {
        "operation": phase[1],
        "time ms [last]": phase["ms"] or _milliseconds(phase["time"]),
    }
    for line in lines[index + 1 : end]:
        text = line.text.strip()
        match = _ROW.match(text)
        if match:
            of = "rwmix read " if match[2] == "read" else ""
            row[f"{of}{match[1].removeprefix('Throughput ')} [last]"] = match[4]
        elif match := _IO_LATENCY.match(text):
            of = "rwmix read " if match[1] == "rd" else ""
            for name, value in zip(
                ("min", "avg", "max"), match.groups()[1:], strict=True
            ):
                row[f"{of}IO lat us [{name}]"] = _microseconds(value)
    yield _elbencho_row(row, Place(file, lines[index].number))


def _milliseconds(text: str) -> str:
    """Milliseconds of ``11.559s``, ``30m0.279s``, ``1h2m3.400s``; empty for another text."""
    match = _ELAPSED.fullmatch(text)
    if match is None:
        return ""
    units = zip(match.groups(), (86_400_000, 3_600_000, 60_000, 1000, 1), strict=True)
    return str(round(sum(float(part) * unit for part, unit in units if part)))


def _microseconds(text: str) -> str:
    """Return a whole number of microseconds; empty for others such as ``1.66ms``, which is rounded."""
    match = _TIME.fullmatch(text)
    if match is not None and match[2] in (None, "us") and "." not in match[1]:
        return match[1]
    return ""
