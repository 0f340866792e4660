"""``iodelta attribute``: how much each of several patches costs, alone and together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from iodelta.cli.delivery import VERDICT_FORMATS
from iodelta.cli.search_options import folder as folder_options
from iodelta.cli.search_options import measuring, repository, time_limits
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.bisect.question import Question

EXAMPLES = """
\b
Examples:
  Three commits on top of a base, measured by a number:
    iodelta attribute v6.18 --patch 8e550632 --patch 718eee05 --patch fix.patch --build 'make -j8' \\
        --measure './bench' --better higher
  Commits that the base already contains: each one is reverted:
    iodelta attribute HEAD --revert --patch HEAD~3 --patch HEAD~7 --build /home/me/build.sh --artifact mod.ko \\
        --put '/home/me/reload.sh {built}' --target /dev/nullb0 -- --rw=randread --bs=4k --direct=1
  Show the next step; continue after a kill:
    iodelta attribute iodelta-attribute-20260102-030405 --plan
    iodelta attribute iodelta-attribute-20260102-030405
"""


@click.command("attribute", epilog=EXAMPLES)
@click.argument("what", metavar="BASE | FOLDER")
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    metavar="REV|FILE",
    help="A commit or patch file. Repeatable, in order.",
)
@click.option(
    "--revert",
    is_flag=True,
    help="BASE already has the patches: revert those that are off.",
)
@repository
@measuring("Builds a combination, in its tree.", "A knob to set for every run.")
@click.option(
    "--blocks",
    type=click.IntRange(2, 500),
    help="Maximum number of blocks (default: 12, or as many as exclude stalls in a "
    "tenth of the runs with a patch: 29 for one patch, 15 for two).",
)
@click.option(
    "--margin",
    default="1%",
    show_default=True,
    help="Stop when every effect is known to within this.",
)
@time_limits
@folder_options("For a folder: show the next step and why; do not measure.")
@click.option(
    "--format", "format_", type=click.Choice(VERDICT_FORMATS), default="console"
)
def command(what: str, fio: tuple[str, ...], **options: object) -> None:
    """Attribute a change to patches: what each one costs alone, and what they cost together.

    With up to three patches, all combinations are built and run, in blocks of random order. With more, the blocks begin
    with none, each one, all but one, and all; further combinations are run until it is known which patches act
    together. If a combination does not apply, build or run, another one takes its place where possible, and the report
    says what cannot be known. Commands and placeholders are those of `iodelta bisect`.

    Exit codes: 0 all patches together are not slower, 1 they are, 2 the request is wrong, 3 inconclusive, 4 could not
    measure.
    """
    from iodelta.bisect.driver import attributed
    from iodelta.bisect.log import QUESTION
    from iodelta.cli.searching import carry_on, new_folder, open_folder
    from iodelta.machine import LocalMachine
    from iodelta.study.attribution import account

    machine = LocalMachine()
    if (Path(what) / QUESTION).is_file():
        folder = open_folder(Path(what), fio, options)
    else:
        folder = new_folder("attribute", ask(what, fio, options), machine, options)
    carry_on(folder, machine, attributed, account, options)


def ask(base: str, fio: tuple[str, ...], options: dict[str, object]) -> Question:
    """Return the question that the options ask. Raises RequestError."""
    from iodelta.bisect.attribution import DEFAULT_BLOCKS, blocks_for
    from iodelta.bisect.git import Repository
    from iodelta.bisect.question import Patches
    from iodelta.cli.search_question import Asked
    from iodelta.machine import LocalMachine

    asked = Asked(options, fio)
    repository = Repository.open(LocalMachine(), str(options["repo"]))
    names, texts = [], []
    for patch in asked.many("patches"):
        if Path(patch).is_file():
            names.append(Path(patch).name)
            texts.append(Path(patch).read_bytes())
        else:
            commit = repository.resolve(patch, f"--patch {patch}")
            names.append(repository.oneline(commit))
            texts.append(repository.patch(commit))
    if len(set(zip(names, texts, strict=True))) < len(names):
        raise RequestError(
            "a patch is given twice", place="--patch", remedy="name each once"
        )
    if not names:
        raise RequestError(
            "no patches were given",
            place="command line",
            remedy="--patch REV or --patch FILE, repeated",
        )
    subject = Patches(
        repository.path,
        repository.resolve(base, "BASE"),
        tuple(names),
        tuple(texts),
        bool(options["revert"]),
    )
    blocks = options["blocks"] or max(DEFAULT_BLOCKS, blocks_for(len(names)))
    return asked.question(subject, blocks=cast(int, blocks))
