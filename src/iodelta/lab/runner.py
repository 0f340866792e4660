"""The run: blocks in the planned order until every cell is decided, or the budget ends, or the user stops it.

Whatever happens, finished trials are kept and the reason is in the journal. The same call on the same folder
continues.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from iodelta.errors import IodeltaError, LostError, MeasureError
from iodelta.lab.account import Account
from iodelta.lab.bench import Bench
from iodelta.lab.boots import Boots, NotBootedError
from iodelta.lab.folder import (
    Abandoned,
    Ended,
    Event,
    Failed,
    Finished,
    Folder,
    LeftOut,
    Repeated,
    Started,
    now,
)
from iodelta.lab.judged import (
    judge_folder,
    open_cells,
    seconds_left,
    usable_trials,
)
from iodelta.lab.plan import Plan, Slot, host_of, repeated, trial_seed
from iodelta.lab.progress import Watcher
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Rules
from iodelta.workload.background import BackgroundLoad

ATTEMPTS = 3
"""Attempts at a block before it is given up."""

SPOILT_BLOCKS = 2
"""Blocks in a row that a cell may lose before it is abandoned with its reason."""

STALE = 60.0
"""Seconds after which a block that a killed run left half done is begun again: its trials are no longer adjacent."""


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended: ``complete``, ``budget`` or ``interrupted``, and what is known."""

    reason: str
    judgement: Judgement


class Runner:
    """One session of one experiment, on a folder held for writing."""

    def __init__(
        self,
        plan: Plan,
        rules: Rules,
        folder: Folder,
        bench_of: Callable[[int], Bench | Boots],
        watcher: Watcher,
        *,
        budget: float,
        stop: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._rules = rules
        self._folder = folder
        self._bench_of = bench_of
        self._watcher = watcher
        self._budget = budget
        self._stop = stop
        self._experiment = plan.experiment
        self._variants = [variant.name for variant in plan.experiment.variants]
        self._cells = {cell.name: cell for cell in plan.experiment.cells}
        self._state = Account(folder.events())
        self._trials = usable_trials(folder, self._state)
        self._done = Counter(cell for cell, _ in self._state.complete(self._variants))
        self._spoilt = dict.fromkeys(self._cells, 0)
        self._judgement = self._judge()
        self._lap_at = 0.0
        self._away: dict[str, LostError] = {}
        """Hosts that were lost in this session, with the error."""

    def run(self) -> Outcome:
        """Run to the end. Raises an error that makes it impossible to go on (a knob, the machine, the folder, the
        guard)."""
        self._lap_at = time.monotonic()
        try:
            reason = self._rounds()
            if self._away and reason == "complete":  # their blocks are still to be made
                raise next(iter(self._away.values()))
        except IodeltaError as error:
            # A full disk cannot take this line either.
            with contextlib.suppress(IodeltaError):
                self._append(Ended(now(), f"failed: {error.sentence}"))
            raise
        self._append(Ended(now(), reason))
        return Outcome(reason, self._judge())

    def _rounds(self) -> str:
        rounds = self._plan.schedule.rounds
        if self._rules.max_blocks > len(rounds):  # extended
            longer = self._plan.scheduled(self._rules.max_blocks).rounds
            rounds = (*rounds, *longer[len(rounds) :])
        # A second pass for blocks that were skipped while a screen held their cells back, or that were lost.
        for round_ in (*rounds, *rounds):
            if round_ is rounds[0]:
                self._judgement = self._judge()
            # Not done yet, and their cells neither decided nor abandoned.
            waiting = open_cells(self._plan, self._state, self._judgement)
            slots = [
                slot
                for slot in round_
                if slot.cell in waiting and not self._is_complete(slot)
            ]
            if slots and host_of(self._experiment, slots[0].block) in self._away:
                continue
            try:
                reason = self._round(slots)
            except LostError as error:
                # The host of a block is lost: the others make theirs
                name = host_of(self._experiment, slots[0].block)
                self._away[name] = error
                if len(self._away) >= max(1, len(self._experiment.machines)):
                    raise error
                self._watcher.note(
                    f"{name} is lost, the other hosts continue: {error.sentence}"
                )
                continue
            if reason:
                return reason
            if slots:
                # Whether some open cell has the blocks for its next look; else judge now and then, for the running
                # estimate
                done = sum(self._done.values())
                due = done >= 1.05 * self._judged_at
                for verdict in self._judgement.verdicts:
                    if verdict.step == "continue":
                        due = (
                            due
                            or verdict.next_look is None
                            or self._done[verdict.cell] >= verdict.next_look
                        )
                if due:
                    self._judgement = self._judge()
                self._watcher.judged(
                    self._judgement,
                    self._state.spent,
                    seconds_left(
                        self._plan,
                        self._rules,
                        self._state,
                        self._judgement,
                        self._budget,
                    ),
                )
        return "complete"

    def _round(self, slots: Sequence[Slot]) -> str:
        """Make one block of every open cell, on one host; return why the run must end, or an empty text."""
        for name, group in itertools.groupby(
            slots, key=lambda slot: self._cells[slot.cell].condition
        ):
            condition, of_condition = self._experiment.condition(name), list(group)
            with contextlib.ExitStack() as stack:
                background: BackgroundLoad | None = None
                if condition.background or condition.background_fio:
                    bench = self._bench_of(of_condition[0].block)
                    try:
                        background = stack.enter_context(bench.background(condition))
                    except LostError:
                        raise
                    except MeasureError as error:
                        # Its cells cannot be measured; others can.
                        for cell in self._cells.values():
                            if cell.condition == name:
                                self._abandon(cell.name, error.sentence)
                        continue
                # Where every variant needs a reboot, new blocks are made variant by variant: one boot serves all of them,
                # as their orders are the same.
                abreast = [
                    slot
                    for slot in of_condition
                    if self._experiment.reboots
                    and not self._state.attempts(slot.cell, slot.block)
                ]
                if abreast and not self._affordable(*abreast):
                    return "budget"
                for position in range(len(abreast[0].order) if abreast else 0):
                    for slot in abreast:
                        left_out = slot.order[position] in self._state.left_out
                        if not (left_out or self._stop() or self._spoilt_by(slot, 0)):
                            self._trial(slot, 0, position, background)
                for slot in of_condition:
                    if slot not in abreast and not self._affordable(slot):
                        return "budget"
                    self._block(
                        slot,
                        background,
                        0 if slot in abreast else self._first_attempt(slot),
                    )
                    if self._stop():
                        return "interrupted"
        return ""

    def _spoilt_by(self, slot: Slot, attempt: int) -> str:
        """Return what spoilt an attempt so far; empty when nothing did."""
        for started in self._state.attempts(slot.cell, slot.block).get(attempt, []):
            problem = self._state.problem(started.trial)
            if problem and started.variant not in self._state.left_out:
                return f"{started.variant}: {problem}"
        return ""

    def _block(
        self, slot: Slot, background: BackgroundLoad | None, attempt: int
    ) -> None:
        """One block. After a spoilt trial all of it is repeated, so that no variant's trial is ever dropped alone.

        Only a trial without a result spoils a block. A disturbed one counts: its variant may have caused that.
        """
        tries = 0
        while True:
            problem = self._attempt(
                repeated(slot, attempt, self._plan.seed), attempt, background
            )
            if self._stop():
                return
            if not problem:
                break
            self._bench_of(slot.block).check_target()
            tries += 1
            if tries == ATTEMPTS or not self._affordable(slot):
                break
            self._append(
                Repeated(now(), slot.cell, slot.block, attempt, "spoilt", problem)
            )
            self._watcher.note(
                f"{slot.cell}, block {slot.block + 1}: {problem}. The block is repeated."
            )
            attempt += 1
        if self._is_complete(slot):
            self._done[slot.cell] += 1
            self._spoilt[slot.cell] = 0
            return
        self._spoilt[slot.cell] += 1
        if self._spoilt[slot.cell] >= SPOILT_BLOCKS:
            self._abandon(slot.cell, problem)

    def _first_attempt(self, slot: Slot) -> int:
        """Return the attempt to continue: a half-done one while its trials are adjacent in time, else the next.

        A half-done superblock is begun again: its next trial would not follow a trial of its own variant.
        """
        attempts = self._state.attempts(slot.cell, slot.block)
        if not attempts:
            return 0
        last = max(attempts)
        done = [
            started
            for started in attempts[last]
            if self._state.is_usable(started.trial)
        ]
        spoilt = any(self._state.problem(started.trial) for started in attempts[last])
        stale = (
            bool(done)
            and now() - max(started.at for started in done)
            > STALE + self._plan.trial_seconds
        )
        if spoilt or stale or (done and self._plan.superblocks):
            return last + 1
        return last

    def _attempt(
        self, slot: Slot, attempt: int, background: BackgroundLoad | None
    ) -> str:
        """Return the trials of a block that are still to be made; returns what spoilt it, or an empty text."""
        made = {
            (started.variant, started.conditioning)
            for started in self._state.attempts(slot.cell, slot.block).get(attempt, [])
            if self._state.is_usable(started.trial)
        }
        for position, variant in enumerate(slot.order):
            problem = self._spoilt_by(slot, attempt)
            if problem:
                return problem
            if (
                variant,
                slot.conditioning(position),
            ) in made or variant in self._state.left_out:
                continue
            trial = self._trial(slot, attempt, position, background)
            if trial is None and variant not in self._state.left_out:
                return "interrupted"
        return self._spoilt_by(slot, attempt)

    def _trial(
        self, slot: Slot, attempt: int, position: int, background: BackgroundLoad | None
    ) -> Trial | None:
        """Return one trial, with its lines in the journal, and kept if it is usable; None when it was stopped."""
        variant, to_come = slot.order[position], slot.to_come(position)
        fresh = self._experiment.design.fresh_seeds
        seed = trial_seed(
            self._plan.seed, slot, attempt, variant, fresh=fresh, to_come=to_come
        )
        number = self._state.next_trial
        identity = Started(
            now(),
            number,
            slot.cell,
            slot.block,
            attempt,
            position,
            variant,
            seed,
            to_come > 0,
        )
        self._append(identity, sync=False)
        self._watcher.trial(slot, variant, number)
        try:
            trial = self._bench_of(slot.block).trial(
                identity,
                self._cells[slot.cell],
                self._experiment.variant(variant),
                background,
                stop=self._stop,
                on_tick=self._watcher.tick,
            )
        except IodeltaError as error:
            with contextlib.suppress(IodeltaError):
                self._append(Failed(now(), number, error.sentence))
            if not isinstance(error, NotBootedError) or not self._goes_on_without(
                variant
            ):
                raise
            self._append(LeftOut(now(), variant, error.sentence))
            self._watcher.note(
                f"{variant} is left out, the others continue: {error.sentence}"
            )
            return None
        if trial is not None:
            self._append(Finished(now(), number, self._lap(), trial.problem))
            if self._state.is_usable(number):
                self._trials[number] = trial
                self._watcher.measured(trial)
        return trial

    def _goes_on_without(self, variant: str) -> bool:
        """Return whether there is still something to compare."""
        left = [
            name
            for name in self._variants
            if name not in self._state.left_out and name != variant
        ]
        return self._experiment.baseline in left and len(left) > 1

    # ------------------------------------------------------------------------------------------- bookkeeping

    def _lap(self) -> float:
        """Seconds since the last trial ended, so that all of a session's time is some trial's, and the budget's."""
        before, self._lap_at = self._lap_at, time.monotonic()
        return self._lap_at - before

    def _append(self, event: Event, *, sync: bool = True) -> None:
        self._folder.append(event, sync=sync)
        self._state.add(event)

    def _abandon(self, cell: str, reason: str) -> None:
        self._append(Abandoned(now(), cell, reason))
        self._watcher.note(f"{cell}: given up: {reason}")

    def _is_complete(self, slot: Slot) -> bool:
        return self._state.is_complete(slot.cell, slot.block, self._variants)

    def _affordable(self, *slots: Slot) -> bool:
        """Return whether the budget pays for more blocks."""
        trials = sum(len(slot.order) for slot in slots)
        return (
            self._state.spent
            + trials * self._state.trial_seconds(self._plan.trial_seconds)
            <= self._budget
        )

    def _judge(self) -> Judgement:
        self._judged_at = sum(self._done.values())
        return judge_folder(self._plan, self._rules, self._state, self._trials)
