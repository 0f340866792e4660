"""The same rules over iodelta's own trials: counters of the machine instead of fio's, and one finding per arm."""

from __future__ import annotations

from typing import Any

import pytest
from fio_runs import direction

from iodelta.audit import Facts, audit_trials
from iodelta.trial import Finding, Trial

OPTIONS = {"rw": "randread", "bs": "4k", "ioengine": "libaio", "iodepth": "32", "direct": "1"}
TIMED = {"runtime": "10s", "ramp_time": "1s"}
ARMS = (("4k", "a"), ("4k", "b"))
FACTS = Facts(dict.fromkeys(ARMS, OPTIONS | TIMED), devices=("md0",), members=("sda", "sdb"), margin=0.01)


def trials(count: int = 12, **more: Any) -> list[Trial]:
    """Sound trials of two variants, in turn, with counters of an array of two; ``more`` may be a function of i."""
    made = []
    for number in range(count):
        given: dict[str, Any] = {"counters": counters()} | {
            name: value(number) if callable(value) else value for name, value in more.items()
        }
        iops = 10_000 - number
        made.append(
            Trial(
                number=number,
                cell="4k",
                variant="ab"[number % 2],
                block=number // 2,
                position=number % 2,
                seed=number,
                started=1000.0 + 15 * number,
                seconds=12.0,
                **({"directions": (direction(iops, mean_us=32 / iops * 1e6),)} | given),
            )
        )
    return made


def counters(reads: int = 112_000, members: tuple[int, int] = (56_000, 56_000), **more: float) -> dict[str, float]:
    found = {"seconds": 12.0, "cpu.user_ms": 24_000.0, "cpu.steal_ms": 0.0, "cpu.mhz_mean": 3000.0}
    for name, count in zip(("md0", "sda", "sdb"), (reads, *members), strict=True):
        found |= {f"disk.{name}.read_ios": float(count), f"disk.{name}.read_bytes": 4096.0 * count}
    return found | {name.replace("_", ".", 1): value for name, value in more.items()}


def found(*args: Any, **more: Any) -> list[Finding]:
    return list(audit_trials(trials(*args, **more), FACTS))


@pytest.mark.parametrize(
    ("carried", "counted"),
    [("noise.steal", {"cpu_steal_ms": 2000.0}), ("noise.other-io", {"reads": 300_000, "members": (150_000, 150_000)})],
)
def test_a_fact_that_the_trials_tell_themselves_is_not_told_again_by_another_rule(
    carried: str, counted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """noise.steal and cpu.stolen stood under one another in the same report."""
    spoilt = counters(**counted)
    if carried == "noise.other-io":  # after a ramp the trials alone can tell
        monkeypatch.setitem(globals(), "FACTS", Facts(dict.fromkeys(ARMS, OPTIONS), ("md0",), ("sda", "sdb")))
    alone = found(counters=spoilt)
    assert {one.place for one in alone} == {"cell 4k, a", "cell 4k, b"}, alone
    own = (Finding(carried, "warning", "trial 1", "the trial's own words", ""),)
    assert found(counters=spoilt, findings=own) == []
    halved = found(counters=spoilt, findings=lambda number: own if number % 2 else ())
    assert {one.place for one in halved} == {"cell 4k, a"}, "of the other arm nothing was told yet"


def test_a_ramp_of_the_trials_own_is_no_other_io_whatever_its_rate() -> None:
    assert found(counters=counters(reads=3_000_000, members=(1_500_000, 1_500_000))) == []


def test_sound_trials_have_no_finding() -> None:
    assert found() == []


def test_one_finding_for_each_arm_with_how_many_trials_it_touches() -> None:
    spoilt = found(directions=lambda number: (direction(10_000 - number, mean_us=4000 if number < 4 else 3195),))
    assert [(one.rule, one.place) for one in spoilt] == [
        ("little.impossible", "cell 4k, a"),
        ("little.impossible", "cell 4k, b"),
    ]
    assert spoilt[0].explanation.startswith("2 of 6 trials; the first: ")


def test_trials_served_by_a_cache_are_hard_findings() -> None:
    hits = found(counters=counters(reads=2_000, members=(1_000, 1_000)))
    assert {(one.rule, one.severity) for one in hits} == {("cache.not-from-device", "hard")}


@pytest.mark.parametrize(
    ("whole", "rules"), [(None, set()), (112_000, set()), (2_500, {"cache.not-from-device"})], ids=str
)
def test_the_least_that_a_disk_may_have_done_in_counted_seconds_accuses_no_cache(
    whole: int | None, rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A null device under t/io_uring on a slow guest: when its seconds were is known to a second, and the least of two
    guesses was taken for all that reached the device, a hard finding."""
    monkeypatch.setitem(
        globals(), "FACTS", Facts(dict.fromkeys(ARMS, OPTIONS | {"tool": "t/io_uring"}), devices=("md0",), margin=0.01)
    )
    counted = counters(reads=2_000) | ({} if whole is None else {"whole.disk.md0.read_bytes": 4096.0 * whole})
    assert {one.rule for one in found(counters=counted)} == rules


def test_a_scrub_of_the_members_during_the_run_shows() -> None:
    assert {one.rule for one in found(counters=counters(members=(80_000, 60_000)))} == {"device.members"}


def test_several_runs_of_a_boot_last_as_long_as_all_of_them() -> None:
    pooled = counters() | {"run.1.iops": 11_000.0, "run.2.iops": 11_000.0}
    assert "run.late-end" not in {one.rule for one in found(counters=counters())}
    assert {one.rule for one in found(counters=pooled)} == {"run.early-end"}  # as long as one of them


def test_a_clock_that_wanders_inside_one_arm_shows() -> None:
    hits = found(counters=lambda number: counters(cpu_mhz_mean=2000.0 + 100 * number))
    assert [one.rule for one in hits] == ["cpu.clock", "cpu.clock"]
    assert "2000 to 3000 MHz" in hits[0].explanation


def test_a_clock_that_differs_between_arms_may_be_the_variant_itself() -> None:
    assert found(counters=lambda number: counters(cpu_mhz_mean=(2000.0, 3000.0)[number % 2])) == []


def test_all_trials_drifting_one_way_inside_their_window_need_a_longer_ramp() -> None:
    rising = {"read.iops": tuple(9_000.0 + 200 * second for second in range(10))}
    hits = found(24, series=rising)
    assert [one.rule for one in hits] == ["steady.slope", "steady.slope"]
    assert "12 of 12 runs" in hits[0].explanation


def test_a_synchronous_engine_is_said_of_the_variant_that_uses_it() -> None:
    facts = Facts({ARMS[0]: OPTIONS | TIMED, ARMS[1]: OPTIONS | TIMED | {"ioengine": "psync"}})

    def did(number: int) -> tuple[Any, ...]:
        iops = 10_000 - number
        return (direction(iops, mean_us=(32, 0.99)[number % 2] / iops * 1e6),)

    (finding,) = audit_trials(trials(directions=did), facts)
    assert (finding.rule, finding.place) == ("depth.ignored", "cell 4k, b")
    assert finding.explanation.startswith("6 of 6 trials")
