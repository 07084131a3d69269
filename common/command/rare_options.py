"""Options that few people need: the help names them behind one of the command, as KEY=VALUE."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def rare_options(
    flag: str, *options: Callable[[click.Command], click.Command], about: str = "Rarely needed"
) -> Callable[[Command], Command]:
    """Give a command options that its help lists behind one of its own; it takes them by their own names too.

    Args:
        flag: the option, such as --advanced; repeated for each KEY=VALUE.
        options: as click.option makes them.
        about: how the help introduces them.
    """
    holder = click.Command("rare", add_help_option=False)
    for option in options:
        option(holder)
    rare = {one.opts[0][2:]: one for one in holder.params if isinstance(one, click.Option)}
    for one in rare.values():
        one.hidden = True

    def take(context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> None:
        defaults: dict[str, Any] = {}
        for key, _, value in (word.partition("=") for word in words):
            if key not in rare:
                raise click.NoSuchOption(key, f"{flag}: No such key {key!r}.", rare, context)
            name = str(rare[key].name)
            defaults[name] = [*defaults.get(name, ()), value] if rare[key].multiple else value
        context.default_map = {**(context.default_map or {}), **defaults}

    listed = "; ".join(f"{key}: {(one.help or '').rstrip('.')}" for key, one in rare.items())
    text = f"{about}, repeated for each. {listed}."
    take_option = click.option(
        flag, multiple=True, is_eager=True, expose_value=False, callback=take, metavar="KEY=VALUE", help=text
    )

    def decorated(command: Command) -> Command:
        vars(command).setdefault("__click_params__", []).extend(reversed(rare.values()))
        return take_option(command)

    return decorated
