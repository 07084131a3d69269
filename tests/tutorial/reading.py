"""What a page tells its reader to type."""

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(sh|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_COMMAND = re.compile(r"(?:.*<<'(\w+)'\n(?:.*\n)*?\1|(?:.*\\\n)*.+)\n")
"""A line, or several: those that end in a backslash, and those of a file that is written on the spot."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """What stands together on a page.

    Args:
        language: of the commands: sh or python, which a reader types; console, which shows them beside what they print.
        commands: one after another; a program in Python is one.
    """

    language: str
    commands: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """Return what a text tells its reader to type."""
    return [Block(language=language, commands=_commands(language, body)) for language, body in _BLOCK.findall(text)]


def _commands(language: str, body: str) -> tuple[str, ...]:
    if language == "python":
        return (body,)
    if language == "console":
        body = "".join(f"{line}\n" for line in re.findall(r"^\$ ((?:.*\\\n)*.*)", body, re.MULTILINE))
    return tuple(match[0].rstrip("\n") for match in _COMMAND.finditer(body))


def sections(page: Path) -> dict[str, str]:
    """Return the text under each heading of a page; what comes before the first has the name ''."""
    parts = _HEADING.split(page.read_text())
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))
