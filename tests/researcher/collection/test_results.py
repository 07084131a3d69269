"""What a closed round tells: table, card, picture, page."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from veiltab.common.collection.oracles import oracle_for
from veiltab.common.collection.round import Round, RoundState, RoundStatus, Stratum
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import advised_delta
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.researcher.collection.guarantee import DELTA_OF_COINS, bounds, centre, centre_text, guarantee, least_active
from veiltab.researcher.collection.results.results import values_frame, values_records, values_text
from veiltab.researcher.collection.results.round_picture import frequencies_picture
from veiltab.researcher.collection.results.round_report import report_page
from veiltab.researcher.collection.rounds_client import tally_of
from veiltab.researcher.collection.strata import by_stratum
from veiltab.researcher.frequency.frequencies import estimate

TEXT = toml_text(
    {
        "study": {"id": "ages", "title": "Ages & <others>"},
        "server": {"name": "cloud", "endpoint": "localhost:1"},
        "researcher": [{"name": "rosa", "endpoint": "localhost:2"}],
        "nodes": {"name": "fleet", "budget_epsilon": 4},
        "question": [{"name": "age", "integers": [1, 4]}],
    }
).encode()
COUNTS = np.array([[40, 30, 20, 10], [10, 20, 30, 40]], np.int64)


@pytest.fixture(name="study")
def study_of_ages() -> Study:
    return study_from_bytes(TEXT, "study.toml")


def status(
    oracle: str = "krr", rates: tuple[str, str] = ("0.5", "0.5"), reports: tuple[int, int] = (100, 100)
) -> RoundStatus:
    made = oracle_for(oracle, 4, Decimal(2))
    spec = Round(
        round_id="ab" * 16,
        study_digest="cd" * 32,
        researcher="rosa",
        question="age",
        size=4,
        epsilon=Decimal(2),
        oracle=oracle,
        parameters=tuple(sorted(made.parameters.items())),
        strata=(
            Stratum(name="north", population=250, rate=Decimal(rates[0])),
            Stratum(name="south", population=260, rate=Decimal(rates[1])),
        ),
        deadline=2_000_000_000,
    )
    return RoundStatus(round=spec, state=RoundState.CLOSED, closed=1_800_000_000, enrolled=(200, 210), reports=reports)


def test_a_tally_has_the_rates_and_probabilities_that_ran() -> None:
    known = status(rates=("0.1", "0.5"))
    tally = tally_of(known, COUNTS.reshape(-1), ("1", "2", "3", "4"))
    assert np.array_equal(tally.counts, COUNTS)
    assert tally.rates == tuple(stratum.probability for stratum in known.round.strata)
    assert 0 <= Fraction(1, 10) - tally.rates[0] < Fraction(1, 2**64)
    assert (tally.p, tally.q) == (known.round.randomiser.p, known.round.randomiser.q)
    with pytest.raises(InvalidInputError, match="not those of this round"):
        tally_of(known, COUNTS.reshape(-1)[:-1], ("1", "2", "3", "4"))


def test_coins_count_for_the_nodes_that_the_reports_show_and_the_worst_stratum() -> None:
    known = status(reports=(100, 50))
    found = guarantee(known)
    gamma = known.round.randomiser.gamma
    delta = advised_delta(410)
    coins = delta * DELTA_OF_COINS
    active = [least_active(s, Fraction(1, 2), coins) for s in (100, 50)]
    for s, a in zip((100, 50), active, strict=True):
        assert s < a < 2 * s
        assert binom.sf(s - 1, a, 0.5) >= float(coins) > binom.sf(s - 1, a - 1, 0.5)
    certificates = [
        OrderCertificate(population=n, sample=s, cells=4, gamma=gamma) for n, s in zip(active, (100, 50), strict=True)
    ]
    assert found.epsilon is not None
    assert found.known_epsilon is not None
    assert float(found.epsilon) == pytest.approx(max(one.epsilon(float(delta - coins)) for one in certificates))
    assert found.epsilon <= found.known_epsilon <= found.local_epsilon <= 2
    more = RoundStatus(
        round=known.round, state=known.state, closed=known.closed, enrolled=(250, 260), reports=known.reports
    )
    assert guarantee(more, delta).epsilon == found.epsilon


def test_without_coins_who_reported_is_no_secret() -> None:
    known = status(rates=("1", "1"), reports=(1, 50))
    found = guarantee(known)
    assert found.epsilon == found.known_epsilon
    assert not any("cannot learn" in faces for faces in (bound.faces for bound in bounds(known)))
    assert least_active(0, Fraction(1, 2), Decimal("1e-7")) == 0


def test_every_oracle_has_a_certificate() -> None:
    known = status("oue")
    found = guarantee(known)
    assert found.epsilon is not None
    assert found.epsilon < found.pure_epsilon < Decimal(2)
    assert centre(known, estimate(tally_of(known, COUNTS.reshape(-1), ("1", "2", "3", "4")))) is not None
    assert not centre_text(None)
    coalitions = {bound.roles: bound for bound in bounds(known)}
    assert coalitions["researcher",].epsilon == found.epsilon
    assert {("researcher",), ("server",), ("server", "organiser")} <= set(coalitions)


def test_every_coalition_of_a_round_has_its_bound() -> None:
    known = status()
    found = guarantee(known)
    coalitions = {bound.roles: bound for bound in bounds(known)}
    delta = advised_delta(410)
    assert (coalitions["researcher",].epsilon, coalitions["researcher",].delta) == (found.epsilon, delta)
    informed = coalitions["researcher", "organiser"]
    assert (informed.epsilon, informed.delta, informed.other) == (found.known_epsilon, delta, (Decimal(2), Decimal(0)))
    assert "cannot learn which nodes reported" in coalitions["researcher",].note
    for roles in (("researcher", "nodes"), ("server",), ("researcher", "server", "organiser")):
        assert (coalitions[roles].epsilon, coalitions[roles].delta) == (Decimal(2), Decimal(0))


def test_tables_have_one_row_a_value() -> None:
    found = estimate(tally_of(status(), COUNTS.reshape(-1), ("1", "2", "3", "4")))
    records = values_records(found)
    assert [row["value"] for row in records] == ["1", "2", "3", "4"]
    head, *lines = values_text(found).splitlines()
    assert [head.split(), *(line.split()[1:] for line in lines)] == [
        [*records[0]],
        *([f"{number:.5g}" for name, number in row.items() if name != "value"] for row in records),
    ]
    assert len({len(line) for line in (head, *lines)}) == 1
    frame = values_frame(found)
    assert list(frame.columns) == ["value", "estimate", "se", "low", "high", "projected", "count", "count_se"]
    assert frame["count"].sum() == pytest.approx(510)
    assert (frame["low"] <= frame["estimate"]).all()
    assert (frame["estimate"] <= frame["high"]).all()


def test_a_page_shows_numbers_picture_and_guarantee_and_escapes(study: Study) -> None:
    known = status()
    tally = tally_of(known, COUNTS.reshape(-1), study.question("age").attribute.categories)
    page = report_page(study, known, tally, truth=np.array([100.0, 110.0, 150.0, 150.0]))
    assert "Ages &amp; &lt;others&gt;: age" in page
    assert page.count("<svg") == 2  # a wide drawing and a narrow one
    assert "trusted centre" in page
    assert "200 randomised reports" in page
    for who, faces in ((bound.name, bound.faces) for bound in bounds(known)):
        assert who in page
        assert faces.split(";")[0].split(",")[0].split("'")[0] in page
    assert not re.search(r'(src|href)="https?:', page)
    assert page == report_page(study, known, tally, truth=np.array([100.0, 110.0, 150.0, 150.0]))


def test_a_page_warns_of_a_biased_estimator(study: Study) -> None:
    known = status(rates=("0.1", "0.9"), reports=(20, 200))
    counts = np.array([8, 6, 4, 2, 20, 40, 60, 80])
    tally = tally_of(known, counts, study.question("age").attribute.categories)
    assert "horvitz_thompson is unbiased here" in report_page(study, known, tally, "T")
    assert "is unbiased here" not in report_page(study, known, tally)


def test_a_picture_of_many_values_shows_the_largest() -> None:
    made = oracle_for("krr", 400, Decimal(2))
    counts = np.full((1, 400), 2, np.int64)
    counts[0, 350] = 60
    known = status()
    tally = tally_of(known, COUNTS.reshape(-1), ("1", "2", "3", "4"))
    wide = type(tally)(
        counts=counts, reports=np.array([800]), populations=(1000,), rates=(Fraction(1),), p=made.p, q=made.q
    )
    svg = frequencies_picture(estimate(wide))
    assert svg.startswith("<svg")
    assert svg == frequencies_picture(estimate(wide))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("north=1", "stratum south has none"),
        ("north=1,south=2,west=3", "'west' is not a stratum"),
        ("north=1,north=2,south=1", "comes twice"),
        ("north=x,south=2", "is not a number"),
        ("many", "is not a number"),
    ],
)
def test_values_by_stratum_are_whole(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        by_stratum(text, ("north", "south"), int, "--nodes")


def test_one_value_serves_all_strata() -> None:
    assert by_stratum("5", ("north", "south"), int, "--nodes") == {"north": 5, "south": 5}
    assert by_stratum(" north=5 , south=6", ("north", "south"), int, "--nodes") == {"north": 5, "south": 6}


def test_c_s_interval_need_not_hold_its_estimate_and_is_drawn_all_the_same(study: Study) -> None:
    known = status()
    tally = tally_of(known, COUNTS.reshape(-1), study.question("age").attribute.categories)
    assert "c is biased" in report_page(study, known, tally, "c")
