"""Damages real results at random, reads and shows them: no exception, no unsound number, no unclean word, no long wait.

``python -m tests.ingest.fuzz --mutations 1000000`` runs through the night; the tests run 1,500. Every
case follows from the seed and its number, which are printed with a failure: ``--only NUMBER`` repeats it.
"""

from __future__ import annotations

import argparse
import math
import random
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from iodelta.audit import audit
from iodelta.ingest import Imported, Run, read_bytes
from iodelta.ingest.layouts import arrange
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.shown import of_shown
from iodelta.study.runs import shown
from iodelta.trial import Direction, Latency, Quantity

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
CORPUS = HERE.parents[2] / "shared" / "fio-corpus"
LARGEST = 60_000
"""Bytes of a file that is damaged."""
PATIENCE = 5.0
"""CPU seconds for one case of at most a few hundred kilobytes."""
SHOWN = 10
"""One case of so many is also arranged, audited and shown."""

TOKENS = (
    *(b'nan -nan inf 1e999 -1 0 18446744073709551616 9223372036854775807 null true {} [] "" {"a": [1]}'.split()),
    *(b'\0 \x1b[31m \xff\xfe \xc3 \r \n \n\n > ``` | ; , = % : ( ) [ ] { } " \\ \\u d800'.split(b" ")),
    *(b'msec usec nsec KiB/s MB/s k M G IOPS= BW= groupid= (g=0): "jobs" "fio version" io_uring th=['.split()),
    b"9" * 2000,
    b"x: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 21 19:33:45 2026\n",
    b'{\n  "fio version" : "fio-3.33",\n  "jobs" : [\n',
    b"3;fio-3.33;x;0;0;",
    b"fio: terminating on signal 2\n",
)


class Failure(NamedTuple):
    """A case that did not go well."""

    number: int
    name: str
    what: str


def files(*, corpus: bool) -> list[tuple[str, bytes]]:
    """Name and contents of the results that are damaged; with those beside the repository where they are."""
    folders = [DATA / "fio-3.33", DATA / "same-run", *([CORPUS] if corpus and CORPUS.is_dir() else [])]
    paths = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [(path.name, path.read_bytes()[:LARGEST]) for path in paths]


def damaged(data: bytes, others: Sequence[tuple[str, bytes]], rng: random.Random) -> bytes:
    """``data`` after one to six accidents."""
    text = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        size = len(text)
        at, to = sorted((rng.randint(0, size), rng.randint(0, size)))
        to = min(to, at + rng.choice((1, 4, 40, 400, 4000)))
        kind = rng.randrange(10)
        if kind == 0:
            del text[at:to]
        elif kind == 1:
            text[at:at] = text[at:to] * rng.choice((1, 2, 10))
        elif kind == 2:
            text[at:at] = rng.choice(TOKENS)
        elif kind == 3:
            text[at:to] = rng.choice(TOKENS)
        elif kind == 4 and size:
            for _ in range(rng.randint(1, 20)):
                text[rng.randrange(size)] = rng.randrange(256)
        elif kind == 5:
            del text[at:]
        elif kind == 6:
            other = rng.choice(others)[1]
            begin = rng.randint(0, len(other))
            text[at:at] = other[begin : begin + rng.choice((100, 2000, 20_000))]
        elif kind == 7:
            digits = [place for place in range(at, min(at + 2000, size)) if 48 <= text[place] <= 57]
            for place in rng.sample(digits, min(len(digits), rng.randint(1, 10))):
                text[place] = rng.randrange(48, 58)
        elif kind == 8:
            lines = bytes(text).split(b"\n")
            rng.shuffle(lines) if rng.random() < 0.2 else lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
            text = bytearray(b"\n".join(lines))
        else:
            text[at:to] = bytes(text[at:to]).swapcase()
    return bytes(text[: 8 * LARGEST])


def unsound(found: Imported) -> Iterator[str]:
    """What no reader may return."""
    if not (found.runs or found.refusals or found.device_stats):
        yield "neither a result nor a reason"
    for refusal in found.refusals:
        if not refusal.reason or not _clean(refusal.reason) or not _clean(refusal.place.file):
            yield f"an unclean or empty reason {refusal!r}"
    for run in found.runs:
        words = [run.jobname, run.table, run.host, run.fio_version or "", *run.options, *run.options.values()]
        words += [*run.labels, *run.labels.values(), *(f.explanation for f in run.findings)]
        if not all(map(_clean, words)):
            yield "an unclean word"
        yield from (f"{name} {value}" for name, value in _quantities(run) if not _sound(value))
        for d in run.directions:
            if min(d.ios, d.bytes, d.runtime_ms, d.short, d.dropped) < 0:
                yield f"a negative count in {d.kind}"
            for lat in (d.slat, d.clat, d.lat):
                if lat is not None and lat.histogram is not None and min(lat.histogram.counts, default=1) <= 0:
                    yield "a bin without samples"


def unfit(found: Imported) -> Iterator[str]:
    """What ``iodelta show`` may not print of it."""
    layout = arrange(found, "")
    for line in lines(of_shown(shown(layout, audit(entry.run for entry in layout.entries), each=True))):
        if not _clean(line.plain):
            yield f"an unclean line {line.plain!r}"


def _quantities(run: Run) -> Iterator[tuple[str, Quantity]]:
    for d in run.directions:
        yield "iops", d.iops
        yield "bandwidth", d.bandwidth
        yield from _latencies(d)
    for sampler in run.samplers:
        yield from (("sampler", q) for q in (sampler.mean, sampler.min, sampler.max, sampler.stddev))
    yield from (("depth", q) for q in run.depths.values())
    yield from (("cpu", q) for q in (run.usr_cpu, run.sys_cpu))
    if run.sync is not None:
        yield from _latency("sync", run.sync)


def _latencies(d: Direction) -> Iterator[tuple[str, Quantity]]:
    for name, lat in (("slat", d.slat), ("clat", d.clat), ("lat", d.lat)):
        if lat is not None:
            yield from _latency(name, lat)


def _latency(name: str, lat: Latency) -> Iterator[tuple[str, Quantity]]:
    yield from ((f"{name}", q) for q in (lat.mean, lat.stddev, lat.min, lat.max))
    yield from ((f"{name} p{percent}", q) for percent, q in lat.percentiles.items())


def _sound(value: Quantity) -> bool:
    if not all(isinstance(bound, float | int) for bound in (value.value, value.low, value.high)):
        return False
    if math.isnan(value.low) or math.isnan(value.high):
        return False
    return math.isnan(value.value) or value.low <= value.value <= value.high


def _clean(word: str) -> bool:
    return len(word) < 5000 and not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in word)


def case(number: int, seed: int, base: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]:
    """The case with this number."""
    rng = random.Random(f"{seed}/{number}")
    name, data = rng.choice(base)
    return name, damaged(data, base, rng)


def run_case(number: int, seed: int, base: Sequence[tuple[str, bytes]]) -> tuple[Failure | None, float]:
    """What went wrong with a case, if anything did, and the CPU seconds it took."""
    name, data = case(number, seed, base)
    begun = time.process_time()
    try:
        found = read_bytes(data, name)
        problem = next(unsound(found), "") or (next(unfit(found), "") if number % SHOWN == 0 else "")
    except Exception:  # noqa: BLE001 - finding those is what this is for
        problem = traceback.format_exc()
    took = time.process_time() - begun
    if not problem and took > PATIENCE:
        problem = f"took {took:.1f} s of CPU for {len(data)} bytes"
    return (Failure(number, name, problem) if problem else None), took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="one case; its bytes go to --keep")
    parser.add_argument("--keep", type=Path, help="file for the bytes of --only")
    asked = parser.parse_args()
    base = files(corpus=True)
    numbers = range(asked.first, asked.first + asked.mutations)
    if asked.only is not None:
        numbers = range(asked.only, asked.only + 1)
        if asked.keep:
            asked.keep.write_bytes(case(asked.only, asked.seed, base)[1])
    failures, slowest, begun = 0, (0.0, -1), time.monotonic()
    for done, number in enumerate(numbers, 1):
        failure, took = run_case(number, asked.seed, base)
        slowest = max(slowest, (took, number))
        if failure is not None:
            failures += 1
            print(f"case {failure.number} ({failure.name}):\n{failure.what}", flush=True)  # noqa: T201
        if done % 10_000 == 0 or done == len(numbers):
            rate = done / (time.monotonic() - begun)
            line = f"{done} cases, {failures} failures, {rate:.0f}/s, slowest {slowest[0]:.2f} s (case {slowest[1]})"
            print(line, flush=True)  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
