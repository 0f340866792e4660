"""Whether a folder is still as it was measured: its lines and files as sealed, none missing, none exchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.lab.account import OVER, Account
from iodelta.lab.folder import JOURNAL, RAW, Folder
from iodelta.lab.opened import read_member
from iodelta.plural import plural
from iodelta.trial import Finding

VERDICT = "verdict.json"

STEP = re.compile(rf"{RAW}/step-(\d+)\.")
"""The beginning of the names of a preparation's raw files, which are no trial's."""

_COPY = "restore a copy of the folder, if you have one"


class Sealed(msgspec.Struct, frozen=True):
    """How far a journal is sealed. With a copy kept elsewhere, every later change to the folder can be detected."""

    lines: int
    """Lines of the journal."""
    chain: str
    """The chain of its last line, which covers all lines and files before it."""


def sealed(folder: Folder) -> Sealed | None:
    """Return the seal of a folder; None for one that is not sealed."""
    if not folder.seal.sealed:
        return None
    return Sealed(folder.seal.lines, folder.seal.digest)


def integrity(folder: Folder, state: Account) -> list[Finding]:
    """Return whether the folder is what was measured, once its trials were read: hard findings first.

    Raises MeasureError for a file that is no trial's.
    """
    lost = [finding for finding in state.findings() if finding.severity == "hard"]
    return sorted(
        (*_sealing(folder, state), *lost),
        key=lambda finding: finding.severity != "hard",
    )


def check_uncut(folder: Folder) -> None:
    """Raises MeasureError when a line of the journal was changed, or it is shorter than it was at the end."""
    folder.check_journal()  # it names the line
    # New trials would otherwise take the numbers, and overwrite the raw files, of those that were cut off.
    cut = _cut(folder, Account(folder.events())) if folder.seal.sealed else []
    for finding in (*cut, *_shortened(folder)):
        raise MeasureError(
            finding.explanation,
            place=f"{folder.path}/{finding.place}",
            remedy=finding.remedy,
        )


def _sealing(folder: Folder, state: Account) -> tuple[Finding, ...]:
    """Return what the seal says: hard where a line or a file is not what was written; files that ``state`` has lost
    apart.
    """
    seal = folder.seal
    if not seal.sealed:
        text = "this folder is not sealed, so later changes cannot be detected"
        return (
            Finding(
                "folder.unsealed",
                "note",
                JOURNAL,
                text,
                "newer versions of iodelta seal what they measure",
            ),
        )
    findings = []
    if seal.broken:
        text = "not the original line: it or the one before was edited, removed, doubled or moved"
        findings.append(
            Finding(
                "folder.line",
                "hard",
                f"{JOURNAL}:{seal.broken}",
                f"{text}; the lines from there on do not count",
                _COPY,
            )
        )
    findings += [
        Finding("folder.file", "hard", name, reason, _COPY)
        for name, reason in folder.altered().items()
        if _trial_of(name) not in state.lost
    ]
    if not seal.broken:
        findings += [*_cut(folder, state), *_shortened(folder), *_added(folder, state)]
    if seal.unsealed:
        text = f"lines 1 to {seal.unsealed}, and their files, were written before folders were sealed"
        findings.append(Finding("folder.unsealed", "note", JOURNAL, text))
    return tuple(findings)


def _added(folder: Folder, state: Account) -> Iterator[Finding]:
    """Files among the raw ones that nobody wrote there: copies, and in a finished folder all that no line seals."""
    seals = folder.seal.files
    known = {seal.sha256: name for name, seal in seals.items()}
    in_flight = state.started.keys() - state.finished.keys()
    for name in sorted(set(folder.raw_names()) - seals.keys()):
        copied = known.get(_digest(folder, name))
        number, numbered = _trial_of(name), bool(_trial_of(name) or STEP.match(name))
        if copied and number not in in_flight:
            why = f"is a copy of {copied}, which counts once"
        elif (
            number in in_flight
            or folder.seal.unsealed
            or (numbered and state.state not in OVER)
        ):
            continue
        else:
            why = "does not belong to a trial of the journal"
        yield Finding(
            "folder.added",
            "hard",
            name,
            f"{why}; somebody added it",
            "remove it; it was not used",
        )


def _digest(folder: Folder, name: str) -> str:
    """SHA-256 of a file; empty where it cannot be read."""
    try:
        return hashlib.sha256(folder.read(name)).hexdigest()
    except MeasureError:
        return ""


def _cut(folder: Folder, state: Account) -> list[Finding]:
    """Raw files of trials or steps that never began according to the journal: however often a run was killed, the line
    that something began is on disk before its raw files are."""
    names = folder.raw_names()
    trials = {number for number in map(_trial_of, names) if number}
    steps = {int(match[1]) for match in map(STEP.match, names) if match}
    if not (trials <= state.started.keys() and steps <= _steps(state)):
        # The run may have gone on since ``state`` was read; the names are older than this reading.
        state = Account(folder.events_now())
    counts = {
        "trial": len(trials - state.started.keys()),
        "step": len(steps - _steps(state)),
    }
    what = " and ".join(plural(count, kind) for kind, count in counts.items() if count)
    if not what:
        return []
    text = f"there are raw files of {what} that it does not mention: lines were cut off its end, or the files were added"
    return [Finding("folder.cut", "hard", JOURNAL, text, _COPY)]


def _steps(state: Account) -> set[int]:
    """Numbers of the steps of preparations that began."""
    return {step.number for step in state.steps_begun}


class _Account(msgspec.Struct, frozen=True):
    state: str
    seal: Sealed | None = None


class _Verdict(msgspec.Struct, frozen=True):
    """Of ``verdict.json``, where it is needed here."""

    account: _Account


def _shortened(folder: Folder) -> list[Finding]:
    """Return whether ``verdict.json``, made at the end of the experiment, knows more of the journal than there is."""
    try:
        before = from_json(read_member(folder.path, VERDICT), _Verdict).account
    except (FileNotFoundError, MeasureError, msgspec.MsgspecError):
        return []
    if before.state not in OVER or before.seal is None:
        return []
    if before.seal == sealed(folder):
        return []  # nearly every folder; saves following the chain once more
    if (
        folder.chain_at(before.seal.lines) == before.seal.chain
    ):  # also what was added since
        return []
    text = (
        f"{VERDICT} was made from {plural(before.seal.lines, 'line')} of another journal, or of "
        "this one before it was cut"
    )
    return [Finding("folder.cut", "hard", JOURNAL, text, _COPY)]


def _trial_of(name: str) -> int:
    """Return the number in the name of a raw file; 0 for another name."""
    number = name.removeprefix(f"{RAW}/").partition(".")[0]
    if name.startswith(f"{RAW}/") and number.isdecimal():
        return int(number)
    return 0
