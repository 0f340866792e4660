"""``python -m benchmarks.fleet.jobs PLACE``: 10 hosts, 50 jobs, a coordinator that is killed three times.

Every host has five disks, each a job of its own, and a host is to be used once at a time. Three times the coordinator
gets SIGKILL in the middle of its work, and is called again. A witness looks at the hosts five times a second: how many
fio work on a host's devices. Needs root, sshd and iproute2. Prints a table; exit code 1 when something of it did not
happen.
"""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from acceptance.stand import Running, Stand, finished, kinds, queue, set_queue
from fleet.stand import Fleet, Witness, measured

HOSTS = " ".join(f"stor{number}" for number in range(10))
DISKS = 5
BLOCKS = 1
KILLS = (0.15, 0.4, 0.7)
"""Shares of all trials after which the coordinator is killed."""

BEFORE = "kyber"
"""The scheduler of every device before the fleet; the variants set others."""


class Jobs:
    """Ten hosts with five disks each, as fifty names of an inventory."""

    def __init__(self, stand: Stand) -> None:
        self.stand, self.fleet = stand, Fleet(stand, HOSTS)
        self.nodes: dict[str, str] = {}
        """Name of a job -> its device."""
        for name in self.fleet.members:
            disks = [self.fleet.apart() for _ in range(DISKS)]  # files on one disk would share that disk
            self.nodes |= {f"{name}-disk{number}": node for number, node in enumerate(disks)}
        tables = [
            f'[host.{job}]\nssh = "{host_of(job)}"\ntargets = {{ disk = "{node}" }}\n'
            for job, node in self.nodes.items()
        ]
        (stand.place / "fleet.toml").write_text("".join(tables))
        self.fleet.ask(trial="300ms", blocks=BLOCKS)
        for node in self.nodes.values():
            set_queue(node, "scheduler", BEFORE)

    @property
    def places(self) -> list[Path]:
        return [self.fleet.place(job) for job in self.nodes]

    def start(self) -> Running:
        return self.fleet.start("--patience", "30m", "--at-once", "10")

    def trials(self) -> int:
        return sum(len(kinds(place, "finished")) for place in self.places)

    def kill_after(self, running: Running, trials: int) -> str:
        """Kill the coordinator once so many trials are finished; what ran then, and how soon it was gone."""
        while self.trials() < trials and running.alive():
            time.sleep(1)
        in_flight = sum(len(kinds(one, "started")) > len(kinds(one, "finished")) for one in self.places)
        running.signal(signal.SIGKILL)
        begun = time.monotonic()
        running.wait()
        while self.stand.processes():
            time.sleep(0.1)
        left = sum(queue(node, "scheduler") != BEFORE for node in self.nodes.values())
        return (
            f"{self.trials()} trials finished, {in_flight} jobs in a trial; all processes gone after "
            f"{time.monotonic() - begun:.1f} s, {left} devices with a scheduler that is not that of before"
        )


def host_of(job: str) -> str:
    return job.partition("-")[0]


def overlaps(places: list[Path]) -> int:
    """Trials that the journals of one host say ran at the same time."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for place in places:
        ends = {one["trial"]: one["at"] for one in kinds(place, "finished")}
        own = [(one["at"], ends[one["trial"]]) for one in kinds(place, "started") if one["trial"] in ends]
        spans.setdefault(host_of(place.name), []).extend(own)
    pairs = itertools.chain.from_iterable(itertools.pairwise(sorted(own)) for own in spans.values())
    return sum(later[0] < earlier[1] for earlier, later in pairs)


def once(place: Path) -> bool:
    """Whether a job has every block of its plan, each variant of it once."""
    try:
        return measured(place) == set(range(BLOCKS)) and len(finished(place)) == 2 * BLOCKS
    except AssertionError:
        return False


def main() -> int:
    place = Path(sys.argv[1]).absolute()
    place.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the stand is taken down
    with Stand(place) as stand:
        jobs, begun = Jobs(stand), time.monotonic()
        wanted = 2 * BLOCKS * len(jobs.nodes)
        with Witness({node: host_of(job) for job, node in jobs.nodes.items()}, pause=0.2) as witness:
            for number, share in enumerate(KILLS, 1):
                print(f"Kill {number}: {jobs.kill_after(jobs.start(), round(share * wanted))}.", flush=True)
            done = jobs.start().wait(7200)
        seconds = time.monotonic() - begun
        states = Counter(jobs.fleet.states().values())
        sessions = Counter(len(kinds(one, "session")) for one in jobs.places)
        tried = sum(len(kinds(one, "started")) for one in jobs.places)
        held = {
            "the last call ends with exit code 0, every job done": done.code == 0
            and states == {"done": len(jobs.nodes)},
            "every job has all its blocks, each variant of a block once": all(map(once, jobs.places)),
            "never more than one fio on a host, nor on a device": set(witness.most.values()) == {1},
            "no two trials of a host overlap by the journals": overlaps(jobs.places) == 0,
            "every device has the scheduler of before": all(
                queue(node, "scheduler") == BEFORE for node in jobs.nodes.values()
            ),
            "nothing is left running or to be undone": not stand.processes() and not stand.pending(),
        }
        print(f"\n| | |\n|---|---|\n| jobs, hosts | {len(jobs.nodes)}, {len(jobs.fleet.members)} |")
        print(f"| wall time | {seconds:.0f} s |\n| looks of the witness | {witness.looks} |")
        print(f"| most fio at once, by host | {sorted(witness.most.values())} |")
        print(f"| trials: of the plans, begun in all | {wanted}, {tried} |")
        print(f"| sessions of a job: how many jobs | {dict(sorted(sessions.items()))} |")
        for what, so in held.items():
            print(f"| {what} | {'so' if so else 'NOT SO'} |")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
