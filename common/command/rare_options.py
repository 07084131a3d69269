"""Options that few people need: behind one of the command, as KEY=VALUE."""

import functools
from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

RARE_NAMES = "rare_names"
"""The attribute of a command's function that has the names of its rare parameters: a file of options sets them too."""


def rare_options(
    flag: str, *options: Command, about: str = "Rarely needed"
) -> Callable[[Command], Callable[..., None]]:
    """Give a command options that are written KEY=VALUE after one of its own, and that stand in its help.

    Args:
        flag: the option, such as --advanced; repeated for each.
        options: as click.option makes them; each is read, and passed to the command, as if it were the command's own.
        about: how the help introduces them.
    """
    rare = click.Command("rare", add_help_option=False)
    for option in options:
        option(rare)
    listed = "; ".join(f"{one.opts[0][2:]}: {(one.help or '').rstrip('.')}" for one in _options(rare))

    def decorated(command: Command) -> Callable[..., None]:
        @functools.wraps(command)
        def with_rare(*arguments: Any, words: tuple[str, ...], **values: Any) -> Any:  # noqa: ANN401 - click's
            outer = click.get_current_context()
            try:
                read = rare.make_context(flag, [f"--{word}" for word in words], default_map=outer.default_map)
            except click.UsageError as error:
                raise click.UsageError(f"{flag}: {error.format_message()}", outer) from None
            return command(*arguments, **read.params, **values)

        setattr(with_rare, RARE_NAMES, {one.name for one in rare.params})
        help_text = f"{about}, repeated for each. {listed}."
        return click.option(flag, "words", multiple=True, metavar="KEY=VALUE", help=help_text)(with_rare)

    return decorated


def _options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option)]
