"""Tasks whose process is killed in the middle of them, once; other processes import this module."""

import os
import pickle
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.storage.sealed import SealedFile
from veiltab.common.tasks.engine import Engine, Result, Results, Task
from veiltab.curator.alignment import token_order
from veiltab.curator.alignment.intersection import matches


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledOnce:
    """A task whose process is killed the first time, between two arrays that it writes, or when it has compared tokens.

    Args:
        task: the task.
        mark: a file that says that this has happened.
    """

    task: Any
    mark: Path

    def perform(self) -> Any:  # noqa: ANN401 - as the task
        if not self.mark.exists():
            self.mark.touch()
            append = SealedFile.append

            def die(file: SealedFile, data: Any) -> int:  # noqa: ANN401 - an array
                append(file, data)
                os.kill(os.getpid(), signal.SIGKILL)
                raise AssertionError

            def compared(*tokens: Any) -> Any:  # noqa: ANN401 - as matches
                matches(*tokens)
                os.kill(os.getpid(), signal.SIGKILL)

            setattr(SealedFile, "append", die)  # noqa: B010 - mypy takes no other function for a method
            setattr(token_order, "matches", compared)  # noqa: B010 - a frozen record
        return self.task.perform()


@dataclass(frozen=True, kw_only=True)
class Killing:
    """An engine that loses a process in the middle of some tasks.

    Args:
        engine: performs them.
        folder: for the marks.
        victims: name of a class of tasks -> which of them.
    """

    engine: Engine
    folder: Path
    victims: Mapping[str, int]

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        return self.engine.perform(self._exchanged(number, task) for number, task in enumerate(tasks))

    def _exchanged(self, number: int, task: Task[Result]) -> Task[Result]:
        kind = type(task).__name__
        if self.victims.get(kind) != number:
            return task
        return KilledOnce(task=task, mark=self.folder / f"killed-{kind}")

    def close(self) -> None:
        self.engine.close()


class Twice:
    """An engine that hands each task over as bytes and performs it twice, after a first attempt that broke off."""

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        for number, task in enumerate(tasks):
            text = pickle.dumps(task)
            _broken_off(pickle.loads(text))  # noqa: S301 - of this process
            first = pickle.loads(text).perform()  # noqa: S301 - written here
            result = pickle.loads(text).perform()  # noqa: S301 - written here
            assert first == result
            yield number, result

    def close(self) -> None:
        pass


def _broken_off(task: Task[Any]) -> None:
    """Begin a task, and end it after half of the first array that it writes, or when it has compared tokens."""

    def half(file: SealedFile, data: Any) -> int:  # noqa: ANN401 - an array
        file._write(data.reshape(-1).view("u1")[: data.nbytes // 2], 0)
        raise KeyboardInterrupt

    def compared(*tokens: Any) -> Any:  # noqa: ANN401 - as matches
        matches(*tokens)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SealedFile, "append", half)
        patch.setattr(token_order, "matches", compared)
        patch.setattr("veiltab.common.storage.run_files.RunFiles.delete", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            task.perform()
