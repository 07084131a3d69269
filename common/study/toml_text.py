"""TOML: what people write is parsed, or refused with what to write instead; what programs write is plain data."""

import codecs
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeGuard

from veiltab.common.errors import InvalidInputError

_PLACE = re.compile(r"at line (\d+)")
_ADVICE = (
    (r"[\u2018-\u201f\u00ab\u00bb]", "", 'Write straight quotes, "so".'),
    (r"=\s*[+-]?\d+,\d+\s*(#.*)?$", "", "Write a decimal point, such as 0.5, and no comma."),
    (
        "",
        "overwrite|declare|twice",
        "Keep one: a key stands once in its table, and a table of which there are many is [[so]].",
    ),
    (r'"[^"]*\\', r"Unescaped|hex value", "Write a path in 'single quotes', or with / for each \\."),
    ("", r"Unclosed|Expected '\]'", "Close the bracket, there or in a line before."),
    ("", r"Illegal character|Unterminated|Expected ['\"]['\"]['\"]", "Close the quote."),
    ("", "Expected '='", 'Write it like key = "value".'),
    (r"=\s*(True|False)\b", "Invalid value", "Write true or false, in lower case."),
    (r"""=\s*[^\s"'\[{\d+-]""", "Invalid value", "Put the text in quotes."),
    ("", "", "Correct it there: a line is a key = value, a [table], or begins with #."),
)
"""What a line has, what the parser says of it, and what to write instead; the first that fits."""

MOST_BYTES = 1 << 20
_MOST_PARTS = 8
_MOST_DEPTH = 20
_LONGEST = 200

# What a parser takes for a text or a comment, also where its end is missing.
_TEXT = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)|"(?:\\[^\n]|[^"\\\n])*["\\]?|#[^\n]*'''
    r"""|'{3}.*?(?:'{3,5}|\Z)|'[^'\n]*'?""",
    re.DOTALL,
)
_BRACKETS = re.compile(r"[\[\]{}]")
_BESIDE_KEYS = re.compile(r"[\[\]{}=,]")


def parsed_toml_text(data: bytes, where: str) -> dict[str, object]:
    """Return the tables of a TOML file; numbers with a fraction are decimals, exactly as they are written.

    The parser's memory grows with the square of a key's parts, so a file is bounded before it is parsed.

    Args:
        data: its bytes.
        where: names the file in a refusal.

    Raises:
        InvalidInputError: it is not TOML, not in UTF-8, or beyond the bounds.
    """
    if len(data) > MOST_BYTES:
        raise InvalidInputError("this file is larger than 1 MiB", where=where, remedy="Name the right file.")
    try:
        text = data.decode("utf-8-sig")
        _check_bounds(text, where)
        return tomllib.loads(text, parse_float=Decimal)
    except UnicodeDecodeError as error:
        is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        remedy = "It is UTF-16: save it as UTF-8." if is_wide else "Save it as UTF-8, without special formatting."
        raise InvalidInputError(f"not a TOML file in UTF-8 ({error.reason})", where=where, remedy=remedy) from None
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidInputError(
            f"not a TOML file in UTF-8 ({error})", where=where, remedy=_remedy(text, str(error))
        ) from None


def _check_bounds(text: str, where: str) -> None:
    """Refuse keys of many parts, long keys and numbers, and deep nesting; all but texts and comments is looked at."""
    depth = 0
    without_texts = _TEXT.sub(lambda match: "\n" * match[0].count("\n"), text.replace("\r\n", "\n"))
    for number, line in enumerate(without_texts.split("\n"), 1):
        parts = [part.strip() for part in _BESIDE_KEYS.split(line)]
        for bracket in _BRACKETS.findall(line):
            depth += 1 if bracket in "[{" else -1
            if depth > _MOST_DEPTH:
                raise _beyond(f"lists and tables stand more than {_MOST_DEPTH} deep in one another", number, where)
        if any(part.count(".") >= _MOST_PARTS for part in parts):
            raise _beyond(f"a key has more than {_MOST_PARTS} parts", number, where)
        if max(map(len, parts)) > _LONGEST:
            raise _beyond(f"a key or a number has more than {_LONGEST} characters", number, where)


def _beyond(problem: str, line: int, where: str) -> InvalidInputError:
    return InvalidInputError(f"{problem} (at line {line})", where=where, remedy="Shorten it, or name the right file.")


def _remedy(text: str, problem: str) -> str:
    """Return what to write instead. It does not quote the line: a party's file may hold a password there."""
    place, lines = _PLACE.search(problem), text.splitlines()
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    return next(
        advice for of_line, of_problem, advice in _ADVICE if re.search(of_line, line) and re.search(of_problem, problem)
    )


def toml_text(file: Mapping[str, object]) -> str:
    """Return the TOML of a file of plain values, tables and lists of tables; values that stand in no table come first.

    Raises:
        TypeError: a value that such a file does not hold.
    """
    lines: list[str] = []
    for name, value in file.items():
        if isinstance(value, Mapping):
            lines += _table(f"[{name}]", value)
        elif _is_tables(value):
            lines += (line for one in value for line in _table(f"[[{name}]]", one))
        else:
            lines.append(f"{name} = {toml_value(value)}")
    return "\n".join(lines)


def _is_tables(value: object) -> TypeGuard[Sequence[Mapping[str, object]]]:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(one, Mapping) for one in value)


def _table(header: str, table: Mapping[str, object]) -> Iterator[str]:
    yield header
    yield from (f"{key} = {toml_value(item)}" for key, item in table.items())
    yield ""


def toml_value(value: object) -> str:
    """Return the TOML of a plain value."""
    match value:
        case str():
            # A JSON string is a TOML string, except that TOML also escapes DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(toml_value(item) for item in value)}]"
        case dict():
            return f"{{ {', '.join(f'{toml_value(key)} = {toml_value(item)}' for key, item in value.items())} }}"
        case _:
            raise TypeError(f"a study file holds no {type(value).__name__}")
