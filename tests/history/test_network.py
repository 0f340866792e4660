"""A history on a real network file system: SSHFS, with the SFTP server of OpenSSH at the other end of two sockets."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from nights import filled, night
from waiting import until
from workshop import unmount

from iodelta.cli.history import command

SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Path]:
    """Where the directory ``there`` of another machine is mounted."""
    server = next((name for name in SERVERS if Path(name).exists()), None)
    if server is None or shutil.which("sshfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("needs sshfs, the SFTP server of OpenSSH and FUSE")
    there, point = tmp_path / "there", tmp_path / "far"
    there.mkdir()
    point.mkdir()
    one, other = socket.socketpair()
    with one, other:
        serving = subprocess.Popen([server], stdin=one.fileno(), stdout=one.fileno())
        words = ["sshfs", "-f", "-o", "passive", f":{there}", str(point)]
        mounted = subprocess.Popen(words, stdin=other.fileno(), stdout=other.fileno())
    try:
        until(lambda: point.is_mount() or mounted.poll() is not None)
        if mounted.poll() is not None:
            pytest.skip("FUSE cannot be mounted here")
        yield point
        unmount(point)
    finally:
        for process in (mounted, serving):
            process.terminate()
            process.wait()


@pytest.mark.root
def test_a_history_on_a_network_mount_is_refused_and_leaves_nothing_there(far: Path, tmp_path: Path) -> None:
    place = far / "history"
    done = CliRunner().invoke(command, ["add", str(tmp_path), "--history", str(place)], catch_exceptions=True)
    assert "fuse.sshfs is a network file system" in str(done.exception)
    assert not place.exists()

    filled(tmp_path, [night(1)])
    place.mkdir()
    shutil.copy(tmp_path / "history.db", place)
    done = CliRunner().invoke(command, ["show", "--history", str(place)], catch_exceptions=True)
    assert "fuse.sshfs is a network file system" in str(done.exception)
    assert [path.name for path in place.iterdir()] == ["history.db"]
