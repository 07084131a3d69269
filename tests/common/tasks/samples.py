"""Tasks that other processes can import."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from veiltab.common.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    base: int

    def perform(self) -> int:
        return self.base * self.base


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    def perform(self) -> None:
        raise InvalidInputError("there is nothing to do", where="--nothing", remedy="Do something.")


class OddError(Exception):
    """Its class cannot be made of what it says: pickle does that."""

    def __init__(self, *, value: str) -> None:
        super().__init__(f"the value is {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A division by zero with a note, or an error that cannot travel."""

    odd: bool = False

    def perform(self) -> float:
        if self.odd:
            raise OddError(value="1234")
        try:
            return 1 / 0
        except ZeroDivisionError as error:
            error.add_note("while dividing")
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritable:
    def perform(self) -> object:
        return lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Kills its process the first few times.

    Args:
        folder: has a file for each time.
        times: how often.
    """

    folder: Path
    times: int

    def perform(self) -> int:
        died = len(list(self.folder.iterdir()))
        if died < self.times:
            (self.folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return died


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Says in a folder which process sleeps, for ever."""

    folder: Path

    def perform(self) -> None:
        (self.folder / str(os.getpid())).touch()
        while True:
            time.sleep(3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Says in a folder which process performs it, and waits until a number of tasks have said so."""

    folder: Path
    number: int
    together: int

    def perform(self) -> int:
        (self.folder / f"{self.number} {os.getpid()}").touch()
        while len(list(self.folder.iterdir())) < self.together:
            time.sleep(0.01)
        return os.getpid()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """Reads a variable of its process's environment."""

    name: str

    def perform(self) -> str:
        return os.environ[self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """Returns a text backwards."""

    text: str

    def perform(self) -> str:
        return self.text[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Myself:
    """Returns the id of its process."""

    def perform(self) -> int:
        return os.getpid()
