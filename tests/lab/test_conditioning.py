"""What a preparation does next, and when it says steady: closed forms and a disk that is simulated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.experiment import Prepare, parse
from iodelta.experiment.prepare import DEFAULT, workload_of
from iodelta.lab.preparing import (
    FILL_BLOCK,
    REST,
    Kind,
    Round,
    least_written,
    next_step,
    parts_of_fill,
    state_of,
    unbroken,
    window_of,
)

GIB = 1 << 30


@given(st.integers(1 << 20, 1 << 44), st.floats(0.0, 10.0))
def test_a_fill_writes_every_block_as_often_as_asked(size: int, fill: float) -> None:
    parts = parts_of_fill(size, fill)
    assert abs(sum(part.size for part in parts) - fill * size) <= (fill + 2) * FILL_BLOCK
    assert all(part.offset + part.size <= size for part in parts), "nothing behind the end"
    assert all(part.size % FILL_BLOCK == part.offset % FILL_BLOCK == 0 for part in parts)
    at = 0
    for part in parts:
        assert part.offset in (0, at), "in sequence, pass after pass"
        at = part.offset + part.size
    assert len(parts) <= 65 * (fill + 1)


def test_the_order_of_the_steps_is_purge_fill_rounds() -> None:
    prepare = Prepare(purge="discard", fill=2)
    done: list[Kind] = []
    while len(done) < 12:
        done.append(next_step(prepare, 3 * GIB, done).kind)
    assert done == ["purge", *["fill"] * 6, *["round"] * 5]
    assert next_step(Prepare(fill=0), GIB, []).kind == "round"


def rounds(values: list[float], *, written: int, rest_before: int | None = None) -> list[Round]:
    """Rounds of a minute, one right after the other but for a rest."""
    found, at = [], 0.0
    for number, value in enumerate(values):
        at += 2 * REST if number == rest_before else 0.0
        found.append(Round(number + 1, at, 60.0, value, written))
        at += 60.0
    return found


def test_steady_is_not_said_before_the_spare_area_is_used_up() -> None:
    prepare = Prepare(spare=0.3)
    assert least_written(prepare, 100) == pytest.approx(30)
    assert least_written(Prepare(fill=0), 100) == pytest.approx(130), "without a fill the rounds must write all of it"
    flat = [1000.0] * 12
    assert state_of(prepare, 100, rounds(flat[:10], written=5)) == "running", "five rounds before these wrote 25 %"
    assert state_of(prepare, 100, rounds(flat[:11], written=5)) == "steady"


@given(st.integers(0, 12), st.integers(1, 5))
def test_a_window_never_reaches_over_a_rest(before: int, after: int) -> None:
    made = rounds([1000.0] * (before + after), written=100, rest_before=before)
    assert len(unbroken(made)) == after
    window = window_of(made)
    assert (window is None) == (after < 5)
    if window is not None:
        assert window.first == before


def test_the_limit_counts_rounds_since_it_was_given_up_and_since_a_rest() -> None:
    prepare = Prepare(limit=6)
    uneven = [1000.0, 500.0] * 6
    assert state_of(prepare, 1000, rounds(uneven[:5], written=100)) == "running"
    assert state_of(prepare, 1000, rounds(uneven[:6], written=100)) == "not steady"
    assert state_of(prepare, 1000, rounds(uneven[:7], written=100), given_up=6) == "running"
    assert state_of(prepare, 1000, rounds(uneven, written=100), given_up=6) == "not steady"
    assert state_of(prepare, 1000, rounds(uneven[:8], written=100, rest_before=4)) == "running"


@pytest.mark.parametrize("spare", [0.05, 0.1, 0.2, 0.29])
@pytest.mark.parametrize("each", [1, 2, 5])
def test_a_disk_with_so_much_spare_area_is_never_called_steady_while_it_is_as_fast_as_new(
    spare: float, each: int
) -> None:
    """A round writes ``each`` % of the size while the disk is fast, a quarter of that once no spare area is left."""
    size, prepare = 100_000, Prepare(limit=1000)
    made: list[Round] = []
    total, fell = 0, None
    while state_of(prepare, size, made) != "steady":
        fast = total < spare * size
        fell = len(made) if fell is None and not fast else fell
        rate = 1000.0 if fast else 250.0
        wrote = int(size * each / 100 * rate / 1000)
        made.append(Round(len(made) + 1, 60.0 * len(made), 60.0, rate, wrote))
        total += wrote
    window = window_of(made)
    assert fell is not None
    assert window is not None
    assert window.first >= fell


EXPERIMENT = """
[target]
path = "/dev/sdb"
[workload]
{workload}
[variant.a]
"fio.nice" = 0
[variant.b]
"fio.nice" = 1
[prepare]
{prepare}
"""


@pytest.mark.parametrize(
    ("workload", "prepare", "rw"),
    [
        ('rw = ["randread", "randwrite"]\nbs = "16k"', "", "randwrite"),
        ('rw = "randrw"\nbs = "16k"', "", "randrw"),
        ('rw = "randwrite"\nbs = "16k"', 'workload = { rw = "write", bs = "1m" }', "write"),
    ],
)
def test_rounds_do_what_the_experiment_measures_unless_told_otherwise(workload: str, prepare: str, rw: str) -> None:
    found = dict(workload_of(parse(EXPERIMENT.format(workload=workload, prepare=prepare))))
    assert found["rw"] == rw


def test_an_experiment_that_only_reads_is_prepared_by_random_writes() -> None:
    assert workload_of(parse(EXPERIMENT.format(workload='rw = "randread"', prepare=""))) == DEFAULT
