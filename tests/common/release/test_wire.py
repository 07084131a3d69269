from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.common.release.other import GOES_WITH, OTHER_REQUEST
from tests.conftest import refuses, request_with, spec_with
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.messages.release_messages import (
    pad_from_proto,
    pad_to_proto,
    request_from_proto,
    request_to_proto,
    sampling_from_proto,
    sampling_to_proto,
    scheme_from_proto,
    scheme_to_proto,
    spec_from_proto,
    spec_to_proto,
    state_from_proto,
    state_to_proto,
)
from veiltab.common.release.messages.witness import NONE_SEEN, ledger_from_proto, ledger_to_proto
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.schemes import SCHEMES
from veiltab.v1 import release_pb2

ENUMS = [
    (ReleaseState, state_to_proto, state_from_proto, release_pb2.ReleaseState),
    (Sampling, sampling_to_proto, sampling_from_proto, release_pb2.SamplingMode),
    (Pad, pad_to_proto, pad_from_proto, release_pb2.PadKind),
]


@pytest.mark.parametrize(("members", "to_proto", "from_proto", "numbers"), ENUMS)
def test_enums_go_there_and_back_and_unknown_numbers_are_refused(
    members: type[Enum],
    to_proto: Callable[[Any], int],
    from_proto: Callable[[int], Enum],
    numbers: Any,  # noqa: ANN401 - an enum of protobuf
) -> None:
    known = {to_proto(member) for member in members}
    assert known == set(numbers.values()) - {0}
    for member in members:
        assert from_proto(to_proto(member)) is member
        assert numbers.Name(to_proto(member)).endswith(f"_{member.name}")
    for number in {0, -1, 99, max(known) + 1}:
        with pytest.raises(InvalidInputError, match=f" {number} is not known here"):
            from_proto(number)


@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_spec_arrives_as_it_was_sent(any_spec: SearchStrategy[TableSpec], data: st.DataObject) -> None:
    spec = data.draw(any_spec)
    received = release_pb2.TableSpec.FromString(spec_to_proto(spec).SerializeToString())
    assert spec_from_proto(received) == spec
    assert spec_from_proto(received).digest() == spec.digest()


@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_request_arrives_as_it_was_sent(any_request: SearchStrategy[ReleaseRequest], data: st.DataObject) -> None:
    request = data.draw(any_request)
    received = release_pb2.ReleaseRequest.FromString(request_to_proto(request).SerializeToString())
    assert request_from_proto(received, request.researcher) == request


def test_every_field_of_a_request_travels() -> None:
    for name, value in OTHER_REQUEST.items():
        request = request_with(**GOES_WITH.get(name, {}), **{name: value})
        received = release_pb2.ReleaseRequest.FromString(request_to_proto(request).SerializeToString())
        assert request_from_proto(received, request.researcher) == request


def test_the_name_of_a_researcher_is_not_in_its_request() -> None:
    message = request_to_proto(request_with())
    assert b"rosa" not in message.SerializeToString()
    assert request_from_proto(message, "rita").researcher == "rita"


def test_a_spec_without_replacement_at_all_travels() -> None:
    message = spec_to_proto(spec_with(server_replacement=2**64))
    assert message.server_replacement == b"\1" + bytes(8)
    assert spec_from_proto(message).server_replacement == 2**64


def test_every_scheme_has_a_number_of_its_own() -> None:
    numbers = {name: scheme_to_proto(name) for name in SCHEMES}
    assert set(numbers.values()) == set(release_pb2.Scheme.values()) - {0}
    for name, number in numbers.items():
        assert scheme_from_proto(number) == name
        assert release_pb2.Scheme.Name(number) == f"SCHEME_{name.upper().replace('.', '_')}"


def columns(*plain: tuple[str, str, int]) -> list[release_pb2.Column]:
    return [release_pb2.Column(attribute=a, owner=o, size=s) for a, o, s in plain]


SPEC_CASES: list[tuple[str, object]] = [
    ("release_id", ""),
    ("study_digest", "é" * 64),
    ("delta", ""),
    ("delta", "2"),
    ("stage", 0),
    ("researcher", ""),
    ("columns", []),
    ("columns", columns(("sex", "alice", 2**32 - 1))),
    ("columns", columns(("sex", "alice", 65_536), ("salary", "bob", 65_536))),
    ("population", 0),
    ("sample", 2**64 - 1),
    ("curator_replacement", b""),
    ("curator_replacement", b"\1" + bytes(8)),
    ("canaries", 2**63),
    ("server_replacement", b""),
    ("server_replacement", b"\xff" * 8),
    ("server_replacement", b"\1" + bytes(9)),
    ("server_replacement", b"\1" + bytes(7) + b"\1"),
    ("server_replacement", b"\0\x80" + bytes(7)),
    ("epsilon", ""),
    ("epsilon", "one"),
    ("epsilon", "sNaN"),
    ("scheme", 0),
    ("scheme", 99),
    ("sampling", 0),
    ("sampling", 99),
    ("pad", 0),
    ("pad", 99),
    ("alignment", ""),
    ("part_of", "0" * 31),
]
"""What a message alone can hold, and one value of each field that no spec has: test_release.py has the others."""

REQUEST_CASES: list[tuple[str, object]] = [
    ("release_id", ""),
    ("attributes", []),
    ("epsilon", ""),
    ("epsilon", "0,1"),
    ("epsilon", "snan"),
    ("purpose", "\x1b[2J"),
    ("sampling", 0),
    ("sampling", 4),
    ("sample", 0),
    ("delta", ""),
    ("delta", "0"),
    ("delta", "x"),
    ("noise_split", ""),
    ("noise_split", "1"),
    ("noise_split", "-0.1"),
    ("noise_split", "NaN"),
    ("noise_split", "0." + "1" * 19),
    ("canaries", 2**63),
    ("max_pair_epsilon", "0"),
    ("max_pair_epsilon", "half"),
    ("tables", [release_pb2.Table(attributes=["sex"])]),
    ("repeats", 1),
    ("max_local_epsilon", ""),
    ("scheme", 0),
    ("scheme", 7),
    ("stage", 0),
    ("pad", 0),
    ("pad", -1),
]


def spoiled(message: Any, field: str, value: object) -> Any:  # noqa: ANN401 - messages of either kind
    message.ClearField(field)
    if isinstance(value, list):
        getattr(message, field).extend(value)
    else:
        setattr(message, field, value)
    return type(message).FromString(message.SerializeToString())


@pytest.mark.parametrize(("field", "value"), SPEC_CASES)
def test_a_malformed_spec_is_refused(field: str, value: object) -> None:
    message = spec_to_proto(spec_with())
    with pytest.raises(InvalidInputError):
        spec_from_proto(spoiled(message, field, value))


@pytest.mark.parametrize(("field", "value"), REQUEST_CASES)
def test_a_malformed_request_is_refused(field: str, value: object) -> None:
    message = request_to_proto(request_with())
    with pytest.raises(InvalidInputError):
        request_from_proto(spoiled(message, field, value), "rosa")


def test_every_field_is_spoiled_somewhere() -> None:
    free = {"deadline"}  # any number of seconds is one
    assert {field for field, _ in SPEC_CASES} | free == {f.name for f in release_pb2.TableSpec.DESCRIPTOR.fields}
    free |= {"partial"}  # both values mean something
    described = release_pb2.ReleaseRequest.DESCRIPTOR.fields
    assert {field for field, _ in REQUEST_CASES} | free == {f.name for f in described}


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        spec_from_proto(release_pb2.TableSpec())
    with pytest.raises(InvalidInputError):
        request_from_proto(release_pb2.ReleaseRequest(), "rosa")


def test_a_column_is_not_changed_on_the_way() -> None:
    spec = spec_with(columns=(Column(attribute="a", owner="o", size=300), Column(attribute="b", owner="p", size=2)))
    assert [(c.attribute, c.owner, c.size) for c in spec_to_proto(spec).columns] == [("a", "o", 300), ("b", "p", 2)]


def test_a_spec_is_read_once_and_one_that_is_padded_takes_no_memory() -> None:
    spec = spec_with()
    message = spec_to_proto(spec)
    assert spec_from_proto(message) is spec_from_proto(spec_to_proto(spec))
    unknown_field, length = b"\xfa\x3e", b"\x80\x80\x02"  # number 1007; 32 KiB
    padded = release_pb2.TableSpec.FromString(message.SerializeToString() + unknown_field + length + bytes(1 << 15))
    assert len(padded.SerializeToString()) > 1 << 15
    assert spec_from_proto(padded) == spec
    assert spec_from_proto(padded) is not spec_from_proto(padded)


@pytest.mark.parametrize("ledger", [NONE_SEEN, (0, b"h" * 32), (3, b"h" * 32), (2**63 - 1, b"h" * 32)])
def test_a_ledger_is_not_changed_on_the_way(ledger: tuple[int, bytes]) -> None:
    assert ledger_from_proto(ledger_to_proto(ledger) or release_pb2.LedgerHead(), "alice") == ledger


@pytest.mark.parametrize("ledger", [(3, b""), (3, b"h" * 31), (0, b"h" * 33), (2**63, b"h" * 32)])
def test_what_is_no_head_of_a_ledger_is_refused(ledger: tuple[int, bytes]) -> None:
    with refuses(InvalidInputError, where="curator alice"):
        ledger_from_proto(release_pb2.LedgerHead(length=ledger[0], head=ledger[1]), "curator alice")
