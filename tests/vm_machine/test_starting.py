"""Guests that start: a panic on the way is booted again and told, and a wait knows CPUs, load and CPU time."""

from __future__ import annotations

import os

import pytest

from iodelta.errors import LostError
from iodelta.machine.shell import ShellMachine
from iodelta.machine.vm import BOOTS, VmMachine, patience
from iodelta.vm.boot import Guest, Wait
from iodelta.vm.spec import Spec, parse


def panicking(monkeypatch: pytest.MonkeyPatch, times: int, *, panic: bool = True) -> None:
    """Guests of which the first so many are lost while they start."""
    lost: list[str] = []

    def enter(machine: VmMachine) -> VmMachine:
        if len(lost) < times:
            lost.append("")
            machine._line.panicked = panic
            raise LostError(
                "the guest's kernel panicked: Fatal exception\n  | a console", place="guest 6.12", remedy=""
            )
        return machine

    monkeypatch.setattr(ShellMachine, "__enter__", enter)
    monkeypatch.setattr(VmMachine, "_wait_for_disks", lambda _: "")


@pytest.mark.parametrize("times", range(BOOTS))
def test_a_guest_that_panics_before_its_first_trial_is_booted_again(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    panicking(monkeypatch, times)
    machine = VmMachine("6.12")
    first = machine._line
    assert machine.__enter__() is machine
    assert machine.told == ("the guest's kernel panicked: Fatal exception; it is booted again",) * times
    assert (machine._line is first) == (times == 0)


def test_a_guest_that_panics_in_every_boot_and_one_that_hangs_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    panicking(monkeypatch, BOOTS)
    with pytest.raises(LostError, match=f"in each of {BOOTS} boots"):
        VmMachine("6.12").__enter__()
    panicking(monkeypatch, 1, panic=False)
    with pytest.raises(LostError):
        VmMachine("6.12").__enter__()


def test_waits_grow_with_cpus_and_load_and_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodelta.vm.boot.why_no_kvm", lambda: "no KVM")
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.5, 0.5))
    at_rest = patience(Spec(), 90.0)
    assert 90 <= at_rest < patience(Spec(cpus=16), 90.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (90.0, 60.0, 30.0))
    assert patience(Spec(), 90.0) > 5 * at_rest
    assert patience(Spec(budget=180.0), 90.0) == 180.0, "no wait is longer than the budget"
    assert patience(parse("6.12,wait=30"), 90.0) == 30.0


def test_a_guest_that_had_no_cpu_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy host gives it none for minutes; that says nothing about the guest."""
    clock = [0.0]
    monkeypatch.setattr("iodelta.vm.boot.time.monotonic", lambda: clock[0])

    class Starved(Guest):
        cpu = 0.0

        def __init__(self) -> None: ...

    guest = Starved()
    wait = Wait(guest, 10.0, 4)
    clock[0] = 11.0
    assert not wait.over
    guest.cpu = 10.0
    assert wait.over
    guest.cpu, clock[0] = 0.0, 41.0
    assert wait.over
