"""[prepare] says how a disk is prepared; what it cannot mean is refused with its line."""

from __future__ import annotations

import pytest

from iodelta.errors import RequestError
from iodelta.experiment import Prepare, disk_text, parse, parse_disk

BASE = """[target]
path = "/dev/sdb"
[workload]
rw = "randwrite"
[variant.a]
"fio.nice" = 0
[variant.b]
"fio.nice" = 1
"""


def test_a_file_without_the_table_prepares_nothing() -> None:
    assert parse(BASE).prepare is None
    assert parse(f"{BASE}[prepare]\n").prepare == Prepare()


def test_the_file_and_the_command_line_say_the_same() -> None:
    table = '[prepare]\npurge = "discard"\nfill = 1.5\nround = "5s"\nlimit = 9\nspare = "10%"\n'
    said = parse(f'{BASE}{table}workload = {{ rw = "randwrite", bs = "8k" }}\n')
    options = dict[str, str | int | float | bool | list[str] | None]()
    options |= {"purge": "discard", "fill": 1.5, "round": "5s", "limit": 9, "spare": "10%"}
    text = disk_text(machine="", target={"path": "/dev/sdb"}, prepare=options, fio=["--rw=randwrite", "--bs=8k"])
    question = parse_disk(text)
    assert question.prepare == said.prepare
    assert question.prepare == Prepare("discard", 1.5, (("rw", "randwrite"), ("bs", "8k")), 5.0, 9, 0.1)
    assert question.target.path == "/dev/sdb"


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ('purge = "erase"', "'erase' is not a way to purge"),
        ("fill = 11", "fill must lie between 0 and 10"),
        ("fill = nan", "fill must lie between 0 and 10"),
        ("fill = true", "fill must lie between"),
        ('round = "0s"', "round must lie between 0.2 and 86400"),
        ("limit = 4", "limit must lie between 5 and 10000"),
        ("limit = 5.5", "limit is a whole number"),
        ('spare = "100%"', "does not lie between 0 and 100 %"),
        ('workload = { rw = "randread" }', "the rounds must write"),
        ('workload = { rw = ["write", "randwrite"] }', "needs a single value"),
        ('workload = { rw = "write", filename = "/dev/sdc" }', "the target is [target] path"),
        ('workload = { rw = "write", exec_prerun = "rm" }', "exec_prerun"),
        ("rounds = 5", "[prepare] has no key 'rounds'"),
    ],
)
def test_what_a_preparation_cannot_mean_is_refused_with_its_line(table: str, what: str) -> None:
    with pytest.raises(RequestError) as error:
        parse(f"{BASE}[prepare]\n{table}\n", "one.toml")
    assert what in str(error.value)
    assert error.value.place.startswith("one.toml:")


def test_only_a_disk_that_is_named_is_prepared() -> None:
    with pytest.raises(RequestError, match="names none"):
        parse(BASE.replace('path = "/dev/sdb"', "") + "[prepare]\n")
    with pytest.raises(RequestError, match="what is booted"):
        parse(BASE.replace('"fio.nice" = 1', 'kernel = "6.1"') + "[prepare]\n")
