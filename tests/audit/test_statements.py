"""Numbers in prose: changes, their percentages, and two people's effects."""

from __future__ import annotations

from iodelta.audit import audit
from iodelta.audit.statements import check_statements
from iodelta.ingest.prose import changes, rows

DEPTHS = """\
- iodepth=32:
old: 554 IOPS → new: 535 IOPS (~-3.4%)
avg clat: 57.7 ms → 59.8 ms

- iodepth=64:
old: 608 IOPS → new: 588 IOPS (~-3.3%)
avg clat: 105 ms → 109 ms

- iodepth=128:
old: 648 IOPS → new: 640 IOPS (~-1.2%)
"""

GOVERNOR = """\
I then experienced a significant drop in performance – up to 25% depending on the packet size.

Fio test case 1, Random Read [RR] / Random Write [RW]:

Kernel 4.1:
RR: 780 MByte/sec – RW: 754 MByte/sec,
RR Spread around 35 Mbyte/sec

Kernel 4.4, powersave :
RR: 669 MByte/sec – RW: 605 MByte/sec,

Kernel 4.4, performance :
RR: 780 MByte/sec – RW: 750 MByte/sec,

Fio test case 2, Random Read [RR] / Random Write [RW]:

Kernel 4.1:
RR: 860 MByte/sec – RW: 800 MByte/sec
Kernel 4.4, powersave:
RR: 735 MByte/sec – RW: 660 MByte/sec
"""

REPRODUCED = """\
> > patterns. ublk null target benchmark IOPS drops
> > significantly compared to v6.19: from ~36M IOPS to ~13M IOPS (~64%
> > drop).
For the good case, IOPS can reach 19M on commit 41f1a086.
For the bad case, IOPS can reach 14M on commit 815c8e35.
I think this means I've successfully reproduced your test results.
"""


def test_the_depth_sweep_of_a_regression_report_obeys_littles_law() -> None:
    sides = rows(DEPTHS, "mail")
    assert [run.workload.iodepth for run in sides] == [32, 32, 64, 64, 128, 128]
    assert not audit(sides).hits
    assert not check_statements(DEPTHS, "mail")


def test_the_same_report_with_one_digit_wrong_does_not() -> None:
    wrong = DEPTHS.replace("57.7 ms", "37.7 ms")
    (hit,) = audit(rows(wrong, "mail")).hits
    assert hit.finding.rule == "little.mismatch"


def test_a_percentage_must_be_that_of_its_numbers() -> None:
    (finding,) = check_statements(DEPTHS.replace("-3.3%", "-5.3%"), "mail")
    assert (finding.rule, finding.severity, finding.place) == ("statement.percent", "hard", "mail:6")
    assert "-3.3 %" in finding.explanation


def test_up_to_25_percent_is_more_than_the_20_shown() -> None:
    (finding,) = check_statements(GOVERNOR, "blog")
    assert finding.rule == "statement.up-to"
    assert "19.8 %" in finding.explanation
    assert not check_statements(GOVERNOR.replace("25%", "20%"), "blog")


def test_a_gain_is_a_share_of_the_lower_number() -> None:
    text = "The patch is up to 80 % faster.\n\nBefore:\nRead: 500 MB/s\nAfter:\nRead: 900 MB/s\n"
    assert not check_statements(text, "mail")
    (finding,) = check_statements(text.replace("80 %", "85 %"), "mail")
    assert "differ by 80.0 % at most" in finding.explanation
    (finding,) = check_statements(text.replace("faster", "slower"), "mail")
    assert "differ by 44.4 % at most" in finding.explanation
    assert not check_statements("It is up to 82 % faster: from 5M to 9M IOPS.\n", "mail"), "5M may be 4.95M"


def test_an_effect_of_another_size_is_not_reproduced() -> None:
    (finding,) = check_statements(REPRODUCED, "mail")
    assert finding.rule == "statement.effect-size"
    assert "-64 %" in finding.explanation
    assert "-26 %" in finding.explanation


def test_two_sizes_from_one_person_are_two_cells_not_a_contradiction() -> None:
    assert not check_statements(REPRODUCED.replace("> ", ""), "mail")


def test_a_change_is_read_across_the_wraps_of_quoted_mail() -> None:
    first, second = changes(REPRODUCED)
    assert (first.before.value, first.after.value, first.quoted, first.line) == (36e6, 13e6, 2, 2)
    assert first.stated == "~64% drop"
    assert (second.before.value, second.before.unit) == (19e6, "IOPS")


def test_effects_in_percent_without_a_number_can_only_be_noted() -> None:
    text = "fio mmap randread 64k has more than 40% regression.\nMy method improves it by 10% improvement.\n"
    (finding,) = check_statements(text, "x", measured=False)
    assert (finding.rule, finding.severity, finding.place) == ("statement.bare", "note", "x:1")
    assert check_statements(text, "x") == ()
    assert check_statements(text + "It went from 36M to 13M IOPS.\n", "x", measured=False) == ()
