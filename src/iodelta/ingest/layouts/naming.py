"""Parse file names of known tools: fio-plot's bench-fio, kdevops, cbt, pbench, a btrfs policy script; and patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import filterfalse
from typing import NamedTuple

from iodelta.errors import RequestError
from iodelta.ingest.layouts.model import Spot

MOST = 0.8
"""Least share of the files with a tool's names in a folder of that tool."""

_MODE = r"(?:rand)?(?:read|write|rw|trim)|readwrite|trimwrite"
_SIZE = r"\d+[kKmMgG]?"
_BENCH_FIO = re.compile(
    rf"(?P<series>.*?)(?:/?(?P<mixed>(?:rand)?rw|readwrite)(?P<share>\d+))?(?:/?(?P<bs>{_SIZE}))?(?:/run-(?P<run>\d+))?"
    rf"/(?P<mode>{_MODE})-(?P<depth>\d+)-(?P<jobs>\d+)\.json"
)
_KDEVOPS = re.compile(
    rf"(?:(?P<series>.*?)/)?(?:fio-tests-results-[^/]+/)?results_(?P<mode>\w+?)_bs(?P<bs>{_SIZE})_iodepth(?P<depth>\d+)"
    r"_jobs(?P<jobs>\d+)\.(?P<format>json|txt)"
)
_CBT_LEVEL = re.compile(
    r"((?:osd|client|raw)_ra|op_size|concurrent_procs|total_iodepth|iodepth|numjobs)-(\d+)"
)
_CBT_REPETITION = re.compile(r"\d{8}")
_CBT_FOLDERS = (_CBT_LEVEL, _CBT_REPETITION, re.compile(r"id-\w+"))
_CBT_FILE = re.compile(r"(?P<json>json_)?output\.(?P<part>.+)")
_PBENCH = re.compile(
    r"(?:(?P<series>.*?)/)?(?P<number>\d+)-(?P<mode>[a-z,]+)-(?P<bs>\d+)KiB(?:-(?P<device>[^/]+?))?(?:-fail\d+)?/"
    r"sample(?P<sample>\d+)/(?:.*/)?"
    r"(?:fio-result\.txt|result\.json)"
)
_POLICIES = re.compile(
    r"(?:(?P<series>.*?)/)?defrag_(?P<defrag>on|off)_policy_(?P<policy>.+?)_fio_(?P<test>.+?)_fio\.txt"
)


class Naming(NamedTuple):
    """A tool's naming: the facts in a path relative to the given folder; None for a name of another form."""

    kind: str
    spot: Callable[[str], Spot | None]


def bench_fio(path: str) -> Spot | None:
    """``TARGET/4k/randread-32-1.json``, mixed ones below ``randrw75/4k/`` (fio-plot's benchmark runner)."""
    match = _BENCH_FIO.fullmatch(path if "/" in path else f"/{path}")
    if match is None:
        return None
    mode = match["mode"] + (f" {match['share']} % read" if match["share"] else "")
    cell = _cell(mode, match["bs"], match["depth"], match["jobs"])
    return Spot(match["series"].strip("/"), cell, replicate=_number(match["run"]))


def kdevops(path: str) -> Spot | None:
    """``HOST/results_randread_bs4k_iodepth32_jobs1.json``; the ``.txt`` next to it is a second run without logs."""
    match = _KDEVOPS.fullmatch(path)
    if match is None:
        return None
    cell = _cell(match["mode"], match["bs"], match["depth"], match["jobs"])
    return Spot(
        (match["series"] or "").rpartition("/")[2],
        cell,
        replicate=0 if match["format"] == "json" else 1,
    )


def cbt(path: str) -> Spot | None:
    """``00000000/LibrbdFio/op_size-00004096/concurrent_procs-003/iodepth-032/randread/output.0.HOST``.

    Volumes and clients of one test run at the same time: their files are parts of one run. ``json_output`` is the
    JSON of ``output``, taken out.
    """
    *folders, name = path.split("/")
    match = _CBT_FILE.fullmatch(name)
    levels = _places(_CBT_LEVEL, folders)
    repetitions = _places(_CBT_REPETITION, folders)
    begins = repetitions or levels
    if match is None or not begins:
        return None
    first = begins[0]
    series = [folder for folder in folders[:first] if folder != "results"]
    named = [_cbt_level(folders[number]) for number in levels]
    return Spot(
        "/".join(series),
        _cbt_cell(folders[first:], named),
        replicate=int(folders[first]) if repetitions else None,
        part=match["part"],
        rank=1 if match["json"] else 0,
    )


def _places(shape: re.Pattern[str], folders: Sequence[str]) -> list[int]:
    return [number for number, folder in enumerate(folders) if shape.fullmatch(folder)]


def _cbt_cell(folders: Sequence[str], levels: Sequence[str]) -> str:
    """Mode and levels, or the names of the tests without these."""
    modes = filterfalse(_is_cbt_folder, folders)
    tests = (folder for folder in folders if folder.startswith("id-"))
    return ", ".join([*modes, *levels]) or ", ".join(tests)


def _is_cbt_folder(name: str) -> bool:
    return any(shape.fullmatch(name) for shape in _CBT_FOLDERS)


def _cbt_level(folder: str) -> str:
    name, _, value = folder.rpartition("-")
    return f"{name} {int(value)}"


def pbench(path: str) -> Spot | None:
    """``fio_NAME_DATE/1-randread-4KiB/sample1/fio-result.txt``; ``reference-result`` points to one of the samples. With
    a job for each device its name follows the block size."""
    match = _PBENCH.fullmatch(path)
    if match is None:
        return None
    series = (match["series"] or "").rpartition("/")[2]
    cell = _cell(match["mode"], f"{match['bs']}k", None, None)
    return Spot(
        series,
        f"{cell} {match['device'] or ''}".strip(),
        replicate=int(match["sample"]),
    )


def read_policies(path: str) -> Spot | None:
    """``defrag_on_policy_queue_fio_randread_4k_qd32_fio.txt``: the script of the btrfs read policy gist of 2025."""
    match = _POLICIES.fullmatch(path)
    if match is None:
        return None
    cell = " ".join(match["test"].split("_"))
    return Spot(match["policy"], cell, f"defrag {match['defrag']}", part="")


KNOWN = (
    Naming("btrfs read policy script", read_policies),
    Naming("kdevops fio-tests", kdevops),
    Naming("pbench-fio", pbench),
    Naming("bench-fio", bench_fio),
    Naming("cbt", cbt),
)


def recognised(paths: Iterable[str]) -> Naming | None:
    """Return the tool whose names most of ``paths`` have, or None."""
    files = list(dict.fromkeys(paths))
    if not files:
        return None
    for naming in KNOWN:
        recognised = sum(naming.spot(path) is not None for path in files)
        if recognised >= MOST * len(files):
            return naming
    return None


FIELDS = {
    "variant": "[^/]{1,255}?",
    "cell": "[^/]{1,255}?",
    "condition": "[^/]{1,255}?",
    "replicate": r"\d{1,9}",
}


def pattern(text: str) -> Naming:
    """Return the naming that ``{variant}/{cell}-{replicate}.json`` describes, at the end of a path.

    Fields are variant, cell, condition and replicate (a number), each once and none with a slash; ``*`` is anything.
    Raises RequestError for a pattern that cannot be read.
    """
    parts = re.split(r"(\{\w*\}|\*)", text)
    named = [part[1:-1] for part in parts if part.startswith("{")]
    wrong = ""
    if not {"variant", "cell"} & set(named):
        wrong = "it has neither {variant} nor {cell}"
    elif len(set(named)) < len(named):
        wrong = "a field occurs twice"
    elif unknown := [name for name in named if name not in FIELDS]:
        wrong = f"there is no field {{{unknown[0]}}}"
    if wrong:
        raise RequestError(
            f"cannot read the pattern {text!r}: {wrong}",
            place="--name-pattern",
            remedy="write it as in '{variant}/{cell}-{replicate}.json'; fields: variant, cell, condition, replicate",
        )
    compiled = re.compile("(?:.*/)?" + "".join(map(_expression, parts)))

    def spot(path: str) -> Spot | None:
        match = compiled.fullmatch(path)
        if match is None:
            return None
        given = match.groupdict(default="")
        number = _number(given.get("replicate"))
        return Spot(
            given.get("variant", ""),
            given.get("cell", ""),
            given.get("condition", ""),
            number,
        )

    return Naming(text, spot)


def _expression(part: str) -> str:
    if part == "*":
        return "[^/]*?"
    if part.startswith("{"):
        return f"(?P<{part[1:-1]}>{FIELDS[part[1:-1]]})"
    return re.escape(part)


def _cell(mode: str, bs: str | None, depth: str | None, jobs: str | None) -> str:
    several = jobs not in (None, "", "1")
    parts = [
        mode,
        bs,
        f"iodepth {depth}" if depth else "",
        f"{jobs} jobs" if several else "",
    ]
    return " ".join(filter(None, parts))


def _number(text: str | None) -> int | None:
    if not text:
        return None
    return int(text)
