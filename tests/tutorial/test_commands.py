"""Every command that any page shows is one of veiltab, with options that it has and those that it needs."""

import re
import shlex
from pathlib import Path

import click
import pytest

from tests.tutorial.reading import blocks
from veiltab.deploy.cli import veiltab

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
    ROOT / "papers/README.md",
    ROOT / "CONTRIBUTING.md",
]

_COMMAND = re.compile(r"(?:^|&& |(exec) [\w-]+ )(?:\.venv/bin/)?veiltab (.*)", re.DOTALL)


def shown(page: Path) -> list[tuple[str, bool]]:
    """Return what follows `veiltab` in the commands of a page, but for those that are not written out.

    With each: whether it runs in a container, whose environment names identity and state.
    """
    typed = [command for block in blocks(page.read_text()) if block.language != "python" for command in block.commands]
    found = [match for match in map(_COMMAND.search, typed) if match]
    return [(match[2].replace("\\\n", " "), bool(match[1])) for match in found if " ... " not in match[2]]


def read(words: list[str]) -> None:
    """Read a command line as veiltab does, without running it."""
    command: click.Command | None = veiltab
    name: str | None = "veiltab"
    context: click.Context | None = None
    while command is not None:
        context = command.make_context(name, words, parent=context)
        if not isinstance(command, click.Group):
            return
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_one_of_veiltab(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("party.toml").write_text(
        'study = "study.toml"\nname = "alice"\nidentity = "pki"\nstate = "s"\ntable = "a.csv"\n'
    )
    for command, is_in_container in shown(page):
        for name in ("VEILTAB_IDENTITY", "VEILTAB_STATE"):
            monkeypatch.setenv(name, "folder") if is_in_container else monkeypatch.delenv(name, raising=False)
        try:
            read(shlex.split(command, comments=True))
        except click.UsageError as error:
            pytest.fail(f"veiltab {command}\n{error.format_message()}")


def test_a_wrong_command_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        read(["curator", "request", "study.toml"])
    with pytest.raises(click.UsageError):
        read(["pki", "init", "study.toml", "--into", "pki"])
    with pytest.raises(click.UsageError):
        read(["pki", "init"])
