"""What a page tells its reader to type."""

import re
from pathlib import Path

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)


def commands(text: str) -> list[str]:
    """Return the lines of a page's blocks of shell commands, in order."""
    return [line for block in _BLOCK.findall(text) for line in block.splitlines() if line]


def sections(page: Path) -> dict[str, str]:
    """Return the text under each heading of a page; what comes before the first has the name ''."""
    parts = _HEADING.split(page.read_text())
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))
