"""A group of commands that lists them if a word is not one of them."""

from __future__ import annotations

import click

WHOLE = 1000
"""Characters of a command's first sentence, which click would end with "..." where its line does."""


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
