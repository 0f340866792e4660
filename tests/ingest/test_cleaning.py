"""What mail, web pages, terminals and editors do to a report does not change what is read from it."""

from __future__ import annotations

import base64
import html
import json
import quopri
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from iodelta.ingest import Run
from iodelta.ingest.cleaning import looks_binary
from iodelta.ingest.report import read_text
from iodelta.trial import Place

DATA = Path(__file__).parent.parent / "data"
TEXTS = [DATA / "same-run" / f"fio-{version}.out" for version in ("2.0.15", "2.2.10", "2.21", "3.1", "3.42")]
OTHERS = [DATA / "fio-3.33" / name for name in ("uring_n2.txt", "uring_stats_tsc.txt", "uneq.out", "terse5.txt")]


def each_line(change: Callable[[str], str]) -> Callable[[str], bytes]:
    return lambda text: "\n".join(change(line) for line in text.split("\n")).encode()


def wrapped(text: str) -> bytes:
    """As a mail program breaks lines: at a space, before column 74. JSON and terse do not survive it."""
    lines = [line for line in text.split("\n") if not line.startswith(("3;", "5;"))]
    return "\n".join(
        part for line in lines for part in (textwrap.wrap(line, 74, drop_whitespace=False) or [""])
    ).encode()


FULL_WIDTH = str.maketrans("():,=[]%", "（）：，＝［］％")


def full_width(line: str) -> str:
    """As an East Asian editor writes punctuation: wide, and without the spaces after it. JSON and terse stay."""
    if line.startswith(("3;", "5;")) or '"' in line or re.fullmatch(r"[\s\[\]{},]*", line):
        return line
    return re.sub(r"([:,]) (?=\S)", r"\1", line).translate(FULL_WIDTH)


DAMAGE: dict[str, Callable[[str], bytes]] = {
    "full-width punctuation": each_line(full_width),
    "mail quote": each_line(lambda line: f"> {line}"),
    "mail quote, four deep": each_line(lambda line: f"> > > > {line}"),
    "mail quote without spaces": each_line(lambda line: f">>>> {line}"),
    "indented in Markdown": each_line(lambda line: f"        {line}"),
    "fenced": lambda text: b"Here it is:\n\n```\n" + text.encode() + b"\n```\n\nwhat do you think?\n",
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-16 of a Windows shell": lambda text: text.encode("utf-16"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "quoted-printable": lambda text: quopri.encodestring(text.encode()),
    "colours": each_line(lambda line: f"\x1b[0;32m{line}\x1b[0m\x1b[K"),
    "window title": lambda text: b"\x1b]0;user@host: ~\x07" + text.encode(),
    "entities": lambda text: text.replace("&", "&amp;").replace(">", "&gt;").replace('"', "&quot;").encode(),
    "container log": each_line(lambda line: f"2026-01-02T03:04:05.678901234Z stdout F {line}"),
    "progress over the same line": each_line(
        lambda line: f"Jobs: 3 (f=3): [r(2),P(1)][35.5%][r=98MiB/s][r=25k IOPS][eta 00m:04s]\r{line}"
    ),
    "tabs": each_line(lambda line: "\t" + line),
    "Unicode's line ends": lambda text: text.replace("\n", "\u2028").encode(),
    "the next line of a mainframe": lambda text: text.replace("\n", "\x85").encode(),
    "characters that are not seen": lambda text: text.replace("=", "=\u200b").replace(":", "\u00ad:").encode(),
    "trailing spaces": each_line(lambda line: line + "   "),
    "blank lines doubled": lambda text: text.replace("\n\n", "\n\n\n").encode(),
    "build server's time": each_line(lambda line: f"[2026-01-02T03:04:05.678Z] {line}"),
    "name of the container": each_line(lambda line: f"fio-1  | {line}"),
    "kernel log": each_line(lambda line: f"[   12.345678] {line}"),
    "logger": each_line(lambda line: f"2026-01-02 03:04:05,123 INFO {line}"),
    "numbered": lambda text: "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(text.split("\n"), 1)).encode(),
    "added by a patch": each_line(lambda line: f"+{line}"),
    "comment": each_line(lambda line: f" * {line}"),
    "preformatted HTML": lambda text: f"<html><pre>{html.escape(text)}</pre></html>".encode(),
    "HTML of a mailer": lambda text: b"<p>" + html.escape(text).replace("\n", "<br>\n").encode() + b"</p>",
    "typeset quotes": lambda text: re.sub(r'"([^"\n]*)"', "\u201c\\1\u201d", text).encode(),
    "base64 mail": lambda text: (
        b"Subject: x\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(text.encode())
    ),
    "Ansible's result": lambda text: json.dumps({"stdout": text, "stdout_lines": text.split("\n")}, indent=4).encode(),
    "Ansible's result, in a line": lambda text: b"host | CHANGED => " + json.dumps({"rc": 0, "stdout": text}).encode(),
    "container's log as it is stored": each_line(lambda line: json.dumps({"log": line + "\n", "stream": "stdout"})),
    "Python's repr": lambda text: f"stdout={text.encode()!r}".encode(),
    "shell trace": lambda text: b"+ fio job.fio\n" + text.encode() + b"\n+ echo done\ndone\nuser@host:~$ \n",
}


def comparable(data: bytes) -> list[Run]:
    """The runs in ``data`` without their places, which damage may move."""
    found = read_text(data, "x")
    runs = [item for item in found if isinstance(item, Run)]
    assert len(runs) == len(found), found
    return [
        msgspec.structs.replace(run, place=Place(""), findings=tuple(f for f in run.findings if not f.place))
        for run in runs
    ]


def same(one: list[Run], other: list[Run]) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)  # nan is not equal to itself


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", [*TEXTS, *OTHERS], ids=lambda path: path.name)
def test_the_same_numbers_are_read(file: Path, damage: str) -> None:
    text = file.read_text()
    assert same(comparable(DAMAGE[damage](text)), comparable(text.encode()))


def normal_report(file: Path) -> str:
    lines = file.read_text().split("\n")
    begin = lines.index("{") if "{" in lines else 0
    end = lines.index("}") if "{" in lines else -1
    return "\n".join(line for line in [*lines[:begin], *lines[end + 1 :]] if not line.startswith("3;"))


@pytest.mark.parametrize("file", TEXTS, ids=lambda path: path.name)
def test_lines_that_a_mail_program_wrapped_are_put_together(file: Path) -> None:
    text = normal_report(file)
    assert same(comparable(wrapped(text)), comparable(text.encode()))


@pytest.mark.parametrize("file", TEXTS, ids=lambda path: path.name)
def test_units_that_an_editor_put_in_lower_case_are_still_units(file: Path) -> None:
    text = normal_report(file)
    lowered = text.replace("KB", "kb").replace("MB", "mb").replace("MiB", "mib").replace("KiB", "kib")
    for run, twin in zip(comparable(lowered.encode()), comparable(text.encode()), strict=True):
        for a, b in zip(run.directions, twin.directions, strict=True):
            assert a.bytes == b.bytes
            assert a.bandwidth.overlaps(b.bandwidth)


@pytest.mark.parametrize("damage", ["mail quote", "CRLF", "quoted-printable", "colours", "UTF-16 of a Windows shell"])
def test_the_line_named_is_the_line_of_the_original_file(damage: str) -> None:
    text = (DATA / "same-run" / "fio-3.1.out").read_text()
    data = DAMAGE[damage](text)
    codec = "utf-16" if "UTF-16" in damage else "utf-8"
    for run in (item for item in read_text(data, "x") if isinstance(item, Run)):
        line = data.decode(codec).split("\n")[run.place.line - 1]
        assert f'"{run.jobname}"' in line or f"=22{run.jobname}=22" in line
        assert "jobname" in line


def test_a_greater_than_in_front_of_a_wrapped_depth_is_no_quote() -> None:
    text = "  IO depths    : 1=0.0%, 32=100.0%,\n>=64=0.0%"
    head = "x: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 21 19:33:45 2026\n"
    rate = "  read: IOPS=10, BW=40.0KiB/s (41.0kB/s)(400KiB/10000msec)\n"
    (run,) = comparable((head + rate + text).encode())
    assert run.depths[">=64"].value == 0
    assert run.depths["32"].value == 100


@pytest.mark.parametrize(
    "prefix",
    [
        "Nov 21 19:07:22 vm fio[123]: ",
        "2026-01-01T00:00:00.1234567Z ",
        "2026-01-01T00:00:00.123456789Z stdout F ",
    ],
)
@pytest.mark.parametrize("file", TEXTS[-1:], ids=lambda path: path.name)
def test_what_a_log_puts_before_each_line_is_taken_off(file: Path, prefix: str) -> None:
    text = normal_report(file)
    logged = "\n".join(prefix + line for line in text.splitlines())
    assert same(comparable(logged.encode()), comparable(text.encode()))


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("file", TEXTS[-1:], ids=lambda path: path.name)
def test_utf_16_needs_no_mark(file: Path, order: str) -> None:
    text = normal_report(file)
    assert not looks_binary(text.encode(order))
    assert same(comparable(text.encode(order)), comparable(text.encode()))
