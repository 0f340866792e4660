"""The ``iodelta`` command: its sub-commands are imported when they are called, so that ``--help`` stays quick."""

from __future__ import annotations

import gc
import os
import signal
import sys
from itertools import chain
from typing import Any, NoReturn

import click

from iodelta import __version__
from iodelta.cli.commands import Group
from iodelta.errors import IodeltaError
from iodelta.part import GROUPS, commands, load

VERBOSE = "iodelta.verbose"


class LazyGroup(Group):
    """A group that imports a command's module only when that command is used."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``--verbose`` goes with ``--version`` alone: every command has its own."""
        if set(args) == {"--version", "--verbose"}:
            ctx.meta[VERBOSE] = True
            args = ["--version"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = commands().get(cmd_name)
        if known is None:
            return None
        command: click.Command = load(known.place)
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        for group, heading in GROUPS.items():
            rows = [
                (name, command.help)
                for name, command in commands().items()
                if command.group == group
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """As a shell expects of a command that a signal ended; click would say 1, which here is a regression."""
        try:
            try:
                return super().invoke(ctx)
            except click.UsageError as error:
                raise _quoted(error) from error
            finally:
                sys.stdout.flush()
        except KeyboardInterrupt:
            sys.stderr.write("iodelta: stopped\n")
            sys.exit(128 + signal.SIGINT)
        except (BrokenPipeError, SystemExit) as end:
            if isinstance(end, SystemExit) and not isinstance(
                end.__context__, BrokenPipeError
            ):
                raise
            # Nobody reads any more, which rich makes an exit of 1; what is still buffered must not fail once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)


def _quoted(error: click.UsageError) -> click.UsageError:
    """Click's message with the user's words made inert: click quotes some of them as they are."""
    from iodelta.study.words import inert_message

    if isinstance(error, click.NoSuchOption):
        error = _with_fio_in_mind(error)
    text = error.format_message()
    safe = inert_message(text)
    return error if safe == text else click.UsageError(safe, error.ctx)


def _with_fio_in_mind(error: click.NoSuchOption) -> click.UsageError:
    """Say in the message what to do where one of fio's own options was meant: one that none here is much like."""
    import difflib

    context = error.ctx
    if context is None or all(param.name != "fio" for param in context.command.params):
        return error
    own = list(chain.from_iterable(param.opts for param in context.command.params))
    if difflib.get_close_matches(error.option_name, own, 1, cutoff=0.8):
        return error
    words = f"{context.command_path} ... -- {error.option_name}=..."
    return click.UsageError(
        f"{error.message} Options of fio itself come after --, as in: {words}", context
    )


def _print_version(
    context: click.Context, parameter: click.Parameter, value: bool
) -> None:
    if not value or context.resilient_parsing:
        return
    click.echo(f"iodelta, version {__version__}")
    if context.meta.get(VERBOSE):
        from iodelta.api.doctor import components

        for component in components()[1:]:
            click.echo(f"{component.name} {component.version}")
    context.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit; with --verbose also the versions of what iodelta uses.",
)
def cli() -> None:
    """Did this change make my I/O slower or faster, by how much, and how sure is that?

    \b
    Two schedulers on a disk, 4k random reads at two depths (reads only, nothing is written):
      iodelta run --target /dev/sdb \\
        --variant none:block.scheduler=none \\
        --variant dl:block.scheduler=mq-deadline \\
        -- --rw=randread --bs=4k --ioengine=libaio --direct=1 --iodepth=1,32

    \b
    Two engines on a scratch file, no root:
      iodelta run --variant libaio:fio.ioengine=libaio --variant uring:fio.ioengine=io_uring \\
        -- --rw=randread --bs=4k --direct=1 --iodepth=1,32

    Exit codes: 0 nothing worse, 1 regression, 2 the request is wrong, 3 inconclusive, 4 could not measure; report and
    show: 0 when they succeeded.
    """


def main() -> NoReturn:
    """The entry point: an ``IodeltaError`` becomes its message and exit code, anything else is a defect."""
    # Reading makes many objects and hardly a cycle: looking for cycles took a tenth of its time.
    gc.set_threshold(100_000)
    try:
        cli(prog_name="iodelta")
    except IodeltaError as error:
        from iodelta.study.words import inert_message  # --help does without

        sys.stderr.write(f"iodelta: {inert_message(str(error))}\n")
        sys.exit(error.exit_code)
    except Exception:
        if "_IODELTA_COMPLETE" not in os.environ:
            raise
        sys.exit(
            1
        )  # a shell would print the traceback into the line that is being written
    raise AssertionError("click exits by itself")
