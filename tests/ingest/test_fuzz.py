"""A few thousand damaged results; the night run of a million is ``python -m tests.ingest.fuzz --mutations 1000000``."""

from __future__ import annotations

import fuzz
import msgspec
from tiers import scaled

from iodelta.ingest import Imported, read_bytes
from iodelta.trial import Quantity

MUTATIONS = scaled(1500)
SEED = 20260101


def test_no_accident_to_a_file_breaks_a_reader() -> None:
    base = fuzz.files(corpus=False)
    assert len(base) > 50
    failures = []
    for number in range(MUTATIONS):
        failure, _ = fuzz.run_case(number, SEED, base)
        if failure is not None:
            failures.append(failure)
    assert not failures, "\n".join(f"{f.number} {f.name}: {f.what}" for f in failures[:5])


def test_the_fuzzer_sees_what_is_wrong() -> None:
    """A check that cannot fail is none: an interval the wrong way round, and a word with an escape in it, are found."""
    found = read_bytes(dict(fuzz.files(corpus=False))["jp1.json"], "jp1.json")
    assert list(fuzz.unsound(found)) == []
    (run,) = found.runs
    direction = msgspec.structs.replace(run.directions[0], iops=Quantity(1.0, 2.0, 3.0, "1/s"))
    wrong = msgspec.structs.replace(run, directions=(direction,))
    assert any("iops" in text for text in fuzz.unsound(Imported(runs=(wrong,))))
    evil = msgspec.structs.replace(run, jobname="\x1b[2J")
    assert "an unclean word" in list(fuzz.unsound(Imported(runs=(evil,))))
    assert list(fuzz.unsound(Imported())) == ["neither a result nor a reason"]
