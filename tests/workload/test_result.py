"""Which fio runs are trials, which are not, and why: each by what fio leaves behind in that case."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.machine import Machine
from iodelta.workload.fio import run
from iodelta.workload.model import Ended, FioRequest, FioResult, FioRun
from iodelta.workload.result import read_run

DIRECTION = {"total_ios": 10_000, "io_bytes": 40_960_000, "runtime": 5001, "short_ios": 0, "drop_ios": 0}


def judged(
    *,
    options: tuple[tuple[str, str | None], ...] = (("rw", "randread"),),
    error: int = 0,
    before: str = "",
    stderr: str = "",
    exit_code: int = 0,
    ended: Ended = "finished",
    output: bytes | None = None,
    log: str = "",
    did: Mapping[str, dict[str, int]] = MappingProxyType({"read": DIRECTION}),
    seconds: float = 6.3,
) -> FioResult:
    if output is None:
        job = {"jobname": "iodelta", "error": error, **did}
        document = {"fio version": "fio-3.33", "timestamp_ms": 1_700_000_000_000, "jobs": [job]}
        output = (before + json.dumps(document, indent=2) + "\n").encode()
    request = FioRequest(
        options=options, target="/dev/x", target_kind="device", runtime=5, ramp=1, seed=1, workdir="/tmp"
    )
    return read_run(
        FioRun(
            request=request,
            args=("fio",),
            exit_code=exit_code,
            ended=ended,
            started=1_699_999_990.0,
            seconds=seconds,
            output=output,
            stdout=b"",
            stderr=stderr.encode(),
            log=log.encode(),
        )
    )


def rules(result: FioResult) -> list[tuple[str, str]]:
    return [(finding.rule, finding.severity) for finding in result.findings]


def test_a_full_run_without_errors_is_a_trial() -> None:
    result = judged()
    assert result.findings == ()
    assert result.usable
    assert result.window is not None
    assert result.window == pytest.approx((1_699_999_994.999, 1_700_000_000.0), abs=1e-6)


def test_a_run_more_than_two_percent_short_is_none() -> None:
    assert rules(judged(did={"read": {**DIRECTION, "runtime": 4899}})) == [("fio.short", "hard")]
    assert judged(did={"read": {**DIRECTION, "runtime": 4901}}).usable


def test_a_run_that_hung_on_is_kept_with_a_warning() -> None:
    result = judged(did={"read": {**DIRECTION, "runtime": 7000}}, seconds=8.3)
    assert rules(result) == [("fio.long", "warning")]
    assert result.usable


def test_a_run_of_full_length_without_io_is_a_result_of_zero() -> None:
    idle = {**DIRECTION, "total_ios": 0}
    nothing = judged(did={"read": idle})
    assert nothing.usable
    assert [(one.kind, one.ios, one.iops.value, one.bandwidth.value) for one in nothing.directions] == [
        ("read", 0, 0.0, 0.0)
    ]
    half = judged(options=(("readwrite", "randrw"),), did={"read": DIRECTION, "write": idle})
    assert half.usable
    assert {one.kind: one.ios > 0 for one in half.directions} == {"read": True, "write": False}
    assert rules(judged(error=5, did={"read": idle})) == [("fio.failed", "hard")]


def test_a_run_without_io_or_without_one_of_its_directions_that_ended_early_is_none() -> None:
    idle = {**DIRECTION, "total_ios": 0}
    mixed = (("readwrite", "randrw"),)
    assert rules(judged(did={"read": idle}, seconds=2)) == [("fio.no-io", "hard")]
    early = judged(options=mixed, did={"read": DIRECTION, "write": idle}, seconds=2)
    assert rules(early) == [("fio.direction-missing", "hard"), ("fio.no-ramp", "hard")]
    assert judged(options=mixed, did={"read": DIRECTION, "write": DIRECTION}).usable


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ((("rw", "rw"), ("rwmixread", "100")), ("read",)),
        ((("rw", "randrw"), ("rwmixwrite", "0")), ("read",)),
        ((("rw", "write:4k"),), ("write",)),
        ((("rw", "randtrimwrite"),), ("trim", "write")),
        ((("rw", "write"), ("verify", "crc32c")), ("read", "write")),
    ],
)
def test_the_directions_of_a_workload_follow_from_its_mode(
    options: tuple[tuple[str, str | None], ...], kinds: tuple[str, ...]
) -> None:
    assert judged(options=options, did=dict.fromkeys(kinds, DIRECTION)).findings == ()


def test_an_error_of_a_job_is_told_in_fios_own_words() -> None:
    line = "fio: pid=7, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error"
    result = judged(error=5, before=line + "\n", exit_code=1)
    assert rules(result) == [("fio.failed", "hard")]
    assert line in result.findings[0].explanation


def test_a_good_exit_code_does_not_hide_an_error_or_a_job_killed_by_a_signal() -> None:
    assert rules(judged(error=5)) == [("fio.failed", "hard")]
    assert rules(judged(before="fio: pid=20425, got signal=9\n")) == [("fio.failed", "hard")]
    assert rules(judged(before="\nfio: terminating on signal 2\n")) == [("fio.failed", "hard")]


def test_a_fio_killed_by_a_signal_is_named_by_it() -> None:
    result = judged(output=b"", exit_code=-9)
    assert rules(result) == [("fio.failed", "hard")]
    assert "SIGKILL" in result.findings[0].explanation


@pytest.mark.parametrize("output", [b"", b"fio: nothing\n", b'{\n  "fio version" : "fio-3.33",\n  "jobs" : [\n'])
def test_a_cut_output_is_no_trial(output: bytes) -> None:
    assert rules(judged(output=output)) == [("fio.cut", "hard")]


def test_output_of_another_program_or_version_is_no_trial() -> None:
    assert rules(judged(output=b'{\n"fio version": "fio-2.1.10", "jobs": []\n}\n')) == [("fio.cut", "hard")]


WHOLE = json.dumps({"fio version": "fio-3.33", "jobs": [{"read": DIRECTION, "error": 0}]}, indent=2).encode() + b"\n"


@given(st.integers(0, len(WHOLE)), st.binary(max_size=8), st.integers(0, 8))
def test_damaged_output_is_judged_never_raised(at: int, noise: bytes, gone: int) -> None:
    result = judged(output=WHOLE[:at] + noise + WHOLE[at + gone :])
    assert result.directions or not result.usable


def test_a_stopped_run_and_one_out_of_time_say_so_and_nothing_else() -> None:
    assert rules(judged(ended="stopped", exit_code=128)) == [("fio.stopped", "hard")]
    assert rules(judged(ended="timed out", exit_code=-9, output=b"")) == [("fio.timeout", "hard")]


def test_short_and_dropped_ios_warn_and_many_of_them_disqualify() -> None:
    assert rules(judged(did={"read": {**DIRECTION, "short_ios": 5}})) == [("fio.incomplete-ios", "warning")]
    assert rules(judged(did={"read": {**DIRECTION, "drop_ios": 50}})) == [("fio.incomplete-ios", "hard")]


@pytest.mark.parametrize("kind", ["note", "warning"])
def test_notes_and_warnings_of_fio_are_passed_on(kind: str) -> None:
    said = f"{kind}: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1"
    result = judged(before=said + "\n")
    assert rules(result) == [(f"fio.{kind}", kind)]
    assert result.findings[0].explanation == said


@pytest.mark.parametrize(
    ("runtime", "kinds", "log", "series"),
    [
        # Seconds without I/O are zeros, not gaps.
        (
            5003,
            ["read"],
            "1000, 90, 0, 0, 0\n3999, 80, 0, 0, 0\n5000, 70, 0, 0, 0\n",
            {"read.iops": (90, 0, 0, 80, 70)},
        ),
        # A last second that fio did not log is left out.
        (3001, ["read"], "1000, 90, 0, 0, 0\n2000, 80, 0, 0, 0\n", {"read.iops": (90, 80)}),
        # Jobs add up, and a last second that one of them missed is left out.
        (
            3001,
            ["read"],
            "1000, 10, 0, 0, 0\n2000, 11, 0, 0, 0\n999, 20, 0, 0, 0\n2001, 21, 0, 0, 0\n3000, 22, 0, 0, 0\n",
            {"read.iops": (30, 32)},
        ),
        # A single second that one of two jobs may have missed: half of the I/Os stood as those of the whole second.
        (1001, ["read"], "1000, 754, 0, 0, 0\n", {}),
        # Directions have a series each.
        (
            2001,
            ["read", "write"],
            "1000, 10, 0, 0, 0\n1000, 7, 1, 0, 0\n2000, 11, 0, 0, 0\n2000, 8, 1, 0, 0\n",
            {"read.iops": (10, 11), "write.iops": (7, 8)},
        ),
        *((5001, ["read"], log, {}) for log in ("", "garbage\n", "1000, -5, 0, 0\n", "1000, 5, 7, 0, 0\n")),
    ],
)
def test_the_log_of_a_run_is_its_series(
    runtime: int, kinds: list[str], log: str, series: dict[str, tuple[int, ...]]
) -> None:
    assert judged(log=log, did={kind: {**DIRECTION, "runtime": runtime} for kind in kinds}).series == series


def test_what_was_counted_in_the_ramp_is_no_trial() -> None:
    """A run of 5.2 seconds cannot have had a ramp of one second and then counted for five."""
    assert rules(judged(seconds=5.2)) == [("fio.no-ramp", "hard")]
    assert rules(judged(seconds=6.0)) == []


@pytest.mark.fio
def test_a_rate_and_a_ramp_as_long_as_the_trial_end_fio_in_the_ramp(
    machine: Machine, data: str, request_for: Callable[..., FioRequest]
) -> None:
    """fio reckons when the next I/O of a rate is due from its start, and ends where that is after its runtime."""
    load = ("rw=randread", "bs=4k", "rate_iops=500", "ioengine=psync")
    longer, shorter = (
        read_run(run(machine, request_for(data, *load, runtime=one, ramp=two))) for one, two in ((0.5, 1.5), (1.0, 0.5))
    )
    assert shorter.usable
    measured = [(finding.rule, finding.severity) for finding in longer.findings]
    assert measured in ([("fio.no-ramp", "hard")], []), "a later fio may do the ramp"
