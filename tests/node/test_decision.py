from dataclasses import replace
from decimal import Decimal
from hashlib import shake_256

import pytest

from tests.common.collection.rounds import EVERYBODY, NORTH, SOUTH, plain_round, round_with, study
from tests.conftest import refuses
from veiltab.common.collection.oracles import ORACLE_NAMES
from veiltab.common.collection.round import Round
from veiltab.common.errors import InvalidInputError
from veiltab.node.answers.decision import COIN, check_nodes, check_round, decide, symbol_of

SPEC = round_with()


class Coin:
    """A coin, and words that are the same whatever it shows."""

    def __init__(self, word: int) -> None:
        self.word = word
        self.labels: list[int] = []

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        self.labels.append(label)
        if label == COIN:
            assert len(out) == 8
            out[:] = self.word.to_bytes(8, "little")
        else:
            out[:] = shake_256(f"{label} {chunk}".encode()).digest(len(out))


@pytest.mark.parametrize("rate", ["0.5", "0.1", "1e-18", "1", "0.999999999999999999999999"])
def test_a_node_reports_if_its_word_is_below_the_coin(rate: str) -> None:
    stratum = replace(NORTH, rate=Decimal(rate))
    for word in {0, stratum.coin - 1}:
        assert decide(SPEC, stratum, 7, Coin(word)) is not None
    for word in {stratum.coin, 2**64 - 1} - {2**64}:
        assert (decide(SPEC, stratum, 7, Coin(word)) is None) == (word >= stratum.coin)


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_the_value_is_randomised_whether_it_is_reported_or_not(name: str) -> None:
    spec = round_with(name)
    reporting, silent = Coin(0), Coin(2**64 - 1)
    report = decide(spec, NORTH, 7, reporting)
    assert report is not None
    assert spec.randomiser.check(report) == report
    assert decide(spec, NORTH, 7, silent) is None
    assert set(reporting.labels) == set(silent.labels)
    assert reporting.labels.count(COIN) == 1
    assert all(label < COIN for label in reporting.labels if label != COIN)


def test_a_decision_is_drawn_from_the_operating_system() -> None:
    spec = round_with("olh")
    reports = [decide(spec, SOUTH, 7) for _ in range(50)]
    assert None not in reports
    assert len(set(reports)) == 50


@pytest.mark.parametrize("symbol", [-1, 20, 2**40])
def test_a_symbol_outside_the_domain_is_refused_before_the_coin_can_hide_it(symbol: int) -> None:
    with pytest.raises(InvalidInputError, match="not one of 0 to 19"):
        decide(SPEC, NORTH, symbol, Coin(2**64 - 1))


NOT_OURS: dict[str, tuple[Round, str]] = {
    "another study": (round_with(study_digest="ab" * 32), "another study file than this node's"),
    "another question": (round_with(question="age"), "no question 'age'"),
    "another domain": (round_with(size=21), "not as the study says"),
    "another question's domain": (round_with(question="pet"), "not as the study says"),
    "a stranger's": (round_with(researcher="mallory"), "costs more than the study allows its researcher"),
    "without a share": (round_with(researcher="rita"), "costs more than the study allows its researcher"),
    "too dear": (round_with(epsilon=Decimal("4.000000000001")), "costs more than the study allows a node"),
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_a_round_that_is_not_as_the_nodes_own_study_says_is_refused(case: str) -> None:
    spec, problem = NOT_OURS[case]
    with pytest.raises(InvalidInputError, match=problem):
        check_round(spec, study(), "north")


def test_a_round_of_the_study_is_answered_in_its_strata() -> None:
    assert check_round(SPEC, study(), "south") == SOUTH
    assert check_round(round_with(epsilon=Decimal(4)), study(), "north") == NORTH
    with pytest.raises(InvalidInputError, match="no such stratum"):
        check_round(SPEC, study(), "east")
    with pytest.raises(InvalidInputError, match=r"name the stratum of the node. Strata: north, south\."):
        check_round(SPEC, study(), "everyone")
    assert plain_round().stratum("everyone") == EVERYBODY


def test_a_study_without_nodes_has_none(request: pytest.FixtureRequest) -> None:
    with refuses(InvalidInputError, where="study file"):
        check_nodes(request.getfixturevalue("study"))


def test_raw_values_are_coded_as_the_study_says() -> None:
    assert [symbol_of(study(), "value", raw) for raw in ("1", " 20 ")] == [0, 19]
    assert [symbol_of(study(), "pet", raw) for raw in ("tom", "none")] == [0, 2]


@pytest.mark.parametrize("raw", ["secret-21", "0", "", "NA", "1.0", "\u0667"])
def test_a_value_outside_the_domain_is_refused_and_not_repeated(raw: str) -> None:
    with refuses(InvalidInputError, where="question value") as refusal:
        symbol_of(study(), "value", raw)
    assert "Categories: 1, 2, 3, 4, 5, 6, 7, 8, ...." in str(refusal.value)
    assert len(raw) < 3 or raw not in str(refusal.value)
