"""What must never happen, row by row: the promise, the fault, and the tests that show that it holds."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row.

    Args:
        number: by which others name it.
        promise: what holds.
        fault: what was done to break it.
        tests: "file::name" below tests/.
        limits: what of the row no test shows.
        command: a measurement beside the tests: the words after `python -m`.
        relayed: curators and desks are called through a relay.
        repeats: how often a full run repeats the tests; they draw their moments anew.
    """

    number: int
    promise: str
    fault: str
    tests: Sequence[str]
    limits: str = ""
    command: Sequence[str] = ()
    repeats: int = 1
    relayed: bool = False


ROWS = tuple(Row(**row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["row"])
