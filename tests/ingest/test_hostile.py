"""What a stranger's file may try: bounded time and memory, nothing written, nothing run, clean words on the screen."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import zstandard

from iodelta.errors import RequestError
from iodelta.ingest import Imported, Refusal, Run, read, read_bytes
from iodelta.ingest.report import read_text
from iodelta.trial import Histogram

DATA = Path(__file__).parent.parent / "data" / "fio-3.33"
REPORT = (DATA / "jp1.json").read_bytes()
TEXT = (DATA / "eta.txt").read_bytes()


def tar_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


PACKING: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "tar": lambda data: tar_of({"run1/a.json": data, "empty": b""}),
    "zip": lambda data: zip_of({"run1/a.json": data}),
    "tar.gz": lambda data: gzip.compress(tar_of({"run1/a.json": data})),
    "tar.xz": lambda data: lzma.compress(tar_of({"run1/a.json": data})),
    "tar.zst": lambda data: zstandard.ZstdCompressor().compress(tar_of({"run1/a.json": data})),
    "zip in a tar": lambda data: tar_of({"inner.zip": zip_of({"a.json": data})}),
    "gz in gz in gz": lambda data: gzip.compress(gzip.compress(gzip.compress(data))),
    "two gz in a row": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "two xz in a row": lambda data: lzma.compress(data[:1000]) + lzma.compress(data[1000:]),
}


@pytest.mark.parametrize("packing", PACKING)
def test_a_result_is_the_same_in_any_archive(tmp_path: Path, packing: str) -> None:
    (tmp_path / "x").write_bytes(PACKING[packing](REPORT))
    found = read([tmp_path / "x"])
    (plain,) = read([DATA / "jp1.json"]).runs
    (run,) = found.runs
    assert run.directions == plain.directions
    assert all("empty" in refusal.reason for refusal in found.refusals)
    assert run.place.file.startswith(str(tmp_path))


@pytest.mark.parametrize("packing", PACKING)
def test_archives_are_read_from_standard_input_too(packing: str) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    found = read(["-"], stdin=Pipe(PACKING[packing](REPORT)))
    assert len(found.runs) == 1
    assert found.runs[0].place.file.startswith("-")


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cut_archive_gives_what_is_whole_or_the_reason(tmp_path: Path, packing: str, share: float) -> None:
    data = PACKING[packing](REPORT)
    (tmp_path / "x").write_bytes(data[: int(len(data) * share)])
    found = read([tmp_path / "x"])
    assert found.runs or found.refusals
    for run in found.runs:
        assert run.directions


def test_names_in_an_archive_are_names_and_no_paths(tmp_path: Path) -> None:
    members = {"../../outside.json": REPORT, "/etc/absolute.json": REPORT, "a/../b.json": REPORT}
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    (inside / "x.tar").write_bytes(tar_of(members))
    (inside / "x.zip").write_bytes(zip_of(members))
    found = read([inside])
    assert len(found.runs) == 6
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["x.tar", "x.zip"]
    assert not Path("/etc/absolute.json").exists()


def test_links_devices_and_pipes_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)):
            info = tarfile.TarInfo(f"link{number}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("after.json")
        info.size = len(REPORT)
        archive.addfile(info, io.BytesIO(REPORT))
    (tmp_path / "x.tar").write_bytes(out.getvalue())
    linked = zipfile.ZipInfo("link")
    linked.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as packed:
        packed.writestr(linked, "/etc/passwd")
    found = read([tmp_path])
    assert len(found.runs) == 1
    assert len(found.refusals) == 5
    assert all("not followed" in refusal.reason for refusal in found.refusals)


def test_a_folder_with_a_pipe_a_loop_and_a_dangling_link_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "z.json").write_bytes(REPORT)
    found = read([tmp_path])
    assert len(found.runs) == 1
    assert {refusal.place.file.rpartition("/")[2] for refusal in found.refusals} == {"pipe", "gone"}


def test_a_path_that_is_not_there_is_the_user_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="No such file"):
        read([tmp_path / "nothing"])
    with pytest.raises(RequestError, match="no standard input"):
        read(["-"])


def zeros(size: int) -> bytes:
    return bytes(size)


def bomb(kind: str) -> bytes:
    """Archives that unpack to hundreds of megabytes or gigabytes of nothing."""
    if kind == "gz":
        return gzip.compress(zeros(300 << 20))
    if kind == "xz":
        return lzma.compress(zeros(300 << 20), preset=0)
    if kind == "bz2":
        return bz2.compress(zeros(300 << 20), 1)
    if kind == "zst":
        return zstandard.ZstdCompressor().compress(zeros(300 << 20))
    if kind == "zip":
        return zip_of({f"{number}": b"#" * (100 << 20) for number in range(2)})
    if kind == "text in gz":
        return gzip.compress(b"fio-3.33\nStarting 1 process\n" * (12 << 20))
    if kind == "gz in gz":
        return gzip.compress(gzip.compress(zeros(300 << 20)))
    return gzip.compress(tar_of({"big": zeros(200 << 20), "after.json": REPORT}))


def within(limit_mib: int, paths: list[Path], seconds: int = 240) -> dict[str, object]:
    """Read ``paths`` in a process that may use ``limit_mib`` of memory; what it found and its highest use of it."""
    program = (
        "import json, resource, sys\n"
        "from iodelta.ingest import read\n"
        "limit = int(sys.argv[1]) << 20\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))\n"
        "found = read(sys.argv[2:])\n"
        "status = open('/proc/self/status').read()\n"
        "used = int(status.partition('VmHWM:')[2].split()[0]) // 1024\n"
        "reasons = [r.reason for r in found.refusals]\n"
        "print(json.dumps({'runs': len(found.runs), 'reasons': reasons, 'mib': used}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(limit_mib), *map(str, paths)],
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zst", "zip", "text in gz", "gz in gz", "tar.gz"])
def test_an_archive_bomb_is_given_up_early(tmp_path: Path, kind: str) -> None:
    (tmp_path / "bomb").write_bytes(bomb(kind))
    found = within(700, [tmp_path / "bomb"])
    assert found["reasons"], "it is refused"
    assert found["mib"] < 600  # type: ignore[operator]


@pytest.mark.parametrize(
    "line", [b"\n", b"x\n", b"{\n", b"x\r", b"IOPS=1, IOS/call=1/1\n", b'{"fio version":"","jobs":[']
)
def test_the_largest_file_that_is_read_takes_bounded_memory(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "x").write_bytes(b"x" + line * ((63 << 20) // len(line)))
    found = within(1200, [tmp_path / "x"], seconds=240)
    assert found["reasons"] or found["runs"]
    assert found["mib"] < 1000  # type: ignore[operator]


def test_a_log_takes_the_same_memory_however_long_it_is(tmp_path: Path) -> None:
    rows = b"".join(
        b"%d, %d, %d, 4096, 123456789, 0\n" % (n // 10, 50_000 + n * 7919 % 90_000, n % 2) for n in range(100_000)
    )
    peaks = []
    for name, times in (("short", 3), ("long", 60)):
        with (tmp_path / f"{name}_lat.1.log").open("wb") as file:
            file.writelines([rows] * times)
        found = within(1024, [tmp_path / f"{name}_lat.1.log"])
        assert found["runs"] == 1
        peaks.append(int(str(found["mib"])))
    assert peaks[1] < peaks[0] + 150
    assert peaks[1] < 600


def test_a_file_of_ten_gigabytes_of_nothing_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    with (tmp_path / "text").open("wb") as file:
        file.write(b"fio-3.33\n" * 10_000)
        file.truncate(10 << 30)
    found = within(700, [tmp_path])
    assert len(found["reasons"]) == 2  # type: ignore[arg-type]


def test_a_member_that_claims_ten_gigabytes_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("huge")
    header.size = 10 << 30
    (tmp_path / "x.tar").write_bytes(header.tobuf() + b"x" * 5000)
    sparse = io.BytesIO()
    info = tarfile.TarInfo("long" * 60)
    info.pax_headers = {"comment": "y" * 200_000}
    with tarfile.open(fileobj=sparse, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
    (tmp_path / "y.tar").write_bytes(sparse.getvalue())
    found = within(700, [tmp_path])
    assert len(found["reasons"]) >= 2  # type: ignore[arg-type]


def test_an_attribute_of_length_0_in_a_tar_ends_the_attributes() -> None:
    """Such an attribute would begin at its own first letter again, without end."""
    attributes = b"0 path=other.json"
    header = tarfile.TarInfo("attributes")
    header.type, header.size = tarfile.XHDTYPE, len(attributes)
    block = attributes.ljust(tarfile.BLOCKSIZE, b"\0")
    runs = read_bytes(header.tobuf() + block + tar_of({"a.json": REPORT}), "made.tar").runs
    assert {run.place.file for run in runs} == {"made.tar!a.json"}


def test_an_xz_that_asks_for_gigabytes_of_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    (tmp_path / "x.xz").write_bytes(lzma.compress(REPORT, filters=filters))
    found = within(700, [tmp_path])
    assert found["runs"] == 0
    assert "emory" in str(found["reasons"])


LONG = 2_000_000

HOSTILE: dict[str, bytes] = {
    "nested objects": b'{"fio version" : "fio-3.33", "jobs" : ' + b'{"a":' * LONG,
    "nested lists": b'{"fio version" : "fio-3.33", "jobs" : ' + b"[" * LONG + b"]" * LONG + b"}",
    "braces": b"{\n" * LONG,
    "quotes": b'{"fio version" : "' + b'\\"' * LONG,
    "documents begun": b'{\n"fio version" : "fio-3.33",\n' * (LONG // 30),
    "keys": b'{"fio version":"fio-3.33","jobs":[{' + b",".join(b'"k%d":1' % n for n in range(200_000)) + b"}]}",
    "a number of 2000 digits": REPORT.replace(b'"total_ios" : ', b'"total_ios" : ' + b"9" * 2000),
    "an exponent": REPORT.replace(b'"runtime" : 3001', b'"runtime" : 1e99999'),
    "spaces": b" " * LONG + b"x: (groupid=0, jobs=1): err= 0: pid=1\n",
    "one long line": b"read: IOPS=" * (LONG // 11),
    "heads": b"x: (groupid=0, jobs=1): err= 0: pid=1\n" * (LONG // 40),
    "banners": b"x: (g=0): rw=read, bs=4K-4K, ioengine=sync, iodepth=1\n" * (LONG // 60),
    "half a banner": b"x: (g=0): rw=" * (LONG // 13),
    "percentiles": b"clat percentiles (usec):\n" + b"     |  1.00th=[   53],\n" * (LONG // 25),
    "semicolons": b";" * LONG,
    "terse begun": b"3;fio-3.33;" * (LONG // 11),
    "old terse begun": b"2;a;1;0;1;1;1;1;" * (LONG // 16),
    "bars": b"|" * LONG + b"\n" + b"IOPS|" * (LONG // 5),
    "commas": b"IOPS," * (LONG // 5) + b"\n" + b"1," * (LONG // 5),
    "many such rows": b"a IOPS BW (KiB/s) Avg Lat (ms)\n" + (b"x " + b"123 " * 38 + b"\n") * 2000,
    "rows without numbers": b"a  b iops\n" * (LONG // 100),
    "HTML tables begun": b"<table></td><td>" * (LONG // 16),
    "jobs alone": b'{"jobname":"","read":{}}' * (LONG // 2000),
    "quote marks": b">" * LONG,
    "soft line ends": b"=3D=3D=3D" + b"a=\n" * (LONG // 3),
    "escape sequences": b"\x1b[" * (LONG // 2),
    "a title that does not end": b"\x1b]0;" + b"x" * LONG,
    "carriage returns": b"Jobs: 1 (f=1): [R(1)]\r" * (LONG // 22),
    "entities": b"&amp;" * (LONG // 5),
    "progress": b"Jobs: 1 (f=1)" * (LONG // 13),
    "io_uring begun": b"submitter=0, tid=1\n" * (LONG // 20),
    "commands": b"t/io_uring -b512 -d128 " * (LONG // 23),
    "rates": b"IOPS=1, IOS/call=1/1\n" * (LONG // 21),
    "read_stats": b"/a/1/read_stats:ios 1\n" * (LONG // 24),
    "log rows": b"1, 1, 0, 1\n" * (LONG // 11),
    "log rows of any time": b"".join(b"%d, 1, 0, 1\n" % (n * 7919 % 10**18) for n in range(0, 10**18, 10**13)),
    "a log row without end": b"1, 1, 0, 1\n" + b"1" * (20 << 20),
    "null bytes": b"fio-3.33\n" + b"\0" * LONG,
    "random bytes": bytes((n * 2654435761 >> 7) & 255 for n in range(LONG)),
    "utf-16 that ends inside a character": b"\xff\xfe" + b"x\0" * 1000 + b"\xd8",
    "versions without a bracket": b'"fio version" : "fio-3.33",\n' * (LONG // 28),
    "line ends": b"x" + b"\n" * LONG,
    "digits in prose": b"it went from " + b"1" * LONG + b" to 2 IOPS",
    "changes in prose": b"from 1 IOPS to 2 IOPS -> " * (LONG // 25),
    "dashes": b"IOPS  BW\n" + b"-" * LONG,
    "columns": b"IOPS  " * 300_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_bounded_time_and_is_answered(tmp_path: Path, name: str) -> None:
    (tmp_path / "x_lat.1.log").write_bytes(HOSTILE[name])
    before = cpu_seconds()
    found = read([tmp_path / "x_lat.1.log"])
    assert found.runs or found.refusals or found.device_stats
    assert cpu_seconds() - before < 20, "two megabytes"


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def words(value: object) -> Iterator[str]:
    """Every text in ``value``."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.items() if isinstance(value, dict) else value:
            yield from words(part)


def everything_said(found: Imported) -> list[str]:
    return list(words(msgspec.to_builtins((found.runs, found.refusals))))


EVIL = "x\x1b[2J\x1b]0;owned\x07\x00\r\n\u202egnp.exe\u2066\ud800"


@pytest.mark.parametrize("form", ["json", "text", "terse", "table", "archive", "uring"])
def test_no_word_of_a_stranger_reaches_the_screen_with_control_characters(tmp_path: Path, form: str) -> None:
    evil = EVIL.encode("utf-8", "surrogatepass")
    document = json.loads(REPORT)
    document["jobs"][0] |= {"jobname": EVIL, "job options": {EVIL: EVIL, "rw": EVIL, "ioengine": EVIL}}
    document["jobs"][0]["iodepth_level"] = {EVIL: 1.0}
    document |= {"fio version": "fio-3.33" + EVIL, "disk_util": [{"name": EVIL}]}
    line = EVIL.replace("\n", "").replace("\r", "").encode("utf-8", "surrogatepass")
    made = {
        "json": json.dumps(document).encode(),
        "text": TEXT.replace(b"t1: (", line + b": ("),
        "terse": (DATA / "terse3.txt")
        .read_bytes()
        .replace(b";t1;", b";" + line + b";")
        .replace(b";vda;", b";" + line + b";"),
        "table": b"| " + line + b" | IOPS |\n|--|--|\n| " + line + b" | 12 |\n| b | 13 |\n",
        "archive": tar_of({EVIL.replace("\x00", "").encode("utf-8", "replace").decode(): REPORT}),
        "uring": (DATA / "uring_qd1.txt").read_bytes().replace(b"file=tf", b"file=" + line),
    }
    (tmp_path / "x").write_bytes(made[form])
    found = read([tmp_path / "x"])
    assert found.runs, found.refusals
    for text in everything_said(found):
        assert text.isprintable() or not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text), text
        assert not set(text) & set("\u202e\u2066\u200b\u2028"), text
        assert len(text) < 5000
    assert evil not in b"".join(text.encode("utf-8", "replace") for text in everything_said(found))


def test_names_of_a_million_letters_are_cut() -> None:
    document = json.loads(REPORT)
    document["jobs"][0]["jobname"] = "x" * 1_000_000
    (run,) = read_text(json.dumps(document).encode(), "x")
    assert isinstance(run, Run)
    assert len(run.jobname) <= 500


def test_a_histogram_that_fio_cannot_have_written_is_refused() -> None:
    document = json.loads(REPORT)
    document["jobs"][0]["read"]["clat_ns"]["bins"] = {"100": -5}
    (found,) = read_text(json.dumps(document).encode(), "x")
    assert isinstance(found, Refusal)
    assert "histogram" in found.reason


@pytest.mark.parametrize(
    ("bins", "histogram", "rule"),
    [
        ('{"50": 3, "60": 2.5}', None, "read.damaged"),
        ('{"50": 3, "60": null}', None, "read.damaged"),
        ('{"50": 3, "60": nan}', None, "read.damaged"),
        ('{"50": 3, "60": "2"}', Histogram((50, 60), (3, 2)), None),
        ("[50]", None, "read.damaged"),
    ],
)
def test_bins_of_which_some_are_no_integers_are_all_omitted_with_a_warning(
    bins: str, histogram: Histogram | None, rule: str | None
) -> None:
    lat = f'{{"N": 5, "min": 50, "max": 60, "mean": 55.0, "bins": {bins}}}'
    job = f'{{"jobname": "a", "read": {{"total_ios": 5, "runtime": 1000, "iops": 5.0, "lat_ns": {lat}}}}}'
    (run,) = read_bytes(f'{{"fio version": "fio-3.33", "jobs": [{job}]}}'.encode(), "x.json").runs
    assert run.directions[0].lat is not None
    assert run.directions[0].lat.histogram == histogram
    assert [finding.rule for finding in run.findings] == ([rule] if rule else [])


@pytest.mark.parametrize("name", ["report.html", "numbers.csv"])
def test_a_report_of_iodelta_is_no_result_however_its_file_is_called(name: str) -> None:
    page = '<!doctype html>\n<html><head><meta name="generator" content="iodelta 0.1.0"></head><body><table>'
    page += "<tr><th>IOPS</th></tr><tr><td>5000</td></tr></table></body></html>"
    found = read_bytes(page.encode(), name)
    assert not found.runs
    assert "a report of iodelta" in found.refusals[0].reason
