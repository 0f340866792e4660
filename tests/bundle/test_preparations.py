"""A stranger's preparation is asked about, and says nothing that a file could not say."""

from __future__ import annotations

import msgspec
import pytest

from iodelta.bundle.dangers import dangers
from iodelta.bundle.planning import checked
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, Prepare, parse
from iodelta.experiment.written import rendered

TEXT = """
[target]
path = "/dev/sdb"
[workload]
rw = "randread"
[variant.a]
"block.scheduler" = "none"
[variant.b]
"block.scheduler" = "mq-deadline"
"""


def asked(table: str) -> Experiment:
    return parse(f"{TEXT}[prepare]\n{table}\n", "theirs")


def test_a_purge_needs_a_word_of_its_own() -> None:
    assert dangers(asked("")) == ()
    (found,) = dangers(asked('purge = "nvme-format"'))
    assert (found.place, found.what) == ("[prepare] purge", "nvme-format")
    (found,) = dangers(asked('workload = { rw = "write", uid = "0" }'))
    assert found.place == "[prepare] workload"


@pytest.mark.parametrize("table", ["", 'fill = 0.5\nround = "7s"', 'workload = { rw = "randwrite", bs = "8k" }'])
def test_a_preparation_travels_as_it_is(table: str) -> None:
    experiment = asked(table)
    assert parse(rendered(experiment)).prepare == experiment.prepare
    assert checked(experiment, "theirs") == experiment


@pytest.mark.parametrize(
    "prepare",
    [
        Prepare(workload=(("rw", "write"), ("filename", "/dev/sdc"))),
        Prepare(workload=(("rw", "write"), ("exec_prerun", "rm"))),
        Prepare(workload=(("rw", "randread"),)),
        Prepare(round=1e9),
        Prepare(fill=-1.0),
    ],
)
def test_a_plan_that_was_edited_says_no_more_than_a_file_can(prepare: Prepare) -> None:
    experiment = msgspec.structs.replace(asked(""), prepare=prepare)
    with pytest.raises(RequestError):
        checked(experiment, "theirs")
