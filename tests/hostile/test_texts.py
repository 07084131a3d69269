"""Every text of every message that is read, made as bad as it can be: it is refused, or it becomes plain words."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.common.collection.rounds import ID, PLAIN, plain_round, study
from tests.common.release.test_workload import WORKLOAD
from tests.conftest import request_with, spec_with
from tests.made_receipts import made_tests
from veiltab.common.collection.round_messages import round_from_proto, round_to_proto
from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.core.texts.message_fields import LONGEST_WORDS
from veiltab.common.errors import VeiltabError
from veiltab.common.observe.span_messages import status_from_proto
from veiltab.common.release.messages.release_messages import (
    release_to_proto,
    request_from_proto,
    request_to_proto,
    spec_from_proto,
    spec_to_proto,
)
from veiltab.curator.peers.calls import _progress_from_proto
from veiltab.researcher.collection.rounds_client import round_status_from_proto
from veiltab.researcher.status.release_status import release_status_from_proto
from veiltab.v1 import collection_pb2, curator_peer_pb2, release_pb2, researcher_pb2, status_pb2

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "two\nlines\r",
    "\x9b1m\u202e",
    "=1+2\t",
    "<script>alert(1)</script>\x00",
    "x" * 1_000_000,
    "../../etc/passwd\x7f",
)
REQUESTED = release_pb2.RELEASE_STATE_REQUESTED
SPEC = spec_to_proto(spec_with(delta=Decimal("1e-6"), part_of="e" * 32))


MESSAGES: dict[str, tuple[Message, Callable[[Any], object]]] = {
    "release spec": (SPEC, spec_from_proto),
    "release request": (
        request_to_proto(
            request_with(delta=Decimal("1e-6"), max_local_epsilon=Decimal(2), max_pair_epsilon=Decimal(2))
        ),
        lambda message: request_from_proto(message, "rosa"),
    ),
    "request for several tables": (
        request_to_proto(request_with(delta=Decimal("1e-6"), tables=(("sex",), ("sex", "salary")))),
        lambda message: request_from_proto(message, "rosa"),
    ),
    "a researcher's release": (
        researcher_pb2.GetResultResponse(
            summary=researcher_pb2.ReleaseSummary(
                release_id="0" * 32,
                label="l",
                state=REQUESTED,
                attributes=["sex"],
                epsilon="1",
                study_digest="0" * 64,
                purpose="p",
                delta="1e-6",
            ),
            parties=[researcher_pb2.PartyStatus(party="server cloud", state=REQUESTED, waiting_for="w")],
            failure="f",
            spec=release_to_proto(WORKLOAD),
            granted=["sex"],
            seconds={"fetch": 1.0},
            bytes={"a -> b": 1},
            left_out={"bob": 1},
            receipts=[
                release_pb2.Receipt(
                    curator="bob",
                    canaries=9,
                    expected="4.500",
                    sd="1.500",
                    text=canonical_text(made_tests(spec_with(canaries=9)).together()),
                )
            ],
            tables=[
                researcher_pb2.TableStatus(number=1, release_id="0" * 32, state=REQUESTED, attributes=["sex"], phase=1)
            ],
        ),
        release_status_from_proto,
    ),
    "a curator's progress": (
        curator_peer_pb2.ReleaseProgress(
            release_id="0" * 32, state=REQUESTED, granted=["sex"], denied=["age"], failure="f"
        ),
        lambda message: _progress_from_proto("bob", frozenset({"sex", "age"}), message),
    ),
    "a party's status": (
        status_pb2.GetStatusResponse(
            party="veiltab://survey/curator/bob",
            version="1",
            work=[status_pb2.Work(kind="release", id="0", about="a", state="s", waiting_for="w")],
            counts=[status_pb2.WorkCount(kind="release", state="s", number=1)],
            budgets=[status_pb2.BudgetLeft(protects="nodes", epsilon="1", left="1", delta="0.1", left_delta="0.1")],
            queues={"releases": 1},
        ),
        status_from_proto,
    ),
    "round": (round_to_proto(plain_round()), round_from_proto),
    "a round's status": (
        collection_pb2.GetRoundStatusResponse(
            round=round_to_proto(plain_round()), state=collection_pb2.ROUND_STATE_OPEN, enrolled=[5], reports=[2]
        ),
        lambda message: round_status_from_proto(message, ID, study(PLAIN)),
    ),
}

UNSET = {
    "release spec": {"columns.others"},
    "a researcher's release": {"spec.columns.others"},
    "release request": {"tables.attributes"},
    "request for several tables": {"max_local_epsilon", "max_pair_epsilon"},
}
"""Texts that do not go with the others of a request."""


def spoilt(message: Message, text: str) -> Iterator[tuple[str, Message]]:
    """Yield, for every text of a message, its name and the message with that text changed; its parts too."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            copy = _copy(message)
            if isinstance(value, str):
                setattr(copy, field.name, text)
            else:
                getattr(copy, field.name)[0] = text
            yield field.name, copy
        elif isinstance(value, Mapping):
            copy = _copy(message)
            getattr(copy, field.name)[text] = next(iter(value.values()))
            yield field.name, copy
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            part = value if isinstance(value, Message) else value[0]
            for name, other in spoilt(part, text):
                copy = _copy(message)
                own = getattr(copy, field.name)
                (own if isinstance(own, Message) else own[0]).CopyFrom(other)
                yield f"{field.name}.{name}", copy


def _copy(message: Message) -> Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def texts_of(value: object) -> Iterator[str]:
    """Yield every text inside a value."""
    if isinstance(value, str):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts_of(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from texts_of([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | frozenset | set):
        for one in value:
            yield from texts_of(one)


def outcome(read: Callable[[Any], object], message: Message) -> object:
    """Return what a message is read as, or the words in which it is refused."""
    try:
        return read(message)
    except VeiltabError as error:
        return str(error)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_text_is_plain_or_refused(name: str) -> None:
    message, read = MESSAGES[name]
    read(message)
    names = set()
    for text in HOSTILE:
        for field, other in spoilt(message, text):
            names.add(field)
            bad = [one for one in texts_of(outcome(read, other)) if not one.isprintable() or len(one) > LONGEST_WORDS]
            assert not bad, (field, bad[0][:80])
    assert names | UNSET.get(name, set()) == set(string_fields(message.DESCRIPTOR))


def string_fields(kind: Any) -> Iterator[str]:  # noqa: ANN401 - a descriptor
    """Yield the names of all texts of a kind of message, so that a field that a test forgets is seen."""
    for field in kind.fields:
        if field.type == FieldDescriptor.TYPE_STRING or (
            field.message_type is not None and field.message_type.GetOptions().map_entry
        ):
            yield field.name
        elif field.message_type is not None:
            yield from (f"{field.name}.{name}" for name in string_fields(field.message_type))
