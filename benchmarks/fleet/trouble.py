"""``python -m benchmarks.fleet.trouble PLACE``: ten hosts measured, one killed, one cut off, one with another truth.

The hosts are network namespaces with sshd and a loop device each; the baseline asks for 500 reads a second, the variant
for 400. One host's device gives 400 in all, so that it loses nothing where the others lose 20 %. In mid-trial one host
is killed for ever, and the cable of another one is pulled for 30 s. Needs root, sshd, iproute2 and a control group that
can limit I/O. Prints a transcript; the forest plot is in PLACE. Exit code 1 when something of it did not happen.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from acceptance.stand import Stand, kinds
from fleet.stand import Fleet
from waiting import until

HOSTS = "stor1 stor2 stor3 stor4 stor5 stor6 stor7 killed cutoff other"
SILENCE = 30.0
"""Seconds for which the cable is pulled."""

QUESTION = """
question = "Is 400 reads a second less than 500?"
margin = "5%"
[target]
path = "class:disk"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 4
[variant.old]
"fio.rate_iops" = 500
[variant.new]
"fio.rate_iops" = 400
[design]
trial = "500ms"
ramp = "0s"
blocks = 10
seed = 1
carry-over = "none"
metrics = ["read.iops"]
"""


def limit(fleet: Fleet, name: str, rate: int) -> None:
    """Let the device of a host give no more than ``rate`` reads a second to what runs there."""
    member = fleet.members[name]
    group, number = fleet.stand.group(member.node)
    if (group / "io.max").exists():
        (group / "io.max").write_text(f"{number} riops={rate}")
    else:
        (group / "blkio.throttle.read_iops_device").write_text(f"{number} {rate}")
    (group / "cgroup.procs").write_text(str(member.serve(port=2302, name=f"{name}-limited")))
    fleet.extra[name] = f'ssh = "{name}-limited"'
    fleet.stand.undo(lambda: [(group.parent / "cgroup.procs").write_text(one) for one in group_of(group)])


def group_of(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def show(stand: Stand, *words: str) -> str:
    done = stand.run(*words)
    print(f"$ iodelta {' '.join(words)}\n{done.out.rstrip()}\n[exit {done.code}]\n", flush=True)
    return done.out


def kill(fleet: Fleet, name: str) -> None:
    """End every sshd of a host, and what runs there: it answers nobody again."""
    host = fleet.members[name].host
    host.cable("down")
    host.cut()


def measured(stand: Stand) -> Fleet:
    """The fleet, after a run in which two hosts got into trouble."""
    fleet = Fleet(stand, HOSTS)
    limit(fleet, "other", 400)
    fleet.inventory()
    (stand.place / "question.toml").write_text(QUESTION)
    begun = time.monotonic()
    with fleet.members["killed"].host.hurry(), fleet.members["cutoff"].host.hurry():
        running = fleet.start("--patience", "1m")
        until(lambda: kinds(fleet.place("killed"), "finished") and kinds(fleet.place("cutoff"), "finished"))
        kill(fleet, "killed")
        fleet.members["cutoff"].host.cable("down")
        time.sleep(SILENCE)
        fleet.members["cutoff"].host.cable("up")
        done = running.wait(900)
    print(f"$ iodelta fleet run question.toml --folder fleet --patience 1m\n{done.err.rstrip()}")
    print(f"[exit {done.code}, {time.monotonic() - begun:.0f} s]\n", flush=True)
    return fleet


def main() -> int:
    place = Path(sys.argv[1]).absolute()
    place.mkdir(parents=True)
    os.environ["PYTHONUNBUFFERED"] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the stand is taken down
    with Stand(place) as stand:
        fleet = measured(stand)
        states = fleet.states()
        show(stand, "fleet", "status", "fleet")
        show(stand, "fleet", "report", "fleet", "--verbose")
        show(stand, "fleet", "report", "fleet", "--charts", "charts", "--format", "csv", "-o", "hosts.csv")
        document = json.loads(stand.run("fleet", "report", "fleet", "--format", "json").out)
        alike = [f"fleet/hosts/{name}" for name in states if name not in ("other", "killed")]
        told = show(stand, "fleet", "report", *alike)
    (row,) = document["rows"]
    held = {
        "the killed host is lost, and all others are done": states
        == {name: "lost" if name == "killed" else "done" for name in HOSTS.split()},
        "all hosts depend on the machine": row["word"] == "depends on the machine",
        "the host of another truth is one of the two that differ": "other" in (row["apart"] or ()),
        "hosts of one truth regress everywhere": "regression everywhere" in told,
    }
    for what, so in held.items():
        print(f"{'so' if so else 'NOT SO'}: {what}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
