"""What an anatomy says, on files of a plugin that never ran: trees of calls, footprints, and when there is none."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from counted_boots import folder, output, texts, with_symbols

from iodelta.errors import RequestError
from iodelta.experiment import parse
from iodelta.history.counts import nights_of
from iodelta.lab.folder import Folder
from iodelta.path import calls, footprint
from iodelta.path.branches import Branch, call_tree
from iodelta.path.calls import Calls
from iodelta.path.functions import Symbols
from iodelta.path.judge import PathAccount
from iodelta.path.metrics import METRICS
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import rendered
from iodelta.report.stories.anatomy import LIMITS
from iodelta.report.stories.path import of_path
from iodelta.report.stories.story import PLAIN, Detail
from iodelta.study.counted import counted

NAMES = ("read", "submit", "issue", "wait", "timer")
ADDRESSES = {name: 0xFFFFFFFF81000000 + 0x100 * number for number, name in enumerate(NAMES)}
SYMBOLS = Symbols("".join(f"{address:016x} {name}\n" for name, address in ADDRESSES.items()))


def at(name: str, offset: int = 0) -> str:
    return f"{ADDRESSES[name] + offset:x}"


def tree(*, submits: int, orphans: int = 0) -> str:
    """Each I/O: read calls submit, which calls issue and jumps to wait; an interrupt runs timer."""
    text = f"n 4 2 {at('read', 8)} {at('submit')}\nn 5 4 {at('submit', 4)} {at('issue')}\n"
    blocks = [("read", 10), ("submit", submits), ("issue", 5), ("wait", 3), ("timer", 100)]
    for number, (name, instructions) in enumerate(blocks, 1):
        text += f"b {number} {at(name)} {instructions} 0 0 0 0 0\n"
    for phase, ios in ((1, 1000), (2, 2000)):
        text += f"c {phase} 2 1 {ios}\nc {phase} 4 2 {ios}\nc {phase} 5 3 {ios}\nc {phase} 4 4 {ios}\nc {phase} 3 5 7\n"
        text += f"r {phase} {10 * ios} {orphans}\n"
    return text


def flat(*, submits: int) -> str:
    """The same without paths."""
    text = ""
    for phase, ios in ((1, 1000), (2, 2000)):
        for name, instructions in (("read", 10), ("submit", submits), ("issue", 5), ("wait", 3)):
            text += f"{phase} {at(name)} {instructions} {ios} 1 0 0 0 0\n"
        text += f"{phase} {at('timer')} 100 7 0 0 0 0 0\n"
    return text


def read(tree_: str, flat_: str) -> Calls:
    return calls.per_io(tree_.encode(), flat_.encode(), SYMBOLS, {0: 1000})[0]


def test_code_that_is_jumped_to_stands_below_its_caller_and_what_start_up_does_cancels_out() -> None:
    found = read(tree(submits=20), flat(submits=20))
    assert found.refused == ""
    assert found.paths == {
        ("kernel", "read"): 10,
        ("kernel", "read", "submit"): 20,
        ("kernel", "read", "submit", "issue"): 5,
        ("kernel", "read", "submit", "wait"): 3,
    }


def test_a_tree_whose_sums_are_not_the_flat_counts_or_with_many_orphans_is_refused() -> None:
    assert (
        "submit has 20,000 instructions on all paths and 21,000 without"
        in read(tree(submits=20), flat(submits=21)).refused
    )
    assert read(tree(submits=20, orphans=40), flat(submits=20)).refused == ""
    assert "0.67 % of all returns" in read(tree(submits=20, orphans=100), flat(submits=20)).refused
    refused = call_tree("cell", "new", (read(tree(submits=20), flat(submits=21)), Calls({}, 0.0)))
    assert (refused.roots, refused.refused[:12]) == ((), "the baseline")


@pytest.mark.parametrize("line", ["c 1 99 1 5", "c 1 2 99 5", "x 1", "n 4 99 0 0", "c 1"])
def test_a_line_that_refers_to_nothing_is_damage(line: str) -> None:
    with pytest.raises(ValueError, match=r"refers to nothing|no line|not enough values"):
        read(f"{tree(submits=20)}{line}\n", flat(submits=20))


def branch(old: dict[str, float], new: dict[str, float]) -> Branch:
    """The kernel's root of two trees whose paths are words."""
    sides = [Calls({("kernel", *path.split()): own for path, own in side.items()}, 0.0) for side in (old, new)]
    return call_tree("cell", "new", (sides[0], sides[1])).roots[0]


def names(one: Branch) -> list[str]:
    return [child.name for child in one.children]


def test_a_renamed_function_is_one_branch_and_an_unrelated_one_is_not() -> None:
    root = branch({"a old": 10, "a old x": 60, "a old y": 30}, {"a new": 12, "a new x": 61, "a new y": 30, "a z": 50})
    (a,) = root.children
    assert names(a) == ["old -> new", "z"]
    assert (a.children[0].baseline, a.children[0].value, a.children[1].baseline) == (100, 103, 0)
    assert [(child.name, child.change) for child in a.children[0].children] == [("x", 1), ("y", 0)]


@pytest.mark.parametrize(
    ("old", "new", "own", "pairs"),
    [
        ("alloc", "alloc_noprof", 145, True),
        ("prepare", "arch_prepare", 145, True),
        ("alloc", "alloc_noprof", 20, False),
        ("alloc", "allocate", 162, False),
        ("grab", "free", 162, False),
    ],
)
def test_a_leaf_is_renamed_only_where_one_name_goes_on_as_the_other(old: str, new: str, own: int, pairs: bool) -> None:
    root = branch({f"a {old}": 162}, {f"a {new}": own})
    assert set(names(root.children[0])) == ({f"{old} -> {new}"} if pairs else {old, new})


def test_two_large_functions_that_share_one_small_callee_are_two() -> None:
    root = branch({"a read": 500, "a read free": 10}, {"a other": 20, "a other free": 10})
    assert names(root.children[0]) == ["read", "other"]


def test_a_function_that_one_side_inlined_is_part_of_its_caller() -> None:
    old: dict[str, float] = {"a": 5, "a inner": 10, "a inner x": 60, "a inner y": 30}
    new: dict[str, float] = {"a": 14, "a x": 60, "a y": 31}
    for first, second, change in ((old, new, 0), (new, old, 0)):
        (a,) = branch(first, second).children
        assert (a.name, a.change) == ("a + inner", change)
        assert names(a) == ["x", "y"]
        assert {a.own_baseline, a.own_value} == {14, 15}


def test_whatever_is_paired_no_instruction_is_lost() -> None:
    old = {"a": 1, "a b": 2, "a b c": 40, "a b d": 0.3, "a b e": 0.2, "f": 7, "f c": 9}
    new = {"a": 3, "a c": 41, "a g": 5, "h": 6, "h c": 9, "a g d": 0.1}
    root = branch(old, new)
    assert root.baseline == pytest.approx(sum(old.values()))
    assert root.value == pytest.approx(sum(new.values()))
    check(root)


def check(one: Branch) -> None:
    assert one.baseline == pytest.approx(one.own_baseline + sum(child.baseline for child in one.children))
    assert one.value == pytest.approx(one.own_value + sum(child.value for child in one.children))
    for child in one.children:
        check(child)


def epochs(ios: int = 2000, **changed: int) -> bytes:
    """Each I/O has 100 of everything but what is changed, every hundredth much more: a tick of the timer."""
    row = [changed.get(name, 100) for name in footprint.MEASURES] * 2
    ticks = [value + 5000 for value in row]
    chosen = [ticks if number % 100 == 50 else row for number in range(ios - 1)]
    return "".join(f"2 {' '.join(map(str, values))}\n" for values in chosen).encode()


def measured(old: dict[str, int], new: dict[str, int], sweep: int) -> footprint.Footprint:
    sides = [footprint.read(epochs(**side), {0: 1000})[0] for side in (old, new)]
    layouts = [[footprint.read(epochs(**{**old, "data_lines": 100 + sweep}), {0: 1000})[0]], [sides[1]]]
    return footprint.footprint("cell", "new", (sides[0], sides[1]), (layouts[0], layouts[1]))


def test_one_locked_instruction_more_is_more_and_what_layouts_move_is_the_same() -> None:
    found = measured({}, {"locked": 101, "data_lines": 101, "code_lines": 91}, sweep=1)
    assert [found.of(name).word for name in ("locked", "data_lines", "code_lines", "loads")] == [
        "more",
        "same",
        "fewer",
        "same",
    ]
    assert found.by_ios
    assert measured({}, {"data_lines": 102}, sweep=1).of("data_lines").word == "more"


def test_without_other_layouts_there_is_no_word_and_half_an_epoch_is_damage() -> None:
    side = footprint.read(epochs(), {0: 1000})[0]
    assert footprint.footprint("cell", "new", (side, side), ([], [])).of("loads").word == ""
    with pytest.raises(ValueError, match="measures in an epoch"):
        footprint.read(epochs() + b"2 1 2 3\n", {0: 1000})


def account(place: Path, *, ios: int = 8000, flat_of_new: int = 30, out: bytes = output(7000)) -> PathAccount:
    def boot(variant: str, seed: int) -> dict[str, bytes]:
        new = variant == "new"
        text = "".join(f"{address:016x} {name}\n" for name, address in ADDRESSES.items())
        files = {"out": with_symbols(2000, text), "epochs": epochs(ios // 4, locked=101 if new else 100)}
        if seed:
            return files
        counts = flat(submits=flat_of_new if new else 20)
        return {**files, "tree": tree(submits=30 if new else 20).encode(), "counts": counts.encode()}

    return counted(folder(place, lambda variant, purpose, seed: out, anatomy=boot))


def told(found: PathAccount, detail: Detail) -> dict[str, str]:
    """To read: not as data."""
    return {name: text for name, text in texts(found, detail).items() if name not in ("json", "csv")}


def test_every_format_shows_paths_and_footprint_with_their_limits(tmp_path: Path) -> None:
    found = account(tmp_path / "anatomy")
    for name, text in told(found, Detail(paths=True, footprint=True, bill=True)).items():
        assert "..submit" in text, name
        assert "interrupts take 0 and 0 instructions per I/O" in text, name
        assert "lines of code" in text, name
        assert LIMITS.split(",")[0] in text, name
        assert "-> " not in text.replace("old -&gt; new", "").replace("old -> new", ""), name
    charge = next(one for one in found.bills[0].charges if one.kind == "locked")
    assert (charge.baseline, charge.value, charge.word) == (100, 101, "more")
    page = html_of(found, (), Detail(paths=True)).decode()
    assert "<title>submit: 28.0 to 38.0 (+10.0)</title>" in page
    assert page.count("<svg") == 1, "interrupts cancelled out"
    rows = list(csv.DictReader(io.StringIO(rendered(found, "csv").decode())))
    figures = {(row["list"], row["scope"], row["kind"] or row["name"]): (row["baseline"], row["value"]) for row in rows}
    assert figures["bills.charges", "", "locked"] == ("100.0", "101.0")
    assert figures["footprints.measures", "kernel", "loads"] == ("100.0", "100.0")
    assert len(set(figures["bills.charges", "", "indirect"])) == 1
    document = json.loads(rendered(found, "json"))
    assert [root["name"] for root in document["trees"][0]["roots"]] == ["kernel", "interrupts"]
    assert "locked" in {one["name"] for one in document["footprints"][0]["measures"]}


@pytest.mark.parametrize("detail", [Detail(footprint=True), Detail(bill=True)], ids=["footprint", "bill"])
def test_reads_and_writes_of_one_cell_are_said_to_share_a_median(tmp_path: Path, detail: Detail) -> None:
    both = output(7000).replace(b"@members", b"1 7400 90\n@members")
    said = "reads and writes are counted together"
    for name, text in told(account(tmp_path / "both", out=both), detail).items():
        assert text.count(said) == 1, name
    for name, text in told(account(tmp_path / "reads"), detail).items():
        assert said not in text, name


def test_what_was_not_counted_is_said(tmp_path: Path) -> None:
    none = counted(folder(tmp_path / "plain", lambda variant, purpose, seed: output(7000)))
    for text in told(none, Detail(paths=True, footprint=True)).values():
        assert "No tree of calls: this experiment counts none (iodelta run --anatomy)." in text
        assert "No footprint: this experiment counts none" in text
    refused = account(tmp_path / "refused", flat_of_new=31)
    for text in told(refused, Detail(paths=True)).values():
        assert "no tree of calls: new: submit has" in text
    several = account(tmp_path / "several", ios=16000)
    for text in told(several, Detail(footprint=True)).values():
        assert "submit_bio was called 2.00 and 2.00 times for each I/O" in text


LOCKED = {"first": 18, "second": 19, "third": 19}
"""Locked instructions of an I/O under each kernel of a row."""


def row_of_kernels(place: Path) -> Folder:
    def boot(variant: str, seed: int) -> dict[str, bytes]:
        return {"out": with_symbols(2000), "counts": b"", "epochs": epochs(locked=LOCKED[variant], loads=100 + seed)}

    return folder(place, lambda variant, purpose, seed: output(7000), row=tuple(LOCKED), anatomy=boot)


def test_a_row_of_kernels_names_the_step_that_added_a_locked_instruction(tmp_path: Path) -> None:
    found = counted(row_of_kernels(tmp_path / "row"))
    assert found.again == ("iodelta kernel sweep first..third --anatomy=path -- --rw=randread --direct=1",)
    for name, text in told(found, PLAIN).items():
        assert "18 to 19 locked instructions per I/O" in text, name
        assert text.count("+1 more") == 1, name
        assert "no step in fences, rdtsc, indirect calls, loads" in text, name
    (table,) = of_path(found, PLAIN).tables
    names = [(row.group, row.name) for row in table.rows]
    assert names == [("randread 4k", pair) for pair in ("first to second", "second to third", "first to third")]
    (drawn,) = [section for section in of_path(found, PLAIN).sections if section.title == "Steps"]
    assert max(len(item.text) for item in drawn.items) <= 76, "a terminal of 80 columns"
    assert '<td class="name">7,000</td>' not in html_of(found, ()).decode(), "numbers are aligned at their ends"
    rows = [row for row in csv.DictReader(io.StringIO(rendered(found, "csv").decode())) if row["list"] == "tallies"]
    locked = {row["variant"]: float(row["value"]) for row in rows if row["metric"] == "bill.locked"}
    assert locked["second"] == locked["first"] + 1
    assert {(one.metric, one.value) for one in found.tallies if one.metric == "footprint.loads"} == {
        ("footprint.loads", 100.0)
    }


def test_a_history_follows_every_metric_of_an_anatomy(tmp_path: Path) -> None:
    nights = nights_of(row_of_kernels(tmp_path / "row"))
    values = [{point.key.metric: round(math.exp(point.y), 9) for point in night.points} for night in nights]
    assert [(one["read.instructions"], one["bill.locked"]) for one in values] == [(7000, 18), (7000, 19), (7000, 19)]
    assert set(values[0]) == set(METRICS) - {"write.instructions", "trim.instructions", "moved_lines"}
    units = {point.key.metric: point.unit for point in nights[0].points}
    assert (units["bill.locked"], units["footprint.code_lines"]) == ("instructions", "lines")


def test_an_anatomy_is_counted_with_the_instruction_clock_only() -> None:
    text = 'anatomy = "path"\n[workload]\nrw = "read"\n[variant.a]\n[variant.b]\n'
    with pytest.raises(RequestError, match="instruction clock only"):
        parse(text)
    with pytest.raises(RequestError, match='anatomy must be "path"'):
        parse(f'machine = "vm"\nclock = "instructions"\n{text.replace("path", "caches")}')
