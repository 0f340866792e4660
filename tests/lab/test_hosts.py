"""Several hosts: each makes whole blocks, and what only one of them shows is no change of both."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from paper import Paper

from iodelta.errors import LostError
from iodelta.experiment import parse
from iodelta.lab.account import Account
from iodelta.lab.folder import Started
from iodelta.lab.plan import host_of, make_plan, warnings
from iodelta.trial import Finding

HOSTS = ("ssh:a", "ssh:b")
TEXT = "[workload]\nrw = 'read'\n[variant.x]\n'fio.bs' = '4k'\n[variant.y]\n'fio.bs' = '8k'\n"


def test_hosts_take_turns_by_twos() -> None:
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


def warned(hosts: int, blocks: int) -> dict[str, Finding]:
    names = ", ".join(f"'ssh:h{n}'" for n in range(hosts))
    text = f"machine = [{names}]\n{TEXT}[design]\nblocks = {blocks}\nbudget = '10h'\n"
    return {finding.rule: finding for finding in warnings(make_plan(parse(text)))}


def test_a_plan_whose_hosts_make_too_few_blocks_says_that_no_word_can_be_reached() -> None:
    found = warned(4, 10)["verdict.few-host-blocks"]
    assert found.severity == "hard"
    assert "10 blocks over 4 hosts let 1 of them count" in found.explanation
    assert "at least 12 blocks" in found.remedy
    assert "verdict.few-host-blocks" not in warned(4, 12)
    assert "verdict.few-host-blocks" in warned(4, 11)


def test_a_plan_of_two_or_three_hosts_says_how_little_they_can_show_and_how_many_it_takes() -> None:
    found = warned(2, 80)["verdict.few-hosts"]
    assert "14 standard errors" in found.explanation
    assert "less than 0.6 %" in found.explanation
    assert "at least 4 hosts" in found.remedy
    assert "verdict.few-hosts" in warned(3, 80)
    assert "verdict.few-hosts" not in warned(4, 80)
    assert not warned(1, 80).keys() & {"verdict.few-hosts", "verdict.few-host-blocks"}


def test_a_lost_host_does_not_end_the_others_and_its_blocks_are_made_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = True
    noise = random.Random(3)

    def rate(trial: Started) -> float:
        if cut and trial.block // 2 % 2 and trial.block > 4:
            raise LostError("the connection is lost", place="ssh:b")
        return 1000.0 * noise.gauss(1, 0.1)

    paper = Paper(tmp_path / "folder", rate, monkeypatch, blocks=16, machines=HOSTS)
    with pytest.raises(LostError, match="ssh:b"):
        paper.run()
    state = Account(paper.folder.events())
    made = {block for _, block in state.complete(["v0", "v1"])}
    assert made == {0, 1, 2, 3, 4, 5, 8, 9, 12, 13}
    assert len(state.failed) == 1
    assert not state.over
    cut = False
    assert paper.run().reason == "complete"
    made = {block for _, block in Account(paper.folder.events()).complete(["v0", "v1"])}
    assert made == set(range(16))
