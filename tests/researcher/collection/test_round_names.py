"""A round is named by its id, or by so much of it as no other round of the researcher begins with."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.deploy.cli import veiltab
from veiltab.researcher.collection.rounds_client import Rounds

FIRST, SECOND = "ab12" + "0" * 28, "ab34" + "0" * 28


class KnownRounds(Rounds):
    """Rounds that are known without a server; records which one is closed."""

    def __init__(self) -> None:
        self.named: list[str] = []

    def __exit__(self, *_: object) -> None:
        pass

    def rounds(self) -> Sequence[str]:
        return [FIRST, SECOND]

    def close_round(self, round_id: str) -> tuple[int, bool]:
        self.named.append(round_id)
        raise NotFoundError("no server")


def test_the_beginning_of_an_id_names_its_round() -> None:
    rounds = KnownRounds()
    assert rounds.whole_id("ab1") == FIRST
    with pytest.raises(InvalidInputError, match=f"--round: 2 rounds have this prefix.*{FIRST}, {SECOND}"):
        rounds.whole_id("ab")
    with pytest.raises(NotFoundError, match="--round: no such round"):
        rounds.whole_id("cd")


def test_a_whole_id_is_taken_as_it_is_and_the_server_says_whose_it_is() -> None:
    assert KnownRounds().whole_id("cd" * 16) == "cd" * 16


def test_a_command_acts_on_the_round_that_a_prefix_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rounds = KnownRounds()
    monkeypatch.setattr("veiltab.researcher.collection.rounds_client.Rounds", lambda *_, **__: nullcontext(rounds))
    words = ["collect", "close", "study.toml", "--identity", str(tmp_path), "--round", "ab3"]
    CliRunner().invoke(veiltab, words)
    assert rounds.named == [SECOND]
