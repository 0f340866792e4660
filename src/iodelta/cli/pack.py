"""``iodelta pack``: an experiment folder as one file to send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iodelta.cli.commands import Asked, declared
from iodelta.cli.files import check_free, drafted
from iodelta.errors import MeasureError
from iodelta.plural import plural
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.bundle.packing import Packing

SHOWN = 40


@declared(
    "pack",
    "folder",
    """
-o, --output FILE     The file to create (default: FOLDER.iodelta.tar.zst).
--keep-identity       Keep host names, serial numbers and addresses.
--remove TEXT*        Replace this text, too. Repeatable.
--force
--format
""",
    """
  iodelta pack iodelta-20260102-030405
  iodelta pack iodelta-20260102-030405 -o to-the-list.iodelta.tar.zst
  iodelta pack iodelta-20260102-030405 -o archive.iodelta.tar.zst --keep-identity
""",
)
def command(asked: Asked) -> None:
    """Pack FOLDER into one file that others can read (report, show, compare, audit, env) and measure (reproduce). The
    same folder always gives the same bytes.

    Host and user names, serial numbers, UUIDs, labels, MAC and IP addresses, names of disks, volumes and containers,
    mount points, shares, passwords, tokens, keys, and paths outside of system directories are replaced, each by the
    same placeholder everywhere. The list is printed, but not packed. Of the kernel's command line, only words that
    matter for I/O are packed. What you wrote yourself (the question, names of variants, other paths) stays: read
    `experiment.toml` before you send it, and keep more out with --remove.
    """
    from iodelta.bundle.archive import SUFFIX, sha256
    from iodelta.bundle.packed import Packed
    from iodelta.bundle.packing import pack
    from iodelta.lab.folder import Folder
    from iodelta.report.answers import PackAnswer, PackedFile, Removed
    from iodelta.report.derived import load
    from iodelta.study.changed import refuse_changed

    opened = Folder.open(asked.folder)
    place = asked.output or Path(f"{asked.folder.resolve().name}{SUFFIX}")
    check_free(place, force=asked.force)
    account = load(opened)
    refuse_changed(account.findings, str(asked.folder))
    made = pack(opened, keep_identity=asked.keep_identity, remove=asked.remove)
    with drafted(place, "the bundle", force=asked.force) as draft:
        draft.write_bytes(made.data)
        # Read back, it must say what the folder says.
        if load(Packed(draft)).judgement != account.judgement:
            raise MeasureError(
                "the bundle would give other results than the folder: a name that was removed matters for them",
                place=str(place),
                remedy="--keep-identity packs it as it is; please report this",
            )
    size, digest = len(made.data), sha256(made.data)
    answer = PackAnswer(
        str(place),
        size,
        digest,
        tuple(Removed(*removals) for removals in made.replaced),
        tuple(map(str, made.left_out)),
        made.manifest.state,
        tuple(PackedFile(*file) for file in made.files),
        made.boot_words,
    )
    last = f"{inert(str(place))}: {size} bytes, SHA-256 {digest}"
    asked.answer(answer, (*_account(made, asked.keep_identity), last))


def _account(made: Packing, kept: bool) -> Iterator[str]:
    """Yield the files that travel, those of trials counted together, then what does not travel."""
    yield "Packed:"
    for name, size in made.files:
        if not name.startswith("raw/"):
            yield f"  {name:<22} {size:>10} bytes"
    raw = [size for name, size in made.files if name.startswith("raw/")]
    if raw:
        yield f"  {'raw/':<22} {sum(raw):>10} bytes in {plural(len(raw), 'file')}, fio's output and command lines"
    if kept:
        yield "Nothing was removed: host names, serial numbers and addresses are in it (--keep-identity)."
        return
    if made.replaced:
        yield "Removed (the bundle contains only the placeholders, not this list):"
    for kind, word, text in made.replaced[:SHOWN]:
        yield f"  {kind:<12} {word:<12} for {inert(text)}"
    if len(made.replaced) > SHOWN:
        yield f"  and {len(made.replaced) - SHOWN} more"
    places = sorted((one.kind, one.places) for one in made.manifest.removed)
    if places:
        counts = (f"{plural(count, 'place')} ({kind})" for kind, count in places)
        yield f"  in {', '.join(counts)}"
    if not made.replaced:
        yield "No name, number or address was found that had to be removed."
    if made.words:
        names = ", ".join(map(inert, made.words))
        yield f"Ordinary words, replaced only where they stand as a name: {names}"
    if made.boot_words:
        words = plural(made.boot_words, "further word")
        yield f"Of the kernel's command line what matters for I/O is packed, {words} left out"
    if made.left_out:
        more = f" and {len(made.left_out) - 8} more" if len(made.left_out) > 8 else ""
        yield f"Left out: {', '.join(map(inert, made.left_out[:8]))}{more}"
    yield "To keep more out: --remove TEXT, once for each further name or word."
    if made.manifest.state not in ("complete", "budget"):
        yield f"The experiment is not complete ({inert(made.manifest.state)}): it cannot be reproduced."
