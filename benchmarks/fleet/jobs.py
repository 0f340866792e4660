"""``python -m benchmarks.fleet.jobs PLACE``: 10 hosts, 50 jobs, coordinators that are killed three times.

Five questions are asked of the same ten hosts at the same time, each by a coordinator of its own, so that all of them
want every device. Three times all coordinators get SIGKILL in the middle of their work, and are called again. A witness
looks at the hosts five times a second: how many fio work on a device. Needs root, sshd and iproute2. Prints a table;
exit code 1 when something of it did not happen.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import itertools

from acceptance.stand import Running, Stand, finished, kinds, queue, set_queue
from fleet.stand import Fleet, Witness, measured

HOSTS = " ".join(f"stor{number}" for number in range(10))
QUESTIONS = 5
BLOCKS = 2
KILLS = (0.15, 0.4, 0.7)
"""Shares of all trials after which the coordinators are killed."""


class Killed:
    """All questions, and how many trials are finished."""

    def __init__(self, stand: Stand, fleet: Fleet) -> None:
        self.stand, self.fleet = stand, fleet
        self.places = [
            stand.place / f"fleet{number}/hosts/{name}" for number in range(QUESTIONS) for name in fleet.members
        ]
        self.running: list[Running] = []

    def start(self) -> None:
        words = ("fleet", "run", "question.toml", "--in-use", "wait", "--patience", "10m", "--at-once", "2")
        self.running = [self.stand.start(*words, "--folder", f"fleet{number}") for number in range(QUESTIONS)]

    def trials(self) -> int:
        return sum(len(kinds(place, "finished")) for place in self.places)

    def kill_after(self, trials: int) -> str:
        """Kill every coordinator once so many trials are finished; what ran then, and for how long."""
        while self.trials() < trials:
            time.sleep(0.5)
        in_flight = sum(len(kinds(one, "started")) > len(kinds(one, "finished")) for one in self.places)
        for one in self.running:
            one.signal(signal.SIGKILL)
        begun = time.monotonic()
        for one in self.running:
            one.wait()
        while self.stand.processes():
            time.sleep(0.1)
        left = Counter(queue(member.node, "scheduler") for member in self.fleet.members.values())
        return (
            f"{self.trials()} trials finished, {in_flight} in flight; all processes gone after "
            f"{time.monotonic() - begun:.1f} s; schedulers then: {dict(left)}"
        )


def overlaps(places: list[Path]) -> int:
    """Trials that the journals of one host say ran at the same time."""
    found = 0
    for name in {place.name for place in places}:
        spans = sorted(span for place in places if place.name == name for span in _spans(place))
        found += sum(later[0] < earlier[1] for earlier, later in itertools.pairwise(spans))
    return found


def _spans(place: Path) -> list[tuple[float, float]]:
    ends = {one["trial"]: one["at"] for one in kinds(place, "finished")}
    return [(one["at"], ends[one["trial"]]) for one in kinds(place, "started") if one["trial"] in ends]


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
        fleet = Fleet(stand, HOSTS)
        fleet.ask(trial="300ms", blocks=BLOCKS)
        for member in fleet.members.values():
            set_queue(member.node, "scheduler", "kyber")
        nodes = [member.node for member in fleet.members.values()]
        jobs, begun = Killed(stand, fleet), time.monotonic()
        wanted = 2 * BLOCKS * len(jobs.places)
        lines = []
        with Witness(nodes, pause=0.2) as witness:
            for share in KILLS:
                jobs.start()
                lines.append(jobs.kill_after(round(share * wanted)))
                print(lines[-1], flush=True)
            jobs.start()
            codes = [one.wait(3600).code for one in jobs.running]
        seconds = time.monotonic() - begun
        sessions = Counter(len(kinds(one, "session")) for one in jobs.places)
        tried = sum(len(kinds(one, "started")) for one in jobs.places)
        held = {
            "every coordinator ends with exit code 0": codes == [0] * QUESTIONS,
            f"{len(jobs.places)} jobs, each with all its blocks, each variant of a block once": all(
                map(once, jobs.places)
            ),
            "never more than one fio on a device": set(witness.most.values()) == {1},
            "no two trials of a host overlap by the journals": overlaps(jobs.places) == 0,
            "every device has the scheduler of before": all(queue(node, "scheduler") == "kyber" for node in nodes),
            "nothing is left running or to be undone": not stand.processes() and not stand.pending(),
        }
        print(f"\n| | |\n|---|---|\n| wall time | {seconds:.0f} s |\n| looks of the witness | {witness.looks} |")
        print(f"| most fio at once, by device | {sorted(witness.most.values())} |")
        print(f"| trials: of the plans, begun in all | {wanted}, {tried} |")
        print(f"| sessions of a job: how many jobs | {dict(sorted(sessions.items()))} |")
        for what, so in held.items():
            print(f"| {what} | {'so' if so else 'NOT SO'} |")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
