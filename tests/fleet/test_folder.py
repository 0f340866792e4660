"""What a fleet refuses before it reaches a host: other questions, other folders, names that lead out of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from iodelta.cli.main import cli
from iodelta.errors import IodeltaError, MeasureError
from iodelta.fleet.cluster import workers
from iodelta.fleet.events import Joined, Moved
from iodelta.fleet.folder import FleetFolder, question
from iodelta.fleet.host import FleetHost
from iodelta.fleet.status import status_of
from iodelta.lab.folder import now

QUESTION = (
    "[target]\npath = 'class:nvme'\n[workload]\nrw = 'randread'\n[variant.a]\ncpus = '0'\n[variant.b]\ncpus = '1'\n"
)

COMMAND = """
[target]
path = "class:nvme"
[workload]
command = ["{here}/load", "{target}"]
[metric.rate]
pattern = 'rate (\\S+)'
unit = "1/s"
better = "higher"
[variant.a]
cpus = "0"
[variant.b]
cpus = "1"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a question and an inventory whose host is not there."""
    (tmp_path / "question.toml").write_text(QUESTION)
    (tmp_path / "fleet.toml").write_text("[host.a]\nssh = 'nosuchhost.invalid'\ntargets = { nvme = '/dev/sdb' }\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def folder_of(place: Path, *hosts: FleetHost, path: str = "fleet") -> FleetFolder:
    folder = FleetFolder(place / path)
    folder.make()
    with folder.journal.held():
        folder.fix(question(place / "question.toml"))
        for host in hosts:
            folder.journal.append(Joined(now(), host))
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "question.toml"), "a class of targets, 'class:nvme', has a path only on the hosts of a fleet"),
        (("fleet", "run", "nosuch.toml"), "cannot read the experiment file"),
        (("fleet", "run", "machine.toml"), "the hosts of a fleet come from the inventory"),
        (("fleet", "run", "command.toml"), "this command may write anywhere you can"),
        (("fleet", "run", "question.toml", "--hosts", "b"), "no host or tag is called 'b'"),
        (("fleet", "run", "question.toml", "--destroy", "/dev/sdb"), "not a device of one of the chosen hosts"),
        (("fleet", "run", "question.toml", "--destroy", "b:/dev/sdb"), "not a device of one of the chosen hosts"),
        (("fleet", "run", "question.toml", "--patience", "long"), "--patience"),
        (("fleet", "run", "question.toml", "--folder", "other"), "not a fleet folder: it contains 'data'"),
        (("fleet", "run", "question.toml", "--inventory", "no.toml"), "no.toml: cannot read the inventory"),
        (("fleet", "run", "question.toml", "--scheduler", "spark://h:1"), "not a scheduler: 'spark://h:1'"),
        (("fleet", "run", "fleet", "--folder", "other"), "given already"),
        (("fleet", "status", "other"), "not a fleet folder"),
        (("fleet", "cancel", "other"), "not a fleet folder"),
    ],
)
def test_a_wrong_request_is_one_message_and_measures_nothing(words: tuple[str, ...], said: str, place: Path) -> None:
    (place / "machine.toml").write_text(f"machine = 'ssh:a'\n{QUESTION}")
    (place / "command.toml").write_text(COMMAND)
    (place / "other").mkdir()
    (place / "other/data").write_text("mine")
    folder_of(place, FleetHost("a", "a"))
    done = invoke(*words)
    assert isinstance(done.exception, IodeltaError), done.output
    assert said in str(done.exception)
    assert done.exception.exit_code == 2
    assert (place / "other/data").read_text() == "mine"
    assert not [*(place / "fleet/hosts").iterdir()]


def test_a_folder_keeps_its_question_and_the_address_of_what_was_measured(place: Path) -> None:
    folder = folder_of(place, FleetHost("a", "a", targets={"nvme": "/dev/sdb"}))
    folder.place("a").mkdir(parents=True)
    with folder.journal.held():
        with pytest.raises(IodeltaError, match="under another address or target"):
            folder.join([FleetHost("a", "a", targets={"nvme": "/dev/sdc"})])
        folder.join([FleetHost("a", "a", tags=("new",), targets={"nvme": "/dev/sdb"})])
    assert folder.hosts()["a"].tags == ("new",)
    (place / "question.toml").write_text(QUESTION.replace("randread", "read"))
    with folder.journal.held(), pytest.raises(IodeltaError, match="about another question"):
        folder.fix(question(place / "question.toml"))
    (folder.path / "experiment.toml").write_text(QUESTION.replace("randread", "read"))
    with pytest.raises(IodeltaError, match="changed since the fleet began"):
        folder.experiment()


def test_a_job_file_comes_along_and_belongs_to_the_question(place: Path) -> None:
    (place / "job.fio").write_text("[one]\nrw=read\n")
    (place / "question.toml").write_text(QUESTION.replace("rw = 'randread'", "job_file = 'job.fio'"))
    folder = folder_of(place)
    (place / "job.fio").write_text("[one]\nrw=randread\n")
    assert folder.experiment().cells[0].option("rw") == "read"
    with folder.journal.held(), pytest.raises(IodeltaError, match="about another question"):
        folder.fix(question(place / "question.toml"))


@pytest.mark.parametrize(
    "host", [FleetHost("../../etc", "a"), FleetHost("a", "-oProxyCommand=reboot"), FleetHost("a", "a", window="x")]
)
def test_a_strangers_folder_leads_nowhere(host: FleetHost, place: Path) -> None:
    folder_of(place, host)
    for words in (("status", "fleet"), ("cancel", "fleet"), ("run", "fleet")):
        done = invoke("fleet", *words)
        assert isinstance(done.exception, IodeltaError), done.output
        assert "damaged" in str(done.exception)
    assert not (place / "fleet/stop").exists()


def test_a_host_much_slower_than_the_middle_of_the_others_is_named(place: Path) -> None:
    rates = {"a": 1000.0, "b": 1100.0, "c": 90.0, "d": 900.0}
    folder = folder_of(place, *(FleetHost(name, name) for name in rates))
    with folder.journal.held():
        for name, rate in rates.items():
            folder.journal.append(Moved(now(), name, "done", rate=rate))
    notes = {host.name: host.notes for host in status_of(folder).hosts}
    assert notes == {"a": (), "b": (), "c": ("11 times slower than the median of the other hosts",), "d": ()}


def test_a_host_that_does_not_exist_is_lost_after_the_patience_and_says_so(place: Path) -> None:
    pytest.importorskip("distributed", reason="iodelta[fleet] is not installed")
    done = invoke("fleet", "run", "question.toml", "--folder", "fleet", "--patience", "1s")
    assert done.exit_code == 4, done.output
    (host,) = status_of(FleetFolder.open(place / "fleet")).hosts
    assert host.state in ("lost", "failed")
    assert "check the name: `ssh -G" in host.remedy
    assert invoke("fleet", "status", "fleet").exit_code == 0


def test_a_scheduler_without_workers_is_named_after_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="iodelta[fleet] is not installed")
    monkeypatch.setattr("iodelta.fleet.cluster.FIRST_WORKER", 0.1)
    idle = distributed.LocalCluster(n_workers=0, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with (
        idle,
        pytest.raises(MeasureError, match=r"no workers within 0\.1 s") as caught,
        workers(idle.scheduler_address, 1),
    ):
        pytest.fail("nobody works")
    assert "dask worker" in caught.value.remedy
