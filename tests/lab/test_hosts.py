"""Several hosts: each makes whole blocks, and what only one of them shows is no change of both."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from paper import Paper

from iodelta.errors import RequestError
from iodelta.experiment import parse
from iodelta.lab.folder import Started
from iodelta.lab.hosts import host_of

HOSTS = ("ssh:a", "ssh:b")
TEXT = "[workload]\nrw = 'read'\n[variant.x]\n'fio.bs' = '4k'\n[variant.y]\n'fio.bs' = '8k'\n"


def test_hosts_take_turns_by_pairs_of_blocks_whose_orders_mirror_each_other() -> None:
    two = parse("machine = ['ssh:a', 'ssh:b']\n" + TEXT)
    assert [host_of(two, block) for block in range(6)] == ["ssh:a", "ssh:a", "ssh:b", "ssh:b", "ssh:a", "ssh:a"]
    assert host_of(parse(TEXT), 3) == ""


@pytest.mark.parametrize(("machines", "word"), [((), "regression"), (HOSTS, "inconclusive")])
def test_a_change_on_one_of_two_hosts_is_no_change_of_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machines: tuple[str, ...], word: str
) -> None:
    noise = random.Random(1)

    def rate(trial: Started) -> float:
        slower = trial.variant == "v1" and trial.block // 2 % 2 == 0
        return (850.0 if slower else 1000.0) * noise.gauss(1, 0.002)

    paper = Paper(tmp_path / "folder", rate, monkeypatch, blocks=40, machines=machines)
    (verdict,) = paper.run().judgement.verdicts
    assert verdict.word == word


@pytest.mark.parametrize("both", [True, False])
def test_a_change_on_all_hosts_is_found_and_none_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, both: bool
) -> None:
    noise = random.Random(2)

    def rate(trial: Started) -> float:
        return (900.0 if both and trial.variant == "v1" else 1000.0) * noise.gauss(1, 0.002)

    machines = (*HOSTS, "ssh:c")
    paper = Paper(tmp_path / "folder", rate, monkeypatch, blocks=60, machines=machines)
    (verdict,) = paper.run().judgement.verdicts
    assert verdict.word == ("regression" if both else "equivalent")


@pytest.mark.parametrize("value", ['["ssh:a", "ssh:a"]', "3", '[""]', "[1]"])
def test_machines_that_are_none_are_refused_with_their_line(value: str) -> None:
    with pytest.raises(RequestError, match="machine"):
        parse(f"machine = {value}\n{TEXT}")
