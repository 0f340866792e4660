"""Make a recorded A/A series of an experiment folder in which all trials are alike, such as `iodelta calibrate` leaves.

python -m benchmarks.verdicts.record iodelta-calibration-*/a-against-a > benchmarks/verdicts/recorded/NAME.json
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from statistics import mean

from iodelta.lab.account import Account
from iodelta.lab.folder import ENVIRONMENT, Folder
from iodelta.lab.judged import read_plan, usable_trials
from iodelta.verdict import metric, value_of


def main() -> None:
    """Print the series of one folder as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metric", default="read.iops")
    given = parser.parse_args()
    folder = Folder.open(given.folder)
    plan, state = read_plan(folder), Account(folder.events())
    if len({cell.options for cell in plan.experiment.cells}) > 1:
        parser.error("its cells differ: a series needs trials that are all alike")
    trials = [trial for _, trial in sorted(usable_trials(folder, state).items())]
    values = [value_of(trial, metric(given.metric))[0] for trial in trials]
    facts = json.loads(folder.read(ENVIRONMENT))
    cell = plan.experiment.cells[0]
    document = {
        "machine": f"{facts['host']['distribution']}, Linux {facts['kernel']['release']}",
        "workload": " ".join(f"{name}={value}" for name, value in cell.options),
        "metric": given.metric,
        "seconds_per_run": round(mean(done.seconds for done in state.finished.values()), 3),
        "values": [value for value in values if math.isfinite(value)],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
