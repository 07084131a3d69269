"""The card shows what a release guarantees, against each adversary, and never more."""

from decimal import Decimal
from fractions import Fraction
from math import log

import pytest

from veiltab.common.core.rounding import upward
from veiltab.common.privacy.card import EpsilonCard, advised_delta, card_of, delta_warning
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.shuffle import OrderCertificate

RELEASE = description_of({"population": 400, "sample": 300, "cells": 6, "gamma": 9})


@pytest.mark.parametrize(
    ("population", "delta"), [(2, "1e-6"), (10, "1e-6"), (410, "1e-6"), (10**6, "2.4e-7"), (10**9, "1.2e-10")]
)
def test_the_advised_delta_is_small_beside_one_respondent(population: int, delta: str) -> None:
    assert advised_delta(population) == Decimal(delta)


@pytest.mark.parametrize("population", [2, 10**5, 284_803, 284_805, 10**6, 3 * 10**7, 10**9, 10**12])
def test_the_advised_delta_is_never_above_what_it_states(population: int) -> None:
    assert 0 < advised_delta(population) <= Decimal("1e-6")
    assert float(advised_delta(population)) <= population**-1.1


def test_a_card_has_the_numbers_of_its_release() -> None:
    card = card_of(RELEASE)
    assert card.epsilon == RELEASE.pure_epsilon
    assert card.local_epsilon == RELEASE.local_epsilon
    assert float(card.epsilon) == pytest.approx(log(1 + 300 / 400 * 8))
    assert float(card.local_epsilon) == pytest.approx(log(9))
    certificate = OrderCertificate(population=400, sample=300, cells=6, gamma=Fraction(9))
    assert card.order == (Decimal(certificate.epsilon(1e-6)), Decimal("1e-6"))
    assert not card.one_time


def test_a_card_certifies_the_delta_that_was_asked_for() -> None:
    card = card_of(RELEASE, delta=Decimal("1e-4"))
    assert card.order is not None
    assert card.order[1] == Decimal("1e-4")
    assert RELEASE.delta(float(card.order[0])) <= 1e-4


@pytest.mark.parametrize(
    "facts", [{"scheme": "wr"}, {"scheme": "must.ow", "stage": 350}, {"cells": 2**40}, {"gamma": 1}]
)
def test_no_order_is_claimed_without_a_certificate(facts: dict[str, object]) -> None:
    release: ReleaseDescription = description_of(
        {"population": 400, "sample": 300, "cells": 6, "gamma": 9, "scheme": "wor"} | facts
    )
    assert card_of(release).order is None


def test_the_rows_name_each_adversary_and_what_it_faces() -> None:
    card = EpsilonCard(
        epsilon=Decimal("0.1"), order=(Decimal("0.0123456"), Decimal("1e-6")), local_epsilon=Decimal("2.1972245773")
    )
    rows = dict(card.rows())
    assert rows["researcher"] == "epsilon = 0.100000 (pure), and (epsilon, delta) = (0.012346, 0.000001) (both hold)"
    assert rows["researcher with a curator"].startswith("epsilon = 2.197225 per row")
    assert rows["server with the researcher"].startswith("no protection")


def test_an_order_that_adds_nothing_is_not_shown() -> None:
    certified = card_of(description_of({"population": 45222, "sample": 45222, "cells": 24, "gamma": "2.3e17"}))
    assert certified.order is not None
    assert float(certified.order[0]) == pytest.approx(float(certified.epsilon), abs=1e-5)
    rows = dict(certified.rows())
    assert rows["researcher"] == f"epsilon = {upward(certified.epsilon)} (pure)"


@pytest.mark.parametrize(("delta", "warned"), [("0.9", True), ("1e-3", True), ("9.9e-4", False), ("1e-6", False)])
def test_a_delta_that_covers_one_respondent_is_warned_about(delta: str, *, warned: bool) -> None:
    found = delta_warning(Decimal(delta), 1000)
    assert ("not below 1/n = 0.001" in found) == warned
    assert bool(found) == warned


@pytest.mark.parametrize("one_time", [False, True])
def test_the_server_faces_ciphertext_that_is_random_or_cannot_be_told_from_it(*, one_time: bool) -> None:
    faces = dict(card_of(RELEASE, one_time=one_time).rows())["server alone"]
    assert ("does not depend on the data" in faces) == one_time
    assert ("ChaCha20 cannot be told from random" in faces) == (not one_time)
