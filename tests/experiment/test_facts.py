"""What a plan knows before the run is refused or said there, by one rule a fact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iodelta.errors import RequestError
from iodelta.experiment import facts, parse
from iodelta.experiment.shorthand import shorthand
from iodelta.experiment.source import COMMAND_LINE
from iodelta.lab.plan import make_plan, warnings
from iodelta.lab.setup import survey
from iodelta.machine import LocalMachine

TWO = ("a:fio.ioengine=psync", "b:fio.ioengine=sync")


def refusal(*fio: str, variants: tuple[str, ...] = TWO, **tables: Any) -> str:
    """The message about a request, by options; empty if it is accepted."""
    try:
        text = shorthand(variants=variants, fio=fio or ("--rw=randread",), **tables)
        make_plan(parse(text, COMMAND_LINE, numbered=False, strict=True))
    except RequestError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("engine", ["psync", "sync", "pvsync2", "mmap", ""])
def test_a_depth_that_the_engine_ignores_is_refused(engine: str) -> None:
    options = [f"--ioengine={engine}"] if engine else []
    variants = ("a:fio.bs=4k", "b:fio.bs=8k")
    said = refusal("--rw=randread", "--iodepth=1,32", *options, variants=variants)
    assert "iodepth=32 would measure depth 1" in said
    assert "--ioengine=libaio" in said
    assert refusal("--rw=randread", "--direct=1", "--ioengine=libaio", "--iodepth=1,32", variants=variants) == ""
    own = ("a:fio.ioengine=libaio", "b:fio.ioengine=psync")
    assert "variant b" in refusal("--rw=randread", "--iodepth=1,8", variants=own)


def test_a_file_is_answered_with_keys_and_the_line() -> None:
    text = "[workload]\niodepth = 8\n[variant.a]\n'fio.bs' = '4k'\n[variant.b]\n'fio.bs' = '8k'\n"
    with pytest.raises(RequestError) as caught:
        parse(text, "x.toml", strict=True)
    assert "x.toml:2" in str(caught.value)
    assert 'ioengine = "libaio"' in str(caught.value)


def test_variants_with_the_same_settings_are_refused_but_not_the_placebo() -> None:
    assert "a and b have the same settings" in refusal(variants=("a", "b"))
    assert "same settings" in refusal("--bs=8k", variants=("a", "b:fio.bs=8k"))
    assert refusal(variants=("a",), design={"placebo": 1}) != ""  # a number is not a switch
    parse("[workload]\nrw = 'read'\n[variant.a]\n[design]\nplacebo = true\n", strict=True)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"target": {"size": "0"}}, "size of 0"),
        ({"design": {"seed": -1}}, "seed must lie between 0"),
        ({"design": {"budget": "2s", "trial": "5s"}}, "shorter than one block"),
        ({"top": {"margin": "1"}}, "write 1% or 0.01"),
        ({"top": {"margin": "25"}}, "write 25% or 0.25"),
    ],
)
def test_a_value_that_leaves_nothing_to_measure_is_refused(tables: dict[str, Any], said: str) -> None:
    assert said in refusal(**tables)


def test_a_size_of_0_is_refused_wherever_fio_would_take_it() -> None:
    assert "0" in refusal("--rw=read", "--size=0")
    assert "0" in refusal("--rw=read", "--size=0", "--size=1m")
    assert "0 bytes" in refusal("--rw=read", "--bs=0")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"bs": "512", "direct": "1"}, "block.sector"),
        ({"bs": "6k", "direct": "1"}, "block.sector"),
        ({"bssplit": "4k/50:512/50", "buffered": "0"}, "block.sector"),
        ({"bsrange": "512-8k", "direct": "1"}, "block.sector"),
        ({"bs": "2m"}, "block.too-large"),
        ({"bs": "512"}, "plan.page-cache"),
    ],
)
def test_what_a_target_cannot_do_is_known_before_the_run(options: dict[str, str], rule: str) -> None:
    found = list(facts.of_target(options, 4096, 1 << 20, 1 << 34))
    assert rule in [fact.rule for fact in found]
    assert not list(facts.of_target({"bs": "8k", "direct": "1"}, 4096, 1 << 20, 1 << 34))


def test_reads_that_memory_holds_are_said_with_both_sizes() -> None:
    plan = make_plan(parse(shorthand(variants=TWO, fio=["--rw=randread"]), strict=True))
    (found,) = (one for one in warnings(plan, used=64 << 20, memory=8 << 30) if one.rule == "plan.page-cache")
    assert "64 MiB) fits into memory (8 GiB)" in found.explanation
    assert "--direct=1" in found.remedy


@pytest.mark.fio
def test_an_empty_file_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    text = shorthand(variants=TWO, fio=["--rw=read"], target={"path": str(tmp_path / "empty")})
    with pytest.raises(RequestError, match="0 bytes"):
        survey(LocalMachine(), parse(text, strict=True))
