"""Commands declared as their help shows them: a line for each option says its name, form, default and meaning.

A line that has only a name takes the rest from ``COMMON`` or from ``DesignOptions``, so that one name has one meaning.
"""

from __future__ import annotations

import contextlib
import functools
import keyword
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from iodelta.errors import RequestError, pasted

if TYPE_CHECKING:
    from iodelta.machine import Machine
    from iodelta.report.formats.charts.model import Charts
    from iodelta.report.stories.story import Detail

T = TypeVar("T")

COMMON = """
--format console|json [console]
--verbose             Show everything, not just one screen.
-o, --output FILE     Write the report to FILE. The extension selects the format: .html, .md, .csv, .json, .txt (mail).
--force               Overwrite files that iodelta did not write.
--charts DIR          Write every chart as SVG and PNG.
--scale auto|log|linear [auto]
                      Axis of values in charts; auto: logarithmic where a linear one would hide small values.
--fail-on WORDS       Exit with 1 for these words, 3 for inconclusive: regression, improvement, change, inconclusive,
                      finding, nothing.
--exit-code           For scripts: the same as --fail-on regression,inconclusive.
--name-pattern PATTERN
                      How to read file names, such as '{variant}/{cell}-{replicate}.json'.
--machine ssh:HOST|vm:KERNEL*
                      Where to run: over SSH or in a throw-away guest (default: this machine).
--destroy DEVICE*     Allow this device or file to be overwritten.
--workload FILE       Experiment file whose [workload] command is measured, as its baseline sets it (default: run fio).
--allow-commands      Allow your own commands as the workload; iodelta cannot see what they write outside the target.
--wait                If another run is measuring on the same device, wait until it ends.
--leave-out           Continue without the variants that cannot run here.
--folder DIR          The folder to create.
--dry-run             Show the plan; change nothing.
--history DIRECTORY|URL [iodelta-history]
                      A directory, or postgresql://USER@HOST/DATABASE.
--log FILE            The log of added folders (default: decisions.jsonl in the directory; needed with a URL).
--hosts EXPR          Which hosts: names, patterns such as 'stor*', tags; !NAME leaves out, &TAG keeps (default: all).
--inventory FILE [fleet.toml]
                      The file that names the hosts.
--scheduler tcp://HOST:PORT
                      Use this Dask scheduler (default: this process).
--at-once NUMBER:1..1000 [50]
                      How many hosts at a time.
--in-use wait|skip [wait]
                      What to do if somebody else is measuring on a host's device.
--patience TIME [15m]
                      How long to wait for a host that does not answer.
--only TEXT*          Only series with TEXT in their machine, cell, variant or metric.
"""

FORMS = {
    "REPORT": "console|mail|markdown|html|csv|json",
    "VERDICTS": "console|mail|markdown|html|csv|json|junit|ktap|github",
    "VALUES": "console|mail|markdown|html|csv|json|junit|ktap|github|bmf",
}
"""Name of a form -> its choices: the formats of a report, those for CI too, and those of the values of variants."""

HEAD = re.compile(
    r"(?:(-\w), )?--([\w-]+)(?: ([^\[(]\S*(?: [A-Z]\S*)*))?(?: \[(.*)\])?(?: \(was (.*)\))?"
)
PATHS = ("FILE", "DIR", "file", "folder", "tree", "directory")
"""Forms of options and names of arguments that are paths."""

SECTIONS = {
    "What to compare": "variant target size baseline margin placebo workload",
    "How long": "quick budget dry-run trial ramp blocks round limit fill spare purge",
    "More about the question": "condition name-pattern machine metrics level stalls superblocks seed settle question "
    "repo",
    "Safety": "destroy allow-commands wait leave-out",
    "What to show": "verbose explain functions bill lines paths footprint reproducer",
    "Output": "folder format output charts scale force fail-on exit-code help",
}
"""Heading -> the options below it, the first ones first."""

SHOWING = frozenset(
    "format output force yes wait verbose exit_code fail_on".split(),
)
"""Options that change how a result is shown, but not the result."""


def entries(text: str) -> dict[str, tuple[str, str]]:
    """Return name -> line and help of the options that are declared in ``text``."""
    found = {}
    for entry in re.split(r"\n(?=-)", text.strip()) if text.strip() else ():
        head, _, said = re.sub(r"\s{2,}", "  ", entry, count=1).partition("  ")
        matched = HEAD.fullmatch(head.strip())
        assert matched, f"not an option: {entry}"
        found[matched[2]] = (head.strip(), " ".join(said.split()))
    return found


@functools.cache
def common() -> dict[str, tuple[str, str]]:
    """Return the options that mean the same in every command."""
    from iodelta.experiment.options import specs  # the list of commands does without

    design = {
        name: (f"--{name} {spec.form}".removesuffix(" FLAG"), spec.help)
        for name, spec in specs().items()
    }
    return {**entries(COMMON), **design}


def option(head: str, said: str) -> tuple[click.Option, dict[str, list[str]]]:
    """Return click's option of a line, and its old names with the words that replace them."""
    matched = HEAD.fullmatch(head)
    assert matched
    short, name, form, default, was = matched.groups()
    dest = name.replace("-", "_") + "_" * keyword.iskeyword(name)
    words: dict[str, Any] = {"help": said, "hidden": said == "."}
    if form is None:
        words["is_flag"] = True
    else:
        form = FORMS.get(form, form)
        words |= {"multiple": form.endswith("*"), "required": form.endswith("!")}
        if form.endswith("?"):
            words |= {"is_flag": False, "flag_value": form.partition("|")[0]}
        form = form.rstrip("*?!")
        number = re.fullmatch(r"(NUMBER|TIMES)(?::(\d*)\.\.(\d*))?", form)
        bare = form.split()[0]
        words["metavar"] = form
        if number:
            kind = int if number[1] == "NUMBER" else float
            low, high = (
                kind(bound) if bound else None for bound in number.groups()[1:]
            )
            ranges: Any = click.IntRange if kind is int else click.FloatRange
            is_bounded = (low, high) != (None, None)
            words |= {
                "type": ranges(low, high) if is_bounded else kind,
                "metavar": number[1],
            }
            default = kind(default) if default else None
        elif re.fullmatch(r"[a-z0-9_.-]+(\|[a-z0-9_.-]+)+", form):
            words |= {"type": click.Choice(form.split("|")), "metavar": None}
        elif bare in PATHS or form == "GOOD BAD":
            words |= {"type": click.Path(path_type=Path), "nargs": len(form.split())}
        else:
            words["shell_complete"] = files if form == "PATH" else None
            is_left = words["multiple"] or form == "EXPR"  # an empty one is none
            default = default or (None if is_left else "")
        words |= {"default": default, "show_default": bool(default)}
    option = click.Option([*filter(None, (short,)), f"--{name}", dest], **words)
    olds = [old.split() for old in was.split(", ")] if was else ()
    return option, {old[0]: [f"--{name}", *old[1:]] for old in olds}


def files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files and folders, as the shell lists them."""
    return [CompletionItem(incomplete, type="file")]


def argument(word: str, metavar: str = "") -> click.Argument:
    """Return click's argument of a word: ``[word]`` can be left out, ``word...`` repeated."""
    name = word.strip("[].")
    kind = click.Path(path_type=Path) if name in PATHS else None
    return click.Argument(
        [name],
        required=not word.startswith("["),
        nargs=-1 if "..." in word else 1,
        type=click.UNPROCESSED if name == "fio" else kind,
        metavar=metavar or None,
    )


class Command(click.Command):
    """A command whose help has many options in groups, and whose old names go on working for one release."""

    renamed: Mapping[str, list[str]] = {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words: list[str] = []
        for word in args[:end]:
            name, equals, value = word.partition("=")
            now = self.renamed.get(name)
            if now:
                click.echo(
                    f"{name} is now {' '.join(now)}; the old name goes with the next version",
                    err=True,
                )
            words += [now[0] + equals + value, *now[1:]] if now else [word]
        return super().parse_args(ctx, words + args[end:])

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        records = {}
        for param in self.get_params(ctx):
            is_option = isinstance(param, click.Option)
            record = param.get_help_record(ctx) if is_option else None
            if record is not None:
                records[max(param.opts, key=len).removeprefix("--")] = record
        grouped = [
            (heading, [records[name] for name in names.split() if name in records])
            for heading, names in SECTIONS.items()
        ]
        known = " ".join(SECTIONS.values()).split()
        rest = [record for name, record in records.items() if name not in known]
        if len(records) < 12:
            grouped, rest = [], list(records.values())
        for heading, rows in (("Options", rest), *grouped):
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def declared(
    name: str,
    arguments: str = "",
    options: str = "",
    examples: str = "",
    *,
    metavar: str = "",
    into: click.Group | None = None,
    complete: Mapping[str, Callable[..., Any]] | None = None,
) -> Callable[[Callable[[Asked], None]], Command]:
    """Return what makes a command of a function of its options; its docstring is the help. ``complete`` says how a
    shell completes values, and ``metavar`` how the first argument is shown."""

    def made(function: Callable[[Asked], None]) -> Command:
        taken, renamed, delivers = [], {}, set()
        for key, (head, said) in entries(options).items():
            known, meaning = common().get(key, (head, said))
            form, _, default = known.partition(" [")
            matched = HEAD.fullmatch(head)
            assert matched
            line = head
            if not (said or matched[3]):
                own = re.search(r" \[.*| \(was.*", head)
                line = form + (own[0] if own else f" [{default}" * bool(default))
            one, olds = option(line, said or meaning)
            if not said:
                delivers.add(key)
            taken.append(one)
            renamed.update(olds)
        words = arguments.split()
        params: list[click.Parameter] = [
            *(argument(word, metavar * (word is words[0])) for word in words),
            *taken,
        ]
        for param in params:
            completion = (complete or {}).get(str(param.name))
            if completion is not None:
                param._custom_shell_complete = completion

        def callback(**values: Any) -> None:
            function(checked(Asked(**values), delivers))

        command = Command(
            name,
            params=params,
            help=function.__doc__,
            epilog=f"\b\nExamples:\n{examples.strip(chr(10))}\n" if examples else None,
            callback=callback,
        )
        command.renamed = renamed
        if into is not None:
            into.add_command(command)
        return command

    return made


class Group(click.Group):
    """Names the nearest command, and all commands; click only says that there is no such command."""

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        commands = [
            (name, self.get_command(ctx, name)) for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(
                # click would end a sentence with "..." where its line does
                [(name, one.get_short_help_str(1000)) for name, one in commands if one]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], names, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(
                f"no command {args[0]!r}.{hint} Commands: {', '.join(names)}", ctx
            )
        return super().resolve_command(ctx, args)


def group(name: str, said: str, examples: str) -> Group:
    """Return a command that has commands."""
    return Group(name, help=said, epilog=f"\b\nExamples:\n{examples.strip(chr(10))}\n")


def words_of(text: str) -> frozenset[str]:
    """Return the words of checks that ``--fail-on`` names. Raises RequestError."""
    from iodelta.cli.delivery import WORDS

    named = [word.strip() for word in text.split(",")]
    for word in named:
        if word not in WORDS:
            raise RequestError(
                f"not a word of a verdict: {word!r}",
                place="--fail-on",
                remedy=f"use {', '.join(WORDS)}",
            )
    return frozenset().union(*(WORDS[word] for word in named))


class Asked(SimpleNamespace):
    """The options and arguments of the command that runs, by name; what a command does not have is None."""

    def __getattr__(self, name: str) -> Any:
        if name in ("output", "charts", "force", "verbose", "wait", "scale", "format"):
            return None
        raise AttributeError(name)

    def given(self, *names: str) -> set[str]:
        """Return which of the options were on the command line; without names, of all."""
        source = click.get_current_context().get_parameter_source
        return {
            name
            for name in names or vars(self)
            if source(name) is ParameterSource.COMMANDLINE
        }

    def typed(self, leave_out: Collection[str] = SHOWING) -> str:
        """Return the command line with its given options, without those in ``leave_out``."""
        context = click.get_current_context()
        options: list[str] = []
        arguments: list[str] = []
        given = self.given() - set(leave_out)
        for parameter in context.command.params:
            if parameter.name not in given:
                continue
            value = context.params[parameter.name]
            values = value if isinstance(value, tuple) else (value,)
            # click turns 1 into 1.0
            texts = [
                f"{one:.12g}" if isinstance(one, float) else str(one) for one in values
            ]
            name = max(parameter.opts, key=len)
            if isinstance(parameter, click.Argument):
                arguments += texts
            else:
                for text in texts:
                    options += [name] if values[0] is True else [name, text]
        words = ["iodelta"]
        inner: click.Context | None = context
        while inner is not None and inner.parent is not None:
            words.insert(1, str(inner.info_name))
            inner = inner.parent
        if any(argument.startswith("-") for argument in arguments):
            return shlex.join([*words, *options, "--", *arguments])
        return shlex.join([*words, *arguments, *options])

    def deliver(
        self,
        result: Any,
        draw: Callable[[], Charts] = tuple,
        detail: Detail | None = None,
    ) -> None:
        """Print the result, or write it where and as it was asked for. Raises MeasureError, RequestError."""
        from iodelta.cli import delivery
        from iodelta.report.stories.story import Detail

        delivery.deliver(
            result,
            draw,
            self.format,
            self.output,
            self.charts,
            force=bool(self.force),
            detail=detail or Detail(whole=bool(self.verbose)),
        )

    def end(self, result: Any) -> NoReturn:
        """Exit by the words of the result."""
        from iodelta.cli.delivery import exit_code

        sys.exit(exit_code(result, self.words))

    def answer(self, document: object, lines: Iterable[str]) -> None:
        """Print an answer: its lines, or the document."""
        if self.format == "json":
            from iodelta.report.documents import written

            sys.stdout.buffer.write(written(document))
            return
        for line in lines:
            click.echo(line)

    def in_turn(
        self,
        measure: Callable[[], T],
        stop: Callable[[], bool] = lambda: False,
        note: Callable[[str], None] | None = None,
    ) -> T:
        """Return what ``measure`` returns, called again after others where ``--wait`` was said. Raises as it does."""
        from iodelta.cli.progress import say_line
        from iodelta.lab.turns import patiently

        return patiently(
            measure, wait=bool(self.wait), stop=stop, note=note or say_line
        )

    def contact(self) -> contextlib.AbstractContextManager[Machine]:
        """Return the machine that was named, with its progress on standard error."""
        return contact(self.machine)

    def time_of(self, name: str, default: str = "") -> float:
        """Return a time that was given. Raises RequestError."""
        return of_option(name, getattr(self, name) or default, "seconds")

    def share_of(self, name: str, default: str = "") -> float:
        """Return a share that was given. Raises RequestError."""
        return of_option(name, getattr(self, name) or default, "fraction")


def of_option(name: str, text: str, kind: str) -> float:
    """Return the ``seconds`` or the ``fraction`` that an option says. Raises RequestError."""
    from iodelta.experiment import values

    try:
        value: float = getattr(values, kind)(text)
    except ValueError as error:
        raise RequestError(str(error), place=f"--{name.replace('_', '-')}") from error
    return value


def contact(name: str = "") -> contextlib.AbstractContextManager[Machine]:
    """Return the machine called ``name``, with its progress on standard error."""
    from iodelta.api import machines
    from iodelta.cli.progress import say_line

    return machines.contact(name, say=say_line)


def contacts(
    names: Sequence[str], *, boots: bool = False
) -> contextlib.AbstractContextManager[list[Machine]]:
    """Return the machines of an experiment, with their progress on standard error."""
    from iodelta.api import machines
    from iodelta.cli.progress import say_line

    return machines.contacts(names, say=say_line, boots=boots)


def checked(asked: Asked, shared: Collection[str]) -> Asked:
    """Return the options once what they say about targets, machines, files and words holds; ``shared`` are those that
    mean the same in every command. Raises RequestError before anything else is done."""
    values = vars(asked)
    command = click.get_current_context().command
    if "target" in shared and asked.given("target") and not asked.target.strip():
        raise RequestError(
            "names nothing",
            place=f"--target {asked.target!r}",
            remedy="name a path, or leave --target out",
        )
    if "machine" in shared and "variant" not in values:
        if len(asked.machine) > 1:
            raise RequestError(
                "this command uses one machine",
                place="--machine",
                remedy="only `iodelta run` takes several",
            )
        asked.machine = "".join(asked.machine)
    if "output" in shared and asked.output is not None:
        from iodelta.cli.delivery import format_of
        from iodelta.cli.files import check_free

        if not values.get("reproducer"):
            choices = next(one.type for one in command.params if one.name == "format")
            assert isinstance(choices, click.Choice)
            asked.format = format_of(
                asked.output,
                asked.format * bool(asked.given("format")),
                choices.choices,
            )
        check_free(asked.output, force=asked.force)
    if asked.charts is not None:
        from iodelta.cli.files import check_free_of_pictures

        check_free_of_pictures(asked.charts, force=asked.force)
    if asked.given("scale") and asked.format != "html" and asked.charts is None:
        raise RequestError(
            "--scale applies to charts, and none is drawn here",
            place="--scale",
            remedy="add -o page.html or --charts DIR",
        )
    if "fail_on" in values:
        if values.get("exit_code") and asked.given("fail_on"):
            raise RequestError(
                "--exit-code is short for --fail-on regression,inconclusive",
                remedy="give one of both options",
            )
        always = "regression,inconclusive"
        asked.words = words_of(always if values.get("exit_code") else asked.fail_on)
    return asked


def fresh(kind: str) -> Path:
    """Return a folder's name that tells when it was begun."""
    import time

    return Path(time.strftime(f"{kind}-%Y%m%d-%H%M%S"))


def shell(*words: object) -> str:
    """Return a command line of iodelta that can be pasted; a tuple is an option with its value."""
    pairs = (word if isinstance(word, tuple) else ("", word) for word in words)
    texts = (f"{name} {pasted(value)}".strip() for name, value in pairs)
    return " ".join(["iodelta", *texts])


def can_ask() -> bool:
    """Return whether somebody can answer."""
    return sys.stdin.isatty()


def ask(question: str, refused: str, place: str, remedy: str) -> None:
    """Ask the user. Raises RequestError unless the answer is yes."""
    if not can_ask():
        raise RequestError(
            refused, place=place, remedy="use --yes if you cannot answer questions"
        )
    try:
        agreed = click.confirm(question, default=False, err=True)
    except click.Abort:
        click.echo("", err=True)
        agreed = False
    if not agreed:
        raise RequestError(refused, place=place, remedy=remedy)
