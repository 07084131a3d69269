"""A group of commands one of which runs if none is named."""

from typing import Any

import click


class DefaultGroup(click.Group):
    """Commands, one of which runs if none is named: its options may follow the group at once.

    Args:
        kind: what the commands are, in the singular.
    """

    def __init__(self, *args: Any, default: str, kind: str, **options: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **options)
        self._default = default
        self._kind = kind

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the default command before its options, and refuse those of another with their place."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            self._check_options(ctx, args)
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def _check_options(self, ctx: click.Context, args: list[str]) -> None:
        flags = {name: {opt for one in command.params for opt in one.opts} for name, command in self.commands.items()}
        for option in (word.split("=")[0] for word in args if word.startswith("--")):
            elsewhere = [name for name, options in flags.items() if option in options]
            if elsewhere and self._default not in elsewhere:
                place = f"veiltab {self.name} {elsewhere[0]} {option} ..."
                raise click.UsageError(f"{option} is an option of another {self._kind}: {place}", ctx)
