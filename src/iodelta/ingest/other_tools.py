"""Read the results of elbencho and dbench, and refuse those of some other tools by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, Workload, unknown
from iodelta.ingest.numbers import decimals, whole
from iodelta.ingest.table_runs import direction
from iodelta.ingest.table_titles import Stat
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Kind, Place, Quantity

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
    """The runs of elbencho, dbench and KDiskMark, table by table; the indexes of their lines are marked in ``used``."""
    tables: list[list[Run | Refusal]] = []
    kind: Kind | None = None
    is_fio = False
    index = 0
    while index < len(lines):
        text = lines[index].text.strip()[:_LONGEST]
        place, end = Place(file, lines[index].number), index + 1
        rows: list[Run | Refusal] = []
        # KDiskMark prints what fio measured in the form of CrystalDiskMark, which does not run fio.
        if "DiskMark" in text:
            is_fio = "KDiskMark" in text
            used[index] |= is_fio
        kind = _DISK_MARK_KINDS.get(text.partition(" ")[0], kind)
        if lines[index].text.startswith(_ELBENCHO) and ",operation," in text:
            while end < len(lines) and lines[end].text.strip():
                end += 1
            rows = list(_elbencho_csv(lines[index:end], file))
        elif match := _PHASE.match(text):
            while end < len(lines):
                below = lines[end].text.strip()
                if not below or below.startswith("---") or _PHASE.match(below):
                    break
                end += 1
            rows = [_elbencho_text(lines[index + 1 : end], match, place)]
        elif match := _DBENCH.match(text):
            # The run of a line of dbench: megabytes of 10^6 bytes, reads and writes together.
            speed = decimals(match[1])
            bandwidth = unknown("B/s") if speed is None else speed.quantity("B/s", 1e6)
            clients = int(match[3] or match[4])
            labels = {"clients": str(clients)}
            if match[2]:
                labels["mode"] = match[2].strip(" ()")
            if match[5]:
                labels["max latency of an operation (ms)"] = match[5]
            rows = [
                (
                    Run(
                        place=place,
                        format="table",
                        jobname=f"dbench {clients} clients",
                        jobs=clients,
                        directions=(
                            direction("mixed", {("rate", "bw", 0): bandwidth}),
                        ),
                        workload=Workload(numjobs=clients),
                        labels=labels,
                        table="dbench",
                    )
                )
            ]
        elif is_fio and kind and (match := _DISK_MARK.match(text)):
            random, size, prefix, depth, threads, *numbers = match.groups()
            speed_, rate, mean = (decimals(text_ or "") for text_ in numbers)
            assert speed_ is not None
            assert rate is not None
            mode = "rw" if kind == "mixed" else kind
            name = clean(" ".join(match[0].partition(":")[0].split()))
            parts: dict[tuple[str, Stat, float], Quantity] = {
                ("rate", "iops", 0): rate.quantity("1/s"),
                ("rate", "bw", 0): speed_.quantity("B/s", 1e6),
            }
            if mean and mean.value:
                parts["lat", "mean", 0] = mean.quantity("ns", 1e3)
            rows = [
                (
                    Run(
                        place=place,
                        format="table",
                        jobname=name,
                        jobs=int(threads),
                        directions=(direction(kind, parts),),
                        workload=Workload(
                            rw=f"rand{mode}" if random == "Random" else mode,
                            bs=int(size) << {"K": 10, "M": 20}[prefix],
                            iodepth=int(depth),
                            numjobs=int(threads),
                        ),
                        labels={"test": name, "direction": kind},
                        table="KDiskMark",
                    )
                )
            ]
        if rows:
            tables.append(rows)
            used[index:end] = b"\1" * (end - index)
        index = end
    return tables


_DISK_MARK = re.compile(
    r"(Sequential|Random) {1,9}(\d{1,6}) ([KM])i?B \(Q= {0,3}(\d{1,4}), ?T= {0,3}(\d{1,4})\): {1,12}([\d.]{1,15}) MB/s"
    r" \[ {0,12}([\d.]{1,15}) IOPS\](?: < {0,12}([\d.]{1,15}) us>)?"
)
_DISK_MARK_KINDS: dict[str, Kind] = {
    "[Read]": "read",
    "[Write]": "write",
    "[Mix]": "mixed",
}


def _elbencho_csv(lines: Sequence[Line], file: str) -> Iterator[Run | Refusal]:
    titles = next(csv.reader([lines[0].text]))
    for line in lines[1:]:
        if line.text.startswith(_ELBENCHO):
            continue  # another start appended to the file
        place = Place(file, line.number)
        cells = next(csv.reader([line.text.replace("\0", "")]), [])
        # The last cell, the command, may contain commas.
        if len(cells) < len(titles) - 2:
            yield Refusal(place, "a row of elbencho with too few cells: it is cut")
        else:
            yield _elbencho(dict(zip(titles, cells, strict=False)), place)


def _elbencho_text(
    lines: Sequence[Line], phase: re.Match[str], place: Place
) -> Run | Refusal:
    """Return the output of elbencho for one phase, from the column of the last thread, as a row of its CSV."""
    took = phase["ms"] or ""
    elapsed = _ELAPSED.fullmatch(phase["time"]) if phase["time"] else None
    if elapsed:
        units = zip(
            elapsed.groups(), (86_400_000, 3_600_000, 60_000, 1000, 1), strict=True
        )
        took = str(round(sum(float(part) * unit for part, unit in units if part)))
    row = {"operation": phase[1], "time ms [last]": took}
    for line in lines:
        text = line.text.strip()
        if match := _ROW.match(text):
            of = "rwmix read " if match[2] == "read" else ""
            row[f"{of}{match[1].removeprefix('Throughput ')} [last]"] = match[4]
        elif match := _IO_LATENCY.match(text):
            of = "rwmix read " if match[1] == "rd" else ""
            for name, value in zip(
                ("min", "avg", "max"), match.groups()[1:], strict=True
            ):
                # Others than whole microseconds, such as ``1.66ms``, are rounded.
                row[f"{of}IO lat us [{name}]"] = value.removesuffix("us")
    return _elbencho(row, place)


def _elbencho(row: Mapping[str, str], place: Place) -> Run | Refusal:
    """Return a row of elbencho's CSV: the rates at the end of the last thread, all work over all time.

    In a mixed phase the reads have separate columns. elbencho truncates its numbers to integers.
    """
    operation = row.get("operation", "").upper()
    kinds: dict[str, Kind] = {"READ": "read", "WRITE": "write"}
    kind = "write" if operation.startswith("RWMIX") else kinds.get(operation)
    sides: list[tuple[Kind, str]] = [(kind, "")] if kind else []
    if row.get("rwmix read IOPS [last]", "").strip():
        sides.append(("read", "rwmix read "))
    directions: list[Direction] = []
    for side, of in sides:
        parts: dict[tuple[str, Stat, float], Quantity] = {}
        for key, title, unit, scale in _ELBENCHO_NUMBERS:
            count = whole(row.get(of + title, ""))
            if count is not None:
                low, high = count * scale, (count + 1) * scale
                parts[key] = Quantity(low, low, high, unit)
        mean = parts.get(("lat", "mean", 0))
        if not mean or not mean.value > 0:
            parts = {key: value for key, value in parts.items() if key[0] == "rate"}
        made = direction(side, parts)
        if made.iops.value > 0 or made.bandwidth.value > 0:
            took = whole(row.get("time ms [last]", "")) or 0
            directions.append(msgspec.structs.replace(made, runtime_ms=took))
    if not directions:
        words = f"elbencho's phase {clean(operation)!r} has no rate of reads or writes: not read"
        return Refusal(place, words)
    counts = {
        name: whole(row.get(name, ""))
        for name in ("threads", "hosts", "block size", "IO depth", "file size")
    }
    random = "rand" if row.get("random") == "1" else ""
    label = row.get("label", "").strip()
    label = "" if label.lower() == "none" else label  # it writes it without a label
    threads = (counts["threads"] or 1) * (counts["hosts"] or 1)
    return Run(
        place=place,
        format="table",
        jobname=clean(label or operation.lower()),
        jobs=threads,
        directions=tuple(directions),
        workload=Workload(
            rw=f"{random}{'rw' if len(directions) > 1 else directions[0].kind}",
            bs=counts["block size"],
            iodepth=counts["IO depth"],
            numjobs=threads,
            direct={"1": True, "0": False}.get(row.get("direct IO", "")),
            size=counts["file size"],
        ),
        labels={
            **({"label": clean(label)} if label else {}),
            "operation": operation.lower(),
            "done": "last",
        },
        table="elbencho",
    )


_ELBENCHO_NUMBERS: tuple[tuple[tuple[str, Stat, float], str, str, float], ...] = (
    (("rate", "iops", 0), "IOPS [last]", "1/s", 1.0),
    (("rate", "bw", 0), "MiB/s [last]", "B/s", 2.0**20),
    (("lat", "mean", 0), "IO lat us [avg]", "ns", 1e3),
    (("lat", "min", 0), "IO lat us [min]", "ns", 1e3),
    (("lat", "max", 0), "IO lat us [max]", "ns", 1e3),
)
"""Measure, title in elbencho's CSV, unit, and the factor to it."""
