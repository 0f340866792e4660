"""Results of the hostile benchmark as a file of JSON lines, one a batch of experiments, so that a run can be
interrupted, go on, and be put together from parts."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.verdicts.experiments import simulate
from benchmarks.verdicts.measures import Tally, merged
from benchmarks.verdicts.scenarios import Scenario

ROOT = Path(__file__).parents[2]
ENGINE = ("iodelta.stats", "iodelta.verdict")
"""The packages that judge: results of one state of it are not added to those of another."""


class Record(msgspec.Struct, frozen=True):
    """One batch: experiments from number ``first`` on."""

    scenario: str
    trials: str
    """Digest of the trials of its first experiment and the rules they are judged by."""
    engine: str
    commit: str
    seed: int
    first: int
    tally: Tally


@dataclass
class Results:
    """All that is known of one scenario: the records of one engine and one way to simulate it."""

    scenario: Scenario
    records: list[Record] = field(default_factory=list)

    @property
    def tally(self) -> Tally:
        """All its experiments together."""
        return merged(record.tally for record in self.records)

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits its experiments were made at."""
        return tuple(dict.fromkeys(record.commit for record in self.records))


def engine() -> str:
    """Digest of the code that judges, as it was loaded: without its comments and docstrings."""
    found = hashlib.sha256()
    for name in sorted(name for name in sys.modules if name.startswith(ENGINE)):
        found.update(f"{name}\n{said_by(Path(sys.modules[name].__file__ or '').read_text())}\n".encode())
    return found.hexdigest()[:12]


def said_by(source: str) -> str:
    """What a module does, as text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def commit() -> str:
    """The commit checked out, and whether files differ from it."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def trials_of(scenario: Scenario, seed: Sequence[int]) -> str:
    """Digest of what one experiment consists of."""
    series, _ = simulate(scenario.setup, np.random.default_rng([*seed]))
    said = msgspec.json.encode((series, scenario.setup.rules()))
    return hashlib.sha256(said).hexdigest()[:12]


def read(path: Path) -> list[Record]:
    """The records of a file, in its order; ValueError for a line that is not a record."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(msgspec.json.decode(line, type=Record))
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}, line {number}: not a result: {error}") from error
    return found


def drop_cut(path: Path) -> None:
    """Drop a last line that was not written to its end, so that another can follow."""
    if path.exists():
        text = path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            with path.open("r+b") as file:
                file.truncate(whole)


def append(path: Path, record: Record) -> None:
    """Add one record in one write, so that two runs may add to one file."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")


def newest(scenarios: Iterable[Scenario], records: Sequence[Record]) -> list[Results]:
    """Of every scenario the records that belong with its last one; of a batch made twice one."""
    by_name: dict[str, list[Record]] = {}
    for record in records:
        by_name.setdefault(record.scenario, []).append(record)
    return [Results(one, _kin(by_name.get(one.key, []))) for one in scenarios]


def _kin(records: Sequence[Record]) -> list[Record]:
    if not records:
        return []
    last = records[-1]
    wanted = (last.engine, last.trials, last.seed)
    kin = [record for record in records if (record.engine, record.trials, record.seed) == wanted]
    return list({record.first: record for record in kin}.values())
