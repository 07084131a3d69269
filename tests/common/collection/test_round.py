from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.common.collection.rounds import ID, NORTH, SOUTH, plain_round, round_with
from veiltab.common.collection.oracles import ORACLE_NAMES, oracle_for
from veiltab.common.collection.round import LEAST_RATE, MAX_COUNTS, MAX_POPULATION, Round, Stratum
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.members import MAX_STRATA

STEP = Decimal("1e-12")


def strata(count: int) -> tuple[Stratum, ...]:
    return tuple(Stratum(name=f"s{number}", population=1, rate=Decimal(1)) for number in range(count))


@pytest.mark.parametrize("oracle", ORACLE_NAMES)
def test_a_round_is_read_back_from_its_text(oracle: str) -> None:
    spec = round_with(oracle, epsilon=Decimal("1.50"))
    assert Round.from_json(spec.to_json()) == spec
    assert Round.from_json(spec.to_json()).to_json() == spec.to_json()


def test_the_text_of_a_round_stays_what_databases_hold() -> None:
    assert plain_round(study_digest="ab" * 32).to_json() == (
        '{"round_id":"00000000000000000000000000000001","study_digest":"' + "ab" * 32 + '","researcher":"rosa",'
        '"question":"value","size":20,"epsilon":"1","oracle":"krr","parameters":{"replacement":16987295974341248660},'
        '"strata":[{"name":"everyone","population":30,"rate":"1"}],"deadline":4000000000}'
    )


def test_a_round_has_the_randomiser_that_it_names() -> None:
    for name in ORACLE_NAMES:
        assert round_with(name).randomiser == oracle_for(name, 20, Decimal(1))
    assert round_with().population == 30


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_a_randomiser_may_not_cost_more_than_the_round_says(name: str) -> None:
    oracle = oracle_for(name, 20, Decimal(1))
    assert round_with(oracle, epsilon=oracle.epsilon).randomiser == oracle
    with pytest.raises(InvalidInputError, match="costs more than the round's epsilon"):
        round_with(oracle, epsilon=oracle.epsilon - STEP)


@pytest.mark.parametrize(
    ("rate", "coin"),
    [
        ("1", 2**64),
        ("0.5", 2**63),
        ("0.1", 2**64 // 10),
        ("0.3333333333333333333333333", int(Fraction("0.3333333333333333333333333") * 2**64)),
        ("1e-18", 18),
        ("0.99999999999999999999999", 2**64 - 1),
    ],
)
def test_the_coin_is_the_rate_rounded_down(rate: str, coin: int) -> None:
    stratum = replace(NORTH, rate=Decimal(rate))
    assert stratum.coin == coin
    assert Fraction(rate) - Fraction(1, 2**64) < stratum.probability <= Fraction(rate)


RATES = ("0", "-0", "-0.5", "1.0000000000000000000000001", "2", "NaN", "sNaN", "Infinity", "-Infinity")
HUGE = ("1e-999999999", "1e999999999", "1e-19", "0." + "1" * 61)


@pytest.mark.parametrize("rate", RATES + HUGE)
def test_a_rate_that_is_none_is_refused_at_once(rate: str) -> None:
    with pytest.raises(InvalidInputError, match="stratum north: the rate must be above 0 and at most 1"):
        replace(NORTH, rate=Decimal(rate))


def test_the_least_rate_is_taken() -> None:
    assert replace(NORTH, rate=LEAST_RATE).coin == 18
    assert replace(NORTH, rate=Decimal("0." + "1" * 60)).coin == int(Fraction("0." + "1" * 60) * 2**64)


@pytest.mark.parametrize("population", [0, -1, MAX_POPULATION + 1, 2**64])
def test_a_population_that_cannot_be_is_refused(population: int) -> None:
    with pytest.raises(InvalidInputError, match="is not between 1 and"):
        replace(NORTH, population=population)


@pytest.mark.parametrize("name", ["", "North", "a b", "x" * 41, "a\n"])
def test_a_stratum_has_a_name(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a name"):
        replace(NORTH, name=name)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"round_id": ID[:-1]}, "the id is not 32 hexadecimal digits, or the study digest not 64"),
        ({"round_id": "A" * 32}, "the id is not 32 hexadecimal digits, or the study digest not 64"),
        ({"study_digest": "ab"}, "the id is not 32 hexadecimal digits, or the study digest not 64"),
        ({"researcher": "Rosa"}, "is not a name"),
        ({"question": "../value"}, "not an attribute name"),
        ({"epsilon": Decimal(0)}, "not a number from 1e-12 to 100"),
        ({"epsilon": Decimal("100.1")}, "not a number from 1e-12 to 100"),
        ({"epsilon": Decimal("NaN")}, "not a number from 1e-12 to 100"),
        ({"epsilon": Decimal("1e-999999999")}, "not a number from 1e-12 to 100"),
        ({"epsilon": Decimal("0.999")}, "costs more"),
        ({"size": 0}, "1 to 65536"),
        ({"size": 1}, "2 to 65536"),
        ({"size": 65_537}, "1 to 65536"),
        ({"size": 21}, "costs more"),
        ({"oracle": "rappor"}, "no oracle 'rappor'"),
        ({"oracle": "oue"}, "oracle oue takes the parameters q64"),
        ({"parameters": ()}, "oracle krr takes the parameters replacement"),
        ({"parameters": (("replacement", 1), ("w", 1))}, "oracle krr takes the parameters"),
        ({"parameters": (("replacement", 2**64),)}, "units of 2"),
        ({"parameters": (("replacement", 1),)}, "costs more"),
        ({"strata": ()}, "strata"),
        ({"strata": (NORTH, SOUTH, NORTH)}, "named 'north' twice"),
        ({"strata": strata(MAX_STRATA + 1)}, "strata"),
    ],
)
def test_a_round_that_cannot_be_is_refused(changes: dict[str, Any], problem: str) -> None:
    spec = round_with()
    with pytest.raises(InvalidInputError, match=problem):
        replace(spec, **changes)


def test_a_round_has_a_limited_number_of_counters() -> None:
    size = MAX_COUNTS // MAX_STRATA
    assert round_with(size=size, strata=strata(MAX_STRATA)).population == MAX_STRATA
    with pytest.raises(InvalidInputError, match=f"more than {MAX_COUNTS} counters"):
        round_with(size=size + 1, strata=strata(MAX_STRATA))


def test_a_stratum_is_found_by_name_and_another_is_refused_without_repeating_it() -> None:
    assert round_with().stratum("south") == SOUTH
    with pytest.raises(InvalidInputError, match=r"no such stratum in this round. Strata: north, south\.") as refusal:
        round_with().stratum("a value in the wrong column")
    assert "value" not in str(refusal.value)
    with pytest.raises(InvalidInputError, match=r"Strata: s0, s1, s2, s3, s4, s5, s6, s7, \.\.\.\."):
        round_with(strata=strata(9)).stratum("s9")
