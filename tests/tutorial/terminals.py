"""A reader at several terminals, who types what a page says and waits as a person would."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.tutorial.reading import blocks
from veiltab.common.errors import NotReadyError

_ENTERS = b"\n" * 100
_PATIENCE = 300.0
"""Seconds after which something that should have come is not coming."""

_SERVES = re.compile(r"serves on port|http://127\.0\.0\.1")
_DECIDES = re.compile(r"curator ([a-z]+): a person decides")
_RELEASE = re.compile(r"^release ([0-9a-f]{32})", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """A command that goes on while others are typed."""

    command: str
    process: subprocess.Popen[bytes]
    screen: Path

    @property
    def text(self) -> str:
        return self.screen.read_text()

    def wait_until(self, is_there: Callable[[str], object]) -> None:
        """Wait until what is printed has something."""
        end = time.monotonic() + _PATIENCE
        while not is_there(self.text):
            assert self.process.poll() is None, f"{self.command}\nended:\n{self.text}"
            assert time.monotonic() < end, f"{self.command}\nprinted only:\n{self.text}"
            time.sleep(0.05)

    def join(self) -> None:
        """Wait for the end of a command that ends by itself."""
        code = self.process.wait(_PATIENCE)
        assert code == 0, f"{self.command}\nended with {code}:\n{self.text}"


@dataclass(kw_only=True)
class Reader:
    """Somebody who follows pages.

    Args:
        folder: where the terminals are opened.
        instead: words of the pages, and what this reader types instead of each.
        answers: what this reader types at the questions of a draft, by the curator's name, before pressing Enter.
        typed: how many commands of veiltab were typed.
    """

    folder: Path
    instead: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)
    typed: int = field(default=0)
    _services: list[Terminal] = field(default_factory=list)
    _waiting: Terminal | None = field(default=None)
    _release_id: str = field(default="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        terminals = [*self._services, *([self._waiting] if self._waiting else [])]
        for terminal in terminals:
            terminal.process.terminate()
        for terminal in terminals:
            terminal.process.wait(_PATIENCE)

    def follow(self, text: str) -> list[str]:
        """Type what a text says; return what each command prints, or has printed when a person would type the next."""
        screens = []
        for block in blocks(text):
            for command in block.commands if block.language != "console" else ():
                self.typed += command.startswith("veiltab ")
                line = self._in_own_words(command)
                if line.startswith("cd "):
                    self.folder /= line.removeprefix("cd ")
                elif block.language == "python":
                    screens.append(self._run([sys.executable, "-c", line]))
                else:
                    screens.append(self._type(line))
        return screens

    def _in_own_words(self, command: str) -> str:
        words = {**self.instead, "RELEASE_ID": self._release_id}
        anywhere = "|".join(map(re.escape, words))
        return re.sub(rf"(?<!\w)({anywhere})(?!\w)", lambda match: words[match[0]], command)

    def _type(self, line: str) -> str:
        match line.split():
            case ["veiltab", _, "serve" | "console", *_]:
                service = self._open(line)
                self._services.append(service)
                service.wait_until(_SERVES.search)
                return service.text
            case ["veiltab", "researcher", "request", *options] if "--wait" in options:
                self._waiting = self._open(line)
                self._waiting.wait_until(lambda text: len(set(_DECIDES.findall(text))) == 2)
                return self._waiting.text
            case ["veiltab", "researcher", "request", *_]:
                screen = self._run(line)
                self._release_id = _RELEASE.findall(screen)[0]
                return screen
            case ["veiltab", "study", "draft", "--name", name, *_]:
                return self._run(line, self.answers.get(name, ""))
            case ["veiltab", "curator", "requests" | "linkage" as what, *_]:
                return self._look_until(line, self._release_id if what == "requests" else "rows are linked")
            case ["veiltab", "researcher", *_] if self._waiting:
                self._waiting.join()
                self._waiting = None
        return self._run(line)

    def _look_until(self, line: str, text: str) -> str:
        """Repeat a command until it shows something."""
        end = time.monotonic() + _PATIENCE
        while text not in (screen := self._run(line, codes=(0, NotReadyError.exit_code))):
            assert time.monotonic() < end, f"{line}\nprints only:\n{screen}"
        return screen

    def _open(self, line: str) -> Terminal:
        """Run a command in a terminal of its own."""
        screen = self.folder / f"terminal-{self.typed}.txt"
        with screen.open("wb") as file:
            process = subprocess.Popen(  # noqa: S602 - a page's line is the shell's
                f"exec {line}", shell=True, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        return Terminal(command=line, process=process, screen=screen)

    def _run(self, line: str | list[str], answers: str = "", codes: Sequence[int] = (0,)) -> str:
        """Run a command until it ends with one of some exit codes.

        Types the answers at its first questions, and presses Enter at the others.
        """
        keyboard, terminal = os.openpty()
        try:
            os.write(keyboard, answers.encode() + _ENTERS)
            done = subprocess.run(
                line,
                shell=isinstance(line, str),
                cwd=self.folder,
                stdin=terminal,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        finally:
            os.close(terminal)
            os.close(keyboard)
        assert done.returncode in codes, f"{line}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout
