"""Kernel settings by name, on real ones that nothing on a machine depends on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine

from .rooted import Rooted, on_sda

# Both count only in overcommit mode 2.
RATIO, KBYTES = Path("/proc/sys/vm/overcommit_ratio"), Path("/proc/sys/vm/overcommit_kbytes")


@pytest.fixture
def overcommit() -> Iterator[None]:
    ratio, kbytes = RATIO.read_text(), KBYTES.read_text()
    yield
    path, text = (RATIO, ratio) if kbytes.strip() == "0" else (KBYTES, kbytes)
    path.write_text(text)


def both() -> tuple[str, str]:
    return RATIO.read_text().strip(), KBYTES.read_text().strip()


@pytest.mark.root
@pytest.mark.usefixtures("overcommit")
@pytest.mark.parametrize(
    ("name", "value"), [("sysctl.vm.overcommit_kbytes", "100000"), ("sysctl.vm.overcommit_ratio", "70")]
)
@pytest.mark.parametrize("found", [(RATIO, "60"), (KBYTES, "200000")])
def test_a_setting_with_two_spellings_comes_back_in_the_one_it_had(
    machine: LocalMachine, name: str, value: str, found: tuple[Path, str]
) -> None:
    found[0].write_text(found[1])
    before = both()
    one = on_sda(name, machine)
    saved = one.save()
    one.apply(value)
    one.verify(value)
    assert both() != before
    knob.restore(machine, saved)
    assert both() == before


@pytest.mark.root
@pytest.mark.usefixtures("overcommit")
def test_two_spellings_in_different_variants_do_not_undo_each_other(machine: LocalMachine) -> None:
    names = ("sysctl.vm.overcommit_kbytes", "sysctl.vm.overcommit_ratio")
    knobs = {name: on_sda(name, machine) for name in names}
    saved = {name: one.save() for name, one in knobs.items()}
    before = both()
    for _ in range(2):
        knob.turn(knobs, saved, {"sysctl.vm.overcommit_ratio": "70"})
        assert both() == ("70", "0")
        knob.turn(knobs, saved, {"sysctl.vm.overcommit_kbytes": "100000"})
        assert both() == ("0", "100000")
        knob.turn(knobs, saved, {})
        assert both() == before
    with pytest.raises(KnobError, match="requested"):
        knob.turn(knobs, saved, {"sysctl.vm.overcommit_kbytes": "100000", "sysctl.vm.overcommit_ratio": "70"})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("sysctl.vm.dirty_ratio", "vm/dirty_ratio"),
        ("sysctl.net.ipv4.conf.eth0/7.forwarding", "net/ipv4/conf/eth0.7/forwarding"),
        ("sysctl.net/ipv4/conf/eth0.7/forwarding", "net/ipv4/conf/eth0.7/forwarding"),
    ],
)
def test_interface_names_with_dots_are_spelled_as_sysctl_does(tmp_path: Path, name: str, path: str) -> None:
    machine = Rooted(tmp_path, {f"/proc/sys/{path}": "1"})
    one = on_sda(name, machine)
    assert one.available() is None
    one.apply("0")
    assert machine.writes == [(f"/proc/sys/{path}", "0")]


@pytest.mark.parametrize(
    "name", ["sysctl.vm//x", "sysctl.net/../vm/swappiness", "sysctl.vm.", "sysctl../../etc/passwd", "sysctl.vm.dirty*"]
)
def test_a_name_stays_below_proc_sys(tmp_path: Path, name: str) -> None:
    one = on_sda(name, Rooted(tmp_path, {}))
    with pytest.raises(RequestError, match="is not the name"):
        one.available()


def test_several_numbers_compare_without_their_blanks(tmp_path: Path) -> None:
    machine = Rooted(tmp_path, {"/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456"})
    one = on_sda("sysctl.net.ipv4.tcp_rmem", machine)
    one.apply("4096 131072  6291456")
    one.verify("4096  131072 6291456")
    assert machine.writes == []


@pytest.mark.parametrize("value", ["70\n80", "70\0"])
def test_one_value_is_one_line(machine: LocalMachine, value: str) -> None:
    with pytest.raises(RequestError, match="one line"):
        on_sda("sysctl.vm.swappiness", machine).check(value)


def test_what_cannot_be_read_back_is_not_a_setting(machine: LocalMachine) -> None:
    reason = on_sda("sysctl.vm.drop_caches", machine).available()
    assert reason is not None
    assert "cannot be read back" in reason


def test_a_setting_that_the_kernel_lacks_is_named(machine: LocalMachine) -> None:
    reason = on_sda("sysctl.vm.no_such_setting", machine).available()
    assert reason == "this kernel has no /proc/sys/vm/no_such_setting"


@pytest.mark.root
@pytest.mark.usefixtures("overcommit")
def test_a_value_the_kernel_refuses_changes_nothing(machine: LocalMachine) -> None:
    before = both()
    with pytest.raises(KnobError, match=r"overcommit_ratio: cannot set 'many': .*EINVAL"):
        on_sda("sysctl.vm.overcommit_ratio", machine).apply("many")
    assert both() == before
