"""Rounds together, as one types it; and what their counts tell together, against every outcome of tiny rounds."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from itertools import product
from math import exp
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.researcher.collection.test_results import COUNTS, TEXT, status
from veiltab.common.collection.oracles import Oracle, oracle_for
from veiltab.common.collection.round import RoundStatus
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.cli import veiltab
from veiltab.researcher.collection.rounds_client import tally_of
from veiltab.researcher.collection.shuffling import central_guarantee, guarantee_together
from veiltab.researcher.frequency.tally import Tally

LABELS = ("1", "2", "3", "4")
Law = dict[tuple[int, ...], float]


def histograms(values: Sequence[int], oracle: Oracle) -> Law:
    """The law of the counts of a round of k-ary randomised response that everybody answers."""
    law: Law = {(0,) * oracle.size: 1.0}
    for value in values:
        after: Law = {}
        for counts, chance in law.items():
            for symbol in range(oracle.size):
                new = tuple(count + (place == symbol) for place, count in enumerate(counts))
                after[new] = after.get(new, 0.0) + chance * float(oracle.p if symbol == value else oracle.q)
        law = after
    return law


@pytest.mark.parametrize(("nodes", "epsilons"), [(3, ("1", "1")), (4, ("2", "0.5")), (2, ("1", "3"))])
@pytest.mark.parametrize("delta", [0.3, 0.05, 0.005])
def test_no_two_tiny_rounds_tell_more_than_is_stated(nodes: int, epsilons: tuple[str, str], delta: float) -> None:
    oracles = [oracle_for("krr", 3, Decimal(one)) for one in epsilons]
    stated = guarantee_together([(oracle, [nodes], [nodes]) for oracle in oracles], Decimal(str(delta)))
    assert stated is not None
    worst = 0.0
    for others in product(range(3), repeat=nodes - 1):
        first, second = ([histograms([own, *others], oracle) for oracle in oracles] for own in (0, 1))
        worst = max(
            worst,
            sum(
                max(0.0, first[0][a] * first[1][b] - exp(float(stated)) * second[0][a] * second[1][b])
                for a in first[0]
                for b in first[1]
            ),
        )
    assert worst <= delta


@pytest.mark.long
def test_together_is_less_than_the_sum_and_more_than_each() -> None:
    oracles, delta = [oracle_for(name, 10, Decimal(2)) for name in ("krr", "ss")], Decimal("1e-6")
    each = [central_guarantee([3000], [2000], oracle=oracle, delta=delta).epsilon for oracle in oracles]
    found = guarantee_together([(oracle, [3000], [2000]) for oracle in oracles], delta)
    assert found is not None
    assert all(one is not None and one < found for one in each)
    assert float(found) < 0.85 * sum(float(one or 0) for one in each)
    alone = guarantee_together([(oracles[0], [3000], [2000])], delta)
    assert float(alone or 0) == pytest.approx(float(each[0] or 0), rel=1e-3)
    assert guarantee_together([(oracles[0], [3000], [0])], delta) == 0


class MadeRounds:
    """The closed rounds of a researcher."""

    def __init__(self, rounds: dict[str, tuple[RoundStatus, Tally]]) -> None:
        self._rounds = rounds
        self.study = study_from_bytes(TEXT, "study.toml")

    def result(self, round_id: str) -> tuple[RoundStatus, Tally]:
        return self._rounds[round_id]

    def whole_id(self, name: str) -> str:
        return next(one for one in self._rounds if one.startswith(name))


def asked(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Result:
    first, second = status(), status("oue", rates=("0.4", "0.4"))
    second = replace(second, round=replace(second.round, round_id="cd" * 16))
    rounds = {one.round.round_id: (one, tally_of(one, COUNTS.reshape(-1), LABELS)) for one in (first, second)}
    monkeypatch.setattr(
        "veiltab.researcher.collection.rounds_client.Rounds", lambda *_, **__: nullcontext(MadeRounds(rounds))
    )
    start = [words[0], "study.toml", "--identity", str(tmp_path)]
    return CliRunner().invoke(veiltab, ["collect", *start, *words[1:]], catch_exceptions=False)


def test_two_rounds_are_combined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["estimate", "--round", "ab", "--with", "cd"]
    found = json.loads(asked([*words, "--json"], monkeypatch, tmp_path).stdout)
    assert (found["estimator"], found["rounds"]) == ("horvitz_thompson", ["ab" * 16, "cd" * 16])
    assert {bound["round"] for bound in found["card"]} == set(found["rounds"])
    assert found["together"]["pure_epsilon"] == pytest.approx(4)
    assert 0 < found["together"]["epsilon"] < 4
    text = asked(words, monkeypatch, tmp_path).stdout
    assert "400 reports of 510 nodes, 2 rounds together" in text
    assert "paid epsilon 4" in text
    alone = json.loads(asked(["estimate", "--round", "ab", "--json"], monkeypatch, tmp_path).stdout)
    assert (alone["together"], alone["rounds"]) == (None, ["ab" * 16])
    # Both are about the same nodes, so the standard errors shrink.
    for one, both in zip(alone["values"], found["values"], strict=True):
        assert both["se"] < one["se"] * 1.2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--with", "ab"), "combined with itself"),
        (("--with", "cd", "--estimator", "c"), "combined by horvitz_thompson"),
    ],
)
def test_what_cannot_be_combined_is_refused(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        asked(["estimate", "--round", "ab", *words], monkeypatch, tmp_path)


def test_a_balanced_sample_is_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["estimate", "--balance", "--round"]
    found = json.loads(asked([*words, "ab", "--json"], monkeypatch, tmp_path).stdout)["balance"]
    assert (found["each"], found["size"]) == (50, 200)
    assert sum(row["held"] for row in found["values"]) == pytest.approx(1)
    assert "50 reports of each value, 200 in all" in asked([*words, "ab"], monkeypatch, tmp_path).stdout
    with pytest.raises(InvalidInputError, match="does not name one value"):
        asked([*words, "cd"], monkeypatch, tmp_path)
