from pathlib import Path

import pytest

from tests.conftest import refuses
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.researcher.collection.strata import rate_of
from veiltab.researcher.collection.token_file import kept_tokens

ID = "ab" * 16
NUMBERS = {"north": 3, "south": 2}


def test_tokens_are_kept_and_the_same_file_gives_the_same_ones(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    made = kept_tokens(path, ID, NUMBERS)
    assert {stratum: len(batch) for stratum, batch in made.items()} == NUMBERS
    assert len({token for batch in made.values() for token in batch}) == 5
    assert path.stat().st_mode & 0o077 == 0
    assert kept_tokens(path, ID, NUMBERS) == made
    path.write_text(path.read_text("utf-8"), "utf-8-sig")
    assert kept_tokens(path, ID, NUMBERS) == made
    assert kept_tokens(tmp_path / "others.csv", ID, NUMBERS) != made


def test_a_line_holds_round_stratum_and_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.collection.token_file.new_token", lambda: bytes(range(16)))
    kept_tokens(tmp_path / "tokens.csv", ID, {"north, by the sea": 1, "south": 1})
    assert (tmp_path / "tokens.csv").read_text("utf-8") == (
        "round,stratum,token\n"
        f'{ID},"north, by the sea",000102030405060708090a0b0c0d0e0f\n'
        f"{ID},south,000102030405060708090a0b0c0d0e0f\n"
    )


@pytest.mark.parametrize("change", ["", "stratum,token\n", "stratum,token\nwest,00\n", "\x00", "north\n1\n"])
def test_another_file_is_left_alone(tmp_path: Path, change: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(change, "utf-8")
    with refuses(ConflictError, where=f"{tmp_path}/tokens.csv"):
        kept_tokens(path, ID, NUMBERS)
    assert path.read_text("utf-8") == change
    path.unlink()
    kept_tokens(path, ID, NUMBERS)
    with refuses(ConflictError, where=f"{tmp_path}/tokens.csv"):
        kept_tokens(path, ID, {"north": 4, "south": 2})


def test_tokens_of_another_round_or_twice_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    kept_tokens(path, ID, NUMBERS)
    with refuses(ConflictError, where=f"{tmp_path}/tokens.csv"):
        kept_tokens(path, "cd" * 16, NUMBERS)
    head, first, _, *rest = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([head, first, first, *rest]) + "\n", "utf-8")
    with refuses(ConflictError, where=f"{tmp_path}/tokens.csv"):
        kept_tokens(path, ID, NUMBERS)


def test_a_place_that_cannot_be_written_is_said_before_any_token_is_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InvalidInputError, match="there is no such folder"):
        kept_tokens(tmp_path / "file" / "tokens.csv", ID, NUMBERS)


@pytest.mark.parametrize("text", ["0", "-1", "1.0001", "NaN", "sNaN", "inf", "1e-999"])
def test_a_rate_is_a_probability_above_0(text: str) -> None:
    with pytest.raises((InvalidInputError, ArithmeticError)):
        rate_of(text)
