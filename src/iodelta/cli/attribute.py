"""``iodelta attribute``: how much each of several patches costs, alone and together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from iodelta.cli.commands import Asked, declared
from iodelta.cli.search_options import MEASURING, TIME_LIMITS
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.bisect.question import Question

EXAMPLES = """
  Three commits on top of a base, measured by a number:
    iodelta attribute v6.18 --patch 8e550632 --patch 718eee05 --patch fix.patch --build 'make -j8' \\
        --measure './bench' --better higher

  Commits that the base already contains: each one is reverted:
    iodelta attribute HEAD --revert --patch HEAD~3 --patch HEAD~7 --build /home/me/build.sh --artifact mod.ko \\
        --put '/home/me/reload.sh {built}' --target /dev/nullb0 -- --rw=randread --bs=4k --direct=1

  Show the next step; continue after a kill:
    iodelta attribute iodelta-attribute-20260102-030405 --dry-run
    iodelta attribute iodelta-attribute-20260102-030405
"""

OPTIONS = f"""
--patch REV|FILE*     A commit or patch file. Repeatable, in order.
--revert              BASE already has the patches: revert those that are off.
--repo DIR [.]        The git repository.
--build COMMAND       Builds a combination, in its tree.
--set KNOB=VALUE*     A knob to set for every run.
{MEASURING}
--blocks NUMBER:2..500
                      Maximum number of blocks (default: 12, or as many as exclude stalls in a tenth of the runs with a
                      patch: 29 for one patch, 15 for two).
--margin SHARE [1%]   Stop when every effect is known to within this.
{TIME_LIMITS}
--seed NUMBER         Seed of the order of runs (default: random; always recorded).
--folder
--dry-run (was --plan)  For a folder: show the next step and why; do not measure.
--undo NUMBER:1..     For a folder: undo the last so many answers.
--show                For a folder: report the current result; do not measure.
--format VERDICTS [console]
"""


@declared("attribute", "what [fio...]", OPTIONS, EXAMPLES, metavar="BASE|FOLDER")
def command(asked: Asked) -> None:
    """Attribute a change to patches: what each one costs alone, and what they cost together.

    With up to three patches, all combinations are built and run, in blocks of random order. With more, the blocks begin
    with none, each one, all but one, and all; further combinations are run until it is known which patches act
    together. If a combination does not apply, build or run, another one takes its place where possible, and the report
    says what cannot be known. Commands and placeholders are those of `iodelta bisect`.

    Exit codes: 0 all patches together are not slower, 1 they are, 2 the request is wrong, 3 inconclusive, 4 could not
    measure.
    """
    from iodelta.bisect.log import QUESTION
    from iodelta.cli.searching import go_on, new_folder, open_folder
    from iodelta.machine import LocalMachine

    machine, path = LocalMachine(), Path(asked.what)
    if (path / QUESTION).is_file():
        folder = open_folder(path, asked)
    else:
        folder = new_folder("attribute", _question(asked), machine, asked)
    go_on(folder, machine, asked)


def _question(asked: Asked) -> Question:
    """Return the question that the options ask. Raises RequestError."""
    from iodelta.bisect.attribution import DEFAULT_BLOCKS, blocks_for
    from iodelta.bisect.git import Repository
    from iodelta.bisect.question import Patches
    from iodelta.cli.search_question import question_of
    from iodelta.machine import LocalMachine

    repository = Repository.open(LocalMachine(), str(asked.repo))
    names, texts = [], []
    for patch in asked.patch:
        file = Path(patch)
        if file.is_file():
            names.append(file.name)
            texts.append(file.read_bytes())
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
    base = repository.resolve(asked.what, "BASE")
    subject = Patches(
        repository.path, base, tuple(names), tuple(texts), bool(asked.revert)
    )
    blocks = asked.blocks or max(DEFAULT_BLOCKS, blocks_for(len(names)))
    return question_of(asked, subject, blocks=blocks)
