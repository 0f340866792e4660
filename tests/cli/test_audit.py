"""iodelta audit: can these numbers be believed?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from fio_files import write
from foreign import iodelta, narrow, shared

from iodelta.experiment import parse
from iodelta.experiment.shorthand import shorthand
from iodelta.lab.folder import Ended, Folder, now
from iodelta.lab.plan import make_plan

TABLE = """\
### SSD RAID10

| Test | Policy | IOPS | BW (KiB/s) | Avg Lat (ms) | 99% Lat (ms) |
|---|---|---|---|---|---|
| RandRead 4k QD32 | pid | 1000 | 4000 | 32.0 | 60 |
| RandRead 4k QD32 | queue | 1250 | 5000 | 0.019 | 50 |
| SeqRead 1M QD16 | pid | 200 | 204800 | 80.0 | 0.150 |
| SeqRead 1M QD16 | queue | 250 | 268.4M | 64.0 | 130 |
"""


def table(folder: Path, text: str = TABLE) -> str:
    (folder / "table.md").write_text(text, encoding="utf-8")
    return "table.md"


def test_a_hard_finding_is_exit_code_1_and_says_row_reason_and_remedy(tmp_path: Path) -> None:
    said = iodelta("audit", table(tmp_path), cwd=tmp_path)
    text = said.stdout.decode()
    assert said.returncode == 1
    assert "4 rows checked, 3 impossible." in text
    assert "[little.mismatch]" in text
    assert "table.md:6 RandRead 4k QD32 queue" in text
    assert "To do: take the mean from fio's 'lat' line" in text
    assert narrow(text)


def test_sound_numbers_are_exit_code_0(tmp_path: Path) -> None:
    write(tmp_path / "x.json")
    said = iodelta("audit", "x.json", cwd=tmp_path)
    assert said.returncode == 0
    assert b"1 run checked, nothing impossible." in said.stdout


@pytest.mark.parametrize("command", ["audit", "show"])
def test_a_named_file_that_cannot_be_read_is_exit_code_4_although_another_was(command: str, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "folder"):
        write(place / "x.json")
        (place / "bad.bin").write_bytes(bytes(range(256)))
    said = iodelta(command, "x.json", "bad.bin", cwd=tmp_path)
    assert (said.returncode, b"bad.bin: nothing here could be read" in said.stderr) == (4, True)
    assert iodelta(command, "folder", cwd=tmp_path).returncode == 0, "a folder may hold other things"


def test_repair_writes_the_table_with_every_change_marked(tmp_path: Path) -> None:
    said = iodelta("audit", table(tmp_path), "--repair", "mended.md", cwd=tmp_path)
    assert said.returncode == 1
    mended = (tmp_path / "mended.md").read_text(encoding="utf-8")
    assert "| RandRead 4k QD32 | pid | 1000 | 4000 | 32.0 | 60 |  |" in mended
    assert "| RandRead 4k QD32 | queue | 1250 | 5000 | ~~0.019~~ **25.6** [1] | 50 |  |" in mended
    assert "~~0.150~~ **150** [2]" in mended
    assert "~~268.4M~~ **256000** [3]" in mended
    assert "[1] mean latency is iodepth x jobs / IOPS (Little's law)" in mended
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == TABLE
    again = iodelta("audit", "-", cwd=tmp_path, stdin=mended.replace("~~", "").encode())
    assert again.returncode in (0, 1)


def test_claims_are_checked_against_the_table(tmp_path: Path) -> None:
    claims = "queue has the highest IOPS in QD32; pid is 25 % below queue in SeqRead; pid is 20% below queue"
    said = iodelta("audit", table(tmp_path), "--claims", claims, cwd=tmp_path)
    text = " ".join(said.stdout.decode().split())
    assert said.returncode == 1
    assert "claim 'queue has the highest IOPS in QD32': holds" in text
    assert "hard: claim 'pid is 25 % below queue in SeqRead': false: the table shows 20.0 % below" in text
    assert "claim 'pid is 20% below queue': holds" in text


def test_a_false_claim_alone_is_exit_code_1(tmp_path: Path) -> None:
    sound = "\n".join(line for line in TABLE.splitlines() if "| pid |" in line or "queue" not in line)
    two = sound.replace(
        "SeqRead 1M QD16 | pid | 200 | 204800 | 80.0 | 0.150", "RandRead 4k QD32 | queue | 900 | 3600 | 35.6 | 70"
    )
    path = table(tmp_path, two)
    assert iodelta("audit", path, cwd=tmp_path).returncode == 0
    said = iodelta("audit", path, "--claims", "queue has the highest IOPS in QD32", cwd=tmp_path)
    assert said.returncode == 1


def test_claims_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "claims.txt").write_text("queue has the highest IOPS in QD32\n", encoding="utf-8")
    said = iodelta("audit", table(tmp_path), "--claims", "@claims.txt", cwd=tmp_path)
    assert b"holds in 1 of 1 cell" in said.stdout


def test_a_claim_of_another_form_is_a_wrong_request(tmp_path: Path) -> None:
    said = iodelta("audit", table(tmp_path), "--claims", "queue is best", cwd=tmp_path)
    assert said.returncode == 2
    assert b"write it as" in said.stderr


def test_prose_is_audited_too(tmp_path: Path) -> None:
    said = iodelta("audit", "-", cwd=tmp_path, stdin=b"- iodepth=32:\nold: 554 IOPS -> new: 535 IOPS (-5.4%)\n")
    assert said.returncode == 1
    assert b"[statement.percent]" in said.stdout


def test_json_carries_rows_rules_and_repairs(tmp_path: Path) -> None:
    found = json.loads(iodelta("audit", table(tmp_path), "--format", "json", cwd=tmp_path).stdout)
    assert found["schema"] == "iodelta.audit/1"
    assert found["failed"] == [1, 2, 3]
    assert {hit["finding"]["rule"] for hit in found["hits"]} >= {"little.mismatch", "percentile.unit"}
    assert found["repairs"][0]["mended"] == "25.6"


@pytest.mark.parametrize("format_", ["console", "mail", "markdown", "html"])
def test_every_format_says_reason_remedy_system_and_how_to_do_it_again(tmp_path: Path, format_: str) -> None:
    said = iodelta(
        "audit", table(tmp_path), "--claims", "queue has the highest IOPS", "--format", format_, cwd=tmp_path
    )
    text = " ".join(said.stdout.decode().replace("\\", "").replace("&#39;", "'").replace("<!-- -->", "").split())
    assert said.returncode == 1
    for expected in (
        "4 rows checked, 3 impossible",
        "little.mismatch",
        "take the mean from fio's 'lat' line",
        "The machine is not recorded in these results.",
        "iodelta audit table.md --claims 'queue has the highest IOPS'",
    ):
        assert expected in text


def test_the_ending_of_a_file_implies_the_format_and_csv_has_a_row_for_each_finding(tmp_path: Path) -> None:
    assert iodelta("audit", table(tmp_path), "-o", "audit.csv", cwd=tmp_path).returncode == 1
    found = json.loads(iodelta("audit", "table.md", "--format", "json", cwd=tmp_path).stdout)
    rows = list(csv.DictReader((tmp_path / "audit.csv").read_text().splitlines()))
    assert len(rows) == len(found["hits"]) + len(found["findings"])
    hits = [row["finding.rule"] for row in rows if row["list"] == "hits"]
    assert hits == [hit["finding"]["rule"] for hit in found["hits"]]
    assert iodelta("audit", "table.md", "-o", "audit.csv", cwd=tmp_path).returncode == 1, "its own file is replaced"


def test_every_rule_is_listed_with_what_it_needs(tmp_path: Path) -> None:
    said = iodelta("audit", "--rules", cwd=tmp_path)
    assert said.returncode == 0
    assert b"little.mismatch (hard)" in said.stdout
    assert b"To do:" in said.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, b"there is nothing to audit"),
        (["nowhere"], 2, b"nowhere"),
        (["empty"], 4, b"No run and no table"),
        (["table.md", "--repair", "no/such/folder/x.md"], 2, b"the folder no/such/folder does not exist"),
    ],
)
def test_wrong_requests(tmp_path: Path, words: list[str], code: int, says: bytes) -> None:
    table(tmp_path)
    (tmp_path / "empty").mkdir()
    said = iodelta("audit", *words, cwd=tmp_path)
    assert said.returncode == code
    assert says in said.stdout + said.stderr


def test_hostile_cells_reach_the_screen_and_the_mended_table_as_plain_text(tmp_path: Path) -> None:
    hostile = TABLE.replace("| queue |", "| que\x1b[31mue\x07 |")
    said = iodelta("audit", table(tmp_path, hostile), "--verbose", "--repair", "mended.md", cwd=tmp_path)
    assert not set(said.stdout) & set(b"\x1b\x07\r\x08\x7f")
    assert not set((tmp_path / "mended.md").read_bytes()) & set(b"\x1b\x07\r\x08\x7f")


class TestSeeds:
    """The five reports that people posted."""

    def audit(self, number: str, *words: str) -> tuple[int, str]:
        folder = shared("seeds")
        (seed,) = folder.glob(f"{number}_*.txt")
        said = iodelta("audit", seed.name, *words, cwd=folder)
        return said.returncode, " ".join(said.stdout.decode().split())

    def test_numbers_that_pass_littles_law(self) -> None:
        code, text = self.audit("000")
        assert code == 0
        assert text.startswith("6 rows checked, nothing impossible. System: The machine is not recorded")

    def test_up_to_25_percent_is_more_than_is_shown(self) -> None:
        code, text = self.audit("002")
        assert code == 0
        assert "[statement.up-to]" in text

    def test_118_of_195_rows_of_the_gist_fail(self) -> None:
        code, text = self.audit("003")
        assert code == 1
        assert "195 rows checked, 118 impossible." in text
        for table_, rows, failing in (
            ("Benchmark Results Summary Table", 30, 11),
            ("HDD RAID1", 15, 15),
            ("SSD RAID10", 15, 5),
            ("SSD RAID10 ReadWrite", 15, 0),
            ("Btrfs Read Policy Results (Defrag Off)", 60, 40),
            ("Btrfs Read Policy Results (Defrag On)", 60, 47),
        ):
            assert f"{table_} {rows} {failing}" in text

    def test_an_effect_of_another_size(self) -> None:
        assert "[statement.effect-size]" in self.audit("004")[1]


def test_the_command_that_repeats_what_was_read_from_standard_input_names_no_file(tmp_path: Path) -> None:
    table = b"| qd | IOPS | lat (us) |\n|---|---|---|\n| 1 | 10000 | 100 |\n| 4 | 20000 | 200 |\n"
    for command in ("audit", "show"):
        said = iodelta(command, "-", "--name-pattern", "{variant}.txt", cwd=tmp_path, stdin=table).stdout.decode()
        assert f"iodelta {command} - --name-pattern '{{variant}}.txt'" in " ".join(said.split())


@pytest.mark.parametrize("names", [("one",), ("one", "other")])
def test_the_machine_of_every_folder_of_our_own_is_said(names: tuple[str, ...], tmp_path: Path) -> None:
    """Of two folders given together it said that the machine was not recorded."""
    text = shorthand(fio=("--rw=randread", "--direct=1"), variants=("a", "b"))
    for name in names:
        folder = Folder.begin(tmp_path / name, text, make_plan(parse(text, "text")))
        with folder.writing():
            folder.write_struct("environment.json", {"kernel": {"release": f"6.18-{name}"}, "fio": {"version": "3.36"}})
            folder.append(Ended(now(), "interrupted"))
    for format_ in ("console", "mail", "markdown", "html"):
        said = iodelta("audit", *names, "--format", format_, cwd=tmp_path).stdout.decode()
        assert [name for name in names if f"6.18-{name}" not in said] == [], format_
        assert "not recorded" not in said
