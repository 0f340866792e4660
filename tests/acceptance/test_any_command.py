"""Any command as a workload, from the file to the answer of a stranger: its numbers come from the seed of each trial,
so the truth is known and no clock is needed."""

from __future__ import annotations

import csv
import json
import re
import shutil
import unicodedata
from pathlib import Path

import pytest
from pages import whole
from tiers import one_at_push

from iodelta.lab.folder import Folder, Started
from iodelta.workload.model import OUTPUTS

from .stand import GOOD, Stand

pytestmark = pytest.mark.beside

BENCH = """
import random, sys
rate, seed = float(sys.argv[1]), int(sys.argv[2])
noise = random.Random(seed).gauss(0.0, 0.01)
print("warming up")
print(f"\\x1b[32mops/s: {rate * (1 + noise):.1f}\\x1b[0m")
"""

PAGE = whole("any-benchmark")
EXAMPLES = {
    "dd": "command.speed",
    "PYTHONMALLOC": "command.wall",
    "sysbench": "command.reads",
    "dbench": "command.throughput",
    "db_bench": "command.fills",
    "fs_mark": "command.files",
}
"""What marks an example of the page -> its metric. The example of pgbench is tried where a server is."""

FILE = """
question = "Is the new build slower?"
margin = "5%"
[workload]
command = ["python3", "-I", "-S", "{here}/bench.py", "{rate}", "{seed}"]
rate = 1000
ONLY
[metric.rate]
pattern = 'ops/s: ([0-9.]+)'
unit = "1/s"
better = "higher"
[variant.old]
[variant.new]
"workload.rate" = "850"
[design]
trial = "200ms"
blocks = 10
budget = "10m"
placebo = true
stalls = "50%"
carry-over = "tested"
seed = 7
"""


def _asked(place: Path, only: str = "only_reads = true") -> str:
    (place / "bench.py").write_text(BENCH)
    (place / "ask.toml").write_text(FILE.replace("ONLY", only))
    return str(place / "ask.toml")


def test_a_slower_script_is_a_regression_its_placebo_is_equivalent_and_a_stranger_measures_it_again(
    stand: Stand,
) -> None:
    file = _asked(stand.place)
    done = stand.run("run", file, "--folder", "folder")
    assert done.code == 1, done
    said = json.loads(stand.run("report", "folder", "--format", "json").out)
    words = {(one["variant"], one["metric"]["name"]): one["word"] for one in said["account"]["judgement"]["verdicts"]}
    assert words == {("new", "command.rate"): "regression", ("placebo", "command.rate"): "equivalent"}
    assert "no direction has any I/O" not in done.out
    for format_ in ("mail", "markdown", "html", "csv"):
        assert "rate" in stand.run("report", "folder", "--format", format_).out
    packed = stand.run("pack", "folder", "-o", "theirs.iodelta.tar.zst", "--keep-identity")
    assert packed.code == 0, packed
    bundle = "theirs.iodelta.tar.zst"
    shown = stand.run("reproduce", bundle, "--dry-run")
    assert "DANGER" in shown.out, shown
    assert "bench.py 850" in " ".join(shown.out.split()), shown
    refused = stand.run("reproduce", bundle, "--yes", "--folder", "again")
    assert refused.code == 2, refused
    assert not (stand.place / "again").exists()
    again = stand.run("reproduce", bundle, "--yes", "--allow-commands", "--folder", "again", "--budget", "10m")
    assert again.code in GOOD, again
    both = json.loads(stand.run("reproduce", bundle, "--against", "again", "--format", "json").out)
    assert {one["there"]["variant"]: one["found"]["word"] for one in both["matched"]}["new"] == "reproduced", again
    compared = stand.run("compare", "folder", "again")
    assert "rate (1/s) (higher is better)" in compared.out, compared


def _own(place: Path, workload: str, blocks: int = 3) -> str:
    """A file whose workload is ``workload``, in two variants that differ in a parameter that changes nothing."""
    head = "margin = '5%'\n[variant.old]\n[variant.new]\n'workload.name' = 'new'\n"
    design = f"[design]\ntrial = '200ms'\nblocks = {blocks}\ncarry-over = 'tested'\nsettle = '0s'\n"
    (place / "own.toml").write_text(f"{head}{design}[workload]\nname = 'old'\n{workload}")
    return str(place / "own.toml")


def _outputs(path: Path) -> list[str]:
    """What the command printed in each trial, in their order."""
    folder = Folder.open(path)
    begun = [event.trial for event in folder.events() if isinstance(event, Started)]
    return [folder.read_raw(trial, OUTPUTS["command"]).decode() for trial in begun]


def test_setup_runs_once_and_reset_restores_the_state_before_every_trial(stand: Stand) -> None:
    """The command spoils its own state: a trial without a reset before it would print another count."""
    words = """
setup = [["sh", "-c", "echo made >> {here}/setup.log"], ["cp", "/dev/null", "{here}/counted"]]
reset = ["cp", "{here}/setup.log", "{here}/counted"]
command = ["sh", "-c", "echo spoilt by {name} >> {here}/counted; wc -l < {here}/counted"]
[metric.lines]
last_line = true
unit = "lines"
better = "lower"
"""
    done = stand.run("run", _own(stand.place, words), "--folder", "folder", "--allow-commands")
    assert done.code in GOOD, done
    assert (stand.place / "setup.log").read_text() == "made\n", "once in a session"
    assert _outputs(stand.place / "folder") == ["2\n"] * 6
    more = stand.run("run", "folder")
    assert more.code in GOOD, "an experiment that is over has nothing to allow"


def test_a_reset_that_fails_is_named_and_nothing_is_measured(stand: Stand) -> None:
    words = 'reset = ["sh", "-c", "echo no room; exit 3"]\ncommand = ["sh", "-c", "echo {name} >> {here}/ran"]\n'
    done = stand.run("run", _own(stand.place, words), "--folder", "folder", "--allow-commands")
    assert done.code not in (0, 1), done
    assert "no room" in done.out + done.err, done
    assert not (stand.place / "ran").exists()


def test_a_command_that_writes_although_it_only_reads_is_ended_after_one_trial(stand: Stand) -> None:
    (stand.place / "data").write_text("precious")
    words = 'only_reads = true\ncommand = ["sh", "-c", "echo {name} >> {target}"]\n[target]\npath = "data"\n'
    done = stand.run("run", _own(stand.place, words), "--folder", "folder")
    assert done.code == 4, done
    said = " ".join(done.err.split())
    assert "the file has changed during the trial, but the file says only_reads = true" in said, done
    assert len((stand.place / "data").read_text().splitlines()) == 1, "no second trial"
    assert len(_outputs(stand.place / "folder")) == 1


@pytest.mark.night
def test_a_night_measures_a_command_that_only_reads_and_another_one_by_permit(stand: Stand) -> None:
    (stand.place / "bench.py").write_text(BENCH)
    words = """
command = ["python3", "-I", "-S", "{here}/bench.py", "1000", "{seed}", "{name}"]
[metric.rate]
pattern = 'ops/s: ([0-9.]+)'
unit = "1/s"
better = "higher"
"""
    refused = stand.run("history", "night", _own(stand.place, words, blocks=2))
    assert refused.code == 2, refused
    assert "--allow-commands" in refused.err, refused
    assert not list(stand.place.glob("iodelta-history/runs/*/raw"))
    allowed = stand.run("history", "night", "own.toml", "--allow-commands")
    assert allowed.code == 0, allowed
    reads = stand.run("history", "night", _own(stand.place, f"only_reads = true{words}", blocks=2))
    assert reads.code == 0, reads
    assert "nothing waits for you" in reads.out
    folders = list(stand.place.glob("iodelta-history/runs/*/raw"))
    assert len(folders) == 2
    assert "ops/s" in _outputs(folders[0].parent)[0]


HOSTILE = "\\x1b]0;owned\\x07\\x9b31m\\x08\\xe2\\x80\\xaeevil"
"""A title, a colour in one byte, a backspace and a change of direction, as printf of a shell spells them."""


def _controls(text: str) -> list[str]:
    return [char for char in text if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"]


def test_what_a_command_prints_cannot_move_the_cursor_of_its_reader(stand: Stand) -> None:
    hostile = HOSTILE.encode().decode("unicode_escape").encode("latin-1")
    (stand.place / "evil").write_bytes(b"error: " + hostile + b"\nops 5 " + hostile + b"\n")
    metric = "[metric.ops]\npattern = 'ops (\\d+)'\nunit = '1/s'\nbetter = 'higher'\n"
    reads = "only_reads = true\ncommand = ['cat', '{here}/evil', '{name}']\n"
    own = _own(stand.place, reads + metric, blocks=1)
    failed = stand.run("run", own, "--folder", "folder")
    assert "No such file" in failed.out, failed
    (stand.place / "old").touch()
    texts = [failed.out, failed.err]
    reads = "setup = ['sh', '-c', 'cat {here}/evil; exit 1']\ncommand = ['cat', '{here}/evil', '{name}']\n"
    refused = stand.run("run", _own(stand.place, reads + metric, blocks=1), "--folder", "other", "--allow-commands")
    assert "the setup failed" in refused.err, refused
    texts += [refused.out, refused.err]
    texts += [stand.run("report", "folder", "--format", one).out for one in ("markdown", "html")]
    assert any("evil" in text for text in texts), "what it said of its failure is quoted"
    assert [_controls(text) for text in texts] == [[] for _ in texts]


@pytest.mark.night
def test_a_trial_whose_number_is_missing_is_repeated_and_every_number_is_listed(stand: Stand) -> None:
    """Every third trial prints nothing that counts."""
    words = """
only_reads = false
command = ["sh", "-c", "echo x >> {here}/count; n=$(wc -l < {here}/count); test $((n % 3)) = 0 || echo $n 1/s {name}"]
[metric.count]
pattern = '([0-9]+) (?P<unit>1/s)'
unit = "1/s"
better = "higher"
"""
    done = stand.run("run", _own(stand.place, words, blocks=2), "--folder", "folder", "--allow-commands")
    assert done.code in GOOD, done
    assert "count: the command printed nothing" in done.err
    assert "The block is repeated" in done.err
    printed = [int(text.split()[0]) for text in _outputs(stand.place / "folder") if text]
    assert not [number for number in printed if number % 3 == 0]
    shown = stand.run("show", "folder", "--format", "csv")
    rows = list(csv.DictReader(shown.out.splitlines()))
    assert len(rows) == 4, "of two blocks"
    assert {float(row["measured.count.value"]) for row in rows} <= set(printed)
    table = stand.run("show", "folder").out
    assert all(f" {row['measured.count.value'].removesuffix('.0')}\n" in table for row in rows), table


@pytest.mark.parametrize("mark", one_at_push(EXAMPLES))
def test_an_example_of_the_page_is_measured(stand: Stand, mark: str) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (text,) = (block for block in blocks if f'"{mark}' in block)
    program = "dd" if mark == "PYTHONMALLOC" else mark
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: scripts/setup installs it")
    (stand.place / "example.toml").write_text(text)
    done = stand.run("run", "example.toml", "--folder", "folder", "--allow-commands", "--blocks", "2")
    assert done.code in GOOD, done
    said = json.loads(stand.run("report", "folder", "--format", "json").out)
    judged = [one for one in said["account"]["judgement"]["verdicts"] if one["metric"]["name"] == EXAMPLES[mark]]
    assert [one["blocks"] for one in judged] == [2], said
