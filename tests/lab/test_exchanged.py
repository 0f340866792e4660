"""Another user exchanges what root is about to write to, thousands of times: no byte changes outside of their place."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import random
import select
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from test_guard import on_devices

from iodelta.errors import IodeltaError, RefusedError
from iodelta.lab.folder import Ended, Folder, now
from iodelta.lab.guard import check_write, scratch_directory
from iodelta.lab.workdir import workdir
from iodelta.machine import LocalMachine
from iodelta.machine.held import kept_open, way_to
from iodelta.probe.topology import resolve

HERE = LocalMachine()
NOBODY = 65534

RENAME_EXCHANGE, AT_FDCWD = 2, -100


def exchange(one: Path, other: Path, until_closed: int, counter: mmap.mmap) -> None:
    """Exchange two names until the other end of a pipe is closed, and count."""
    libc, names, done, chance = ctypes.CDLL(None), [os.fsencode(one), os.fsencode(other)], 0, random.Random(31)
    while not select.select([until_closed], [], [], chance.expovariate(50))[0]:
        for _ in range(chance.choice([1, 1, 2, 2, 2, 300])):  # either may have the name in the pause
            done += libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0
        counter[:] = done.to_bytes(8, "little")


@dataclass
class Place:
    """A home of another user's, and a victim of root's that only links of the other user lead to."""

    home: Path
    victim: Path
    counter: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8))
    before: dict[str, str] = field(default_factory=dict)

    def swaps_so_far(self) -> int:
        """How often the other user has exchanged the names."""
        return int.from_bytes(self.counter[:], "little")

    @contextlib.contextmanager
    def exchanging(self, name: str, leads_to: Path) -> Iterator[None]:
        """Meanwhile the other user exchanges ``name`` for a link."""
        link = self.home / "link"
        link.symlink_to(leads_to)
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        self.before = seen(self.victim)
        closed, close = os.pipe()
        self.counter = mmap.mmap(-1, 8)  # shared with the child
        pid = os.fork()
        if not pid:
            os.close(close)
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            exchange(self.home / name, link, closed, self.counter)
            os._exit(0)
        try:
            yield
        finally:
            os.close(close)
            os.waitpid(pid, 0)
            os.close(closed)


def seen(place: Path) -> dict[str, str]:
    """Name -> owner, times and digest of all below a directory."""
    found = {}
    for path in [place, *sorted(place.rglob("*"))]:
        stat = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = f"{stat.st_uid} {stat.st_mode:o} {stat.st_ctime_ns} {stat.st_mtime_ns} {digest}"
    return found


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        home, victim = Path(root, "home"), Path(root, "victim")
        Path(root).chmod(0o755)
        for made in (home, victim, home / "sub", victim / "iodelta-scratch"):
            made.mkdir()
        for folder in (home, home / "sub", victim):
            (folder / "data").write_bytes(b"precious" * 4096)
        for made in (home, home / "sub", home / "data", home / "sub/data"):
            os.chown(made, NOBODY, NOBODY)
        yield Place(home, victim)


def over_a_file(path: Path, work: str, engine: str) -> None:
    """What a run with ``--destroy`` does to a file."""
    with check_write(HERE, resolve(HERE, str(path)), [str(path)], place=work) as permit:
        write(permit.opened, engine)


def over_a_scratch_file(path: Path, work: str, engine: str) -> None:
    """What a run does in a directory."""
    with scratch_directory(HERE, str(path), work, {}) as inside:
        HERE.run(["truncate", "-s", "64k", "--", f"{inside}/file"])
        write(f"{inside}/file", engine)
        HERE.run(["rm", "-f", "--", f"{inside}/file"])


def over_results(path: Path, work: str, engine: str) -> None:
    """What a run does to its folder: a line of its journal, raw files, what a report keeps."""
    folder = Folder.open(path)
    with folder.writing():
        folder.write_raw(1, {"fio.json": b"{}" * 99})
        folder.append(Ended(now(), "interrupted"))
    folder.write("verdict.json", b"{}")


def over_new_results(path: Path, work: str, engine: str) -> None:
    """What a run does that is refused at once: its folder is made and deleted.

    Each time by a new name: where the name led elsewhere while it was deleted, the empty directory stays.
    """
    Folder.begin(path.with_name(uuid.uuid4().hex), "question", {"clock": "wall"}).remove()


def write(path: str, engine: str) -> None:
    """Write to a file, by dd or by an engine of fio."""
    words = ["dd", "if=/dev/zero", f"of={path}", "bs=4k", "count=1", "conv=notrunc", "status=none"]
    if engine:
        words = ["fio", "--name=x", f"--filename={path}", f"--ioengine={engine}", "--rw=randwrite", "--bs=4k"]
        words += ["--size=32k", "--iodepth=4", "--allow_file_create=0", "--time_based=1", "--runtime=100ms"]
    done = HERE.run(words)
    assert done.returncode == 0, done.text + done.error_text


USES: dict[str, tuple[Callable[[Path, str, str], None], str, str, str]] = {
    "the file": (over_a_file, "data", "data", "data"),
    "a directory above the file": (over_a_file, "sub/data", "sub", ""),
    "the scratch directory": (over_a_scratch_file, "", "iodelta-scratch", ""),
    "a directory above the scratch directory": (over_a_scratch_file, "sub", "sub", ""),
    "the results": (over_results, "results", "results", ""),
    "a directory above new results": (over_new_results, "sub/results", "sub", ""),
}
"""What is done, to what in the home, what is exchanged meanwhile, and what of the victim the link leads to."""


def race(place: Place, use: str, times: int, engine: str = "") -> None:
    """Use it until it worked so often, while the other user does their worst."""
    act, target, exchanged, leads_to = USES[use]
    (place.home / "iodelta-scratch").mkdir(mode=0o700)
    Folder.begin(place.home / "results", "question", {"clock": "wall"})
    left = times
    with workdir(HERE) as work, place.exchanging(exchanged, place.victim / leads_to):
        while left or place.swaps_so_far() < 2000:
            with contextlib.suppress(IodeltaError):
                act(place.home / target, work, engine)
                left = max(0, left - 1)
    assert seen(place.victim) == place.before


@on_devices
@pytest.mark.parametrize("use", USES)
def test_a_write_never_leaves_the_place_that_another_user_exchanges(place: Place, use: str) -> None:
    race(place, use, 5)


@pytest.mark.root
@pytest.mark.night
@pytest.mark.parametrize("use", USES)
def test_hundreds_of_writes_never_leave_the_place_that_another_user_exchanges(place: Place, use: str) -> None:
    race(place, use, 200)


@on_devices
@pytest.mark.fio
@pytest.mark.parametrize("engine", ["psync", "libaio", "io_uring", "mmap"])
@pytest.mark.parametrize("use", ["the file", "the scratch directory"])
def test_no_engine_of_fio_writes_outside_of_it(place: Place, use: str, engine: str) -> None:
    race(place, use, 2, engine)


@on_devices
def test_what_was_opened_stays_the_same_file_under_every_name(place: Place) -> None:
    data = place.home / "data"
    with workdir(HERE) as work, kept_open(HERE, way_to(HERE, str(data)), work, {}) as opened:
        data.rename(place.home / "elsewhere")
        data.symlink_to(place.victim / "data")
        write(opened, "")
    assert (place.home / "elsewhere").read_bytes()[:4096] == bytes(4096)
    assert (place.victim / "data").read_bytes()[:8] == b"precious"


@on_devices
@pytest.mark.parametrize("name", ["link", "sub/link", "link/../link"])
def test_a_link_that_another_user_can_make_is_not_followed(place: Place, name: str) -> None:
    for folder in (place.home, place.home / "sub"):
        (folder / "link").symlink_to(place.victim)
    with pytest.raises(RefusedError, match="a link on its way may lead elsewhere at any time: user 65534 owns"):
        way_to(HERE, str(place.home / name / "data"))


@on_devices
@pytest.mark.parametrize(
    ("mode", "owner", "exposed"),
    [
        (0o755, 0, False),
        (0o1777, 0, False),
        (0o777, 0, True),
        (0o775, 0, True),
        (0o1777, NOBODY, True),
        (0o755, NOBODY, True),
    ],
)
def test_a_name_is_safe_where_only_root_and_we_can_change_it(
    place: Place, mode: int, owner: int, exposed: bool
) -> None:
    os.chown(place.victim, owner, owner)
    place.victim.chmod(mode)
    assert bool(way_to(HERE, str(place.victim / "data")).exposed) == exposed
