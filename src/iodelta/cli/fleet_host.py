"""The process in which a fleet measures one host: ``iodelta run`` for that host, which ends with the process that began
it, and says through a pipe how it ended."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import statistics
import sys
from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from iodelta.api.hosts import Permits
from iodelta.cli.commands import Asked, words_of
from iodelta.errors import (
    IodeltaError,
    LostError,
    MeasureError,
    RequestError,
    UnreachableError,
)
from iodelta.experiment.model import PLACEBO
from iodelta.fleet.folder import FleetFolder, is_held
from iodelta.fleet.measuring import ALLOWED, End
from iodelta.fleet.reproducing import wishes_of
from iodelta.fleet.sight import said
from iodelta.lab.account import OVER, Account
from iodelta.lab.folder import EXPERIMENT, JOURNAL, Folder
from iodelta.lab.judged import load_trials, read_plan

if TYPE_CHECKING:
    from iodelta.study.experiment import Account as ExperimentAccount

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that this process gets when the thread that began it ends."""


def main() -> None:
    """``PIPE PARENT FOLDER NAME ALLOWED [DESTROY...]``."""
    pipe, parent, folder, name, allowed, *destroy = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it ended before we could ask
        return
    fleet = FleetFolder.open(Path(folder))
    permits = Permits(tuple(destroy), allowed == ALLOWED)
    os.write(int(pipe), msgspec.json.encode(_end(fleet, name, permits)))


def _end(fleet: FleetFolder, name: str, permits: Permits) -> End:
    from iodelta.lab.turns import BusyError

    if is_held(fleet.place(name) / JOURNAL):
        return End("held", "another iodelta is writing to its experiment folder")
    try:
        return _measured(fleet, name, permits)
    except BusyError as error:
        return End("busy", f"in use by {error.place}: {error.what}", error.remedy)
    except (LostError, UnreachableError) as error:
        return End("away", said(error), error.remedy)
    except IodeltaError as error:
        sys.stderr.write(f"iodelta: {error.sentence}\n")
        return End("failed", said(error), error.remedy)


def _measured(fleet: FleetFolder, name: str, permits: Permits) -> End:
    """Raises RequestError, MeasureError."""
    from iodelta.api.measuring import Wishes
    from iodelta.cli.run import measure

    place, host, experiment = fleet.place(name), fleet.hosts()[name], fleet.experiment()
    wishes = wishes_of(fleet)
    place.parent.mkdir(exist_ok=True)
    commands = permits.commands or (wishes is not None and wishes.allow_commands)
    asked = Wishes(destroy=permits.destroy, allow_commands=commands)
    file = place
    if place.exists():
        if read_plan(Folder.open(place)).experiment.machines != (host.machine,):
            raise RequestError(
                f"its experiment folder is not one of {host.machine}", place=str(place)
            )
    elif wishes is not None:
        from iodelta.cli.reproduce import measure_one

        measure_one(fleet, host, wishes, permits.destroy)
        return _outcome(place)
    else:
        file = fleet.path / EXPERIMENT
        path = host.target(experiment.target.path)
        asked = msgspec.structs.replace(
            asked, machines=(host.machine,), given={"target": path}, folder=place
        )
    # Its exit code is of its verdicts.
    with contextlib.suppress(SystemExit):
        measure(file, asked, Asked(format="console", words=words_of("nothing")))
    return _outcome(place)


def _outcome(place: Path) -> End:
    folder = Folder.open(place)
    state = Account(folder.events()).state
    if state == "interrupted":
        return End("stopped")
    if state not in OVER:
        raise MeasureError(f"the run ended early: {state}", place=str(place))
    from iodelta.report.derived import load

    account = load(folder)
    if account.exit_code == MeasureError.exit_code:
        changed = (finding.explanation for finding in account.broken)
        reason = next(
            chain(changed, account.abandoned.values()), "no block was finished"
        )
        raise MeasureError(f"nothing was measured: {reason}", place=str(place))
    alarm = _alarm(account)
    return End(
        "drained" if alarm else "done",
        alarm,
        "find what disturbs this host" if alarm else "",
        _rate(folder, account),
    )


def _alarm(account: ExperimentAccount) -> str:
    """Return a message if a placebo was called a change; empty otherwise."""
    for verdict in account.judgement.verdicts:
        if verdict.variant == PLACEBO and verdict.word in ("regression", "improvement"):
            return f"its placebo, the baseline under another name, was called {verdict.word} in {verdict.cell}"
    return ""


def _rate(folder: Folder, account: ExperimentAccount) -> float | None:
    """Mean IOPS of the baseline, the geometric mean over cells."""
    cells: dict[str, list[float]] = defaultdict(list)
    experiment = account.plan.experiment
    counted = Account(folder.events()).counted(
        variant.name for variant in experiment.variants
    )
    baseline = {
        number: count
        for number, count in counted.items()
        if count.variant == experiment.baseline
    }
    for trial in load_trials(folder, baseline).values():
        cells[trial.cell].append(
            sum(direction.iops.value for direction in trial.directions)
        )
    means = [statistics.fmean(rates) for rates in cells.values()]
    if means and min(means) > 0:
        return math.exp(statistics.fmean(map(math.log, means)))
    return None


if __name__ == "__main__":
    main()
