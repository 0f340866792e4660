"""``iodelta pack``: an experiment folder as one file to send."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.files import check_free, drafted
from iodelta.cli.files import force as force_option
from iodelta.cli.shared_options import in_console_or_json
from iodelta.errors import MeasureError
from iodelta.plural import plural
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.bundle.packing import Packing

EXAMPLES = """
\b
Examples:
  iodelta pack iodelta-20260102-030405
  iodelta pack iodelta-20260102-030405 -o to-the-list.iodelta.tar.zst
  iodelta pack iodelta-20260102-030405 -o archive.iodelta.tar.zst --keep-identity
"""
SHOWN = 40


@click.command("pack", epilog=EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to create (default: FOLDER.iodelta.tar.zst).",
)
@click.option(
    "--keep-identity",
    is_flag=True,
    help="Keep host names, serial numbers and addresses.",
)
@force_option
@in_console_or_json
def command(
    folder: Path, output: Path | None, keep_identity: bool, force: bool, format_: str
) -> None:
    """Pack FOLDER into one file that others can read (report, show, compare, audit, env) and measure (reproduce). The
    same folder always gives the same bytes.

    Host and user names, serial numbers, UUIDs, labels, MAC and IP addresses, names of disks, volumes and containers,
    mount points, shares, passwords, tokens, keys, and paths outside of system directories are replaced, each by the
    same placeholder everywhere. The list is printed, but not packed. Of the kernel's command line, only words that
    matter for I/O are packed. What you wrote yourself (the question, names of variants, other paths) stays: read
    `experiment.toml` before you send it.
    """
    from iodelta.bundle.archive import SUFFIX, sha256
    from iodelta.bundle.packing import pack
    from iodelta.lab.folder import Folder
    from iodelta.report.derived import load
    from iodelta.study.changed import refuse_changed

    opened = Folder.open(folder)
    place = output or Path(f"{folder.resolve().name}{SUFFIX}")
    check_free(place, force=force)
    account = load(opened)
    refuse_changed(account.findings, str(folder))
    made = pack(opened, keep_identity=keep_identity)
    with drafted(place, "the bundle", force=force) as draft:
        draft.write_bytes(made.data)
        _same(account.judgement, draft, place)
    if format_ == "json":
        from iodelta.report.answers import PackAnswer, PackedFile, Removed
        from iodelta.report.documents import written as as_json

        removed = tuple(Removed(*removals) for removals in made.replaced)
        left = tuple(map(str, made.left_out))
        files = tuple(PackedFile(*file) for file in made.files)
        state, words = made.manifest.state, made.boot_words
        answer = PackAnswer(
            str(place),
            len(made.data),
            sha256(made.data),
            removed,
            left,
            state,
            files,
            words,
        )
        sys.stdout.buffer.write(as_json(answer))
        return
    for line in _account(made, keep_identity):
        click.echo(line)
    click.echo(
        f"{inert(str(place))}: {len(made.data)} bytes, SHA-256 {sha256(made.data)}"
    )


def _same(judgement: object, draft: Path, place: Path) -> None:
    """Read back, it must say what the folder says. Raises MeasureError."""
    from iodelta.bundle.packed import Packed
    from iodelta.report.derived import load

    if load(Packed(draft)).judgement != judgement:
        raise MeasureError(
            "the bundle would give other results than the folder: a name that was removed matters for them",
            place=str(place),
            remedy="--keep-identity packs it as it is; please report this",
        )


def _account(made: Packing, kept: bool) -> list[str]:
    if kept:
        return [
            *_packed(made),
            "Nothing was removed: host names, serial numbers and addresses are in it (--keep-identity).",
        ]
    return [*_packed(made), *_replaced(made)]


def _packed(made: Packing) -> list[str]:
    """Return the files that travel, those of trials counted together, with their sizes."""
    raw = [size for name, size in made.files if name.startswith("raw/")]
    lines = ["Packed:"]
    lines += [
        f"  {name:<22} {size:>10} bytes"
        for name, size in made.files
        if not name.startswith("raw/")
    ]
    if raw:
        lines.append(
            f"  {'raw/':<22} {sum(raw):>10} bytes in {plural(len(raw), 'file')}, fio's output and command lines"
        )
    return lines


def _replaced(made: Packing) -> list[str]:
    """Return what does not travel: identities, words of the command line, files."""
    places = {one.kind: one.places for one in made.manifest.removed}
    lines = (
        ["Removed (the bundle contains only the placeholders, not this list):"]
        if made.replaced
        else []
    )
    for kind, word, text in made.replaced[:SHOWN]:
        lines.append(f"  {kind:<12} {word:<12} for {inert(text)}")
    if len(made.replaced) > SHOWN:
        lines.append(f"  and {len(made.replaced) - SHOWN} more")
    if places:
        counts = (
            f"{plural(count, 'place')} ({kind})"
            for kind, count in sorted(places.items())
        )
        lines.append(f"  in {', '.join(counts)}")
    if not made.replaced:
        lines.append("No name, number or address was found that had to be removed.")
    if made.words:
        names = ", ".join(map(inert, made.words))
        lines.append(
            f"Ordinary words, replaced only where they stand as a name: {names}"
        )
    if made.boot_words:
        words = plural(made.boot_words, "further word")
        lines.append(
            f"Of the kernel's command line what matters for I/O is packed, {words} left out"
        )
    if made.left_out:
        more = f" and {len(made.left_out) - 8} more" if len(made.left_out) > 8 else ""
        lines.append(f"Left out: {', '.join(map(inert, made.left_out[:8]))}{more}")
    if made.manifest.state not in ("complete", "budget"):
        lines.append(
            f"The experiment is not complete ({inert(made.manifest.state)}): it cannot be reproduced."
        )
    return lines
