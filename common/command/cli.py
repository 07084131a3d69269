"""Conventions of every command: one JSON object with --json, errors that a person can act on, exit codes."""

import json
import sqlite3
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import Enum
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import click

from veiltab.common.core.texts.record_fields import field_values
from veiltab.common.core.texts.spelling import is_seen
from veiltab.common.errors import InvalidInputError, VeiltabError
from veiltab.common.process.protection import forbid_memory_dumps
from veiltab.common.storage.disk import disk_refusal, files_of

EXIT_CODES = """
Exit codes: 0 done, 2 bad input, 3 denied or over budget, 4 a party did not answer or is not ready yet, or nothing
shows who signed, 5 conflict, damaged data, a spent token or a closed round, 6 the release ended without a result,
1 anything else.
"""

_UP = Context(prec=15, rounding=ROUND_CEILING)
"""As many digits as every float keeps."""

PATH = click.Path(path_type=Path)
"""The type of an option that names a file or a folder."""

Command = TypeVar("Command", bound=Callable[..., Any])


def flag_option(flag: str, about: str) -> Callable[[Command], Command]:
    """Return an option that no command takes as an argument: `has_flag` says whether the command line has it."""

    def remember(context: click.Context, _option: click.Parameter, value: object) -> None:
        context.meta[f"veiltab.{flag}"] = value

    return click.option(flag, is_flag=True, is_eager=True, expose_value=False, callback=remember, help=about)


def has_flag(flag: str) -> bool:
    """Return whether the command line has a flag."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"veiltab.{flag}"))


json_option = flag_option("--json", "Print one JSON object and nothing else; every command takes it, at any place.")


def wants_json() -> bool:
    """Return whether the command line has --json."""
    return has_flag("--json")


def emit(data: Mapping[str, object], text: str) -> None:
    """Print a command's result: one JSON object, or the text for people."""
    click.echo(json_text(data) if wants_json() else printable(text))


def json_text(data: Mapping[str, object]) -> str:
    """Return a result as a JSON object; a number that JSON would cut is rounded up."""
    return json.dumps(data, default=_plain)


def printable(text: str) -> str:
    """Return lines of text without characters that command a terminal or are not seen, no matter who wrote them."""
    return "".join(one if is_seen(one) or one in "\n\t" else " " for one in text)


def listed(names: str) -> tuple[str, ...]:
    """Return names that are separated by commas, without white space around them."""
    return tuple(name.strip() for name in names.split(","))


def finite(_context: click.Context, _option: click.Parameter, value: float) -> float:
    """Refuse a duration that is negative, infinite or "nan", which Python accepts as a number."""
    if not 0 <= value < inf:
        raise click.BadParameter("must be a number of at least 0")
    return value


def note(message: str) -> None:
    """Print a line about progress to stderr."""
    click.echo(printable(message), err=True)


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        # A bound with more digits than a float has is not to be printed below itself.
        return float(_UP.plus(value))
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value):
        return field_values(value)
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(type(value).__name__)


def run(command: click.Command) -> int:
    """Run a command line and return its exit code, with refusals on stderr."""
    # Whatever the command, it may read keys, tokens or values.
    forbid_memory_dumps()
    try:
        result = command.main(standalone_mode=False)
    except click.exceptions.Abort:
        note("Interrupted. Nothing acknowledged is lost.")
        return 130
    except click.ClickException as error:
        _in_words(error).show()
        return error.exit_code
    except VeiltabError as error:
        return _refused(error)
    except PermissionError as error:
        if not error.filename:
            raise
        remedy = "Check its rights and those of the folders above it, and which user runs this."
        return _refused(InvalidInputError("this user may not use it", where=files_of(error), remedy=remedy))
    except (OSError, sqlite3.OperationalError) as error:
        refusal = disk_refusal(error)
        if refusal is None:
            raise
        # What a running party says of its full disk is that it goes on by itself; this process ends.
        note(f"veiltab: {files_of(error) or 'a file'}: {refusal.problem}. Mend that, and begin again.")
        return refusal.exit_code
    return result if isinstance(result, int) else 0


def _in_words(error: click.ClickException) -> click.ClickException:
    """Return a refusal of click with the numbers that are allowed, or the options whose help has the word."""
    if isinstance(error, click.NoSuchOption) and not error.possibilities and error.ctx is not None:
        word, options = error.option_name.strip("-"), error.ctx.command.params
        its_options = [one.opts[0] for one in options if word in (getattr(one, "help", None) or "").split()]
        near = f" Did you mean {' or '.join(its_options)}?" if its_options else ""
        return click.UsageError(f"{error.message}{near}", error.ctx)
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    if not isinstance(error, click.BadParameter) or not isinstance(kind, click.IntRange):
        return error
    low, high = kind.min, kind.max
    allowed = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
    return click.BadParameter(error.message.replace("a valid integer range", allowed), error.ctx, error.param)


def _refused(error: VeiltabError) -> int:
    """Say why a command is refused, and return its exit code."""
    if "--json" in sys.argv:
        click.echo(json.dumps({"error": _described(error)}))
    note(f"veiltab: {error}")
    return error.exit_code


def _described(error: VeiltabError) -> dict[str, str]:
    return {"reason": error.reason, "problem": error.problem, "where": error.where, "remedy": error.remedy}
