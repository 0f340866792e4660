"""``python -m benchmarks.fleet.cuts PLACE [LONG]``: hosts of a fleet that get into trouble in the middle of a trial.

The cables of three hosts are pulled, for 30 s, for LONG seconds (600) and for ever; the clock of one jumps by two
hours; the disk of one fills up; on one every sshd is killed and comes back after 20 s. Two hosts have no trouble. After
the fleet has ended, the cable is put in again and the disk emptied, and the same command is called again. Needs root,
sshd and iproute2. Prints tables; exit code 1 when something of it did not happen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from acceptance.stand import Stand, kinds, queue, set_queue, shell
from fleet.stand import Fleet, measured, with_own_clock
from workshop import unmount

HOSTS = "short long ever clock full sshd well1 well2"
BLOCKS = 6
PATIENCE = 180
"""Seconds beyond the longest cut for which a host is waited for."""

BEFORE = "kyber"
"""The scheduler of every device before the fleet; the variants set others."""


class Restored:
    """When the setting of a host was restored for good, in seconds from its trouble on."""

    def __init__(self, fleet: Fleet) -> None:
        self._nodes = {name: member.node for name, member in fleet.members.items()}
        self._troubled: dict[str, float] = {}
        self.after: dict[str, float | None] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def trouble(self, name: str) -> None:
        self._troubled[name] = time.monotonic()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.2):
            for name, begun in dict(self._troubled).items():
                if queue(self._nodes[name], "scheduler") == BEFORE:
                    self.after.setdefault(name, time.monotonic() - begun)


def full_disk(stand: Stand, fleet: Fleet) -> Path:
    """The state directory of ``full`` on a small disk of its own; a file that may fill it."""
    member = fleet.members["full"]
    place = member.place / "small"
    place.mkdir()
    shell("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place))
    stand.undo(lambda: unmount(place))
    member.serve(f"SetEnv IODELTA_STATE={place}", port=2302, name="full-small")
    fleet.extra["full"] = 'ssh = "full-small"'
    return place / "filling"


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("ab") as file:
        while True:
            file.write(bytes(4096))
            file.flush()


def kill_sshd(fleet: Fleet) -> None:
    """Kill every sshd of the host and what it serves; start it again after 20 s."""
    member = fleet.members["sshd"]
    member.host.cut()
    for daemon in member.host._daemons:
        daemon.kill()

    def again() -> None:
        time.sleep(20)
        member.serve()

    threading.Thread(target=again, daemon=True).start()


def pulled(fleet: Fleet, name: str, seconds: float) -> None:
    """Pull a cable for so long."""
    fleet.members[name].host.cable("down")

    def back() -> None:
        time.sleep(seconds)
        fleet.members[name].host.cable("up")

    threading.Thread(target=back, daemon=True).start()


def in_trial(fleet: Fleet, name: str) -> bool:
    """Whether three trials are finished there and the next one runs."""
    place = fleet.place(name)
    return len(kinds(place, "finished")) >= 3 and len(kinds(place, "started")) > len(kinds(place, "finished"))


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def table(fleet: Fleet, restored: Restored) -> None:
    row("host", "state", "sessions", "trials begun, finished", "restored after", "said")
    row(*["---"] * 6)
    for name, host in fleet.status().items():
        place = fleet.place(name)
        after = restored.after.get(name)
        counts = f"{len(kinds(place, 'started'))}, {len(kinds(place, 'finished'))}"
        told = "; ".join(filter(None, (host["reason"], *host["notes"])))
        row(name, host["state"], len(kinds(place, "session")), counts, f"{after:.0f} s" if after else "-", told)


def main() -> int:
    place, long = Path(sys.argv[1]).absolute(), float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    place.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the stand is taken down
    with Stand(place) as stand:
        fleet = Fleet(stand, HOSTS)
        set_off = with_own_clock(fleet.members["clock"], "clock-jumps")
        fleet.extra["clock"] = 'ssh = "clock-jumps"'
        filling = full_disk(stand, fleet)
        fleet.inventory()
        fleet.ask(trial="1s", blocks=BLOCKS)
        for member in fleet.members.values():
            set_queue(member.node, "scheduler", BEFORE)
        troubles: dict[str, Callable[[], object]] = {
            "short": lambda: pulled(fleet, "short", 30),
            "long": lambda: pulled(fleet, "long", long),
            "ever": lambda: fleet.members["ever"].host.cable("down"),
            "clock": lambda: set_off(7200),
            "full": lambda: fill(filling),
            "sshd": lambda: kill_sshd(fleet),
        }
        restored, begun = Restored(fleet), time.monotonic()
        words = ("--patience", f"{round(long) + PATIENCE}s")
        running = fleet.start(*words)
        while troubles and running.alive():
            for name in [one for one in troubles if in_trial(fleet, one)]:
                restored.trouble(name)
                troubles.pop(name)()
            time.sleep(0.05)
        done = running.wait(long + 1800)
        print(f"First call: exit code {done.code} after {time.monotonic() - begun:.0f} s.\n")
        table(fleet, restored)
        first = fleet.states()
        quiet = {name: len(kinds(fleet.place(name), "session")) for name in ("well1", "well2")}
        fleet.members["ever"].host.cable("up")
        filling.unlink(missing_ok=True)
        again = fleet.run(*words)
        print(f"\nCalled again: exit code {again.code}.\n")
        table(fleet, restored)
        restored.end()
        wanted = dict.fromkeys(HOSTS.split(), "done") | {"ever": "lost"}
        full = first.pop("full")
        del wanted["full"]
        held = {
            "every trouble was made in the middle of a trial": not troubles,
            "`ever` is lost, all others are done": first == wanted,
            "`full` is done, as nothing more was to be written there, or failed": full in ("done", "failed"),
            "hosts without trouble had one session": set(quiet.values()) == {1},
            "called again, every host is done": set(fleet.states().values()) == {"done"} and again.code == 0,
            "every block of every host has both variants, each once": all(
                measured(fleet.place(name)) == set(range(BLOCKS)) for name in fleet.members
            ),
            "every device has the scheduler of before": all(
                queue(member.node, "scheduler") == BEFORE for member in fleet.members.values()
            ),
            "nothing is left to be undone": not _pending(fleet),
        }
        print()
        for what, so in held.items():
            print(f"{'so' if so else 'NOT SO'}: {what}")
        print(f"\n```text\n{done.err.rstrip()}\n```")
    return 0 if all(held.values()) else 1


def _pending(fleet: Fleet) -> list[str]:
    """Undo logs that hosts keep."""
    found = []
    for member in fleet.members.values():
        for state in (member.host.state, member.place / "small"):
            found += [str(path) for path in state.glob("pending/*.jsonl")]
    return found


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    sys.exit(main())
