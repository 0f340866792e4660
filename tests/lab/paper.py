"""A bench of paper: trials without fio, whose outcome a test decides."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from iodelta.experiment import Cell, Condition, Variant, parse
from iodelta.lab import judged as judged_module
from iodelta.lab import runner as runner_module
from iodelta.lab.bench import Bench
from iodelta.lab.folder import Folder, Started
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.quality import Quality, noise
from iodelta.lab.runner import Outcome, Runner
from iodelta.trial import Direction, Finding, Latency, Quantity, Trial
from iodelta.verdict import Rules

Say = Callable[[Started], object]
"""What happens in a trial: a rate, the rates of its seconds, a Finding beside the usual rate, or an exception to
raise."""


class PaperBench:
    """Every trial takes a second of the budget; ``say`` decides what comes of it."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.made: list[Started] = []

    def check_target(self) -> None:
        """It is there."""

    def background(self, condition: Condition) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def trial(
        self,
        identity: Started,
        cell: Cell,
        variant: Variant,
        background: object,
        *,
        stop: Callable[[], bool],
        on_tick: Callable[[float], None],
    ) -> Trial | None:
        self.made.append(identity)
        said = self.say(identity)
        if isinstance(said, BaseException):
            raise said
        if stop():
            return None
        if isinstance(said, tuple) and isinstance(said[-1], Finding):
            return paper_trial(identity, said[0], said[1:])
        if isinstance(said, tuple):
            made = paper_trial(identity, fmean(said), series=said)
            return msgspec.structs.replace(made, findings=noise(made, Quality(), margin=0.01, device=None, moved={}))
        findings = (said,) if isinstance(said, Finding) else ()
        return paper_trial(identity, float(said) if isinstance(said, float | int) else 1000.0, findings)


def paper_trial(
    identity: Started, rate: float, findings: tuple[Finding, ...] = (), series: tuple[float, ...] = ()
) -> Trial:
    """A trial of random reads at ``rate`` IOPS, one in flight; ``series`` are the rates of its seconds."""
    mean = Quantity.exact(1e9 / rate, "ns")
    latency = Latency(int(rate), mean, mean, mean, mean)
    iops, bandwidth = Quantity.exact(rate, "IOPS"), Quantity.exact(4096 * rate, "B/s")
    done = Direction("read", int(rate), int(4096 * rate), 1000, iops, bandwidth, lat=latency, clat=latency)
    return Trial(
        number=identity.trial,
        cell=identity.cell,
        variant=identity.variant,
        block=identity.block,
        position=identity.position,
        seed=identity.seed,
        started=identity.at,
        seconds=1.0,
        directions=(done,),
        attempt=identity.attempt,
        conditioning=identity.conditioning,
        findings=findings,
        series={"read.iops": series},
    )


class Quiet:
    """Nobody watches, but the notes are kept."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class Paper:
    """An experiment on a bench of paper, in a real folder."""

    def __init__(
        self,
        path: Path,
        say: Say,
        monkeypatch: Any,
        *,
        cells: int = 1,
        variants: int = 2,
        blocks: int = 80,
        budget: str = "1h",
        machines: tuple[str, ...] = (),
        carry_over: str = "tested",
    ) -> None:
        depths = ", ".join(str(2**n) for n in range(cells))
        text = f"""
margin = "1%"
machine = [{", ".join(f'"{name}"' for name in machines)}]
[workload]
rw = "randread"
bs = "4k"
direct = 1
iodepth = [{depths}]
{"".join(f"[variant.v{n}]{chr(10)}" for n in range(variants))}
[design]
trial = "550ms"
ramp = 0
blocks = {blocks}
budget = "{budget}"
metrics = ["read.iops"]
seed = 1
carry-over = "{carry_over}"
"""
        self.plan: Plan = make_plan(parse(text))
        self.folder: Folder = Folder.begin(path, text, self.plan)
        self.bench = PaperBench(say)
        self.watcher = Quiet()
        self.stopped = False
        self.rules: Rules = self.plan.rules
        self.budget = self.plan.experiment.design.budget
        self.clock = 0.0
        self.trials: dict[int, Trial] = {}
        monkeypatch.setattr(judged_module, "read_trial", lambda folder, identity: self.trials[identity.trial])
        monkeypatch.setattr(runner_module, "time", SimpleNamespace(monotonic=self._tick))

    def _tick(self) -> float:
        """Asked when a session begins and a trial ends: every trial takes a second."""
        self.clock += 1
        return self.clock

    def run(self) -> Outcome:
        """One session."""
        with self.folder.writing():
            made = self.bench.trial

            def keep(*args: Any, **named: Any) -> Trial | None:
                trial = made(*args, **named)
                if trial is not None:
                    self.trials[trial.number] = trial
                return trial

            self.bench.trial = keep  # type: ignore[method-assign]
            try:
                one = Runner(
                    self.plan,
                    self.rules,
                    self.folder,
                    lambda block: cast(Bench, self.bench),
                    cast(Any, self.watcher),
                    budget=self.budget,
                    stop=lambda: self.stopped,
                )
                return one.run()
            finally:
                self.bench.trial = made  # type: ignore[method-assign]

    def events(self, kind: type[Any]) -> list[Any]:
        """The journal's events of one kind."""
        return [event for event in self.folder.events() if isinstance(event, kind)]


def hard(text: str) -> Finding:
    """What spoils a trial."""
    return Finding("fio.failed", "hard", "here", text)


def noisy(text: str = "steal") -> Finding:
    """What disturbs one."""
    return Finding("noise.steal", "warning", "here", text)
