"""A reader at several terminals, who types what a page says and waits as a person would."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_ENTERS = b"\n" * 100
_PATIENCE = 120.0
"""Seconds after which something that should have come is not coming."""

_SERVES = re.compile(r"serves on port|http://127\.0\.0\.1")
_DECIDES = re.compile(r"curator ([a-z]+): a person decides")
_RELEASE = re.compile(r"^release ([0-9a-f]{32})", re.MULTILINE)


@dataclass(kw_only=True)
class Terminal:
    """A command that goes on while others are typed."""

    command: str
    process: subprocess.Popen[bytes]
    screen: Path

    @property
    def text(self) -> str:
        """What it has printed."""
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
    """Somebody who follows a page.

    Args:
        folder: where the terminals are opened.
        instead: words of the page, and what this reader types instead of each.
    """

    folder: Path
    instead: Mapping[str, str]
    typed: int = field(default=0)
    services: list[Terminal] = field(default_factory=list)
    waiting: Terminal | None = field(default=None)
    release_id: str = field(default="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in [*self.services, *([self.waiting] if self.waiting else [])]:
            terminal.process.terminate()
        for terminal in self.services:
            terminal.process.wait(_PATIENCE)

    def type(self, command: str) -> str:
        """Type a command; return what it prints, or what it has printed once a person would type the next one."""
        self.typed += command.startswith("veiltab ")
        words = {**self.instead, "RELEASE_ID": self.release_id}
        line = re.sub(
            "|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in words), lambda m: words[m[0]], command
        )
        match line.split():
            case ["cd", folder]:
                self.folder /= folder
                return ""
            case ["veiltab", _, "serve" | "console", *_]:
                self.services.append(self._open(line))
                self.services[-1].wait_until(_SERVES.search)
                return self.services[-1].text
            case ["veiltab", "researcher", "request", *_]:
                self.waiting = self._open(line)
                self.waiting.wait_until(lambda text: len(set(_DECIDES.findall(text))) == 2)
                self.release_id = _RELEASE.findall(self.waiting.text)[0]
                return self.waiting.text
            case ["veiltab", "researcher", *_] if self.waiting:
                self.waiting.join()
                self.waiting = None
        return self._run(line)

    def _open(self, line: str) -> Terminal:
        screen = self.folder / f"terminal-{self.typed}.txt"
        with screen.open("wb") as file:
            process = subprocess.Popen(  # noqa: S602 - the line is the page's
                f"exec {line}", shell=True, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        return Terminal(command=line, process=process, screen=screen)

    def _run(self, line: str) -> str:
        """Run a command at a terminal, and press Enter at every question."""
        keyboard, terminal = os.openpty()
        try:
            os.write(keyboard, _ENTERS)
            done = subprocess.run(  # noqa: S602 - the line is the page's
                line,
                shell=True,
                cwd=self.folder,
                stdin=terminal,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        finally:
            os.close(terminal)
            os.close(keyboard)
        assert done.returncode == 0, f"{line}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout
