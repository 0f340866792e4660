"""``python -m benchmarks.gallery [--fio-plot PATH]``: draw the pictures of ``docs/gallery.md`` from the recorded files,
write their captions into the page, take screenshots of a page on three screens, and time all charts. With
``--fio-plot`` fio-plot draws the same files too, and is timed. ``record.sh``, ``record-filesystems.sh`` and
``record-rounds.sh`` made the files; others are those that the tests of formats read, and the numbers of published
reports (``benchmarks/seed_reports``).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from benchmarks.gallery import theirs
from benchmarks.gallery.screens import screenshots
from benchmarks.gallery.theirs import ARCHIVE, DISKS, seconds
from iodelta.report.formats.charts import Figure
from iodelta.report.formats.charts.specs import VEGA_LITE, alone
from iodelta.report.formats.charts.times import rounds_of
from iodelta.report.formats.html.pages import charts_of, charts_of_runs
from iodelta.study.comparison import compare
from iodelta.study.paths import read_all, read_one
from iodelta.study.preparation import PrepareAnswer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILESYSTEMS_ARCHIVE = HERE / "filesystems.tar.xz"
ROUNDS = HERE / "rounds.json"
FILESYSTEMS = ("ext4", "xfs", "btrfs")

OF_ONE = {
    "depth": "over-depth-{n}-read-iops",
    "latency-over-depth": "over-depth-{n}-read-mean",
    "jobs": "over-jobs-{n}-read-iops",
    "grid": "grid-{n}-read-iops",
    "knee": "knee-{n}-read-mean",
    "histogram": "distribution-read-",
}
"""Picture of one disk -> how the name of its figure begins; {n} is a number."""

OF_THREE = {
    "devices": "values-read-iops-2",
    "percentiles": "percentiles-read-2",
    "distribution": "distribution-read-",
    "cpu": "values-cpu-2",
    "time": "timeline-{n}-iops-read",
    "total": "timeline-{n}-iops-total",
    "written": "timeline-{n}-bw-write-written",
}
"""Pictures of all three."""

OF_FILESYSTEMS = {"filesystems": "values-write-iops"}

OF_FILES = {
    "stall": ("tests/data/fio-3.33/stall_iops.1.log", "timeline-1-iops-read"),
    "posted-depth": ("benchmarks/seed_reports/000.md", "over-depth-1-mixed-iops"),
    "posted-bandwidth": ("benchmarks/seed_reports/002.md", "values-read-bandwidth"),
    "posted-policies": ("benchmarks/seed_reports/003.md", "values-read-iops"),
    "posted-merge": ("benchmarks/seed_reports/004.md", "values-mixed-iops"),
}
"""Picture -> a file of this checkout, and the name of the figure."""

PARTS = {
    "written": ": write",
    "distribution": "randrw",
    "time": "iodepth-16",
    "total": "iodepth-16",
}
"""What is in the title of a picture, where several figures have its name."""

HEADINGS = {
    "By iodepth": ("depth", "latency-over-depth"),
    "By jobs": ("jobs",),
    "Depth by jobs": ("grid",),
    "Latency against IOPS": ("knee",),
    "Several disks": ("devices",),
    "Latency": ("percentiles", "distribution", "histogram"),
    "CPU time": ("cpu",),
    "Over time": ("time", "total"),
    "Over what had been written": ("written",),
    "Filesystem against filesystem": ("filesystems",),
    "A stall in a log": ("stall",),
    "Numbers from a mail": ("posted-depth", "posted-bandwidth", "posted-policies", "posted-merge"),
    "Preparation of a disk": ("rounds",),
}
"""The page's headings and the pictures below each."""

WORDS = {
    "Filesystem against filesystem": """
`iodelta compare ext4 xfs btrfs -o page.html`. Each filesystem is on a loop device that a throttle limits to 2000 I/Os a
second, and every workload ran six times on each: the bar is the median, the line at its end the interval. A write with
fsync takes two I/Os of the device on XFS and ext4, and more than ten on btrfs.
`benchmarks/gallery/record-filesystems.sh` repeats it.
""",
    "A stall in a log": """
`iodelta show stall_iops.1.log -o page.html`, a log of fio 3.33. fio writes no row while nothing completes; the chart
shows zero.
""",
    "Numbers from a mail": """
`iodelta report mail.md -o page.html` draws the tables of a mail or a bug report, here of four published ones ([what
such numbers can show](read-someones-numbers.md)).
""",
    "Preparation of a disk": """
`iodelta prepare`, then `iodelta report FOLDER -o page.html`: a throttled loop device whose writes fall from 1000 to 300
a second after the rounds had written 26 MiB ([the same in characters](prepare-a-disk.md#the-steps)).
""",
}
"""What a reader must know of pictures that are not of the three disks."""

WIDTH, PIXELS = 640, 1.25

PAGE = ROOT / "docs" / "gallery.md"

BEGIN, END = "<!-- Pictures and captions by python -m benchmarks.gallery -->\n", "<!-- End of the pictures -->\n"

DIGESTS = HERE / "drawn.json"
"""Picture -> digest of the specification and data from which it was drawn: whether a picture is still right is known
without drawing it, and on machines with other fonts."""


def chosen(drawn: Iterable[Figure], wanted: dict[str, str]) -> Iterator[tuple[str, Figure]]:
    """The first figure of each wanted name. Raises LookupError for one that is not drawn any more."""
    figures = list(drawn)
    for picture, name in wanted.items():
        before, number, after = name.partition("{n}")
        named = [f for f in figures if f.name.startswith(before) and (not number or after in f.name)]
        found = next((f for f in named if PARTS.get(picture, "") in f.title), None)
        if found is None:
            raise LookupError(f"no figure is called {name}: {', '.join(figure.name for figure in figures)}")
        yield picture, found


def pictures(folder: Path) -> dict[str, Figure]:
    """Every picture of the gallery, from the files in ``folder`` and those of this checkout."""
    with contextlib.chdir(folder):
        one, three, filesystems = shown("disk-c"), compared(*DISKS), compared(*FILESYSTEMS)
    found = {
        **dict(chosen(one, OF_ONE)),
        **dict(chosen(three, OF_THREE)),
        **dict(chosen(filesystems, OF_FILESYSTEMS)),
    }
    with contextlib.chdir(ROOT):
        for picture, (path, name) in OF_FILES.items():
            figures = shown(path) if path.endswith(".log") else compared(path)
            found |= dict(chosen(figures, {picture: name}))
    prepared = msgspec.json.decode(ROUNDS.read_bytes(), type=PrepareAnswer)
    return {**found, "rounds": rounds_of(prepared.disk)}


def shown(path: str) -> list[Figure]:
    """Every chart of ``iodelta show``."""
    layout, _ = read_all([path])
    return [figure for _, own in charts_of_runs(layout) for figure in own]


def compared(*paths: str) -> list[Figure]:
    """Every chart of ``iodelta compare``."""
    layouts = [read_one(path) for path in paths]
    found = compare(layouts, paths)
    return [figure for _, own in charts_of(found, layouts, paths) for figure in own]


def captions(drawn: dict[str, Figure]) -> str:
    """The page's part with the pictures. Each caption is what the chart says of itself."""
    parts = []
    for heading, names in HEADINGS.items():
        parts.append(f"### {heading}\n{WORDS.get(heading, '')}")
        for name in names:
            figure = drawn[name]
            parts.append(f"![{figure.title}. {figure.alt}](pictures/gallery-{name}.png)\n")
    return "\n".join(parts) + "\n"


def captioned(page: str) -> str:
    """The part of the page that ``captions`` writes."""
    return page.partition(BEGIN)[2].partition(END)[0].lstrip("\n")


def digest(figure: Figure) -> str:
    """The same for the same picture."""
    made = json.dumps(alone(figure, WIDTH), sort_keys=True, default=list)
    return hashlib.sha256(made.encode()).hexdigest()[:16]


def unpacked(folder: Path) -> Path:
    """The recorded files."""
    for path in (ARCHIVE, FILESYSTEMS_ARCHIVE):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    return folder


def times(folder: Path) -> Iterator[str]:
    """A table: what a page with every chart costs, and each picture of fio-plot's when it was drawn last."""
    files = sum(len(list((folder / disk).rglob("*.json"))) for disk in DISKS)
    logs = sum(len(list((folder / disk).rglob("*.log"))) for disk in DISKS)
    yield "| command | draws | CPU, s |\n|---|---|---:|"
    own = [sys.executable, "-c", "from iodelta.cli.main import main; main()"]
    for what, words in (
        ("every chart of disk-c", ["show", "disk-c", "-o", "one.html"]),
        (f"every chart of {files} results and {logs} logs", ["compare", *DISKS, "-o", "three.html"]),
    ):
        yield f"| `iodelta {' '.join(words)}` | {what} | {seconds([*own, *words], folder):.1f} |"
    for name, one in theirs.recorded().items():
        yield f"| `fio-plot {' '.join(one.options)}` | one picture: {theirs.PAIRS[name].what} | {one.cpu:.1f} |"


def draw(drawn: dict[str, Figure]) -> None:
    """Every picture as a file, its digest, and the captions in the page."""
    import vl_convert

    for name, figure in drawn.items():
        svg = vl_convert.vegalite_to_svg(alone(figure, WIDTH), vl_version=VEGA_LITE)
        path = ROOT / "docs" / "pictures" / f"gallery-{name}.png"
        path.write_bytes(vl_convert.svg_to_png(svg, scale=PIXELS))
        print(f"{path.name}: {path.stat().st_size >> 10} KiB")
    digests = {name: digest(figure) for name, figure in drawn.items()}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    page = f"{before}{BEGIN}\n{captions(drawn)}{END}{rest.partition(END)[2]}"
    PAGE.write_text(theirs.written(page))


def main() -> None:
    """Draw, photograph and time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fio-plot", type=Path, help="the program, to draw the same files with it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpacked(Path(scratch))
        if given.fio_plot:
            theirs.draw(given.fio_plot, folder)
        draw(pictures(folder))
        table = "\n".join(times(folder)) + "\n"
        screenshots(folder / "one.html", ROOT / "docs" / "pictures")
        (HERE / "results.md").write_text(table)


if __name__ == "__main__":
    main()
