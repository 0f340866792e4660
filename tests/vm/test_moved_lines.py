"""What may be said of cache lines that move between CPUs, on what the plugin wrote of guests that were never booted."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import counted_boots
import pytest
from click.testing import CliRunner
from counted_boots import Wanted, texts

from iodelta.bisect import counted as counted_search
from iodelta.bisect.log import OUTPUT
from iodelta.bisect.question import Question
from iodelta.bisect.tree import Unbuildable
from iodelta.cli.main import cli
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import parse
from iodelta.history.counts import nights_of
from iodelta.lab.folder import Booted, Folder
from iodelta.machine import LocalMachine
from iodelta.path import run
from iodelta.path.judge import PathAccount
from iodelta.path.moved import Birth, Names, births, phases
from iodelta.path.plan import SHARING_SEEDS, BootPlan, PathPlan
from iodelta.path.sharing_job import refuse
from iodelta.report.formats.render import rendered
from iodelta.report.stories.story import Detail
from iodelta.study.counted import counted
from iodelta.vm import boot
from iodelta.vm.kernels import Kernel
from iodelta.vm.spec import Spec

QUESTION = 'anatomy = "sharing"' + counted_boots.QUESTION.replace('6.1"', '6.12"')

SYMBOLS = """\
0000000000000000 A __per_cpu_start
0000000000001000 A current_task
0000000000002000 A __per_cpu_end
ffffffff81000000 T submit.isra.0
ffffffff81000100 t complete
ffffffff82000000 D jiffies
ffffffff82000008 d counter
ffffffff82001000 b end_of_data
"""


def of_guest(moved: int) -> tuple[bytes, bytes]:
    """What a guest and its plugin write of 1000 I/Os, each of which moved ``moved`` lines of one structure."""
    symbols = base64.b64encode(gzip.compress(SYMBOLS.encode(), mtime=0)).decode()
    out = "@boot 6.12\n@cell 000\n@tags apart\n@births\nffff888005268d00 240 wbt_init\n"
    counts = f"self 0 0\nself 1 1\nphase 1 1000\nios {moved} 900\nios {moved + 2} 100\n"
    for number in range(moved):
        counts += f"line {0xFFFF888005268D00 + 64 * number:x} 5268d00 1000 1000 1000 1000 0\nbytes 0 300 ff00000000\n"
        counts += "place ffffffff81000010 0 w 500\nplace ffffffff81000110 1 w 400\nplace ffffffff81000110 1 r 400\n"
    return f"{out}@symbols\n{symbols}\n@end\niodelta-end\n".encode(), counts.encode()


def folder(place: Path, *, baseline: int, variant: int, again: int | None = None, layout: int | None = None) -> Folder:
    """Boots whose I/Os move so many lines; ``again``: of the second boot of the baseline, ``layout``: of the sweep."""
    wanted: list[Wanted] = [("old", "exact", 0), ("old", "again", 0), ("new", "exact", 0)]
    wanted += [(name, "layout", seed) for seed in SHARING_SEEDS for name in ("old", "new")]

    def wrote(boot: BootPlan) -> dict[str, bytes]:
        moved = variant if boot.variant == "new" else baseline
        moved = again if boot.purpose == "again" and again is not None else moved
        moved = layout if boot.purpose == "layout" and layout is not None else moved
        out, counts = of_guest(moved)
        return {"out": out, "counts": counts}

    kernel = Kernel("6.12", "6.12.0", "bzImage", package="linux-image 6.12.0-1")
    return counted_boots.made(
        place, QUESTION, {"old": kernel, "new": kernel}, wanted, wrote, "lines are counted instead"
    )


def account(place: Path, **moved: int) -> PathAccount:
    return counted(folder(place, **moved))


def test_one_line_more_for_an_io_is_more_and_as_many_are_the_same(tmp_path: Path) -> None:
    more = account(tmp_path / "more", baseline=1, variant=2)
    # The sweep moved as many lines as the boots that are judged.
    assert [(one.word, one.change, one.low, one.high) for one in more.sharing.shifts] == [("more", 1, 1, 1)]
    assert more.exit_code == 1
    fewer = account(tmp_path / "fewer", baseline=1, variant=0)
    assert [(one.word, one.change) for one in fewer.sharing.shifts] == [("fewer", -1)]
    same = account(tmp_path / "same", baseline=1, variant=1)
    assert ([one.word for one in same.sharing.shifts], same.exit_code) == (["same"], 0)


@pytest.mark.parametrize("tags", ["unknown", "shared"])
def test_where_chance_moves_lines_there_is_no_verdict_and_no_series(
    tags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = of_guest

    def drawn(moved: int) -> tuple[bytes, bytes]:
        out, counts = plain(moved)
        return out.replace(b"@tags apart", f"@tags {tags}".encode()), counts

    monkeypatch.setitem(globals(), "of_guest", drawn)
    made = folder(tmp_path / "drawn", baseline=1, variant=4)
    (shift,) = counted(made).sharing.shifts
    assert (shift.word, shift.change) == ("no verdict", 3)
    assert "tags of both CPUs" in shift.reason
    with pytest.raises(RequestError, match="no count that repeats"):
        nights_of(made)


def test_a_change_that_another_layout_makes_too_is_the_same(tmp_path: Path) -> None:
    (one,) = account(tmp_path / "wide", baseline=1, variant=2, layout=3).sharing.shifts
    assert (one.word, one.low, one.high) == ("same", -1, 2)


def test_boots_whose_counts_differ_are_no_result_even_if_the_guests_wrote_the_same(tmp_path: Path) -> None:
    differing = account(tmp_path / "differing", baseline=1, variant=2, again=2)
    assert (differing.self_check, differing.exit_code) == ("different", 4)
    assert differing.sharing.cells == ()


def test_every_format_names_the_line_its_writers_and_what_is_not_seen(tmp_path: Path) -> None:
    result = account(tmp_path / "told", baseline=1, variant=0)
    for name, text in texts(result, Detail(lines=True)).items():
        said = text.replace("\\_", "_")
        for words in ("rq_wb", "wbt_init", "One interleaving of many"):
            assert words in said, name
        assert "IOPS" not in said, name
        if name in ("mail", "markdown", "console", "html"):
            assert "1.00 line per I/O: rq_wb, written by submit, complete." in said, name


def test_json_and_csv_hold_every_line_with_its_numbers(tmp_path: Path) -> None:
    result = account(tmp_path / "told", baseline=1, variant=0)
    cells = json.loads(rendered(result, "json"))["sharing"]["cells"]
    (line,) = cells[0]["lines"]
    assert (line["name"], line["offset"], line["born"], line["moved"]) == ("rq_wb", 8, "wbt_init", 1.0)
    assert (line["false_share"], line["writers"], line["readers"]) == (0.0, ["submit", "complete"], [])
    rows = list(csv.DictReader(io.StringIO(rendered(result, "csv").decode())))
    told: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        told.setdefault(row["list"].removeprefix("sharing."), []).append(row)
    assert [(row["variant"], row["median"]) for row in told["cells"]] == [("old", "1.0"), ("new", "0.0")]
    assert [(row["variant"], row["name"]) for row in told["cells.lines"]] == [("old", "rq_wb")]
    assert [(row["variant"], row["word"]) for row in told["shifts"]] == [("new", "fewer")]


def test_only_a_panic_before_the_guests_script_is_a_mishap_of_qemu(tmp_path: Path) -> None:
    plan = folder(tmp_path / "moved", baseline=1, variant=0).read_plan(PathPlan)
    panicked = boot.Ended("the guest's kernel panicked: Kernel panic - not syncing", 9.0)
    assert run.mishap(plan, panicked, b"")
    assert not run.mishap(plan, panicked, b"@boot 6.12\n")
    assert not run.mishap(plan, boot.Ended("the guest hangs: no sign of progress", 9.0), b"")
    assert not run.mishap(plan, boot.Ended("", 9.0), b"@boot 6.12\n")


class Stub:
    """A guest that has ended already: well, or by a panic before its script began."""

    def __init__(self, moved: int, place: Path, *, panics: bool) -> None:
        self.console = b"Kernel panic - not syncing: flags\n" if panics else b""
        self.output, counts = (b"", b"") if panics else of_guest(moved)
        (place / "counts").write_bytes(counts)
        self._problem = "the guest's kernel panicked: Kernel panic - not syncing: flags" if panics else ""

    def poll(self) -> boot.Ended:
        return boot.Ended(self._problem, 1.0, ("Kernel panic - not syncing: flags",) if self._problem else ())

    def stop(self) -> None:
        """It has ended."""

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        """It has ended."""


class Unwatched:
    def begin(self, planned: PathPlan, folder: str, done: int) -> None: ...

    def booted(self, one: BootPlan, event: Booted, done: int) -> None: ...


def run_with_panics(place: Path, monkeypatch: pytest.MonkeyPatch, panics: dict[int, int]) -> Folder:
    """A run, of whose boots the guests panic so many times before they boot well."""
    plan = folder(place / "planned", baseline=1, variant=2).read_plan(PathPlan)
    left = dict(panics)

    def started(planned: PathPlan, one: BootPlan, where: Path) -> Stub:
        left[one.number] = left.get(one.number, 0) - 1
        return Stub(2 if one.variant == "new" else 1, where, panics=left[one.number] >= 0)

    monkeypatch.setattr(run, "started", started)
    monkeypatch.setattr(boot, "available", lambda: plan.qemu)
    made = Folder.begin(place / "made", QUESTION, plan)
    assert run.go(made, Unwatched(), stop=lambda: False) == run.COMPLETE
    return Folder.open(made.path)


def test_a_boot_that_qemu_let_panic_is_made_again_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run_with_panics(tmp_path, monkeypatch, {0: 1, 3: 2})
    assert sorted(event.boot for event in made.events() if isinstance(event, Booted)) == list(range(7))
    assert made.read_raw(3, "panics").count(b"Kernel panic") == 2
    result = counted(made)
    assert ([one.word for one in result.sharing.shifts], result.exit_code) == (["more"], 1)
    assert result.problems == ()
    text = " ".join(rendered(result, "mail").decode().split())
    assert "Boot 0 (old) panicked once before the guest's script began and was repeated" in text
    assert "Boot 3 (old) panicked 2 times" in text


def test_a_guest_that_always_panics_is_a_problem_and_all_other_boots_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run_with_panics(tmp_path, monkeypatch, {2: run.ATTEMPTS})
    done = {event.boot: event.problem for event in made.events() if isinstance(event, Booted)}
    assert set(done) >= {0, 1, 2, 3, 5}
    assert [number for number, problem in done.items() if problem] == [2]
    result = counted(made)
    assert [one.variant for one in result.sharing.cells] == ["old"]
    (shift,) = result.sharing.shifts
    assert (shift.word, shift.reason) == ("no verdict", "new: did not boot to its end")
    assert "new: the guest's kernel panicked" in result.problems[0]
    text = " ".join(rendered(result, "mail").decode().split())
    assert f"Boot 2 (new) panicked {run.ATTEMPTS} times before the guest's script began" in text


@pytest.mark.parametrize("panics", [0, 2, run.ATTEMPTS])
def test_a_search_says_each_boot_that_it_makes_again_and_how_many_a_skipped_kernel_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panics: int
) -> None:
    plan = folder(tmp_path / "planned", baseline=1, variant=2).read_plan(PathPlan)
    left, said = [panics], list[str]()

    def started(planned: PathPlan, one: BootPlan, where: Path) -> Stub:
        left[0] -= 1
        return Stub(1, where, panics=left[0] >= 0)

    monkeypatch.setattr(counted_search, "started", started)
    (tmp_path / OUTPUT).mkdir()
    question = cast(Question, SimpleNamespace(experiment=QUESTION))
    search = counted_search.Counted(LocalMachine(), question, tmp_path, lambda: False, said.append)
    if panics < run.ATTEMPTS:
        assert search._boot(plan, 7, "exact").counts
    else:
        with pytest.raises(Unbuildable, match=f"panicked.*in each of {run.ATTEMPTS} boots"):
            search._boot(plan, 7, "exact")
    again = [line for line in said if "panicked: Kernel panic - not syncing: flags" in line]
    assert len(again) == len(said) == min(panics, run.ATTEMPTS - 1)
    assert all(f"boot {number} of at most {run.ATTEMPTS}" in line for number, line in enumerate(said, 2))


def test_lines_are_asked_of_the_folder_that_has_them(tmp_path: Path) -> None:
    made = folder(tmp_path / "moved", baseline=1, variant=0)
    done = CliRunner().invoke(cli, ["report", str(made.path), "--lines"])
    assert done.exit_code == 0
    assert "rq_wb+8" in done.output
    refused = CliRunner().invoke(cli, ["report", str(made.path), "--bill"])
    assert "moved cache lines, and no counts" in str(refused.exception)


def test_a_history_follows_moved_lines(tmp_path: Path) -> None:
    made = folder(tmp_path / "moved", baseline=1, variant=0)
    (night,) = nights_of(made)
    values = {point.variant: (point.key.metric, point.unit, round(math.exp(point.y), 9)) for point in night.points}
    assert values == {"old": ("moved_lines", "lines", 1.0), "new": ("moved_lines", "lines", 0.25)}


def test_a_line_is_named_by_birth_by_the_area_of_a_cpu_or_by_symbols() -> None:
    names = Names(SYMBOLS, [Birth(0xFFFF888005268D00, 240, "wbt_init"), Birth(0xFFFF888005269000, 64, "some_maker")])
    bases = {0: 0xFFFF88800D600000, 1: 0xFFFF88800D700000}

    def named(address: int) -> tuple[str, int]:
        name = names.data(address, bases)
        return (name.name, name.offset) if name else ("", 0)

    assert named(0xFFFF888005268D28) == ("rq_wb", 0x28)
    assert named(0xFFFF888005268D00 + 240) == ("", 0)
    assert named(0xFFFF888005269010) == ("64 bytes of some_maker", 16)
    assert named(0xFFFF88800D701010) == ("CPU 1's current_task", 16)
    assert named(0xFFFFFFFF8200000C) == ("counter", 4)
    assert named(0xFFFFFFFF82002000) == ("", 0)
    assert named(0x7F25E2E120C0) == ("user space", 0)
    assert named(0xFFFFEA000014D580) == ("struct page", 0)
    assert names.function(0xFFFFFFFF81000010) == "submit"


def test_allocations_are_read_and_other_lines_left_out() -> None:
    made = births(["ffff888005269000 64 b.part.0", "ffff888005268d00 240 wbt_init", "garbage", "12 64 x"])
    assert made == [Birth(0xFFFF888005268D00, 240, "wbt_init"), Birth(0xFFFF888005269000, 64, "b")]


def test_pages_are_named_by_who_took_them_and_their_objects_by_who_took_those() -> None:
    lines = ["ffff888005268d00 240 wbt_init", "page 0x5268 1 allocate_slab", "page 0x6b3c 2 blk_mq_alloc_rqs.isra.0"]
    lines += ["page 6b40 0 some_maker", "page 0x6b41 x some_maker", "page 0x6b41 0"]
    names = Names(SYMBOLS, births(lines))
    found = [names.data(0xFFFF888000000000 + address, {}) for address in (0x5268D08, 0x5268E00, 0x6B3F040, 0x6B40FFF)]
    assert [(name.name, name.offset, name.born) if name else () for name in found] == [
        ("rq_wb", 8, "wbt_init"),
        (),
        ("request", 0x3040, "blk_mq_alloc_rqs"),
        ("4 KiB of some_maker", 0xFFF, "some_maker"),
    ]
    array = Names(SYMBOLS, [Birth(0xFFFF888005268D00, 8, "blk_mq_alloc_map_and_rqs")]).data(0xFFFF888005268D00, {})
    assert array is not None
    assert array.name == "8 bytes of blk_mq_alloc_map_and_rqs", "pointers to requests are no request"
    assert names.data(0xFFFF888006B41000, {}) is None


@pytest.mark.parametrize("line", ["self 1 0", "line 12", "place x 0 r 1", "wild words", "ios 1"])
def test_a_cpu_under_another_number_or_a_wild_line_is_no_count(line: str) -> None:
    with pytest.raises(MeasureError, match="not a line of the plugin"):
        phases(f"phase 1 10\n{line}\n".encode(), "boot 0")


def refused(options: str, more: str = "") -> str:
    text = QUESTION.replace('rw = "randread"\ndirect = 1', options) + more
    try:
        refuse(parse(text), Spec(target="null_blk"))
    except RequestError as error:
        return str(error)
    return ""


def test_what_the_guests_program_cannot_do_is_refused_before_a_boot() -> None:
    assert refused('rw = "randwrite"\ndirect = 1\nbs = "64k"\nnumber_ios = 50\nioengine = "psync"') == ""
    assert "no option numjobs" in refused('rw = "read"\ndirect = 1\nnumjobs = 2')
    assert "one direct I/O" in refused('rw = "read"')
    assert "one direct I/O" in refused('rw = "read"\ndirect = 1\niodepth = 8')
    assert "not randrw" in refused('rw = "randrw"\ndirect = 1')
    assert "synchronous" in refused('rw = "read"\ndirect = 1\nioengine = "libaio"')
    assert "bs is one size" in refused('rw = "read"\ndirect = 1\nbs = "100"')
    assert "number_ios" in refused('rw = "read"\ndirect = 1\nnumber_ios = 5')
    with pytest.raises(RequestError, match="not on ext4"):
        refuse(parse(QUESTION), Spec(target="ext4"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--anatomy=sharing", "--cpus", "4"], "between two CPUs that take turns, not 4"),
        (["--anatomy", "--cpus", "2"], "--cpus is for guests in which moved cache lines are counted"),
    ],
)
def test_another_number_of_cpus_is_refused_in_a_sentence(words: list[str], why: str) -> None:
    question = [
        "--machine",
        "vm",
        "--clock",
        "instructions",
        "--dry-run",
        "--variant",
        "a",
        "--variant",
        "b:fio.nice=1",
    ]
    done = CliRunner().invoke(cli, ["run", *words, *question, "--", "--rw=randread", "--direct=1"])
    assert why in str(done.exception)
