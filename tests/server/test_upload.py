import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.common.errors import IntegrityError, InvalidInputError, VeiltabError
from veiltab.server.release.upload import ColumnUpload

COLUMN = bytes(range(7, 107))
DIGEST = hashlib.sha256(COLUMN).digest()


def upload(path: Path, *chunks: tuple[int, bytes], column: bytes = COLUMN, digest: bytes | None = None) -> bool:
    """Send chunks in one stream; say whether the column is whole."""
    receiver = ColumnUpload(path, len(column))
    try:
        for offset, data in chunks:
            receiver.write(offset, data)
        return receiver.finish(digest or hashlib.sha256(column).digest())
    finally:
        receiver.close()


def received_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "release" / "ciphertext" / "sex"


def test_a_column_in_one_chunk_or_many(path: Path) -> None:
    assert upload(path, (0, COLUMN))
    assert path.read_bytes() == COLUMN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other = path.with_name("age")
    assert upload(other, *((start, COLUMN[start : start + 9]) for start in range(0, 100, 9)))
    assert other.read_bytes() == COLUMN


def test_the_same_bytes_are_not_taken_again_and_again(path: Path) -> None:
    half, rest = (0, COLUMN[:50]), (50, COLUMN[50:])
    assert upload(path, half, half, half, rest)
    path.unlink()
    with pytest.raises(InvalidInputError, match="again and again"):
        upload(path, *[half] * 5)
    assert received_bytes(path) == 50
    assert upload(path, rest)


def test_what_is_acknowledged_is_durable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int | str] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        fsync(descriptor)
        whole = os.fstat(descriptor)
        synced.append("folder" if stat.S_ISDIR(whole.st_mode) else whole.st_size)

    monkeypatch.setattr("veiltab.server.release.upload.os.fsync", recorded)
    assert not upload(path, (0, COLUMN[:60]))
    assert upload(path, (60, COLUMN[60:]))
    assert synced == ["folder", "folder", 60, 100]


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def test_any_flipped_byte_is_found_and_the_column_may_be_sent_again(path: Path) -> None:
    for place in range(len(COLUMN)):
        with pytest.raises(IntegrityError, match=r"does not have its digest.*Send it again"):
            upload(path, (0, flipped(COLUMN, place)[:50]), (50, flipped(COLUMN, place)[50:]))
        assert received_bytes(path) == 0
    assert upload(path, (0, COLUMN))


def test_gaps_and_excess_are_refused(path: Path) -> None:
    for offset in (1, 50, 99, 10**12):
        with pytest.raises(InvalidInputError, match=f"at byte {offset} leaves a gap after byte 0"):
            upload(path, (offset, COLUMN[:1]))
    for chunks in ([(0, COLUMN + b"x")], [(0, COLUMN), (100, b"x")], [(0, COLUMN[:99]), (99, b"xy")]):
        with pytest.raises(InvalidInputError, match="the column has 100 bytes, and more came"):
            upload(path, *chunks)
    assert path.read_bytes() == COLUMN


CHUNKS = st.lists(
    st.tuples(
        st.integers(0, 29), st.integers(1, 30), st.sampled_from([0, 0, 0, 0, -1, 1, 5]), st.sampled_from([0, 0, 0, 1])
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=100)
@given(column=st.binary(min_size=1, max_size=30), chunks=CHUNKS, resent=st.booleans())
def test_any_sequence_of_chunks_gives_the_column_or_a_refusal(
    column: bytes,
    chunks: list[tuple[int, int, int, int]],
    resent: bool,  # noqa: FBT001 - drawn
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A chunk is (first byte, length, error of its offset, whether a byte is flipped); `held` is what must be held."""
    path = tmp_path_factory.mktemp("upload") / "column"
    held = b""
    for first, length, shift, flip in [*chunks, (0, len(column), 0, 0)] if resent else chunks:
        data = column[first : first + length]
        if not data:
            continue
        data, offset = flipped(data, length % len(data)) if flip else data, max(0, first + shift)
        end = offset + len(data)
        fits = offset <= len(held) and end <= len(column) and data[: len(held) - offset] == held[offset:end]
        after = held + data[len(held) - offset :] if fits else held
        try:
            complete = upload(path, (offset, data), column=column)
        except IntegrityError:
            assert fits
            assert len(after) == len(column)
            assert after != column
            assert not path.exists()
            held = b""
        except VeiltabError:
            assert not fits
            assert received_bytes(path) == len(held)
        else:
            assert fits
            held = after
            assert path.read_bytes() == held
            assert complete is (held == column)
