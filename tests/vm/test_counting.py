"""What counts of instructions allow to be said, on outputs of guests that were never booted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import counted_boots
import pytest
from click.testing import CliRunner
from counted_boots import QUESTION, Says, folder, output, texts

from iodelta.cli.main import cli
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import parse
from iodelta.lab.folder import Folder
from iodelta.lab.judged import read_plan
from iodelta.path.bill import Charge, bill
from iodelta.path.functions import Cost, Symbols, per_io
from iodelta.path.judge import BLIND, PathAccount, judge
from iodelta.path.output import CellOutput, Counts, read
from iodelta.path.plan import PathPlan, Purpose
from iodelta.path.settings import settings
from iodelta.path.tables import Timed, table
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import rendered
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.path import headline, of_path
from iodelta.report.stories.story import PLAIN, Detail
from iodelta.study.again import placed
from iodelta.study.counted import counted


def account(place: Path, says: Says, **options: tuple[str, ...]) -> PathAccount:
    return counted(folder(place, says, row=options.get("row", ("old", "new"))))


def account_with_counts(place: Path, counts: Callable[[str], str]) -> PathAccount:
    """Of boots that the plugin counted too, as ``counts`` gives for each variant."""
    made = folder(place, shifted(0), counts=counts)
    return counted(made)


def shifted(by: int, *, sweep: int = 0) -> Says:
    """The new kernel takes ``by`` instructions more; layouts move both by up to ``sweep``."""
    return lambda variant, purpose, seed: output(7000 + by * (variant == "new") + sweep * (seed == 3))


def test_a_change_of_30_instructions_is_found_and_a_placebo_is_the_same(tmp_path: Path) -> None:
    (one,) = account(tmp_path / "planted", shifted(30)).shifts
    assert (one.word, one.change, one.low, one.high, one.bar) == ("longer", 30, 30, 30, 10)
    (one,) = account(tmp_path / "placebo", shifted(0)).shifts
    assert (one.word, one.change) == ("same", 0)


@pytest.mark.parametrize("kind", ["out", "console"])
def test_boots_that_were_exchanged_are_no_result(tmp_path: Path, kind: str) -> None:
    made = folder(tmp_path / "counts", shifted(30))
    plan = made.read_plan(PathPlan)
    places = [made.path / "raw" / f"{one.number:06d}.{kind}.zst" for one in plan.boots if one.purpose == "exact"]
    first, second = (place.read_bytes() for place in places)
    places[0].write_bytes(second + b"")
    places[1].write_bytes(first + b"\0")
    with pytest.raises(MeasureError, match="changed since the run began"):
        judge(Folder.open(made.path))


def test_ten_instructions_are_never_a_change_and_a_wide_layout_sweep_raises_the_bar(tmp_path: Path) -> None:
    assert account(tmp_path / "ten", shifted(-10)).shifts[0].word == "same"
    assert account(tmp_path / "eleven", shifted(-11)).shifts[0].word == "shorter"
    (one,) = account(tmp_path / "wide", shifted(40, sweep=60)).shifts
    assert (one.word, one.bar, one.low, one.high) == ("same", 60, -20, 100)


def test_one_boot_that_differs_from_its_twin_refuses_the_whole_report(tmp_path: Path) -> None:
    def says(variant: str, purpose: Purpose, seed: int) -> bytes:
        return output(7001 if purpose == "again" else 7000)

    found = account(tmp_path / "twins", says)
    assert (found.self_check, found.shifts, found.counts, found.exit_code) == ("different", (), (), 4)
    assert headline(found).startswith("Refused")
    for format_ in ("mail", "markdown", "json"):
        assert b"7,00" not in rendered(found, format_)
    assert b"7,00" not in html_of(found, ())


def test_a_panicking_kernel_and_a_missing_module_are_results_with_reasons(tmp_path: Path) -> None:
    found = account(tmp_path / "panic", lambda v, p, s: None if v == "new" else output(7000))
    assert [one.word for one in found.shifts] == ["no verdict"]
    assert found.shifts[0].reason == "new: did not boot to its end"
    assert "no init; last lines: last line" in found.problems[0]
    reason = "needs ublk_drv: kernel has no CONFIG_BLK_DEV_UBLK"
    found = account(tmp_path / "missing", lambda v, p, s: output(reason) if v == "old" else output(7000))
    assert found.shifts[0].reason == f"old: {reason}"
    assert found.exit_code == 3


def test_every_format_says_what_is_not_seen_and_none_says_iops(tmp_path: Path) -> None:
    found = account(tmp_path / "told", shifted(400))
    for name, text in texts(found, Detail(functions=True)).items():
        assert BLIND[:60] in text.replace("&#39;", "'"), name
        assert "IOPS" not in text, name
        assert "nstructions" in text, name


def test_a_row_of_kernels_is_told_as_steps_from_one_to_the_next(tmp_path: Path) -> None:
    levels = {"6.43": 6764, "6.57": 6777, "6.69": 6786, "6.85": 6786}
    found = account(tmp_path / "row", lambda v, p, s: output(levels[v]), row=tuple(levels))
    assert [(one.against, one.variant, one.change, one.word) for one in found.shifts] == [
        ("6.43", "6.57", 13, "longer"),
        ("6.57", "6.69", 9, "same"),
        ("6.69", "6.85", 0, "same"),
        ("6.43", "6.85", 22, "longer"),
    ]
    assert headline(found) == (
        "6.57 against 6.43: path longer in 1 of 1 cell (+13 instructions per I/O). "
        "6.85 against 6.43: path longer in 1 of 1 cell (+22 instructions per I/O)."
    )
    drawn = [line.plain for line in lines(of_path(found)) if "+-" in line.plain]
    assert drawn[0].endswith("+13 longer")


def test_every_format_says_how_to_count_it_again(tmp_path: Path) -> None:
    """A row of kernels by the kernels at its ends, since its experiment file would compare all with the first."""
    levels = {"6.43": 6764, "6.57": 6777, "6.69": 6786}
    row = account(tmp_path / "row", lambda v, p, s: output(levels[v]), row=tuple(levels))
    assert row.again == ("iodelta kernel sweep 6-43..6-69 -- --rw=randread --direct=1",)
    found = account(tmp_path / "two", shifted(400))
    assert found.again == ("iodelta run FOLDER/experiment.toml",)
    assert found.folder == str(tmp_path / "two"), "its name alone could not be pasted from here"
    for one in (row, found):
        for name, text in texts(one, PLAIN).items():
            if name != "csv":
                again = one.again[0] if name == "json" else placed(one.again[0], one.folder)
                assert again[:40] in " ".join(text.replace("\\", "").split()), name


def test_one_screen_holds_the_table_and_names_the_command_for_what_it_relies_on(tmp_path: Path) -> None:
    """With --verbose it printed the same as without."""
    story = of_path(account(tmp_path / "two", shifted(400)))
    screen, whole = ([line.plain for line in lines(story, whole=each)] for each in (False, True))
    assert len(screen) <= 24
    assert f"iodelta report {tmp_path / 'two'} --verbose`" in " ".join(screen)
    assert "What this relies on" in whole
    assert "What this relies on" not in screen


def test_a_folder_of_counts_is_no_folder_of_times(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="instruction counts, not times"):
        read_plan(folder(tmp_path / "counts", shifted(0)))
    done = CliRunner().invoke(cli, ["env", str(tmp_path / "counts")])
    assert "instruction counts, not times" in str(done.exception)


def test_a_plan_that_was_changed_is_refused(tmp_path: Path) -> None:
    made = folder(tmp_path / "changed", shifted(0))
    (made.path / "plan.json").write_text((made.path / "plan.json").read_text().replace("QEMU 7", "QEMU 8"))
    with pytest.raises(MeasureError, match="changed since the run began"):
        judge(made)


def test_the_median_of_an_even_number_lies_between_its_two_middle_ios() -> None:
    assert Counts((10, 20), (2, 2)).median == 15
    assert Counts((10, 20, 90), (1, 3, 1)).median == 20
    assert Counts((10, 20), (3, 1)).mean == 12.5


@pytest.mark.parametrize(
    "text", [b"", b"@boot 6.1\n@cell 000\n", b"garbage\n@end\n", b"@boot 6\n@latencies\n@end\n"], ids=repr
)
def test_half_an_output_is_damaged_and_no_result(text: bytes) -> None:
    with pytest.raises(MeasureError):
        read(text, "boot 3")


def test_a_wild_line_among_the_counts_is_named() -> None:
    with pytest.raises(MeasureError, match="not a count of latencies: 'fio: crashed'"):
        read(output(7).replace(b"0 7 3700", b"fio: crashed"), "boot 3")


def test_what_starting_fio_costs_cancels_out_of_the_functions() -> None:
    symbols = Symbols("ffffffff81000000 _stext\nffffffff81000100 submit.isra.0\nffffffff81000200 complete\n")
    once = "1 ffffffff81000104 10 1000\n1 ffffffff81000204 5 1000\n1 400000 7 500\n1 ffffffff81000110 3 90\n"
    twice = "2 ffffffff81000104 10 2000\n2 ffffffff81000204 5 3000\n2 400000 7 1500\n2 ffffffff81000110 3 90\n"
    assert per_io((once + twice).encode(), symbols, {0: 1000}) == {
        0: Cost({"submit": 10.0, "complete": 10.0, "user space": 7.0}, {}, 1000)
    }


def counted_lines(phase: int, executions: int, held: str) -> str:
    return f"{phase} ffffffff81000104 10 {executions} {held}\n{phase} 400000 7 {executions} 3 0 0 0 0\n"


def test_a_block_counts_the_classes_that_it_holds_as_often_as_it_was_executed() -> None:
    symbols = Symbols("ffffffff81000000 _stext\nffffffff81000100 submit")
    text = counted_lines(1, 1000, "2 1 0 4 0") + counted_lines(2, 2000, "2 1 0 4 0")
    (cost,) = per_io(text.encode(), symbols, {0: 1000}).values()
    assert cost.classes == {
        "locked": {"submit": 2.0, "user space": 3.0},
        "fence": {"submit": 1.0},
        "rdtsc": {},
        "indirect": {"submit": 4.0},
        "string": {},
    }
    with pytest.raises(ValueError, match="columns"):
        per_io(b"1 ffffffff81000104 10 1000 2", symbols, {0: 1000})


def test_a_bill_says_more_from_half_of_all_ios_on_and_leaves_user_space_out() -> None:
    old = {"locked": {"submit": 2.0, "user space": 9.0}, "indirect": {"submit": 1.0, "complete": 1.0}}
    new = {"locked": {"submit": 2.4, "complete": 0.09}, "indirect": {"submit": 1.0, "complete": 0.4, "other": 0.04}}
    charges = {one.kind: one for one in bill("cell", "new", (Cost({}, old, 4000), Cost({}, new, 4000))).charges}
    assert (charges["locked"].word, charges["indirect"].word, charges["fence"].word) == ("", "fewer", "same")
    assert charges["locked"].baseline == 2.0
    assert charges["indirect"].value == pytest.approx(1.44)
    assert [row.name for row in charges["indirect"].functions] == ["complete"]
    assert billed("locked", 0.5, ios=4000).word == "more"


def billed(kind: str, change: float, *, ios: int) -> Charge:
    costs = Cost({}, {kind: {"submit": 7.0}}, ios), Cost({}, {kind: {"submit": 7.0 + change}}, ios)
    return next(one for one in bill("cell", "new", costs).charges if one.kind == kind)


@pytest.mark.parametrize(("kind", "each"), [("locked", 12), ("string", 513)])
@pytest.mark.parametrize("ios", [10, 300, 2000, 100_000])
def test_three_pages_that_one_run_cleared_more_are_of_no_ios_path(kind: str, each: int, ios: int) -> None:
    assert billed(kind, 3 * each / ios, ios=ios).word in ("", "same")
    assert billed(kind, -4000, ios=ios).word == "fewer"


@pytest.mark.parametrize("kept", [True, False], ids=["classes", "an older plugin"])
def test_a_report_has_the_bill_of_an_io_or_says_why_not(tmp_path: Path, kept: bool) -> None:
    held = {"old": "2 1 0 4 0", "new": "3 1 0 4 0"}

    def counts(variant: str) -> str:
        text = counted_lines(1, 4000, held[variant]) + counted_lines(2, 8000, held[variant])
        return text if kept else "".join(f"{line.rsplit(' ', 5)[0]}\n" for line in text.splitlines())

    found = account_with_counts(tmp_path / "bill", counts)
    detail = Detail(bill=True)
    for name in ("mail", "markdown"):
        text = rendered(found, name, detail).decode()
        assert ("locked instructions" in text and "submit +1.00" in text) is kept, text
        assert ("No bill: an iodelta that knew no classes" in text) is not kept
    assert ("locked instructions" in html_of(found, (), detail).decode()) is kept
    assert bool(json.loads(rendered(found, "json"))["bills"]) is kept
    assert "locked" not in "\n".join(line.plain for line in lines(of_path(found)))


def told(timed: tuple[Timed, Timed] | None, old: dict[str, float], new: dict[str, float]) -> str:
    return " ".join(table("cell", "new", (old, new), timed).doubts)


def test_a_table_that_contradicts_itself_or_the_median_says_so() -> None:
    old = {"submit": 3000.0, "complete": 2000.0, "user space": 2500.0}
    shallow = (Timed(7000, 1), Timed(6850, 1))
    assert told(shallow, old, old | {"complete": 1850.0}) == ""
    assert "changed by -49, the median by -150 for each I/O" in told(shallow, old, old | {"complete": 1951.0})
    deep = (Timed(70_000, 8), Timed(68_800, 8))
    assert told(deep, old | {"user space": 4000.0}, old | {"complete": 1850.0, "user space": 4000.0}) == ""
    assert "-150 for each I/O, 8 of them in flight" in told(deep, old, old)
    assert "below zero: blake2s -36.2" in told(None, old | {"blake2s": -36.2}, old)
    assert "of 20,000 for each" in told((Timed(20_000, 1), Timed(20_000, 1)), old, old).lower()


@pytest.mark.parametrize(
    ("options", "several"),
    [
        ({"ioengine": "libaio", "iodepth": "8"}, True),
        ({"ioengine": "libaio"}, False),
        ({"ioengine": "psync", "iodepth": "8"}, False),
        ({"iodepth": "8"}, False),
        ({"ioengine": "io_uring", "iodepth": "8", "rw": "randtrim"}, False),
        ({"ioengine": "io_uring", "iodepth": "8", "rw": "trimwrite"}, True),
        ({"ioengine": "psync", "numjobs": "2"}, True),
    ],
)
def test_a_report_speaks_of_several_ios_in_flight_only_where_the_engine_keeps_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], several: bool
) -> None:
    words = "".join(f'{name} = "{value}"\n' for name, value in options.items())
    plain = "\n".join(line for line in QUESTION.splitlines() if "rw" not in options or not line.startswith("rw"))
    monkeypatch.setattr(counted_boots, "QUESTION", plain.replace("[workload]\n", f"[workload]\n{words}"))
    said = rendered(account(tmp_path / "path", shifted(0)), "mail").decode()
    assert ("With several I/Os in flight" in said) is several


def test_ios_of_a_boot_for_functions_are_those_of_fios_report() -> None:
    cell = CellOutput(fio=b'{"jobs": [{"read": {"total_ios": 700}, "write": {"total_ios": 300}}]}')
    assert cell.ios("boot 3") == 1000
    with pytest.raises(MeasureError, match="fio's report is damaged"):
        CellOutput(fio=b"{").ios("boot 3")
    with pytest.raises(MeasureError, match="counted no I/O"):
        CellOutput(fio=b'{"jobs": []}').ios("boot 3")


NOTE = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1"


def test_what_fio_notes_before_its_report_does_not_damage_it() -> None:
    text = f'@boot 6.1\n@cell 000\n@json\n{NOTE}\n{{\n"jobs": [{{"read": {{"total_ios": 200}}}}]\n}}\n@members\n@end\n'
    assert read(text.encode(), "boot 3").cells[0].ios("boot 3") == 200


def test_knobs_of_a_guest_are_sorted_by_when_they_act_and_others_are_refused() -> None:
    held = settings({"block.scheduler": "bfq", "null_blk.irqmode": "2", "sysctl.vm.swappiness": "1"}, "[variant.a]")
    assert held.queue == {"scheduler": "bfq"}
    assert held.disk == {"irqmode": "2"}
    assert held.files == {"/proc/sys/vm/swappiness": "1"}
    assert settings({"block.iosched.low_latency": "0"}, "a").queue == {"iosched/low_latency": "0"}
    for name in ("cpu.governor", "sysfs:/etc/passwd", "sysfs:/sys/../etc/x", "block.../x"):
        with pytest.raises(RequestError, match="path mode cannot set"):
            settings({name: "1"}, "[variant.a]")


def test_instructions_are_counted_in_a_virtual_machine_only() -> None:
    with pytest.raises(RequestError, match="in a virtual machine only"):
        parse(QUESTION.replace('machine = "vm"', ""))
    with pytest.raises(RequestError, match="every guest is the same"):
        parse(QUESTION.replace('machine = "vm"', 'machine = "vm:cpus=2"'))
