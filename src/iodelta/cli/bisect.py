"""``iodelta bisect``: which commit, item or setting made it slower, from noisy runs."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.commands import Asked, declared
from iodelta.cli.progress import say_line
from iodelta.cli.search_options import MEASURING, TIME_LIMITS
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.bisect.question import Question

EXAMPLES = """
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
    iodelta bisect iodelta-bisect-20260102-030405 --dry-run
    iodelta bisect iodelta-bisect-20260102-030405 --undo 1
    iodelta bisect iodelta-bisect-20260102-030405
"""

OPTIONS = f"""
--good REV            A commit before the slow-down.
--bad REV             A commit after the slow-down.
--repo DIR [.]        The git repository.
--paths PATH*         Suspect commits that touch this path first. Repeatable.
--item NAME*          Search an ordered list instead of commits: one item, good ones first. Repeatable.
--items FILE          A file with such a list, one item per line.
--settings GOOD BAD   Search two files of settings instead: which difference explains the gap?
--build COMMAND       Builds the item, in its tree.
--set KNOB=VALUE*     A knob to set; {{item}} in its value is replaced.
{MEASURING}
--by-hand             You judge each item: good, bad or skip; with --better, give numbers.
--wrong SHARE [5%]    How often you expect an answer to be wrong.
--value VALUE         For a folder searched by hand with numbers: the number you measured.
--margin
--exact SHARE         The measurement repeats to within this share, such as 0.01%, so one run is enough.
{TIME_LIMITS}
--first               Stop at the first culprit.
--rest TIMES:0..1000 [1]
                      Limit the search after the first culprit to this many times its runs; with a folder: continue up
                      to that.
--no-revert           Do not revert a culprit on top of the bad end as a second proof.
--below-noise (was --force)
                      Search even if the effect is below half of a run's noise.
--runs NUMBER:1..     Maximum number of visits.
--seed NUMBER         Seed of the order of runs (default: random; always recorded).
--folder
--dry-run (was --plan)  Show the next step and why; do not measure.
--undo NUMBER:1..     For a folder: undo the last so many answers.
--show                For a folder: report the current result; do not measure.
--format console|mail|markdown|html|csv|json|junit|ktap|github|git [console]
                      git: print a `git bisect log`.
"""


@declared("bisect", "[what] [fio...]", OPTIONS, EXAMPLES)
def command(asked: Asked) -> None:
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
    from iodelta.study.search import SearchPlanAnswer

    machine = LocalMachine()
    what, fio = asked.what, asked.fio
    if what is not None and (what.startswith("-") or not Path(what).exists()):
        what, fio = None, (what, *fio)
    asked.fio = fio
    if what is not None and Path(what).is_dir():
        answer = None
        if not fio or not fio[0].startswith("-"):
            answer = answer_of(Path(what), asked)
        if answer or asked.undo:
            asked.fio = ()
        go_on(open_folder(Path(what), asked), machine, asked, answer)
    if what is not None:
        raise RequestError(
            "not a folder", place=what, remedy="fio's options come after --"
        )
    if asked.undo or asked.show or asked.value:
        raise RequestError(
            "--undo, --show and --value need a folder", remedy="give it first"
        )
    question = _question(asked)
    at = replayed(machine, question, ())
    items = tuple(at.search.line.items)
    count = f"{len(items) - 1} candidate{'s' * (len(items) > 2)}"
    say_line(
        f"{count} between {at.kind.title(items[0])} and {at.kind.title(items[-1])}"
    )
    if not asked.dry_run:
        go_on(new_folder("bisect", question, machine, asked), machine, asked)
    if asked.format == "git":
        raise RequestError(
            "the log is empty: --dry-run does not measure",
            place="--format git",
            remedy="leave --dry-run out",
        )
    title, why = (at.kind.title(at.ask.item), at.ask.why) if at.ask else ("", "")
    asked.deliver(SearchPlanAnswer(items, title, why, tuple(map(at.kind.title, items))))


def _question(asked: Asked) -> Question:
    """Return the question that the options ask. Raises RequestError."""
    from iodelta.bisect.git import Repository
    from iodelta.bisect.items import read_settings
    from iodelta.bisect.question import Commits, Listed, Settings
    from iodelta.cli.search_question import question_of
    from iodelta.experiment.source import text_of
    from iodelta.machine import LocalMachine

    ways = {
        "commits": asked.good or asked.bad,
        "a list": asked.item or asked.items,
        "settings": asked.settings,
    }
    if sum(map(bool, ways.values())) != 1:
        raise RequestError(
            "commits, a list or settings: one of them"
            if any(ways.values())
            else "nothing to search was given",
            place="command line",
            remedy="--good REV --bad REV for commits, --item or --items for a list, --settings GOOD BAD for settings",
        )
    if asked.settings:
        (good, settings), (bad, other) = (
            read_settings(text_of(file, "the settings"), str(file))
            for file in asked.settings
        )
        differing = Settings(good, bad, "kconfig" if settings or other else "plain")
        return question_of(asked, differing)
    if not ways["commits"]:
        text = text_of(asked.items, "the items") if asked.items else ""
        lines = (line.strip() for line in text.splitlines())
        return question_of(asked, Listed((*asked.item, *filter(None, lines))))
    if not (asked.good and asked.bad):
        raise RequestError("give both --good and --bad", place="command line")
    repository = Repository.open(LocalMachine(), str(asked.repo))
    ends = (
        repository.resolve(asked.good, "--good"),
        repository.resolve(asked.bad, "--bad"),
    )
    paths = tuple(chain.from_iterable(text.split() for text in asked.paths))
    question = question_of(asked, Commits(repository.path, *ends, paths))
    if repository.is_dirty():
        click.echo(
            "the checkout has uncommitted changes; they are not part of what is measured",
            err=True,
        )
    return question
