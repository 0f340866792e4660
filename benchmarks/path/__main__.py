"""What path mode promises, tried out with real boots: `python -m benchmarks.path ten|inputs|changes|later`.

``ten``: ten boots with identical inputs beside a busy core give identical bytes. ``inputs``: what should not matter
moves no median by more than 8 instructions. ``changes``, ``later``: known changes are found, a placebo never.
Each prints rows for results.md. Kernels: ``iodelta kernel fetch 6.1 6.12`` first.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iodelta.experiment import parse, toml_text
from iodelta.lab.folder import Booted, Folder
from iodelta.path import plan as planning
from iodelta.path import run
from iodelta.path.judge import PathAccount, judge
from iodelta.path.output import read
from iodelta.path.plan import BootPlan, PathPlan, initrd, make_plan
from iodelta.vm import boot

KERNELS = ("6.1", "6.12")
SEEDS = (1, 2)
"""Two layouts instead of five: what is looked at here are the exact shifts."""

WORKLOAD = {"rw": "randread", "bs": "4k", "direct": 1, "ioengine": ["libaio", "io_uring"]}
LONG = "a description that says nothing at all but is rather long, as people's descriptions are " * 2


def question(kernel: str, variants: dict[str, dict[str, str]], depths: list[int]) -> str:
    """An experiment file: every variant boots ``kernel``."""
    return toml_text(
        {
            "machine": "vm",
            "clock": "instructions",
            "workload": {**WORKLOAD, "iodepth": depths},
            "variant": {name: {"kernel": kernel, **knobs} for name, knobs in variants.items()},
        }
    )


class Quiet:
    """A watcher that prints a dot per boot."""

    def begin(self, plan: PathPlan, folder: str, done: int) -> None:
        print(f"{len(plan.boots)} boots", end=" ", flush=True)

    def booted(self, one: BootPlan, event: Booted, done: int) -> None:
        print("!" if event.problem else ".", end="", flush=True)


def account(text: str, where: Path) -> PathAccount:
    """The account of an experiment, run in full."""
    plan = make_plan(parse(text))
    folder = Folder.begin(where, text, plan)
    run.go(folder, Quiet(), stop=lambda: False)
    print()
    return judge(folder)


def _spin() -> None:
    while True:
        pass


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that only burn CPU."""
    spinning = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(processes)]
    for one in spinning:
        one.start()
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.join()


def ten(where: Path) -> None:
    """Ten boots of each kernel beside a busy core: digests, wall times, memory."""
    for kernel in KERNELS:
        plan = make_plan(parse(question(kernel, {"a": {}, "b": {}}, [1, 32])))
        arm = plan.arms[0]
        place = where / kernel
        place.mkdir()
        initrd(plan, arm, place / "initrd")
        asked = boot.Boot(arm.kernel.image, str(place / "initrd"), arm.cmdline, memory=arm.memory, clock="instructions")
        digests, seconds, largest, medians = [], [], 0, []
        with load(1):
            for pair in range(5):
                guests = []
                for number in (2 * pair, 2 * pair + 1):
                    (place / str(number)).mkdir()
                    guests.append(boot.Guest(asked, str(place / str(number)), boot.Limits(seconds=600)))
                ended: list[boot.Ended | None] = [None, None]
                while None in ended:
                    ended = [one or guest.poll() for one, guest in zip(ended, guests, strict=True)]
                    largest = max(largest, sum(resident(guest.pid) for guest in guests))
                    time.sleep(0.1)
                for one, guest in zip(ended, guests, strict=True):
                    assert one is not None
                    if one.problem:
                        raise SystemExit(f"{one.problem}: {one.console}")
                    digests.append(hashlib.sha256(guest.output + guest.console).hexdigest()[:12])
                    seconds.append(one.seconds)
                    medians.append([c.latencies["read"].median for c in read(guest.output, "guest").cells.values()])
        print(
            f"| {arm.kernel.release} | 10 | {len(set(digests))} ({digests[0]}) | "
            f"{' '.join(f'{value:g}' for value in medians[0])} | {min(seconds):.0f} .. {max(seconds):.0f} s | "
            f"{largest / 1024:.0f} MiB |",
            flush=True,
        )


def resident(pid: int) -> int:
    """KiB that a process has in memory; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")), 0)


def _table(kernel: str, found: PathAccount) -> None:
    for one in found.shifts:
        print(
            f"| {kernel} | {one.cell} | {one.variant} | {one.baseline:g} | {one.change:+g} | "
            f"{one.low:+g} .. {one.high:+g} | {one.bar:g} | {one.word} |",
            flush=True,
        )
    print(f"({kernel}: {found.boots} boots in {found.seconds:.0f} s, self-check {found.self_check})", flush=True)


def inputs(where: Path) -> None:
    """What should not matter, against the same without it."""
    variants = {
        "base": {},
        "again": {},
        "memory-640": {"vm.memory": "640"},
        "longer-command-line": {"kernel.cmdline": "iodelta.note=" + "x" * 200},
        "other-offsets": {"fio.randseed": "4711"},
        "longer-job": {"fio.description": LONG},
    }
    for kernel in KERNELS:
        _table(kernel, account(question(kernel, variants, [1]), where / f"inputs-{kernel}"))


def changes(where: Path) -> None:
    """Known changes of two settings of the queue."""
    variants = {"base": {}, "iostats-0": {"block.iostats": "0"}, "nomerges-2": {"block.nomerges": "2"}}
    for kernel in KERNELS:
        _table(kernel, account(question(kernel, variants, [1]), where / f"changes-{kernel}"))


def later(where: Path) -> None:
    """A device that completes 30 and 100 ns later."""
    variants = {
        name: {"null_blk.irqmode": "2", "null_blk.completion_nsec": str(10000 + more)}
        for name, more in (("base", 0), ("again", 0), ("later-30", 30), ("later-100", 100))
    }
    for kernel in KERNELS:
        _table(kernel, account(question(kernel, variants, [1]), where / f"later-{kernel}"))


if __name__ == "__main__":
    planning.SEEDS = SEEDS
    with tempfile.TemporaryDirectory(prefix="iodelta-path-") as place:
        for name in sys.argv[1:] or ["ten", "inputs", "changes", "later"]:
            {"ten": ten, "inputs": inputs, "changes": changes, "later": later}[name](Path(place))
