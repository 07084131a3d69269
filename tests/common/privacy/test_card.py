"""The card shows what a release guarantees, against each adversary, and never more."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.core.numbers.rounding import ln_above, upward
from veiltab.common.privacy.cards.card import advised_delta, card_of, delta_warning
from veiltab.common.privacy.cards.guarantee_text import epsilon_text
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease, order_epsilon
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.common.schemes import scheme_of


@pytest.mark.parametrize(
    ("population", "delta"), [(2, "1e-6"), (10, "1e-6"), (410, "1e-6"), (10**6, "2.4e-7"), (10**9, "1.2e-10")]
)
def test_the_advised_delta_is_small_beside_one_respondent(population: int, delta: str) -> None:
    assert advised_delta(population) == Decimal(delta)


@pytest.mark.parametrize("population", [2, 10**5, 284_803, 284_805, 10**6, 3 * 10**7, 10**9, 10**12])
def test_the_advised_delta_is_never_above_what_it_states(population: int) -> None:
    assert 0 < advised_delta(population) <= Decimal("1e-6")
    assert float(advised_delta(population)) <= population**-1.1


def shared(
    population: int = 400, sample: int = 300, *, scheme: str = "wor", stage: int | None = None, noise: TwoSidedNoise
) -> TwoSidedRelease:
    drawn = scheme_of(scheme, population=population, sample=sample, stage=stage)
    return TwoSidedRelease(scheme=drawn, noise=noise)


NOISE = TwoSidedNoise(cells=6, curator_replacement=UNIT // 3, server_replacement=UNIT // 4)
RELEASE = shared(noise=NOISE)


def test_a_card_has_a_bound_for_each_coalition_in_their_order() -> None:
    assert [bound.roles for bound in card_of(RELEASE).bounds] == [coalition.roles for coalition in Coalition]


@pytest.mark.parametrize(
    ("coalition", "gamma", "sample", "presence"),
    [
        (Coalition.ANALYST, NOISE.gamma, 300, 1),
        (Coalition.DESK, NOISE.gamma, 300, 1),
        (Coalition.DESK_AND_SERVER, 1 + 6 * Fraction(UNIT - UNIT // 3, UNIT // 3), 300, 1),
        (Coalition.ANALYST_AND_CURATORS, Fraction(19), 300, Fraction(UNIT - UNIT // 3, UNIT)),
    ],
)
def test_each_bound_is_the_better_of_the_pure_one_and_the_certificates(
    coalition: Coalition, gamma: Fraction, sample: int, presence: Fraction
) -> None:
    population = 300 if presence < 1 else 400
    certificate = OrderCertificate(
        population=population, sample=sample, cells=6, gamma=gamma, presence=Fraction(presence)
    )
    bound = card_of(RELEASE, delta=Decimal("1e-4")).bound(coalition)
    assert (bound.epsilon, bound.delta) == (Decimal(certificate.epsilon(1e-4)), Decimal("1e-4"))
    assert certificate.delta(float(bound.epsilon or 0)) <= 1e-4
    assert bound.other == (ln_above(certificate.pure_ratio), Decimal(0))
    assert not bound.per_row


def test_a_pure_request_has_every_epsilon_at_the_advised_delta_and_its_own_beside_it() -> None:
    view, bound = RELEASE.seen_by_desk, card_of(RELEASE).bound(Coalition.DESK)
    assert (bound.epsilon, bound.delta) == (order_epsilon(view, Decimal("1e-6")), Decimal("1e-6"))
    assert bound.note.endswith(f"; epsilon {epsilon_text(view.pure_epsilon)} without a delta")


@pytest.mark.parametrize(("curators", "server"), [(1, 4), (4, 1), (3, 3), (7, 7)])
@pytest.mark.parametrize("delta", [None, Decimal("1e-6"), Decimal("0.1")])
def test_no_coalition_faces_less_than_its_member(curators: int, server: int, delta: Decimal | None) -> None:
    curators, server = (UNIT // 8 * part for part in (curators, server))
    noise = TwoSidedNoise(cells=6, curator_replacement=curators, server_replacement=server)
    of = {bound.roles: bound.epsilon or 0 for bound in card_of(shared(noise=noise), delta=delta).bounds}
    assert of["desk",] <= of["desk", "server"]
    assert of["analyst",] <= of["analyst", "curators"]


@pytest.mark.parametrize(("scheme", "stage", "cells"), [("wr", None, 6), ("must.ow", 350, 6), ("wor", None, 2**40)])
def test_no_order_is_claimed_without_a_certificate(scheme: str, stage: int | None, cells: int) -> None:
    noise = TwoSidedNoise(cells=cells, curator_replacement=UNIT // 3, server_replacement=UNIT // 4)
    card = card_of(shared(scheme=scheme, stage=stage, noise=noise))
    for bound in card.bounds:
        assert bound.other is None
        assert bound.delta == 0
    pair = card.bound(Coalition.ANALYST_AND_CURATORS)
    assert pair.epsilon == ln_above(noise.server.gamma)
    # Drawn several times, a respondent loses it each time.
    several = scheme != "wor"
    assert pair.per_row == several
    for bound in (pair, card.bound(Coalition.DESK_AND_CURATORS)):
        assert (bound.person_epsilon > 1000) == several
        texts = f"{bound.guarantee}; {bound.limit_in_full}"
        assert [texts.count(f"{one} row, and a person may have several") for one in ("a", "per")] == 2 * [several]


def test_a_card_as_plain_data_has_no_epsilon_where_nothing_protects_and_zero_where_nothing_is_seen() -> None:
    plain = {bound.roles: bound.as_dict() for bound in card_of(RELEASE).bounds}
    assert all(bound["coalition"] == list(roles) for roles, bound in plain.items())
    assert plain["desk", "server", "curator"]["epsilon"] is None
    assert plain["server", "curators"]["epsilon"] == 0
    assert plain["desk", "curators"]["per_row"] is True


def test_without_the_curators_noise_the_desk_and_the_server_see_the_raw_rows() -> None:
    noise = TwoSidedNoise(cells=6, curator_replacement=0, server_replacement=UNIT // 4)
    bound = card_of(shared(noise=noise)).bound(Coalition.DESK_AND_SERVER)
    assert (bound.epsilon, bound.person_epsilon) == (None, Decimal("Infinity"))
    assert "raw rows" in bound.faces


def test_an_order_that_adds_nothing_is_not_shown() -> None:
    hardly = TwoSidedNoise(cells=24, curator_replacement=0, server_replacement=2000)
    bound = card_of(shared(45222, 45222, noise=hardly)).bound(Coalition.DESK)
    assert bound.other is None
    assert bound.faces.startswith(f"epsilon {epsilon_text(ln_above(hardly.gamma))}; ")
    assert bound.in_full.startswith(f"epsilon = {upward(ln_above(hardly.gamma))} (pure): ")


@pytest.mark.parametrize(("delta", "warned"), [("0.9", True), ("1e-3", True), ("9.9e-4", False), ("1e-6", False)])
def test_a_delta_that_covers_one_respondent_is_warned_about(delta: str, *, warned: bool) -> None:
    found = delta_warning(Decimal(delta), 1000)
    assert ("not below 1/n = 0.001" in found) == warned
    assert bool(found) == warned


@pytest.mark.parametrize("one_time", [False, True])
def test_the_server_faces_ciphertext_that_is_random_or_cannot_be_told_from_it(*, one_time: bool) -> None:
    faces = card_of(RELEASE, one_time=one_time).bound(Coalition.SERVER_AND_CURATORS).faces
    assert ("does not depend on the data" in faces) == one_time
    assert ("stay encrypted with ChaCha20" in faces) == (not one_time)


@pytest.mark.parametrize("delta", [None, Decimal("1e-6")])
def test_a_server_that_adds_half_of_its_noise_protects_like_one_with_half_as_much(delta: Decimal | None) -> None:
    noise = TwoSidedNoise(cells=6, curator_replacement=UNIT // 3, server_replacement=UNIT // 2)
    half = card_of(shared(noise=replace(noise, server_replacement=UNIT // 4)), delta=delta).bound(Coalition.DESK)
    found = card_of(shared(noise=noise), delta=delta, least_noise=Fraction(1, 2)).bound(Coalition.DESK)
    assert found.if_omitted == (half.epsilon, half.delta)
    assert half.epsilon is not None
    assert found.epsilon is not None
    assert half.epsilon > found.epsilon


def test_a_server_that_may_add_nothing_leaves_no_bound_without_noise_of_the_curators() -> None:
    noise = TwoSidedNoise(cells=6, curator_replacement=0, server_replacement=UNIT // 2)
    assert card_of(shared(noise=noise), least_noise=Fraction(0)).bound(Coalition.DESK).if_omitted is None
