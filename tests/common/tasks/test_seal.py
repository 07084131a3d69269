from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError, NotFoundError, TransferError
from veiltab.common.tasks.seal import Seal, new_key, new_run, read_key

KEY = bytes(range(32))
SEAL = Seal(key=KEY, run="a")
NUMBERS = st.integers(0, 2**63)


@given(st.binary(), NUMBERS)
def test_what_was_sealed_is_opened(text: bytes, number: int) -> None:
    assert SEAL.open("task", number, SEAL.seal("task", number, text)) == text


def test_it_shows_its_length_and_nothing_else() -> None:
    text = b"the secret of nobody" * 50
    sealed = SEAL.seal("task", 1, text)
    assert len(sealed) == len(text) + 28
    assert b"secret" not in sealed
    assert SEAL.seal("task", 1, text) != sealed


def test_a_key_is_not_shown() -> None:
    assert repr(KEY) not in repr(SEAL)


@pytest.mark.parametrize(
    ("seal", "kind", "number"),
    [
        (Seal(key=KEY, run="b"), "task", 7),
        (Seal(key=bytes(32), run="a"), "task", 7),
        (SEAL, "outcome", 7),
        (SEAL, "task", 8),
    ],
    ids=["other run", "other key", "other kind", "other number"],
)
def test_what_belongs_elsewhere_is_refused(seal: Seal, kind: str, number: int) -> None:
    sealed = SEAL.seal("task", 7, b"text")
    with pytest.raises(TransferError):
        seal.open(kind, number, sealed)  # type: ignore[arg-type]


@given(st.integers(0, 31), st.integers(1, 255))
def test_an_altered_byte_is_refused(place: int, change: int) -> None:
    sealed = bytearray(SEAL.seal("task", 7, b"text"))
    sealed[place] ^= change
    with pytest.raises(TransferError):
        SEAL.open("task", 7, bytes(sealed))


@given(st.integers(0, 31))
def test_what_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(TransferError):
        SEAL.open("task", 7, SEAL.seal("task", 7, b"text")[:length])


def test_runs_and_keys_are_new() -> None:
    assert len({new_run() for _ in range(100)} | {new_key() for _ in range(100)}) == 200


def test_a_key_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tasks.key"
    path.write_text(new_key() + "\n")
    path.chmod(0o600)
    assert read_key(path).hex() == path.read_text().strip()


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "0g" * 32, "é" * 32])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InvalidInputError, match="no key of tasks"):
        read_key(path)


def test_a_key_that_is_not_there_is_said(tmp_path: Path) -> None:
    with refuses(NotFoundError, where=f"{tmp_path}/tasks.key") as caught:
        read_key(tmp_path / "tasks.key")
    assert "pki init --cluster" in caught.value.remedy
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_key(tmp_path)
