from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.collection.rounds import GOOD_PAYLOADS, ID, round_with
from veiltab.common.collection.oracles import ORACLE_NAMES, Bits, Category, Hashed, Oracle, Report, Subset, oracle_for
from veiltab.common.collection.round import Round, RoundState, Stratum
from veiltab.common.collection.round_messages import (
    oracle_from_proto,
    oracle_to_proto,
    report_from_proto,
    report_to_proto,
    round_from_proto,
    round_to_proto,
    state_from_proto,
    state_to_proto,
)
from veiltab.common.core.randomness import CipherStream
from veiltab.common.errors import InvalidInputError
from veiltab.v1 import collection_pb2

TOKEN = bytes(16)
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
rates = st.decimals("1e-18", 1, allow_nan=False).filter(lambda rate: len(rate.as_tuple().digits) <= 60)
strata = st.lists(
    st.builds(Stratum, name=names, population=st.integers(1, 10**9), rate=rates),
    min_size=1,
    max_size=4,
    unique_by=lambda stratum: stratum.name,
).map(tuple)
rounds = st.builds(
    round_with,
    randomiser=st.sampled_from(ORACLE_NAMES),
    round_id=st.from_regex("[0-9a-f]{32}", fullmatch=True),
    study_digest=st.from_regex("[0-9a-f]{64}", fullmatch=True),
    researcher=names,
    question=names,
    size=st.integers(2, 65_536),
    epsilon=st.decimals("1e-12", 100, allow_nan=False),
    strata=strata,
    deadline=st.integers(0, 253_402_300_799),
)


def test_states_go_there_and_back_and_unknown_numbers_are_refused() -> None:
    assert {state: int(state_to_proto(state)) for state in RoundState} == {RoundState.OPEN: 1, RoundState.CLOSED: 2}
    assert set(collection_pb2.RoundState.values()) == {0, 1, 2}
    for state in RoundState:
        assert state_from_proto(state_to_proto(state)) is state
    for number in (0, -1, 3, 99):
        with pytest.raises(InvalidInputError, match=f" {number} is not known here"):
            state_from_proto(number)


def test_every_oracle_has_a_number_of_its_own() -> None:
    numbers = {name: oracle_to_proto(name) for name in ORACLE_NAMES}
    assert set(numbers.values()) == set(collection_pb2.Oracle.values()) - {0}
    for name, number in numbers.items():
        assert oracle_from_proto(number) == name
        assert collection_pb2.Oracle.Name(number) == f"ORACLE_{name.upper()}"
    for unknown in (0, -1, 99):
        with pytest.raises(InvalidInputError, match=f"oracle {unknown} is not known here"):
            oracle_from_proto(unknown)


@settings(max_examples=10)
@given(rounds)
def test_a_round_arrives_as_it_was_sent(spec: Round) -> None:
    arrived = round_from_proto(collection_pb2.Round.FromString(round_to_proto(spec).SerializeToString()))
    assert arrived == spec
    assert arrived.to_json() == spec.to_json()


BAD_ROUNDS: dict[str, tuple[Callable[[collection_pb2.Round], object], str]] = {
    "nothing": (lambda m: m.Clear(), "epsilon: this is not a decimal"),
    "no id": (lambda m: m.ClearField("round_id"), "the id is not 32 hexadecimal digits"),
    "epsilon in words": (lambda m: setattr(m, "epsilon", "one"), "epsilon: this is not a decimal"),
    "epsilon in other digits": (lambda m: setattr(m, "epsilon", "\u0661"), "epsilon: this is not a decimal"),
    "a long epsilon": (lambda m: setattr(m, "epsilon", "1" + "0" * 98 + "e-98"), "at most 100 characters"),
    "no oracle": (lambda m: m.ClearField("oracle"), "oracle 0 is not known here"),
    "a parameter that is none": (lambda m: m.parameters.update({"replacement": "-1"}), "is not a whole number"),
    "a parameter in words": (lambda m: m.parameters.update({"replacement": "1e9"}), "is not a whole number"),
    "a long parameter": (lambda m: m.parameters.update({"replacement": "1" * 21}), "is not a whole number"),
    "a parameter in other digits": (lambda m: m.parameters.update({"replacement": "\u0667"}), "is not a whole number"),
    "a stratum without a rate": (lambda m: m.strata[0].ClearField("rate"), "rate: this is not a decimal"),
    "a rate cut short": (lambda m: setattr(m.strata[0], "rate", "0." + "1" * 120), "at most 100 characters"),
    "no population": (lambda m: m.strata[0].ClearField("population"), "is not between 1"),
    "a stratum twice": (lambda m: m.strata.append(m.strata[0]), "twice"),
}


@pytest.mark.parametrize("case", BAD_ROUNDS)
def test_a_round_that_cannot_be_is_refused(case: str) -> None:
    spoil, problem = BAD_ROUNDS[case]
    message = round_to_proto(round_with())
    spoil(message)
    with pytest.raises(InvalidInputError, match=problem):
        round_from_proto(collection_pb2.Round.FromString(message.SerializeToString()))


def drawn(oracle: Oracle, count: int) -> Iterator[Report]:
    for number in range(count):
        source = CipherStream(number.to_bytes(32, "little"))
        yield oracle.randomise(number * (oracle.size - 1) // max(1, count - 1), source)


def edges(oracle: Oracle) -> list[Report]:
    """Return the reports that a varying encoding would make shortest and longest."""
    length = oracle.report_bytes
    if oracle.name == "krr":
        return [Category(symbol=symbol) for symbol in (0, 1, oracle.size - 1)]
    if oracle.name == "oue":
        full = np.packbits(np.ones(oracle.size, np.bool_), bitorder="little").tobytes()
        return [Bits(bits=bytes(length)), Bits(bits=full)]
    if oracle.name == "olh":
        last = oracle.parameters["g"] - 1
        return [Hashed(seed=seed * 8, symbol=symbol) for seed in (b"\0", b"\xff") for symbol in (0, 1, last)]
    values = [np.arange(oracle.parameters["w"]), np.arange(oracle.size - oracle.parameters["w"], oracle.size)]
    width = "u1" if oracle.size <= 256 else "<u2"
    return [Subset(values=some.astype(width).tobytes()) for some in values]


@pytest.mark.parametrize("size", [2, 20, 256, 257, 2000])
@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("epsilon", ["0.1", "4"])
def test_a_report_arrives_whole_and_its_length_tells_nothing(name: str, size: int, epsilon: str) -> None:
    oracle = oracle_for(name, size, Decimal(epsilon))
    lengths = set()
    for report in [*edges(oracle), *drawn(oracle, 20)]:
        assert oracle.check(report) == report
        data = report_to_proto(ID, TOKEN, "north", report).SerializeToString()
        arrived = collection_pb2.ReportRequest.FromString(data)
        assert report_from_proto(arrived) == report
        assert (arrived.round_id, arrived.token, arrived.stratum) == (ID, TOKEN, "north")
        lengths.add(len(data))
    assert len(lengths) == 1


@pytest.mark.parametrize("length", [0, 15, 17])
def test_a_report_carries_a_whole_token(length: int) -> None:
    with pytest.raises(InvalidInputError, match=r"the token has [0-9]+ bytes, not 16"):
        report_to_proto(ID, bytes(length), "north", Category(symbol=0))


def test_the_payload_says_which_oracle_it_is_of() -> None:
    kinds = {
        name: report_to_proto(ID, TOKEN, "north", report).WhichOneof("payload")
        for name, report in GOOD_PAYLOADS.items()
    }
    assert kinds == {"krr": "category", "oue": "bits", "olh": "hashed", "ss": "subset"}


def test_a_report_without_a_payload_that_is_known_is_refused() -> None:
    # Field 15 is none of this protocol.
    for extra in (b"", bytes([15 << 3 | 2, 1, 7])):
        with pytest.raises(
            InvalidInputError, match="payload: the report has a payload that this version does not know"
        ):
            report_from_proto(collection_pb2.ReportRequest.FromString(extra))


def test_a_hashed_report_without_a_symbol_is_refused() -> None:
    message = collection_pb2.ReportRequest(hashed=collection_pb2.HashedReport(seed=bytes(16)))
    with pytest.raises(InvalidInputError, match="the report of local hashing has no symbol"):
        report_from_proto(message)


def test_the_last_of_two_payloads_counts() -> None:
    first = collection_pb2.ReportRequest(category=1).SerializeToString()
    second = collection_pb2.ReportRequest(bits=b"\x01").SerializeToString()
    assert report_from_proto(collection_pb2.ReportRequest.FromString(first + second)) == Bits(bits=b"\x01")
