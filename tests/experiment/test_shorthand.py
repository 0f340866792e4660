"""The command line says the same as a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.errors import RequestError
from iodelta.experiment import parse, seconds, size_bytes
from iodelta.experiment.shorthand import overridden, shorthand


def words(*fio: str, variants: tuple[str, ...] = ("a:block.scheduler=none", "b")) -> str:
    return shorthand(variants=variants, fio=fio)


def test_a_condition_is_knobs_or_a_command() -> None:
    conditions = [
        "idle",
        "pinned:cpus=0-3",
        "busy:nice fio --name=x",
        "old:block.scheduler=none,sysctl.vm.swappiness=1",
    ]
    text = shorthand(variants=("a:block.nr_requests=1", "b"), conditions=conditions, fio=["--rw=read"])
    idle, pinned, busy, old = parse(text).conditions
    assert (idle.knobs, idle.background) == ({}, ())
    assert (pinned.knobs, pinned.background) == ({"cpus": "0-3"}, ())
    assert (busy.knobs, busy.background) == ({}, ("nice", "fio", "--name=x"))
    assert old.knobs == {"block.scheduler": "none", "sysctl.vm.swappiness": "1"}


def test_a_comma_that_fio_gives_a_meaning_stays_whole_and_a_repeated_option_is_a_list() -> None:
    assert [cell.option("bs") for cell in parse(words("--rw=randrw", "--bs=4k,64k")).cells] == ["4k,64k"]
    assert [cell.option("bs") for cell in parse(words("--rw=randrw", "--bs=4k", "--bs=64k")).cells] == ["4k", "64k"]


def test_commas_inside_a_knob_s_value_stay_in_it() -> None:
    found = parse(
        words(
            "--rw=read",
            variants=("a:cpus=0,2,block.scheduler=none", "b:mount.options=noatime,commit=5,sysctl.vm.swappiness=1"),
        )
    )
    assert found.variant("a").knobs == {"cpus": "0,2", "block.scheduler": "none"}
    assert found.variant("b").knobs == {"mount.options": "noatime,commit=5", "sysctl.vm.swappiness": "1"}


def test_a_pasted_fio_command_line_becomes_target_and_design() -> None:
    found = parse(words("--name=x", "--filename=/dev/sdx", "--size=10g", "--runtime=30", "--time_based", "--rw=read"))
    assert (found.target.path, found.target.size, found.design.trial) == ("/dev/sdx", "10g", 30)
    assert found.cells[0].options == (("rw", "read"),)


def test_a_colon_in_a_pasted_name_means_what_it_means_to_fio() -> None:
    """fio opens two files for ``a:b`` and one for ``a\\:b``; a target of iodelta is one, and read as it stands."""
    assert parse(words(r"--filename=/srv/a\:b.img", "--rw=read")).target.path == "/srv/a:b.img"
    assert parse(words(r"--directory=/srv/a\:b", "--rw=read")).target.path == "/srv/a:b"
    for option in ("--filename=/srv/a:b.img", "--filename=/dev/sda:/dev/sdb", "--directory=/srv/a:/srv/b"):
        with pytest.raises(RequestError, match="as 2 names, separated by colons") as refused:
            parse(words(option, "--rw=read"))
        assert "name one file, device or directory" in (refused.value.remedy or "")
    text = 'target = { path = "/srv/a:b.img" }\nworkload = { rw = "read" }\n[variant.a]\n[variant.b]\n'
    assert parse(text).target.path == "/srv/a:b.img"


@pytest.mark.parametrize("word", ["rw=read", "-rw", "--", "--rw read", "--a;b=c"])
def test_what_is_no_fio_option_is_refused(word: str) -> None:
    with pytest.raises(RequestError, match="is not a fio option"):
        words(word)


def test_a_file_s_values_give_way_to_the_command_line() -> None:
    variants = "[variant.a]\n[variant.b]\nblock.nr_requests = 64\n"
    text = f'margin = "1%"\n[workload]\nrw = "read"\n{variants}[design]\ntrial = 5'
    changed = overridden(text, target={"path": "/dev/sdx"}, design={"trial": "2s", "blocks": None})
    assert changed is not None
    found = parse(changed)
    assert (found.target.path, found.design.trial, found.margin) == ("/dev/sdx", 2, 0.01)
    assert found.variant("b").knobs == {"block.nr_requests": "64"}
    assert overridden(text) is None


@given(st.text(st.characters(blacklist_characters="\0\n", blacklist_categories=["Cs"]), min_size=1).filter(str.strip))
def test_any_value_survives_the_way_through_the_file(value: str) -> None:
    found = parse(shorthand(variants=["a", "b"], fio=["--rw=read"], top={"question": value}))
    assert found.question == value


@pytest.mark.parametrize(
    ("text", "expected"), [("4096", 4096), ("4k", 4096), ("1m", 1 << 20), ("2G", 2 << 30), ("1tib", 1 << 40)]
)
def test_sizes_are_fio_s(text: str, expected: int) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("500ms", 0.5), ("5", 5), ("1.5m", 90), ("2h", 7200), (3, 3)])
def test_durations(text: str | int, expected: float) -> None:
    assert seconds(text) == expected
