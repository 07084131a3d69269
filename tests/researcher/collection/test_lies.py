"""What one node that lies can do, and whether reports that are made to count more are warned of."""

from decimal import Decimal

import numpy as np
import pytest

from tests.common.collection.rounds import reports_from, round_with, support_of
from veiltab.common.collection.oracles import ORACLE_NAMES, Bits, oracle_for
from veiltab.common.collection.round import EVERYONE, RoundState, RoundStatus, Stratum
from veiltab.researcher.collection.round_text import excess_text, weight_of_a_lie, weight_text
from veiltab.researcher.collection.rounds_client import tally_of
from veiltab.researcher.frequency.tally import Tally

NODES, SIZE = 3000, 64


def round_of(oracle: str, rate: str = "1") -> RoundStatus:
    epsilon = Decimal(1)
    spec = round_with(
        oracle=oracle,
        size=SIZE,
        epsilon=epsilon,
        parameters=tuple(sorted(oracle_for(oracle, SIZE, epsilon).parameters.items())),
        strata=(Stratum(name=EVERYONE, population=NODES, rate=Decimal(rate)),),
    )
    return RoundStatus(round=spec, state=RoundState.CLOSED, closed=1, enrolled=(NODES,), reports=(NODES,))


def tally_with(status: RoundStatus, lies: int) -> Tally:
    """Return the counts of honest nodes that hold one value, some of whom support all values instead."""
    randomiser, counts = status.round.randomiser, np.zeros(SIZE, np.int64)
    randomiser.aggregate(reports_from(randomiser, [0] * (NODES - lies)), counts)
    if lies:
        randomiser.aggregate([randomiser.check(Bits(bits=b"\xff" * (SIZE // 8)))] * lies, counts)
    return tally_of(status, counts, tuple(map(str, range(SIZE))))


def test_one_lie_under_unary_encoding_counts_for_203_nodes_of_64_categories() -> None:
    status = round_of("oue")
    assert weight_of_a_lie(status) == pytest.approx(202.49, abs=0.01)
    assert weight_of_a_lie(round_of("oue", "0.5")) == pytest.approx(404.99, abs=0.01)
    assert "counts for up to 203 nodes" in weight_text(status)
    honest, lying = (tally_with(status, lies) for lies in (0, 1))
    p, q = (float(one) for one in (honest.p, honest.q))
    shift = ((lying.counts - honest.counts).sum() + 0.0) / (p - q)
    assert shift <= weight_of_a_lie(status) + SIZE * q / (p - q)


def test_what_one_report_may_support_bounds_its_weight() -> None:
    for oracle in ("krr", "ss"):
        randomiser = round_of(oracle).round.randomiser
        supported = max(len(support_of(randomiser, one)) for one in reports_from(randomiser, range(9)))
        one = float((1 - randomiser.q) / (randomiser.p - randomiser.q))
        assert weight_of_a_lie(round_of(oracle)) == pytest.approx(supported * one)


@pytest.mark.parametrize("oracle", ORACLE_NAMES)
def test_honest_reports_are_not_warned_of(oracle: str) -> None:
    status = round_of(oracle)
    assert excess_text(tally_with(status, 0)) == ""


def test_reports_that_support_all_values_are_warned_of() -> None:
    status = round_of("oue")
    assert "some are made to count more" in excess_text(tally_with(status, 60))
