"""How a guest ends, told by a stand-in for qemu that writes what a guest would write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from waiting import until

from iodelta.errors import MeasureError
from iodelta.vm import boot


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in qemu's place; it runs with CONSOLE and OUT set."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.setenv("CONSOLE", str(tmp_path / "console"))
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    return place / boot.QEMU


def ended(script: Path, what: str, directory: Path, limits: boot.Limits | None = None) -> boot.Ended:
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo QEMU 7; exit; }}\n{what}\n')
    script.chmod(0o755)
    with boot.Guest(boot.Boot("image", "initrd"), str(directory), limits) as guest:
        return guest.wait()


def test_a_guest_that_says_its_end_has_ended(qemu: Path, tmp_path: Path) -> None:
    assert ended(qemu, 'echo hello >"$CONSOLE"; printf "data\\niodelta-end\\n" >"$OUT"', tmp_path).problem == ""


def test_exit_code_0_without_the_end_marker_is_no_end(qemu: Path, tmp_path: Path) -> None:
    found = ended(qemu, 'echo last words >"$CONSOLE"; echo data >"$OUT"; echo cannot map >&2', tmp_path)
    assert "before its output was complete (qemu's exit code 0); qemu says: cannot map" in found.problem
    assert found.console == ("last words",)


def test_a_panic_is_a_result_with_its_last_lines(qemu: Path, tmp_path: Path) -> None:
    panic = "Kernel panic - not syncing: VFS: Unable to mount root"
    found = ended(
        qemu, f'printf "one\\n[ 1.0] {panic}\\n\\033[2J\\n" >"$CONSOLE"; printf iodelta-end >"$OUT"', tmp_path
    )
    assert found.problem == f"the guest's kernel panicked: {panic}"
    assert found.console[0] == "one"
    assert "\x1b" not in "".join(found.console)


def test_a_guest_that_hangs_or_floods_its_console_is_ended(qemu: Path, tmp_path: Path) -> None:
    found = ended(qemu, "exec sleep 600", tmp_path, boot.Limits(seconds=0.3))
    assert found.problem == "the guest did not end within 0 s"
    flood = 'yes nothing | head -c 9999999 >"$CONSOLE"; exec sleep 600'
    found = ended(qemu, flood, tmp_path, boot.Limits(console=1 << 16))
    assert found.problem == "the guest flooded its console with more than 64 KiB"
    assert len(found.console) == boot.TAIL


def test_a_guest_that_computes_without_a_word_hangs_and_one_that_waits_does_not(qemu: Path, tmp_path: Path) -> None:
    limits = boot.Limits(seconds=120, silent=0.2)
    found = ended(qemu, 'echo begun >"$CONSOLE"; while :; do :; done', tmp_path, limits)
    assert found.problem == "the guest hangs: no sign of progress in 0 s of CPU time"
    assert found.console == ("begun",)
    found = ended(qemu, "exec sleep 600", tmp_path, boot.Limits(seconds=1, silent=0.5))
    assert found.problem == "the guest did not end within 1 s"


def test_a_busy_host_takes_no_time_from_a_guest_that_computes(qemu: Path, tmp_path: Path) -> None:
    found = ended(qemu, "while :; do :; done", tmp_path, boot.Limits(seconds=600, cpu=0.2))
    assert found.problem == "the guest did not end within 0 s of CPU time"
    found = ended(qemu, "exec sleep 600", tmp_path, boot.Limits(seconds=1, cpu=0.5))
    assert found.problem == "the guest did not end within 1 s"


def test_a_guest_does_not_outlive_iodelta_even_after_sigkill(qemu: Path, tmp_path: Path) -> None:
    qemu.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo QEMU 7; exit; }\nexec sleep 600\n')
    qemu.chmod(0o755)
    program = f"""
        import time
        from iodelta.vm import boot
        guest = boot.Guest(boot.Boot("image", "initrd"), {str(tmp_path)!r})
        print(guest.pid, flush=True)
        time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        until(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
        owner.send_signal(signal.SIGKILL)
    until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_qemu_or_memory_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="a guest needs 10000160 MiB of memory"):
        boot.enough_memory(10_000_000)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MeasureError, match="apt-get install qemu-system-x86") as raised:
        boot.available()
    assert raised.value.exit_code == 4


def test_nodes_share_cpus_and_memory_and_the_last_has_what_is_over() -> None:
    words = " ".join(boot.command(boot.Boot("image", "initrd", memory=500, cpus=5, nodes=2), console="c", out="o"))
    assert "size=250M -numa node,nodeid=0,cpus=0-1,memdev=node0" in words
    assert "size=250M -numa node,nodeid=1,cpus=2-4,memdev=node1" in words
    assert "-numa" not in boot.command(boot.Boot("image", "initrd", cpus=4), console="c", out="o")
