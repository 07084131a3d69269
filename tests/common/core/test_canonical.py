import json
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.core.texts.canonical import KeptRecord, canonical_json, canonical_text, read_canonical


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Part(KeptRecord):
    name: str
    weight: Decimal


@dataclass(frozen=True, kw_only=True)
class Whole:
    number: int
    flag: bool
    colour: Colour
    parts: tuple[Part, ...] = ()
    share: Decimal | None = None
    other: Colour | None = None


@dataclass(frozen=True, kw_only=True)
class Later(Whole):
    """What a later version knows: one optional field more."""

    contact: str | None = None


@dataclass(frozen=True, kw_only=True)
class Loose:
    value: Any


@dataclass(frozen=True, kw_only=True)
class Rough:
    value: float


_wholes = st.builds(Whole, parts=st.lists(st.builds(Part, weight=st.decimals(allow_nan=False)), max_size=3).map(tuple))


def test_keys_are_sorted_and_what_is_not_given_is_left_out() -> None:
    parts = (Part(name='"é"', weight=Decimal("0.10")), Part(name="", weight=Decimal("1E+2")))
    whole = Whole(number=2**64, flag=False, colour=Colour.BLUE, parts=parts)
    text = (
        '{"colour":"blue","flag":false,"number":18446744073709551616,'
        '"parts":[{"name":"\\"\\u00e9\\"","weight":"0.10"},{"name":"","weight":"1E+2"}]}'
    )
    assert canonical_text(whole) == text
    assert canonical_text(whole, without=frozenset({"parts", "number"})) == '{"colour":"blue","flag":false}'
    assert read_canonical(Whole, text) == whole


@given(whole=_wholes, share=st.none() | st.decimals(allow_nan=False), other=st.none() | st.sampled_from(Colour))
def test_a_record_is_read_back_as_it_was(whole: Whole, share: Decimal | None, other: Colour | None) -> None:
    record = replace(whole, share=share, other=other)
    back = read_canonical(Whole, canonical_text(record))
    assert back == record
    assert canonical_text(back) == canonical_text(record) == canonical_json(json.loads(canonical_text(record)))
    assert (back.share is None, type(back.flag)) == (share is None, bool)


def test_a_record_whose_text_is_kept_is_read_back_itself_and_many_are_not() -> None:
    records = [Part(name=str(number), weight=Decimal("0.10")) for number in range(513)]
    texts = [record.text for record in records]
    assert all(read_canonical(Part, text) is record for text, record in zip(texts[1:], records[1:], strict=True))
    whole = Whole(number=1, flag=True, colour=Colour.RED, parts=(records[-1],))
    assert read_canonical(Whole, canonical_text(whole)).parts[0] is records[-1]
    back = read_canonical(Part, texts[0])
    assert back == records[0]
    assert back is not records[0]


def test_a_new_optional_field_changes_no_text_that_lacks_it() -> None:
    before = Whole(number=1, flag=True, colour=Colour.RED)
    after = Later(number=1, flag=True, colour=Colour.RED)
    assert canonical_text(after) == canonical_text(before)
    assert read_canonical(Later, canonical_text(before)) == after
    given_one = Later(number=1, flag=True, colour=Colour.RED, contact="")
    assert canonical_text(given_one) != canonical_text(before)


@pytest.mark.parametrize("value", [0.5, b"", [1], {"a": 1}, {1}, (None,)])
def test_what_has_no_canonical_text_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="has no canonical text"):
        canonical_text(Loose(value=value))


def test_another_record_s_text_is_refused() -> None:
    with pytest.raises(KeyError):
        read_canonical(Part, '{"name":"a","weight":"1","height":"2"}')
    with pytest.raises(TypeError):
        read_canonical(Part, '{"name":"a"}')
    with pytest.raises(ValueError, match="green"):
        read_canonical(Whole, '{"colour":"green","flag":true,"number":1}')
    with pytest.raises(TypeError, match="has no canonical text"):
        read_canonical(Rough, '{"value":0.5}')
