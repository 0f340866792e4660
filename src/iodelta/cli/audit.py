"""``iodelta audit``: can these numbers be believed?"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from iodelta.cli.awaiting import awaited
from iodelta.cli.delivery import FORMATS, deliver, printed
from iodelta.cli.files import check_free, write
from iodelta.errors import RequestError, pasted
from iodelta.plural import plural
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.audit import Audit
    from iodelta.ingest.model import Refusal
    from iodelta.study.audited import Audited
    from iodelta.trial import Finding

EXAMPLES = """
\b
Examples:
  iodelta audit results/
  iodelta audit blog-table.md --repair mended.md
  iodelta audit table.txt --claims 'queue has the highest IOPS in QD1; pid is 25 % below queue in SeqRead'
  iodelta audit mail.txt --claims '20 % and 30 % make more than 40 %'
  iodelta audit results/ -o audit.html
  iodelta audit --rules
"""

PROSE = 1 << 20
"""A file larger than this is not read as prose."""


@click.command("audit", epilog=EXAMPLES)
@click.argument("paths", nargs=-1)
@click.option(
    "--claims", default="", help="Sentences about the tables to check, separated by ; (or a file: @claims.txt)."
)
@click.option(
    "--repair", type=click.Path(path_type=Path), help="Write the corrected tables to PATH, with every change marked."
)
@printed
@click.option("--all", "whole", is_flag=True, help="List every place, not only examples.")
@click.option("--rules", is_flag=True, help="List the rules and exit.")
@click.option("--name-pattern", help="How to read file names, such as '{variant}/{cell}-{replicate}.json'.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="console", show_default=True)
def command(
    paths: tuple[str, ...],
    claims: str,
    repair: Path | None,
    force: bool,
    whole: bool,
    rules: bool,
    name_pattern: str | None,
    format_: str,
    output: Path | None,
) -> None:
    """Find impossible, inconsistent and unsafe numbers in PATHS: fio results, tables, prose, archives, iodelta's own
    folders; - is standard input.

    Exit codes: 0 no hard finding, 1 a hard finding or a false claim, 2 the request is wrong, 4 nothing to check.
    """
    if rules:
        from iodelta.study.audited import rules_answer

        deliver(rules_answer(), tuple, format_, output, force=force)
        return
    if not paths:
        raise RequestError(
            "there is nothing to audit", place="audit", remedy="name files or folders; - is standard input"
        )
    if repair is not None:
        check_free(repair, force=force)
    with awaited(paths):
        found = _audited(paths, claims, name_pattern)
    if repair is not None:
        _repair(found, repair, force=force)
    deliver(found, tuple, format_, output, force=force, detail=Detail(whole=whole))
    sys.exit(found.exit_code)


def _audited(paths: tuple[str, ...], claims: str, pattern: str | None) -> Audited:
    from iodelta.audit.claims import check_claims
    from iodelta.bundle.packed import is_own
    from iodelta.study.audited import audited
    from iodelta.study.paths import own_audit, read_all

    own = [path for path in paths if path != "-" and is_own(path)]
    foreign = [path for path in paths if path not in own]
    stdin = sys.stdin.buffer.read() if "-" in foreign else b""
    layout, checked = read_all(foreign, stdin=io.BytesIO(stdin), pattern=pattern)
    experiments = {path: own_audit(Path(path)) for path in own}
    statements = _statements(foreign, stdin, checked)
    refusals = list(layout.refusals)
    for experiment in experiments.values():
        statements += experiment.findings
        refusals += experiment.refusals
    return audited(
        checked,
        check_claims(_sentences(claims), checked),
        statements,
        _without_statements(refusals, statements),
        trials=sum(experiment.trials for experiment in experiments.values()),
        systems={path: experiment.system for path, experiment in experiments.items()},
        again=_again(paths, claims, pattern),
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
    return Path(claims[1:]).read_text(encoding="utf-8") if claims.startswith("@") else claims


def _without_statements(refusals: Sequence[Refusal], statements: Sequence[Finding]) -> list[Refusal]:
    """The refusals of files whose sentences were not checked: a text that was is not refused too."""
    texts = {finding.place.rpartition(":")[0] for finding in statements}
    return [refusal for refusal in refusals if refusal.place.file not in texts]


def _again(paths: Sequence[str], claims: str, pattern: str | None) -> str:
    options = {"--claims": "; ".join(claims.splitlines()), "--name-pattern": pattern or ""}
    given = chain.from_iterable((name, value) for name, value in options.items() if value)
    return " ".join(["iodelta audit", *map(pasted, paths), *map(quote, given)])


def _prose(path: str, data: bytes) -> str | None:
    """A file of words, or None for folders, archives, JSON and what is too large."""
    if path != "-":
        try:
            if not Path(path).is_file() or Path(path).stat().st_size > PROSE:
                return None
            data = Path(path).read_bytes()
        except OSError:
            return None
    if not data or len(data) > PROSE or b"\0" in data or re.match(rb"\s*(\{|\[\s*[\[{\d\"])", data):
        return None
    return data.decode("utf-8", errors="replace")


def _repair(found: Audited, path: Path, *, force: bool) -> None:
    from iodelta.report.formats.mended import mended

    text = mended(found)
    if not text:
        click.echo("nothing here can be mended exactly", err=True)
        return
    write(path, text.encode("utf-8", "backslashreplace"), "the mended tables", force=force)
    click.echo(f"{plural(len(found.repairs), 'cell')} mended, each marked: {inert(str(path))}", err=True)
