"""fio-plot's pictures of the gallery's files, and the part of ``docs/gallery.md`` that shows each next to iodelta's."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ARCHIVE = HERE / "three-disks.tar.xz"
DISKS = ("disk-a", "disk-b", "disk-c")
RECORDED = HERE / "theirs.json"
PICTURES = ROOT / "docs" / "pictures"

BEGIN, END = "<!-- fio-plot's pictures by python -m benchmarks.gallery -->\n", "<!-- End of fio-plot's pictures -->\n"


class Pair(msgspec.Struct, frozen=True):
    """One picture of fio-plot's, and which picture of ours shows the same numbers."""

    what: str
    options: list[str]
    ours: str


THREE = ["-i", *(f"{disk}/4k" for disk in DISKS)]
ONE = ["-i", "disk-c/4k"]

PAIRS = {
    "depth": Pair("IOPS and latency by iodepth", [*ONE, "-l", "-r", "randread", "-n", "4"], "depth"),
    "grid": Pair("iodepth and jobs", [*ONE, "-L", "-t", "iops", "-r", "randread"], "grid"),
    "devices": Pair("several disks", [*THREE, "-C", "-r", "randread", "-d", "8", "-n", "4"], "devices"),
    "histogram": Pair("latency of one run", [*ONE, "-H", "-r", "randread", "-d", "1", "-n", "1"], "histogram"),
    "time": Pair("a log", [*THREE, "-g", "-t", "iops", "-r", "randrw", "-d", "16", "-n", "1", "-f", "read"], "time"),
}
"""Picture -> fio-plot's options for it; the rest of them are the program's defaults."""

ALWAYS = ["-T", "4k", "-D", "80"]
"""A title, which fio-plot asks for, and 80 dots per inch, for small files."""


class Drawn(msgspec.Struct, frozen=True):
    """What was drawn when: of which files, with which options, in how many seconds of CPU time."""

    files: str
    options: list[str]
    cpu: float


def files_digest() -> str:
    """The same for the same recorded files."""
    return hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]


def seconds(words: list[str], folder: Path) -> float:
    """CPU time of a command. Raises CalledProcessError for one that fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    if done.returncode not in (0, 3):
        raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def draw(program: Path, folder: Path) -> None:
    """Every picture by fio-plot, and what it took. Raises FileNotFoundError if fio-plot wrote none."""
    found = {}
    for name, pair in PAIRS.items():
        picture = folder / f"fio-plot-{name}.png"
        took = seconds([str(program), *pair.options, *ALWAYS, "-o", str(picture)], folder)
        (PICTURES / picture.name).write_bytes(picture.read_bytes())
        found[name] = Drawn(files_digest(), pair.options, round(took, 1))
    RECORDED.write_text(json.dumps(msgspec.to_builtins(found), indent=1) + "\n")


def recorded() -> dict[str, Drawn]:
    """What was drawn last."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=dict[str, Drawn])


def part(drawn: dict[str, Drawn]) -> str:
    """The page's table: a row of each two pictures, and the command and time of fio-plot's."""
    rows = ["| fio-plot | iodelta |", "|---|---|"]
    for name, one in drawn.items():
        pair = PAIRS[name]
        theirs = f"![fio-plot's chart: {pair.what}](pictures/fio-plot-{name}.png)"
        ours = f"![iodelta's chart: {pair.what}](pictures/gallery-{pair.ours}.png)"
        rows.append(f"| {theirs} | {ours} |")
        rows.append(f"| `fio-plot {' '.join(pair.options)} ...`: {one.cpu:.1f} s | {pair.what} |")
    return "\n".join(rows) + "\n"


def in_page(page: str) -> str:
    """The part of the page that ``part`` writes."""
    return page.partition(BEGIN)[2].partition(END)[0].strip("\n") + "\n"


def written(page: str) -> str:
    """The page with the table of what was drawn last."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{part(recorded())}\n{END}{rest.partition(END)[2]}"
