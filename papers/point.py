"""One task of one experiment under one seed; the result does not depend on who computes it or when."""

import hashlib
import json
from typing import Any

import numpy as np

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.papers.experiment import Task
from veiltab.papers.version import code_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A task that another process can compute; its result returns as text.

    Args:
        task: what to compute; its function must be one of a module's top level.

    Raises:
        InvalidInputError: a function that another process could not find.
    """

    experiment: str
    task: Task
    seed: int
    version: str = field(init=False)

    def __post_init__(self) -> None:
        function = self.task.function
        if "<" in getattr(function, "__qualname__", "<"):
            raise InvalidInputError("a task's function must be one of a module's top level", where=str(self))
        object.__setattr__(self, "version", code_version(function.__module__))

    def __str__(self) -> str:
        """Name the point."""
        return f"{self.experiment}/{self.task.key}"

    @property
    def question(self) -> str:
        """What is computed, as one line."""
        function = self.task.function
        where = f"{function.__module__}:{function.__qualname__}"
        return canonical([self.experiment, self.task.key, where, self.task.arguments, self.seed])

    @property
    def identity(self) -> str:
        """Everything that its result depends on, as one line: the question, and the version of what answers it."""
        return f"{self.version} {self.question}"

    def generator(self) -> np.random.Generator:
        """Return the point's own generator: seed, experiment and key decide its stream, and nothing else."""
        words = hashlib.blake2b(canonical([self.seed, self.experiment, self.task.key]).encode()).digest()
        return np.random.default_rng(np.frombuffer(words, "<u4").tolist())

    def perform(self) -> str:
        """Compute the result, as one line of text.

        Raises:
            ConflictError: this process would compute with other code than the one that asked for the point.
        """
        function = self.task.function
        if code_version(function.__module__) != self.version:
            raise ConflictError(
                "this process runs other code or other libraries than the one that asked for the point",
                where=str(self),
                remedy="Install the same version of veiltab, numpy and scipy on every worker.",
            )
        # The arguments pass through text here too, so every process gets lists instead of tuples.
        arguments = json.loads(canonical(self.task.arguments))
        try:
            return canonical(function(arguments, self.generator()))
        except Exception as error:
            error.add_note(f"while computing {self}")
            raise


def canonical(data: object) -> str:
    """Return plain data as one line of JSON, the same for the same data; floats keep every digit."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> object:  # noqa: ANN401 - whatever a task returns
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a task's arguments and result are plain data, not {type(value).__name__}")
