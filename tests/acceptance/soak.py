"""Kill iodelta at any moment, again and again: ``python -m tests.acceptance.soak --kills 200``.

Whatever the moment, afterwards every setting has its original value, nothing that was started is left, no finished
trial is missing, the folder opens with its seal whole, and the same command goes on.
"""

from __future__ import annotations

import argparse
import collections
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from waiting import until

from iodelta.lab.folder import Folder
from iodelta.report.derived import load

from .stand import FIO, GOOD, Stand, finished, journal, queue, set_queue, shell

WINDOW = 7.0
"""Seconds of a run of this experiment, its start and end included: the moments are uniform over it."""

ORIGINALS = {"scheduler": "mq-deadline", "nr_requests": "97", "iosched/fifo_batch": "13"}
"""Not the kernel's defaults: a change of the scheduler resets the other two."""

SYSCTLS = ("kernel.printk_ratelimit_burst", "kernel.printk_ratelimit", "vm.stat_interval", "vm.page-cluster")
"""Settings that nobody minds; each stand has one of its own."""


class Tally:
    """What happened, by name; of kills also after which line of the journal."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    def add(self, name: str, by: int = 1) -> None:
        with self._lock:
            self.counts[name] += by

    def __str__(self) -> str:
        return ", ".join(f"{name}: {count}" for name, count in sorted(self.counts.items()))


class Victim:
    """One experiment on one loop device, killed and continued until it is complete, then begun anew."""

    def __init__(self, stand: Stand, number: int, tally: Tally, rng: random.Random) -> None:
        self.stand, self.tally, self.rng = stand, tally, rng
        self.node = stand.loop()
        for name, value in ORIGINALS.items():
            set_queue(self.node, name, value)
        self.sysctl = SYSCTLS[number]
        self.file = Path("/proc/sys", *self.sysctl.split("."))
        self.original = self.file.read_text()
        stand.undo(lambda: self.file.write_text(self.original))
        self.folder = stand.place / "none"
        self.groups: set[str] = set()
        self._fresh()

    def kill_once(self) -> None:
        """Start or continue the experiment, kill it at a random moment, and see that nothing of it stays."""
        before = finished(self.folder) if self.folder.exists() else {}
        running = self.stand.start(*self._command())
        time.sleep(self.rng.uniform(0, WINDOW))
        survived = running.alive()
        running.signal(signal.SIGKILL, group=self.rng.random() < 0.3)
        done = running.wait()
        self._note_groups()
        self._count(before)
        if not survived:
            assert done.code in GOOD, done
            self._complete()
            return
        self.tally.add("kills")
        events = journal(self.folder) if self.folder.exists() else []
        self.tally.add(f"kills after {events[-1]['type'] if events else 'nothing'}")
        if self.rng.random() < 0.5:
            self._restore()
            self._check_nothing_is_left()
        else:
            self._go_on()

    def _fresh(self) -> None:
        self.folder = self.stand.place / f"experiment-{self.rng.getrandbits(32):08x}"

    def _command(self) -> tuple[str, ...]:
        if self.folder.exists():
            return "run", str(self.folder)
        knobs = f"block.nr_requests=64,cgroup.io_max=riops=20000,sysctl.{self.sysctl}=7"
        words = ("--target", self.node, "--trial", "200ms", "--ramp", "0", "--blocks", "2", "--seed", "1")
        variants = ("--variant", "old:block.scheduler=none", "--variant", f"new:block.scheduler=kyber,{knobs}")
        condition = ("--condition", "loaded:sh -c 'sleep 600 & sleep 600'")
        return "run", "--folder", str(self.folder), *words, *variants, *condition, "--", *FIO

    def _restore(self) -> None:
        if self.rng.random() < 0.3:
            running = self.stand.start("restore")
            time.sleep(self.rng.uniform(0, 0.8))
            running.signal(signal.SIGKILL)
            running.wait()
            self.tally.add("killed restores")
        done = self.stand.run("restore")
        assert done.code == 0, done
        self.tally.add("restores")
        assert not self.stand.pending()

    def _go_on(self) -> None:
        """The same command, to its end: it puts back first what the killed run left, and its own in the end."""
        before = finished(self.folder) if self.folder.exists() else {}
        done = self.stand.run(*self._command())
        assert done.code in GOOD, done
        self.tally.add("continued")
        self._note_groups()
        self._count(before)
        self._check_nothing_is_left()
        self._complete()

    def _complete(self) -> None:
        """An experiment that came to its end has every block, and lost no more than what was in flight."""
        events = journal(self.folder)
        begun, ended = (sum(event["type"] == kind for event in events) for kind in ("started", "finished"))
        sessions = sum(event["type"] == "session" for event in events)
        assert begun - ended <= sessions, "more was lost than the trials in flight"
        assert events[-1]["type"] in ("ended", "knob-restored")
        self._check_nothing_is_left()
        self.tally.add("completed")
        self.tally.add("trials", ended)
        self.tally.add("trials lost in flight", begun - ended)
        self._fresh()

    def _count(self, before: dict[int, float]) -> None:
        """Finished trials stay, as they were; the folder opens."""
        if not self.folder.exists():
            return
        after = finished(self.folder)
        lines = [event["trial"] for event in journal(self.folder) if event["type"] == "finished"]
        assert before.items() <= after.items(), "a finished trial is missing, or is another now"
        assert sorted(after) == lines, "a finished line has no raw file"
        account = load(Folder.open(self.folder))
        assert account.exit_code in (*GOOD, 4), "the folder does not open"
        assert not account.broken, f"a false alarm of the seal: {account.broken}"
        assert account.seal is not None
        self.tally.add("sealed lines", account.seal.lines)

    def _note_groups(self) -> None:
        texts = [path.read_text() for path in (*self.stand.pending(), self.folder / "journal.jsonl") if path.exists()]
        for text in texts:
            self.groups.update(word for word in text.split('"') if "/iodelta-" in word and word.startswith("/sys/fs"))

    def _check_nothing_is_left(self) -> None:
        for name, value in ORIGINALS.items():
            assert queue(self.node, name) == value, f"{name} is {queue(self.node, name)}, it was {value}"
        assert self.file.read_text() == self.original, f"{self.sysctl} is {self.file.read_text()}"
        assert not self.stand.pending()
        until(lambda: not self.stand.processes())  # fio --version and its like end by themselves
        assert not [group for group in self.groups if Path(group).exists()]
        shell("dd", f"if={self.node}", "of=/dev/null", "iflag=direct", "bs=4k", "count=1", "status=none")


def soak(place: Path, kills: int, *, seed: int, stands: int = 2, log: bool = False) -> Tally:
    """``kills`` kills on several stands side by side. Raises AssertionError at the first thing that is not right."""
    tally = Tally()
    problems: list[BaseException] = []

    def work(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        own = place / f"stand{number}"
        own.mkdir()
        try:
            with Stand(own) as stand:
                victim = Victim(stand, number, tally, rng)
                while tally.counts["kills"] < kills and not problems:
                    victim.kill_once()
                    if log:
                        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {tally}\n")
        except BaseException as error:  # noqa: BLE001  (told below, by the thread that asked)
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(stands)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        raise problem
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    parser.add_argument("--stands", type=int, default=2, choices=range(1, len(SYSCTLS) + 1))
    given = parser.parse_args()
    sys.stderr.write(f"seed {given.seed}\n")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="iodelta-soak-") as place:
        tally = soak(Path(place), given.kills, seed=given.seed, stands=given.stands, log=True)
    sys.stdout.write(f"{tally}; {time.monotonic() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
