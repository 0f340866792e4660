"""Somebody's bundle on a fleet, as its owner asks for it: shown, asked once, measured on each host, kept."""

from __future__ import annotations

import json
import shutil

import pytest
from acceptance.stand import GOOD, Stand, finished, kinds, queue, set_queue

from .stand import Fleet

pytest.importorskip("distributed", reason="iodelta[fleet] is not installed")
pytestmark = [pytest.mark.root, pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("fleet")]

BUNDLE = "theirs.iodelta.tar.zst"

JOB = """
[global]
rw=randread
bs=4k
direct=1
ioengine=libaio
iodepth=4
[reads]
"""

QUESTION = """
question = "Does mq-deadline read as fast as none?"
margin = "50%"
[target]
path = "{node}"
[workload]
job_file = "job.fio"
[variant.fast]
"fio.rate_iops" = 500
"block.scheduler" = "none"
[variant.slow]
"fio.rate_iops" = 100
"block.scheduler" = "mq-deadline"
[design]
trial = "500ms"
ramp = "0s"
blocks = 10
seed = 1
metrics = ["read.iops"]
{more}
"""


def bundled(stand: Stand, more: str = "") -> None:
    """A bundle of an experiment that was measured here, whose workload is a job file of fio."""
    (stand.place / "job.fio").write_text(JOB)
    (stand.place / "theirs.toml").write_text(QUESTION.format(node=stand.loop(), more=more))
    done = stand.run("run", "theirs.toml", "--folder", "theirs")
    assert done.code in GOOD, done
    assert stand.run("pack", "theirs", "-o", BUNDLE).code == 0
    shutil.rmtree(stand.place / "theirs")
    for name in ("job.fio", "theirs.toml"):
        (stand.place / name).unlink()


@pytest.mark.night
def test_a_bundle_is_reproduced_on_every_host_that_answers_and_put_into_a_history(stand: Stand) -> None:
    """Two hosts, and one that never answers; the bundle has a load beside it, which is a command of its author's."""
    fleet = Fleet(stand, "a b")
    fleet.members["a"].host.alias("gone", port=2399)
    fleet.inventory('[host.gone]\ntargets = { disk = "/dev/sdb" }\n')
    for member in fleet.members.values():
        set_queue(member.node, "scheduler", "kyber")
    bundled(stand, '[condition.beside]\nbackground = ["sleep", "1000"]\n')
    ask = ("reproduce", BUNDLE, "--hosts", "all", "--target", "class:disk", "--patience", "1s", "--folder", "fleet")
    before = sorted(path.name for path in stand.place.iterdir())
    plan = stand.run(*ask, "--allow-commands", "--dry-run", "-o", "plan.json")
    assert plan.code == 0, plan
    shown = json.loads((stand.place / "plan.json").read_text())
    assert shown["notes"][0].endswith("; measured on 3 hosts: a, b, gone")
    (stand.place / "plan.json").unlink()
    refused = stand.run(*ask, "--yes")
    assert refused.code == 2
    assert "DANGER" in refused.out
    assert "sleep 1000" in refused.out
    assert "--allow-commands" in refused.err
    unasked = stand.run(*ask, "--allow-commands")
    assert unasked.code == 2
    assert "not accepted, nothing was run, set or written" in unasked.err
    assert sorted(path.name for path in stand.place.iterdir()) == before
    done = stand.run(*ask, "--allow-commands", "--yes", "--history", "kept", "--format", "json")
    assert done.code == 4, done
    answer = json.loads(done.out)
    words = {one["host"]: one["word"] for one in answer["hosts"]}
    assert words == {"a": "reproduced", "b": "reproduced", "gone": "not measured"}
    assert fleet.states() == {"a": "done", "b": "done", "gone": "lost"}
    for name, member in fleet.members.items():
        place = fleet.place(name)
        assert len(finished(place)) == 20, "ten blocks, as the original may have"
        assert json.loads((place / "reproduction.json").read_text())["there"]["digest"] == answer["there"]["digest"]
        assert kinds(place, "session")[0]["target"]["path"] == member.node
        assert queue(member.node, "scheduler") == "kyber"
    assert done.err.count("added: ") == 2
    _called_again(stand, fleet, ask)


def _called_again(stand: Stand, fleet: Fleet, ask: tuple[str, ...]) -> None:
    """Nothing is asked or measured again; the commands of a fleet work on the folder."""
    journals = {name: (fleet.place(name) / "journal.jsonl").read_bytes() for name in "ab"}
    again = stand.run(*ask, "--allow-commands")
    assert again.code == 4, again
    assert "Reproduced on 2 of 3 hosts; not measured on gone." in " ".join(again.out.split())
    assert journals == {name: (fleet.place(name) / "journal.jsonl").read_bytes() for name in "ab"}
    other = stand.run(*ask, "--allow-commands", "--budget", "5m", "--yes")
    assert other.code == 2
    assert "about another question" in other.err
    assert "no joint verdict" in stand.run("fleet", "report", "fleet").out
    assert "nothing to cancel" in stand.run("fleet", "cancel", "fleet").err
    assert stand.run("fleet", "run", "fleet", "--hosts", "a").code == 0


@pytest.mark.night
def test_a_command_as_the_workload_is_measured_on_hosts_once_it_is_allowed(stand: Stand) -> None:
    fleet = Fleet(stand, "a")
    (stand.place / "theirs.toml").write_text(
        '[target]\n[workload]\ncommand = ["sh", "-c", "sleep 0.0{length}"]\nlength = 1\n'
        '[variant.fast]\n"workload.length" = 1\n[variant.slow]\n"workload.length" = 9\n[design]\nblocks = 6\nseed = 1\n'
    )
    done = stand.run("run", "theirs.toml", "--folder", "theirs", "--allow-commands")
    assert done.code in GOOD, done
    assert stand.run("pack", "theirs", "-o", BUNDLE).code == 0
    ask = ("reproduce", BUNDLE, "--hosts", "a", "--yes")
    refused = stand.run(*ask)
    assert refused.code == 2
    assert "DANGER" in refused.out
    done = stand.run(*ask, "--allow-commands")
    assert done.code in GOOD, done
    assert (stand.place / "iodelta-fleet-theirs/hosts/a/verdict.json").exists()

    ask = ("fleet", "run", "theirs.toml", "--folder", "own")
    assert stand.run(*ask).code == 2
    checked = stand.run("fleet", "check", "theirs.toml", "--allow-commands")
    assert checked.code == 0, checked
    done = stand.run(*ask, "--allow-commands")
    assert done.code == 0, done
    assert (stand.place / "own/hosts/a/verdict.json").exists()
    again = stand.run("fleet", "run", "own")
    assert again.code == 2, "the word is not kept"
    assert "--allow-commands" in again.err
    assert fleet.members["a"].place.exists()
