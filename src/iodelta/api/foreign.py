"""Results of any tool: compared, audited, read. What measures here imports what reads when it is needed."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO

from iodelta.errors import RequestError, pasted

if TYPE_CHECKING:
    from iodelta.audit import Audit
    from iodelta.ingest.layouts import Layout
    from iodelta.ingest.model import Refusal
    from iodelta.study.audited import Audited
    from iodelta.study.comparison import Comparison
    from iodelta.trial import Finding

PROSE = 1 << 20
"""A file larger than this is not read as prose."""


def share_of(margin: str | float, place: str) -> float:
    """``1%`` or 0.01 as a share. Raises RequestError."""
    from iodelta.experiment.values import fraction

    try:
        return fraction(margin)
    except ValueError as error:
        raise RequestError(str(error), place=place) from error


def compared(
    paths: Sequence[str],
    margin: float,
    baseline: str | None = None,
    *,
    stdin: BinaryIO | None = None,
    pattern: str | None = None,
) -> tuple[Comparison, list[Layout]]:
    """Return the sides of ``paths``, and what was read of each. Raises RequestError, MeasureError."""
    from iodelta.study.changed import refuse_changed
    from iodelta.study.comparison import compare
    from iodelta.study.paths import read_one

    layouts = [read_one(path, stdin=stdin, pattern=pattern) for path in paths]
    for path, layout in zip(paths, layouts, strict=True):
        refuse_changed(layout.findings, path)
    comparisons = compare(
        layouts,
        paths,
        baseline=baseline,
        margin=margin,
        environments=_environments(paths),
    )
    return comparisons, layouts


def _environments(paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what was recorded of the machine, by the side's name, for those of our own making."""
    from iodelta.bundle.packed import is_own
    from iodelta.study.sides import short_names

    own = {
        name: path
        for name, path in zip(short_names(paths), paths, strict=True)
        if is_own(path)
    }
    if not own:
        return {}  # what reads our own folders takes a while to load
    from iodelta.study.judging import recorded

    known = {name: recorded(Path(path)) for name, path in own.items()}
    return {
        name: environment
        for name, environment in known.items()
        if environment is not None
    }


def audited(
    paths: Sequence[str],
    claims: str = "",
    *,
    stdin: BinaryIO | None = None,
    pattern: str | None = None,
) -> Audited:
    """Return what rules, claims and sentences come to in ``paths``; ``-`` is ``stdin``. Raises RequestError,
    MeasureError.
    """
    from iodelta.audit.claims import check_claims
    from iodelta.bundle.packed import is_own
    from iodelta.study.audited import audited as together
    from iodelta.study.paths import own_audit, read_all, unread

    own = [path for path in paths if path != "-" and is_own(path)]
    foreign = [path for path in paths if path not in own]
    given = stdin.read() if stdin is not None and "-" in foreign else b""
    layout, checked = read_all(foreign, stdin=io.BytesIO(given), pattern=pattern)
    experiments = {path: own_audit(Path(path)) for path in own}
    statements = _statements(foreign, given, checked)
    refusals = list(layout.refusals)
    for experiment in experiments.values():
        statements += experiment.findings
        refusals += experiment.refusals
    refusals = _without_statements(refusals, statements)
    return together(
        checked,
        check_claims(_sentences(claims), checked),
        statements,
        refusals,
        trials=sum(experiment.trials for experiment in experiments.values()),
        systems={path: experiment.system for path, experiment in experiments.items()},
        again=_again(paths, claims, pattern),
        unread=unread(paths, refusals, checked.runs),
    )


def _statements(paths: Sequence[str], stdin: bytes, checked: Audit) -> list[Finding]:
    """Findings about the sentences of every text among ``paths``."""
    from iodelta.audit.statements import check_statements

    measured = {run.place.file for run in checked.runs if run.directions}
    findings: list[Finding] = []
    for path in paths:
        text = _prose(path, stdin)
        if text is not None:
            findings += check_statements(text, path, measured=path in measured)
    return findings


def _sentences(claims: str) -> str:
    if not claims.startswith("@"):
        return claims
    try:
        return Path(claims[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else None
        ) or "it is not UTF-8 text"
        raise RequestError(
            f"cannot read the claims: {reason}",
            place=claims[1:] or "--claims",
            remedy="give @FILE with one claim a line",
        ) from error


def _without_statements(
    refusals: Sequence[Refusal], statements: Sequence[Finding]
) -> list[Refusal]:
    """Return the refusals of files whose sentences were not checked: a text that was is not refused too."""
    texts = {finding.place.rpartition(":")[0] for finding in statements}
    return [refusal for refusal in refusals if refusal.place.file not in texts]


def _prose(path: str, data: bytes) -> str | None:
    """Return a file of words, or None for folders, archives, JSON and what is too large."""
    if path != "-":
        try:
            if not Path(path).is_file() or Path(path).stat().st_size > PROSE:
                return None
            data = Path(path).read_bytes()
        except OSError:
            return None
    if (
        not data
        or len(data) > PROSE
        or b"\0" in data
        or re.match(rb"\s*(\{|\[\s*[\[{\d\"])", data)
    ):
        return None
    return data.decode("utf-8", errors="replace")


def _again(paths: Sequence[str], claims: str, pattern: str | None) -> str:
    options = {
        "--claims": "; ".join(claims.splitlines()),
        "--name-pattern": pattern or "",
    }
    given = chain.from_iterable(
        (name, value) for name, value in options.items() if value
    )
    return " ".join(["iodelta audit", *map(pasted, paths), *map(quote, given)])
