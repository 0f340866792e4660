"""Every policy on a real mirror of two disks that the kernel holds at 900 and 300 reads/s, beside its prediction.

``python -m benchmarks.policy.throttled``; needs root.
"""

from __future__ import annotations

import os

from iodelta.cli.watching import RunWatcher
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.calibrate import calibrate, predict
from iodelta.parts.mirrors.catalogue import policies
from iodelta.parts.mirrors.mirror import Request, run
from iodelta.parts.mirrors.model import Workload
from iodelta.parts.scenarios.slowing import Pace, slow
from iodelta.parts.scenarios.stage import staged

DEPTH = 32
PACES = (900, 300)
SIZE = 32 << 20
SEEDS = (1, 2, 3)


def main() -> None:
    watcher = RunWatcher(print)
    with staged(LocalMachine(), watcher, full=False, target=None, home=os.getcwd(), stop=lambda: False) as stage:
        disks = [stage.disk(f"disk{number}", SIZE) for number in range(len(PACES))]
        slow(stage, {disk: Pace(pace, 1 << 30) for disk, pace in zip(disks, PACES, strict=True)})
        found = calibrate(disks, seconds=1.0)
        members = tuple(one.member for one in found.members)
        print(f"closure: {', '.join(f'{100 * one.closure:.1f} %' for one in found.members)}")
        print("| policy | mirror / simulated, IOPS | error |\n|---|---|---|")
        for policy in policies():
            pairs = []
            for seed in SEEDS:
                request = Request(
                    members=tuple(disks), policy=policy.name, iodepth=DEPTH, seed=seed, ramp=0.5, seconds=5.0
                )
                done = run(request)
                load = Workload(True, request.length, DEPTH, SIZE, seed, done.pids)
                pairs.append((done.iops, predict(members, policy.name, load, 20.0).iops))
            shown = ", ".join(f"{real:.0f} / {model:.0f}" for real, model in pairs)
            worst = max((model / real - 1 for real, model in pairs), key=abs)
            print(f"| {policy.name} | {shown} | {100 * worst:+.0f} % |", flush=True)


if __name__ == "__main__":
    main()
