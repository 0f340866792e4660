"""``iodelta bisect``: which commit, item or setting made it slower, from noisy runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.delivery import VERDICT_FORMATS
from iodelta.cli.progress import say_line
from iodelta.cli.search_options import by_hand as by_hand_options
from iodelta.cli.search_options import folder as folder_options
from iodelta.cli.search_options import measuring, repository, time_limits
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.bisect.driver import Judged, Searched
    from iodelta.bisect.question import Listed, Question, Settings

EXAMPLES = """
\b
Examples:
  Commits of a program, measured by a number that it prints:
    iodelta bisect --good v1.0 --bad v1.1 --build 'make -j8' --measure './bench' --better higher
  Commits of a kernel module, measured with fio; only what was built is kept:
    iodelta bisect --repo linux --good v6.18 --bad v6.19 --paths block --build /home/me/build.sh \\
        --artifact mod.ko --put '/home/me/reload.sh {built}' --target /dev/nullb0 -- --rw=randread --bs=4k --direct=1
  Values of a sysctl, and package versions:
    iodelta bisect --item 5 --item 10 --item 20 --item 40 --set sysctl.vm.dirty_ratio={item} \\
        --target /srv -- --rw=write --bs=64k
    iodelta bisect --items versions.txt --put 'apt-get install -y fio={item}' --measure ./bench.sh --better lower
  Settings that differ between two machines:
    iodelta bisect --settings a.sysctl b.sysctl --put 'sysctl -p {settings}' --measure ./bench.sh --better higher
  A machine that only a person can reach: answer good, bad, skip or undo here or in later calls:
    iodelta bisect --good v1.0 --bad v1.1 --by-hand
    iodelta bisect iodelta-bisect-20260102-030405 bad
  Show the next step and why; undo the last answer; continue after a kill or reboot:
    iodelta bisect iodelta-bisect-20260102-030405 --plan
    iodelta bisect iodelta-bisect-20260102-030405 --undo 1
    iodelta bisect iodelta-bisect-20260102-030405
"""


@click.command("bisect", epilog=EXAMPLES)
@click.argument("what", required=False)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--good", default="", metavar="REV", help="A commit before the slow-down."
)
@click.option("--bad", default="", metavar="REV", help="A commit after the slow-down.")
@repository
@click.option(
    "--paths",
    multiple=True,
    metavar="PATH",
    help="Suspect commits that touch this path first. Repeatable.",
)
@click.option(
    "--item",
    "items",
    multiple=True,
    help="Search an ordered list instead of commits: one item, good ones first. Repeatable.",
)
@click.option(
    "--items",
    "items_file",
    type=click.Path(path_type=Path),
    help="A file with such a list, one item per line.",
)
@click.option("--settings", nargs=2, type=click.Path(path_type=Path), metavar="GOOD BAD",
              help="Search two files of settings instead: which difference explains the gap?")  # fmt: skip
@measuring(
    "Builds the item, in its tree.", "A knob to set; {item} in its value is replaced."
)
@by_hand_options
@click.option(
    "--margin",
    default="1%",
    show_default=True,
    help="The smallest change that matters to you.",
)
@click.option(
    "--exact",
    default="",
    metavar="SHARE",
    help="The measurement repeats to within this share, such as 0.01%, so one run is enough.",
)
@time_limits
@click.option("--first", is_flag=True, help="Stop at the first culprit.")
@click.option(
    "--rest",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 1000),
    metavar="TIMES",
    help="Limit the search after the first culprit to this many times its runs; with a folder: continue up to that.",
)
@click.option(
    "--no-revert",
    is_flag=True,
    help="Do not revert a culprit on top of the bad end as a second proof.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Search even if the effect is below half of a run's noise.",
)
@click.option("--runs", type=click.IntRange(1), help="Maximum number of visits.")
@folder_options("Show the next step and why; do not measure.")
@click.option("--format", "format_", type=click.Choice((*VERDICT_FORMATS, "git")), default="console",
              help="git: print a `git bisect log`.")  # fmt: skip
def command(what: str | None, fio: tuple[str, ...], **options: object) -> None:
    """Find the commits that made it slower. WHAT is the folder of an earlier search, to continue it; for a search by
    hand, an answer follows the folder: good, bad, skip or undo.

    iodelta first compares the two ends; if they do not differ, the search ends. Then the posterior over all commits
    decides what to measure next. A commit that cannot be built, booted or measured is skipped and never called bad. A
    commit is accused only after fresh pairs of runs against its parent. All work is done in a separate worktree in the
    folder: the checkout and the index of your repository stay as they are.

    A visit builds an item, installs it and measures it. Commands are split into words and run in the item's tree
    without a shell. {item} (commit or list item), {tree}, {built} (kept artifacts) and {settings} are replaced, and are in the environment as IODELTA_ITEM and so on. For pipes,
    write 'sh -c "..."' and use the environment. A command that fails or hangs skips its item.

    Exit codes: 0 no slow-down, 1 culprit found, 2 the request is wrong, 3 inconclusive, 4 could not measure.
    """
    from iodelta.cli.by_hand import answer_of, replayed
    from iodelta.cli.searching import go_on, new_folder, open_folder
    from iodelta.machine import LocalMachine

    machine = LocalMachine()
    if what is not None and (what.startswith("-") or not Path(what).exists()):
        fio, what = (what, *fio), None
    if what is not None and Path(what).is_dir():
        options["answer"] = (
            answer_of(Path(what), fio, options)
            if not fio or not fio[0].startswith("-")
            else None
        )
        folder = open_folder(
            Path(what), () if options["answer"] or options["undo"] else fio, options
        )
    else:
        if what is not None:
            raise RequestError(
                "not a folder", place=what, remedy="fio's options come after --"
            )
        if options["undo"] or options["show_"] or options["value"]:
            raise RequestError(
                "--undo, --show and --value need a folder", remedy="give it first"
            )
        question = ask(fio, options)
        at = replayed(machine, question, ())
        say_line(candidates(at.search.line.items, at.kind.title))
        if options["plan_"]:
            _show_plan(at, str(options["format_"]))
            return
        folder = new_folder("bisect", question, machine, options)
    go_on(folder, machine, options)


def _show_plan(at: Searched | Judged, format_: str) -> None:
    """Show what the search would measure first. Raises RequestError."""
    from iodelta.cli.delivery import deliver
    from iodelta.study.search import SearchPlanAnswer

    title, why = (at.kind.title(at.ask.item), at.ask.why) if at.ask else ("", "")
    items = tuple(at.search.line.items)
    answer = SearchPlanAnswer(items, title, why, tuple(map(at.kind.title, items)))
    if format_ == "git":
        raise RequestError(
            "the log is empty: --plan does not measure",
            place="--format git",
            remedy="leave --plan out",
        )
    deliver(answer, tuple, format_)


def candidates(items: Sequence[str], title: Callable[[str], str]) -> str:
    """Show what will be searched, before anything is built."""
    count = f"{len(items) - 1} candidate{'s' * (len(items) > 2)}"
    return f"{count} between {title(items[0])} and {title(items[-1])}"


def ask(fio: tuple[str, ...], options: dict[str, object]) -> Question:
    """Return the question that the options ask. Raises RequestError."""
    from iodelta.bisect.git import Repository
    from iodelta.bisect.question import Commits
    from iodelta.cli.search_question import Asked
    from iodelta.machine import LocalMachine

    asked = Asked(options, fio)
    ways = [
        name for name in ("good", "items", "items_file", "settings") if options[name]
    ]
    if options["bad"] and "good" not in ways:
        ways.append("good")
    if len(ways) != 1 and sorted(ways) != ["items", "items_file"]:
        raise RequestError(
            "nothing to search was given"
            if not ways
            else "commits, a list or settings: one of them",
            place="command line",
            remedy="--good REV --bad REV for commits, --item or --items for a list, --settings GOOD BAD for settings",
        )
    repo = ""
    if options["settings"]:
        subject: Commits | Listed | Settings = _settings(options["settings"])
    elif "good" in ways:
        if not (options["good"] and options["bad"]):
            raise RequestError("give both --good and --bad", place="command line")
        repository = Repository.open(LocalMachine(), str(options["repo"]))
        repo = repository.path
        good = repository.resolve(str(options["good"]), "--good")
        bad = repository.resolve(str(options["bad"]), "--bad")
        paths = tuple(chain.from_iterable(text.split() for text in asked.many("paths")))
        subject = Commits(repo, good, bad, paths)
        if repository.is_dirty():
            click.echo(
                "the checkout has uncommitted changes; they are not part of what is measured",
                err=True,
            )
    else:
        subject = _listed(asked.many("items"), options["items_file"])
    return asked.question(subject)


def _listed(items: tuple[str, ...], file: object) -> Listed:
    from iodelta.bisect.question import Listed
    from iodelta.experiment.source import text_of

    if isinstance(file, Path):
        items = (
            *items,
            *(
                line.strip()
                for line in text_of(file, "the items").splitlines()
                if line.strip()
            ),
        )
    return Listed(items)


def _settings(files: object) -> Settings:
    from iodelta.bisect.items import read_settings
    from iodelta.bisect.question import Settings
    from iodelta.experiment.source import text_of

    assert isinstance(files, tuple)
    (good, settings), (bad, other) = (
        read_settings(text_of(file, "the settings"), str(file)) for file in files
    )
    return Settings(good, bad, "kconfig" if settings or other else "plain")
