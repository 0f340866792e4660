"""A group of commands that lists them if a word is not one of them."""

from __future__ import annotations

import click

WHOLE = 1000
"""Characters of a command's first sentence, which click would end with "..." where its line does."""


FORMS = {
    "TIME": "budget build_timeout measure_timeout put_timeout ramp round_ trial",
    "SIZE": "size bs",
    "SHARE": "margin exact wrong",
    "PATH": "against claims target items_file inventory log",
    "PATTERN": "name_pattern",
    "COMMIT": "commit",
    "TEXT": "describe why",
}
"""Form of a value -> the options that have it, of whichever command."""


def with_forms(command: click.Command) -> click.Command:
    """Return the command with TIME, SIZE, PATH or NAME in place of click's TEXT in its help."""
    for option in command.params:
        if (
            isinstance(option, click.Option)
            and not option.metavar
            and not option.is_flag
        ):
            form = next(
                (form for form, names in FORMS.items() if option.name in names.split()),
                "",
            )
            if isinstance(option.type, click.Path):
                option.metavar = "PATH"
            elif form and isinstance(option.type, click.types.StringParamType):
                option.metavar = form
            elif isinstance(option.type, click.types.StringParamType):
                option.metavar = "NAME"
            elif isinstance(
                option.type, click.types.IntParamType | click.types.FloatParamType
            ):
                option.metavar = "NUMBER"
    return command


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
                [
                    (name, command.get_short_help_str(WHOLE))
                    for name, command in commands
                    if command
                ]
            )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        return with_forms(command) if command else None

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


SECTIONS = {
    "What to compare": "variants workload target size baseline margin placebo",
    "How long": "quick budget dry_run trial ramp blocks round_ limit fill spare purge",
    "More about the question": "conditions names name machine metrics level stalls superblocks seed settle question repo",
    "Safety": "destroy allow_commands wait leave_out",
    "What to show": "verbose cell functions bill lines paths footprint reproducer",
    "Output": "place format_ output charts scale force fail_on gate help",
}
"""Heading -> the options below it, the first ones first."""


class Grouped(click.Command):
    """A command whose help has its options in groups."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        records = {}
        for param in self.get_params(ctx):
            record = (
                param.get_help_record(ctx) if isinstance(param, click.Option) else None
            )
            if record is not None:
                records["help" if "--help" in param.opts else str(param.name)] = record
        for heading, names in SECTIONS.items():
            rows = [records.pop(name) for name in names.split() if name in records]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        assert not records, f"options without a group: {list(records)}"
