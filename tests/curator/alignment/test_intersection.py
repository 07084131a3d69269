import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import refuses
from tests.curator.made_rows import types_of
from veiltab.common.core.domain import PARTS, POSITION, Symbols, symbol_dtype
from veiltab.common.errors import IntegrityError
from veiltab.curator.alignment.intersection import (
    AlignedTable,
    HubRows,
    Lacking,
    PopulationDigest,
    Tokens,
    alignment_id,
    matches,
    sorted_order,
)


def present_rows(some: Iterable[Tokens], others: Iterable[Tokens]) -> list[int]:
    """Return the places of some tokens that are among others."""
    pieces = [[*some], [*others]]
    here, there = (np.concatenate([np.empty(0, np.bool_), *masks]) for masks in matches(*pieces))
    mine, theirs = (np.concatenate([np.empty((0, 16), np.uint8), *side]) for side in pieces)
    assert mine[here].tobytes() == theirs[there].tobytes()
    rows: list[int] = np.flatnonzero(here).tolist()
    return rows


def array(tokens: list[bytes]) -> Tokens:
    return np.frombuffer(b"".join(tokens), np.uint8).reshape(-1, 16)


# Few different halves, so that tokens often share their first or last 64 bits.
_HALVES = st.sampled_from([bytes(8), b"\0" * 7 + b"\1", b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7), b"\xff" * 8])
TOKENS = st.builds(bytes.__add__, _HALVES, _HALVES | st.binary(min_size=8, max_size=8)) | st.binary(
    min_size=16, max_size=16
)


@settings(deadline=None, max_examples=80)
@given(own=st.sets(TOKENS, max_size=30), others=st.sets(TOKENS, max_size=30), data=st.data())
def test_what_is_present_is_the_intersection_of_sets(own: set[bytes], others: set[bytes], data: st.DataObject) -> None:
    mine = sorted(own)
    theirs = sorted(others | (set(data.draw(st.lists(st.sampled_from(mine)))) if mine else set()))
    cuts = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 7)))
    pieces, tokens = (
        [array(some[start : start + cut]) for start in range(0, len(some), cut)]
        for some, cut in zip((mine, theirs), cuts, strict=True)
    )
    assert [mine[row] for row in present_rows(pieces, tokens)] == sorted(own & set(theirs))


def test_tokens_that_differ_in_one_bit_are_told_apart() -> None:
    """In the last bit of the first 64 too, which is no part of the words that are compared first."""
    one, last = bytes(range(16)), b"\xff" * 16
    for bit in range(128):
        other = (int.from_bytes(one, "big") ^ 1 << bit).to_bytes(16, "big")
        # Those around them let the two be compared at all.
        theirs = array([bytes(16), other, last[1:] + b"\xfe"])
        assert not present_rows([array([one, last])], [theirs])
    assert present_rows([array([one])], [array([one])]) == [0]


def test_no_tokens_and_no_others() -> None:
    one, none = array([bytes(16)]), array([])
    for own, others, found in (
        ([], [one], []),
        ([none], [one], []),
        ([none, one, none], [none, one, none], [0]),
        ([one], [], []),
    ):
        assert present_rows(own, others) == found


ASCENDING = sorted(bytes([number * 37 % 256]) + bytes(range(15)) for number in range(20))


@pytest.mark.parametrize("length", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("place", [0, 5, 18])
def test_tokens_out_of_order_or_twice_are_refused(length: int, place: int) -> None:
    swapped = list(ASCENDING)
    swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
    twice = [*ASCENDING[: place + 1], *ASCENDING[place:]]
    for wrong in (swapped, twice):
        pieces = [array(wrong[start : start + length]) for start in range(0, len(wrong), length)]
        with refuses(IntegrityError, where="hub"):
            present_rows([array(ASCENDING)], pieces)
        with refuses(IntegrityError, where="hub"):
            present_rows([], pieces)


def test_order_is_that_of_all_128_bits() -> None:
    high = b"\x80" + bytes(7)
    right = [high + b"\x7f" + bytes(7), high + b"\x80" + bytes(7)]
    for pieces in ([array(right)], [array(right[:1]), array(right[1:])]):
        present_rows([array(right)], pieces)
    for pieces in ([array(right[::-1])], [array(right[1:]), array(right[:1])]):
        with pytest.raises(IntegrityError):
            present_rows([array(right)], pieces)


@settings(deadline=None, max_examples=60)
@given(tokens=st.sets(TOKENS, max_size=40), data=st.data())
def test_sorting_is_that_of_bytes(tokens: set[bytes], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(sorted(tokens)))
    order = sorted_order(array(shuffled))
    assert [shuffled[row] for row in order] == sorted(tokens)


def test_many_tokens_are_sorted_across_pieces() -> None:
    tokens = np.random.default_rng(6).integers(0, 256, (2**16 + 300, 16), dtype=np.uint8)
    tokens[::100, :8] = 200  # some share 64 bits
    rows = [row.tobytes() for row in tokens]
    order = sorted_order(tokens)
    assert [rows[row] for row in order] == sorted(rows)
    whole = np.ascontiguousarray(tokens[order])
    theirs = [whole[:10], whole[10 : 2**16 + 5 : 3], whole[2**16 + 100 :]]
    expected = [*range(10), *range(10, 2**16 + 5, 3), *range(2**16 + 100, len(whole))]
    assert present_rows([whole[:20], whole[20 : 2**16], whole[2**16 :]], theirs) == expected


def test_the_name_of_an_alignment_tells_versions_apart() -> None:
    names = {
        alignment_id({"alice": "1", "bob": "2"}),
        alignment_id({"alice": "2", "bob": "1"}),
        alignment_id({"alice": "1", "bob": "2", "carol": "3"}),
        alignment_id({"alice": "1"}),
    }
    assert len(names) == 4
    assert alignment_id({"bob": "2", "alice": "1"}) in names
    assert all(len(name) == 32 and name.isalnum() for name in names)


def population_digest(tokens: Tokens, key: bytes, *, pieces: int = 1) -> str:
    digest = PopulationDigest(key)
    assert sum(len(piece) for piece, _ in digest.of((piece, {}) for piece in np.array_split(tokens, pieces))) == len(
        tokens
    )
    return str(digest)


def test_known_answers() -> None:
    """Curators compare these: a change would part curators of different versions."""
    assert alignment_id({"alice": "1" * 32, "bob": "2" * 32}) == "9e4f3ed560187a22171e07b6ce4966e2"
    tokens = array([bytes([number]) * 16 for number in range(3)])
    assert population_digest(tokens, bytes(range(32))) == "27976bf4919cbb7c7ca9875edf1bd356"


@pytest.mark.parametrize("has_links", [True, False])
def test_an_aligned_table_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool) -> None:
    if not has_links:
        monkeypatch.setattr("pathlib.Path.hardlink_to", Mock(side_effect=OSError))
    table = AlignedTable(tmp_path / "aligned")
    tokens, column = array(ASCENDING), np.arange(20, dtype="<u2")
    columns: dict[str, Symbols] = {"sex": column, "age": np.arange(20, dtype=np.uint8)}
    pieces = [
        (tokens[part], {name: symbols[part] for name, symbols in columns.items()})
        for part in (slice(0, 7), slice(7, 20))
    ]
    own = tmp_path / "own"
    own.write_bytes(tokens.tobytes())
    assert table.write(pieces, types_of(columns), own) == 20
    own.unlink()
    assert np.array_equal(table.tokens(), tokens)
    assert np.array_equal(table.column("sex"), column)
    assert table.column("sex").dtype == np.dtype("<u2")
    assert not any(path.name.endswith(".tmp") for path in table.folder.iterdir())
    for name, symbols in columns.items():
        written = io.BytesIO()
        np.save(written, symbols)
        assert (table.folder / f"column-{name}.npy").read_bytes() == written.getvalue()


def test_a_table_that_breaks_off_is_not_written(tmp_path: Path) -> None:
    def broken() -> Iterator[HubRows]:
        yield array(ASCENDING), {"sex": np.zeros(20, np.uint8)}
        raise IntegrityError("tokens are not in ascending order")

    table = AlignedTable(tmp_path / "aligned")
    with pytest.raises(IntegrityError):
        table.write(broken(), {"sex": np.dtype(np.uint8)}, tmp_path / "own")
    assert not any(table.folder.iterdir())


def test_the_digest_of_the_population_is_keyed_and_covers_every_token() -> None:
    many = np.random.default_rng(5).integers(0, 256, (65_537, 16), dtype=np.uint8)
    digest = population_digest(many, bytes(32))
    assert len(digest) == 32
    assert population_digest(many, bytes(32), pieces=3) == digest
    assert population_digest(many, b"\1" * 32) != digest
    for row in (0, 65_535, 65_536):
        other = many.copy()
        other[row, 15] ^= 1
        assert population_digest(other, bytes(32)) != digest
    assert population_digest(many[:-1], bytes(32)) != digest


@pytest.mark.parametrize("categories", [1, 255, 65_535])
@pytest.mark.parametrize("parts", [1, PARTS])
def test_absent_is_the_category_after_those_of_the_coding(categories: int, parts: int) -> None:
    type_ = symbol_dtype(categories + 1) if parts == 1 else POSITION
    values = Lacking(categories=categories, parts=parts).values(np.zeros((9, 16), np.uint8), type_)
    assert (values.dtype, values.tolist()) == (type_, [categories * parts] * 9)


@pytest.mark.parametrize("categories", [1, 3, 256])
@pytest.mark.parametrize("parts", [1, PARTS])
def test_a_complete_table_has_a_random_category_in_place_of_absent(categories: int, parts: int) -> None:
    type_ = symbol_dtype(categories) if parts == 1 else POSITION
    rows = np.random.default_rng(5).integers(0, 256, (40 * categories, 16), np.uint8)
    lacking = Lacking(categories=categories, parts=parts, key=bytes(32))
    values = lacking.values(rows, type_)
    assert values.dtype == type_
    assert np.array_equal(lacking.values(rows[7:], type_), values[7:])  # the same again, in any pieces
    other = Lacking(categories=categories, parts=parts, key=bytes([1] * 32)).values(rows, type_)
    assert categories == 1 or not np.array_equal(other, values)
    # A category of 256 stays away with probability below 256 e^-40.
    assert set(values.tolist()) == {category * parts for category in range(categories)}
