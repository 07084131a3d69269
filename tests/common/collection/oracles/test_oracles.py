"""What holds for every oracle: parameters, supports, counts, refusals and the rates of what it draws."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.common.collection.rounds import reports_from, support_of
from tests.common.core.sources import Spy, stream
from tests.conftest import refuses
from veiltab.common.collection.oracles import (
    ORACLE_NAMES,
    Bits,
    Category,
    Hashed,
    KaryRandomisedResponse,
    OptimisedLocalHashing,
    OptimisedUnaryEncoding,
    Oracle,
    Report,
    Subset,
    SubsetSelection,
    oracle_for,
    oracle_of,
)
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import InvalidInputError

names = st.sampled_from(ORACLE_NAMES)
epsilons = st.decimals("1e-12", 100, allow_nan=False)


@given(names, st.integers(2, 65536), epsilons)
def test_parameters_make_the_same_oracle_again(name: str, size: int, epsilon: Decimal) -> None:
    oracle = oracle_for(name, size, epsilon)
    assert oracle.name == name
    assert oracle.size == size
    assert all(0 < value < UNIT for value in oracle.parameters.values())
    assert oracle_of(name, size, oracle.parameters) == oracle


@given(names, st.integers(2, 65536), epsilons)
def test_what_runs_never_costs_more_than_what_was_asked_for(name: str, size: int, epsilon: Decimal) -> None:
    oracle = oracle_for(name, size, epsilon)
    assert 1 < oracle.gamma <= exp_below(epsilon)
    assert 0 < oracle.epsilon <= epsilon
    assert oracle.gamma <= exp_below(oracle.epsilon) * (1 + Fraction(1, 10**57))
    assert 0 < oracle.q < oracle.p < 1


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("size", [2, 100, 65536])
def test_an_ordinary_epsilon_is_reported_as_it_was_asked_for(name: str, size: int) -> None:
    for epsilon in map(Decimal, ("0.01", "0.5", "1", "4", "8")):
        assert oracle_for(name, size, epsilon).epsilon == epsilon


sizes = st.sampled_from([2, 3, 7, 8, 9, 31, 256, 257])


@given(names, sizes, st.sampled_from(["0.2", "1", "3"]), st.integers(0, 255), st.data())
def test_supports_add_up_one_by_one_or_together(
    name: str, size: int, epsilon: str, seed: int, data: st.DataObject
) -> None:
    oracle = oracle_for(name, size, Decimal(epsilon))
    reports = reports_from(oracle, data.draw(st.lists(st.integers(0, size - 1), max_size=20)), seed)
    together, listed = (np.full(size, 3, np.int64) for _ in range(2))
    oracle.aggregate(reports, together)
    for report in reports:
        assert oracle.check(report) is report
        support = support_of(oracle, report).tolist()
        assert support == sorted(set(support))
        listed[support] += 1
    assert together.tolist() == listed.tolist()


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize(("size", "count"), [(9, 700), (3000, 300)])
def test_many_blocks_of_reports_add_up(name: str, size: int, count: int) -> None:
    oracle = oracle_for(name, size, Decimal(1))
    reports = reports_from(oracle, np.arange(30) % size) * (count // 30)
    together, one_by_one = np.zeros(size, np.int64), np.zeros(size, np.int64)
    oracle.aggregate(reports, together)
    for report in reports:
        one_by_one[support_of(oracle, report)] += 1
    assert together.tolist() == one_by_one.tolist()


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_counts_do_not_overflow(name: str) -> None:
    oracle, counts = oracle_for(name, 4, Decimal(1)), np.zeros(4, np.int64)
    report = next(one for one in reports_from(oracle, [0] * 99) if support_of(oracle, one).size)
    oracle.aggregate([report] * 3000, counts)
    assert set(counts[support_of(oracle, report)].tolist()) == {3000}


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("size", [2, 8, 300, 65536])
@pytest.mark.parametrize("epsilon", ["0.1", "3", "30"])
def test_a_node_s_report_passes_the_check_and_has_the_stated_length(name: str, size: int, epsilon: str) -> None:
    oracle = oracle_for(name, size, Decimal(epsilon))
    for value in (0, size - 1):
        report = oracle.check(oracle.randomise(value, SystemSource()))
        assert payload(oracle, report) == oracle.report_bytes


def payload(oracle: Oracle, report: Report) -> int:
    match report:
        case Category():
            return 1 if oracle.size <= 256 else 2
        case Bits():
            return len(report.bits)
        case Hashed():
            return len(report.seed) + (1 if oracle.parameters["g"] <= 256 else 2)
        case Subset():
            return len(report.values)


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("size", [2, 6, 3000])
def test_draws_of_a_report_share_no_part_of_the_source(name: str, size: int) -> None:
    spy = Spy(stream(9))
    oracle_for(name, size, Decimal(2)).randomise(1, spy)
    assert len(set(spy.places)) == len(spy.places) > 0


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_two_reports_of_a_node_differ(name: str) -> None:
    oracle = oracle_for(name, 60000, Decimal("0.5"))
    reports = {oracle.randomise(7, SystemSource()) for _ in range(4)}
    assert len(reports) == 4


SMALL: dict[str, Oracle] = {
    "krr": KaryRandomisedResponse.from_epsilon(300, Decimal(1)),
    "oue": OptimisedUnaryEncoding.from_epsilon(11, Decimal(1)),
    "olh": OptimisedLocalHashing(size=11, g=4, replacement=2**63),
    "ss": SubsetSelection(size=11, w=3, p64=2**63),
}
WIDE = SubsetSelection(size=300, w=2, p64=2**63)
NOTHING: Any = None


def subset(*values: int, dtype: str = "<u1") -> Subset:
    return Subset(values=np.array(values, dtype).tobytes())


@pytest.mark.parametrize(
    ("oracle", "report"),
    [
        (SMALL["krr"], Category(symbol=-1)),
        (SMALL["krr"], Category(symbol=300)),
        (SMALL["krr"], Category(symbol=True)),
        (SMALL["krr"], Category(symbol=1.0)),  # type: ignore[arg-type]
        (SMALL["krr"], Category(symbol=NOTHING)),
        (SMALL["krr"], Bits(bits=b"\x01")),
        (SMALL["krr"], NOTHING),
        (SMALL["oue"], Bits(bits=b"\x01")),
        (SMALL["oue"], Bits(bits=b"\x01\x01\x00")),
        (SMALL["oue"], Bits(bits=b"\x00\x08")),
        (SMALL["oue"], Bits(bits="ab")),  # type: ignore[arg-type]
        (SMALL["oue"], Bits(bits=NOTHING)),
        (SMALL["olh"], Hashed(seed=bytes(7), symbol=1)),
        (SMALL["olh"], Hashed(seed=bytes(9), symbol=1)),
        (SMALL["olh"], Hashed(seed="a" * 8, symbol=1)),  # type: ignore[arg-type]
        (SMALL["olh"], Hashed(seed=bytes(8), symbol=4)),
        (SMALL["olh"], Hashed(seed=bytes(8), symbol=-1)),
        (SMALL["olh"], Hashed(seed=bytes(8), symbol=NOTHING)),
        (SMALL["ss"], subset()),
        (SMALL["ss"], subset(1, 2)),
        (SMALL["ss"], subset(1, 2, 3, 4)),
        (SMALL["ss"], subset(1, 3, 2)),
        (SMALL["ss"], subset(1, 1, 2)),
        (SMALL["ss"], subset(1, 2, 11)),
        (SMALL["ss"], Subset(values=NOTHING)),
        (SMALL["ss"], Subset(values=(1, 2, 3))),  # type: ignore[arg-type]
        (WIDE, subset(1, 2)),
        (WIDE, subset(1, 300, dtype="<u2")),
        (WIDE, subset(256, 1, dtype="<u2")),
        (WIDE, Subset(values=b"\x01\x00\x02")),
    ],
)
def test_malformed_reports_are_refused(oracle: Oracle, report: Report) -> None:
    with refuses(InvalidInputError, where="report"):
        oracle.check(report)


@pytest.mark.parametrize(
    ("oracle", "report", "support"),
    [
        (SMALL["krr"], Category(symbol=299), [299]),
        (SMALL["oue"], Bits(bits=b"\x00\x00"), []),
        (SMALL["oue"], Bits(bits=b"\x81\x04"), [0, 7, 10]),
        (SMALL["oue"], Bits(bits=b"\xff\x07"), list(range(11))),
        (SMALL["ss"], subset(0, 5, 10), [0, 5, 10]),
        (WIDE, subset(1, 299, dtype="<u2"), [1, 299]),
    ],
)
def test_what_well_formed_reports_support(oracle: Oracle, report: Report, support: list[int]) -> None:
    assert support_of(oracle, report).tolist() == support


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("value", [-1, 77, 2**80, 1.5, None])
def test_a_value_out_of_range_is_refused_and_not_told(name: str, value: Any) -> None:  # noqa: ANN401 - anything
    oracle = oracle_for(name, 77, Decimal(1))
    with pytest.raises(InvalidInputError) as refusal:
        oracle.randomise(value, SystemSource())
    assert str(refusal.value) == "value: the value is not one of 0 to 76"


@pytest.mark.parametrize("name", ORACLE_NAMES)
@pytest.mark.parametrize("counts", [np.zeros(76, np.int64), np.zeros(77), np.zeros((77, 1), np.int64)])
def test_counts_of_another_shape_or_type_are_refused(name: str, counts: Any) -> None:  # noqa: ANN401 - anything
    oracle = oracle_for(name, 77, Decimal(1))
    with refuses(InvalidInputError, where="counts"):
        oracle.aggregate(reports_from(oracle, [1]), counts)


@pytest.mark.parametrize(
    ("name", "size", "parameters"),
    [
        ("rappor", 4, {}),
        ("krr", 4, {}),
        ("krr", 4, {"replacement": 1, "g": 2}),
        ("krr", 1, {"replacement": 1}),
        ("krr", 4, {"replacement": 0}),
        ("krr", 4, {"replacement": UNIT}),
        ("krr", 4, {"replacement": True}),
        ("oue", 4, {"q64": 0}),
        ("oue", 4, {"q64": 2**63}),
        ("olh", 4, {"g": 1, "replacement": 5}),
        ("olh", 4, {"g": 65537, "replacement": 5}),
        ("olh", 4, {"g": 2, "replacement": UNIT}),
        ("ss", 4, {"w": 0, "p64": 2**63 + 1}),
        ("ss", 4, {"w": 3, "p64": UNIT - 1}),
        ("ss", 4, {"w": 2, "p64": 2**63}),
        ("ss", 4, {"w": 1, "p64": UNIT}),
    ],
)
def test_parameters_that_make_no_oracle_are_refused(name: str, size: Any, parameters: dict[str, Any]) -> None:  # noqa: ANN401 - of any kind
    with pytest.raises(InvalidInputError):
        oracle_of(name, size, parameters)


@pytest.mark.parametrize("epsilon", ["0", "-1", "100.1", "NaN", "Infinity", "9e-13", "1e-999"])
@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_an_epsilon_that_cannot_be_kept_is_refused(name: str, epsilon: str) -> None:
    with refuses(InvalidInputError, where="epsilon"):
        oracle_for(name, 4, Decimal(epsilon))


def test_parameters_bind_the_oracle() -> None:
    oracle = SubsetSelection.from_epsilon(40, Decimal(1))
    assert replace(oracle, p64=oracle.p64 - 1).gamma < oracle.gamma
