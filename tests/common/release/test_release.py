import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.common.release.other import GOES_WITH, OTHER_REQUEST, OTHER_SPEC
from tests.conftest import refuses, request_with, spec_with
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.release.guarantees import (
    check_keeps_what_was_asked,
    epsilon_card,
    guaranteed_epsilon,
    release_facts,
)
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.limits import MAX_CELLS


@pytest.mark.parametrize("kind", [ReleaseRequest, TableSpec, ReleaseSpec])
def test_what_is_described_is_a_field_in_its_place(kind: type[Any]) -> None:
    text = "".join(
        (each.__doc__ or "").partition("Args:")[2].partition("Raises:")[0] for each in reversed(kind.__mro__[:-1])
    )
    described = [line.split(":")[0].strip() for line in text.splitlines() if ": " in line]
    assert described == [field.name for field in fields(kind) if field.name in described]


def test_the_states_that_are_over() -> None:
    assert {s.value for s in ReleaseState if s.finished} == {"ready", "expired", "denied", "failed"}
    assert {s.value for s in ReleaseState if s.unsuccessful} == {"expired", "denied", "failed"}
    assert [s.value for s in ReleaseState][:7] == [
        "requested",
        "approved",
        "planned",
        "charged",
        "uploading",
        "perturbing",
        "ready",
    ]


def test_the_facts_state_how_much_is_replaced_on_each_side_and_together() -> None:
    facts = release_facts(spec_with(server_replacement=2**62, curator_replacement=2**63))
    assert [facts[f"{side}replacement_probability"] for side in ("server_", "curator_", "")] == [0.25, 0.5, 0.625]


def test_a_column_counts_its_bytes() -> None:
    assert Column(attribute="a", owner="b", size=256).byte_length(7) == 7
    assert Column(attribute="a", owner="b", size=257).byte_length(7) == 14


@pytest.mark.parametrize("attribute", ["", "..", "../x", "a/b", "A", "a b", "a\n", "-a", "a" * 41])
def test_a_column_is_not_named_like_a_path(attribute: str) -> None:
    with pytest.raises(InvalidInputError, match="is not an attribute name"):
        Column(attribute=attribute, owner="alice", size=2)
    with pytest.raises(InvalidInputError, match="is not a name"):
        Column(attribute="a", owner=attribute, size=2)


@pytest.mark.parametrize("size", [0, -1, 65_537])
def test_a_column_has_an_alphabet_that_fits_two_bytes(size: int) -> None:
    with pytest.raises(InvalidInputError, match="categories"):
        Column(attribute="a", owner="alice", size=size)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"release_id": "f" * 31}, "32 hexadecimal digits"),
        ({"release_id": "F" * 32}, "32 hexadecimal digits"),
        ({"release_id": "f" * 32 + "\n"}, "32 hexadecimal digits"),
        ({"study_digest": ""}, "digest"),
        ({"study_digest": "f" * 63 + "g"}, "digest"),
        ({"alignment": "f" * 64}, "digest"),
        ({"researcher": ""}, "is not a name"),
        ({"researcher": "../rosa"}, "is not a name"),
        ({"scheme": "srs"}, "'srs' is not known"),
        ({"scheme": "wr", "delta": Decimal("1e-6")}, "certified for wor and poisson"),
        ({"scheme": "wr", "sampling": Sampling.SERVER}, "drawn from a seed"),
        ({"scheme": "must.ow"}, "first stage"),
        ({"delta": Decimal(0)}, "delta"),
        ({"columns": (), "server_replacement": 2**64}, "cells, not 2 to"),
        ({"columns": (Column(attribute="a", owner="b", size=1),), "server_replacement": 2**64}, "cells, not 2 to"),
        ({"columns": (Column(attribute="a", owner="b", size=2),) * 2}, "listed twice"),
        ({"epsilon": Decimal(0), "server_replacement": 2**64}, "epsilon"),
        ({"epsilon": Decimal(-1), "server_replacement": 2**64}, "epsilon"),
        ({"epsilon": Decimal("100.1"), "server_replacement": 2**64}, "epsilon"),
        ({"epsilon": Decimal("NaN"), "server_replacement": 2**64}, "epsilon"),
        ({"epsilon": Decimal("Infinity"), "server_replacement": 2**64}, "epsilon"),
        ({"population": 0, "server_replacement": 2**64}, "must be at least 1"),
        ({"sample": 0, "server_replacement": 2**64}, "must be at least 1"),
        ({"sample": 1001, "server_replacement": 2**64}, "rows, not 1001"),
        ({"server_replacement": 0}, "replacement"),
        ({"server_replacement": 2**64 + 1}, "replacement"),
    ],
)
def test_a_malformed_spec_is_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        spec_with(**changes)


def test_the_largest_table() -> None:
    def sized(size: int) -> tuple[Column, ...]:
        return (Column(attribute="a", owner="b", size=2**11), Column(attribute="c", owner="b", size=size))

    whole = spec_with(columns=sized(2**11), population=10, sample=10, server_replacement=2**64)
    assert whole.cells == MAX_CELLS
    with refuses(InvalidInputError, where="cells"):
        replace(whole, columns=sized(2**11 + 1))


def test_every_field_of_a_spec_is_in_its_digest() -> None:
    spec = spec_with()
    assert set(OTHER_SPEC) == {field.name for field in fields(TableSpec)}
    others = [replace(spec, **{name: value}) for name, value in OTHER_SPEC.items() if value is not None]
    owner = replace(spec.columns[0], owner="bob")
    size = replace(spec.columns[0], size=3)
    more = [
        replace(spec, columns=spec.columns[::-1]),
        replace(spec, columns=(owner, spec.columns[1])),
        replace(spec, columns=(size, spec.columns[1]), server_replacement=2**64),
        replace(spec, server_replacement=2**64),
        replace(spec, scheme="must.ow", stage=500, server_replacement=2**64),
        replace(spec, scheme="must.ow", stage=501, server_replacement=2**64),
        replace(spec, epsilon=Decimal("0.10")),
    ]
    assert len({one.digest() for one in (spec, *others, *more)}) == 1 + len(others) + len(more)


def test_the_canonical_text_of_a_spec_does_not_change() -> None:
    spec = spec_with(study_digest="0" * 64, server_replacement=2**64)
    text = (
        '{"alignment":"abababababababababababababababab","canaries":0,"columns":'
        '[{"attribute":"sex","owner":"alice","size":2},{"attribute":"salary","owner":"bob","size":2}],'
        '"curator_replacement":0,"deadline":2000000000,"epsilon":"0.1","pad":"chacha20",'
        '"part_of":"","population":1000,"release_id":"00000000000000000000000000000001",'
        '"researcher":"rosa","sample":400,"sampling":"seed","scheme":"wor","server_replacement":18446744073709551616,'
        '"study_digest":"0000000000000000000000000000000000000000000000000000000000000000"}'
    )
    assert spec.to_json() == text
    assert spec.digest() == hashlib.sha256(text.encode()).digest()


@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_spec_is_read_back_as_it_was(any_spec: SearchStrategy[TableSpec], data: st.DataObject) -> None:
    spec = data.draw(any_spec)
    assert TableSpec.from_json(spec.to_json()) == spec
    assert TableSpec.from_json(json.dumps(json.loads(spec.to_json()))).digest() == spec.digest()


@pytest.mark.parametrize("delta", [None, Decimal("1e-6")])
def test_a_spec_is_read_back_without_any_accounting(
    forbid_accounting: Callable[[], None], delta: Decimal | None
) -> None:
    spec = spec_with(delta=delta)
    forbid_accounting()
    assert TableSpec.from_json(spec.to_json()) == spec
    for work in (check_keeps_what_was_asked, guaranteed_epsilon):
        with pytest.raises(AssertionError, match="a guarantee is worked out"):
            work(replace(spec, epsilon=Decimal("0.2")))  # one that was not checked before


def exact_epsilon(spec: TableSpec) -> Any:  # noqa: ANN401 - mpmath has no types
    with mpmath.workdps(80):
        r = Fraction(spec.server_replacement, 2**64)
        gamma = 1 + spec.cells * (1 - r) / r
        ratio = 1 + Fraction(spec.sample, spec.population) * (gamma - 1)
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_the_guaranteed_epsilon_is_an_upper_bound_and_never_above_what_was_asked(
    any_spec: SearchStrategy[TableSpec], data: st.DataObject
) -> None:
    spec = data.draw(any_spec)
    guaranteed = guaranteed_epsilon(spec)
    assert guaranteed <= spec.epsilon
    with mpmath.workdps(80):
        assert exact_epsilon(spec) <= mpmath.mpf(str(guaranteed))


@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_the_card_has_the_guaranteed_epsilon(any_spec: SearchStrategy[TableSpec], data: st.DataObject) -> None:
    spec = data.draw(any_spec)
    desk = epsilon_card(spec).bound(Coalition.DESK)
    assert guaranteed_epsilon(spec) in (desk.epsilon, (desk.other or (None,))[0])
    server = epsilon_card(spec).bound(Coalition.SERVER_AND_CURATORS)
    assert ("does not depend on the data" in server.note) == (spec.pad is Pad.OTP)


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_one_unit_less_of_replacement_is_refused(any_spec: SearchStrategy[TableSpec], data: st.DataObject) -> None:
    spec = data.draw(any_spec)
    check_keeps_what_was_asked(spec)
    with pytest.raises(InvalidInputError, match=r"too small for the epsilon|1 to 2\^64 units"):
        check_keeps_what_was_asked(replace(spec, server_replacement=spec.server_replacement - 1))
    if spec.server_replacement < 2**64:
        assert guaranteed_epsilon(replace(spec, server_replacement=spec.server_replacement + 1)) <= spec.epsilon


@pytest.mark.parametrize("delta", [None, Decimal("1e-6")])
def test_a_mechanism_that_does_not_keep_what_was_asked_is_refused(delta: Decimal | None) -> None:
    check_keeps_what_was_asked(spec_with(delta=delta))
    with pytest.raises(InvalidInputError, match="too small for the epsilon"):
        check_keeps_what_was_asked(spec_with(delta=delta, server_replacement=2**63))


def test_columns_are_found_by_attribute_and_owner() -> None:
    spec = spec_with()
    assert spec.column("salary").owner == "bob"
    assert [column.attribute for column in spec.columns_of("alice")] == ["sex"]
    assert spec.columns_of("carol") == ()
    with pytest.raises(InvalidInputError, match="'age' is not in this release"):
        spec.column("age")


@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_request_is_read_back_as_it_was(any_request: SearchStrategy[ReleaseRequest], data: st.DataObject) -> None:
    request = data.draw(any_request)
    assert ReleaseRequest.from_json(request.to_json()) == request


def test_the_canonical_text_of_a_request_does_not_change() -> None:
    rest = (
        '"epsilon":"0.1","noise_split":"0.5","pad":"chacha20","partial":false,"purpose":"wage gap",%s"repeats":0,'
        '"researcher":"rosa","sampling":"seed","scheme":"wor","tables":[]}'
    )
    assert request_with().text_without_id() == '{"attributes":["sex","salary"],' + rest % ""
    release_id = '"release_id":"00000000000000000000000000000001",'
    assert request_with().to_json() == '{"attributes":["sex","salary"],"deadline":2000000000,' + rest % release_id


def test_every_field_of_a_request_is_read_back() -> None:
    for name, value in OTHER_REQUEST.items():
        other = request_with(**GOES_WITH.get(name, {}), **{name: value})
        assert ReleaseRequest.from_json(other.to_json()) == other
        assert getattr(other, name) == value


def test_what_is_asked_for_is_everything_but_id_and_deadline() -> None:
    request = request_with()
    assert set(OTHER_REQUEST) == {field.name for field in fields(ReleaseRequest)}
    for name, value in OTHER_REQUEST.items():
        plain = replace(request, **GOES_WITH.get(name, {}))
        other = replace(plain, **{name: value})
        assert other.to_json() != plain.to_json(), name
        assert (other.text_without_id() == plain.text_without_id()) is (name in {"release_id", "deadline"}), name


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"release_id": "1"}, "32 hexadecimal digits"),
        ({"attributes": ()}, "the request has no attribute, or one of them twice"),
        ({"attributes": ("sex", "sex")}, "the request has no attribute, or one of them twice"),
        ({"epsilon": Decimal(0)}, "epsilon"),
        ({"epsilon": Decimal("NaN")}, "epsilon"),
        ({"sample": 0}, "fewer than 1 row was asked for"),
        ({"stage": 0}, "at least 1 row"),
        ({"max_local_epsilon": Decimal(0)}, "max_local_epsilon"),
        ({"sample": -1}, "fewer than 1 row was asked for"),
        ({"purpose": "x" * 1001}, "is longer than 1000 characters, or not one printable line"),
        ({"purpose": "harmless\x1b[1A\x1b[2K"}, "printable"),
        ({"purpose": "two\nlines"}, "printable"),
        ({"researcher": "\x1b[2Krosa"}, "printable"),
    ],
)
def test_a_malformed_request_is_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        request_with(**changes)
