"""Corrected tables: their covariance by a slow calculation, their marginals and hulls, and nothing if none is asked."""

from fractions import Fraction

import numpy as np
import pytest

from tests.conftest import refuses
from tests.researcher.linkage_errors.made_links import (
    AGE,
    DOMAIN,
    OWNERS,
    SHARES,
    WAGE,
    people,
    released,
    relinked,
    undone,
)
from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import conditional_shares, contrasts
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.subgroups import total_contrasts, totals
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign
from veiltab.researcher.estimates.table import to_records
from veiltab.researcher.linkage_errors.corrected import CorrectedEstimate, corrected
from veiltab.researcher.linkage_errors.inversion import Correction, Floats, mixed
from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors, LinkError
from veiltab.researcher.numbers.means import by_group, means
from veiltab.researcher.numbers.points import rounding_variance
from veiltab.researcher.questions.question import Question, answer, answer_of_all
from veiltab.researcher.survival.follow_up import Ending

N, SHARE, SD = 3000, 0.1, 0.02


@pytest.fixture(scope="module")
def observed() -> Estimate:
    """The estimate of a linked table as it is expected, with a tenth of wrong links, so that no cell is below 0."""
    linked = mixed(SHARES.reshape(-1), (4, 3), [((1,), SHARE)])
    mechanism = GammaDiagonal.from_gamma(12, Fraction(30))
    rho = float(mechanism.retention)
    counts = np.rint(N * (rho * linked + (1 - rho) / 12)).astype(np.int64)
    counts[0] += N - counts.sum()
    return Estimate(domain=DOMAIN, design=ReleaseDesign(population=N, sample=N, mechanism=mechanism), counts=counts)


def slowly(observed: Floats, share: float) -> Floats:
    """Return the corrected table, cell by cell."""
    ages, wages = observed.reshape(4, 3).sum(axis=1), observed.reshape(4, 3).sum(axis=0)
    return np.array(
        [(observed[3 * a + b] - share * ages[a] * wages[b]) / (1 - share) for a in range(4) for b in range(3)]
    )


def covariance_person_by_person(table: Floats, observed: Estimate) -> Floats:
    """Return the covariance of the estimated linked table: each person is linked, then replaced, by itself."""
    rho = float(observed.design.mechanism.retention)
    wages = table.reshape(4, 3).sum(axis=0)
    found = np.zeros((12, 12))
    for a in range(4):
        for b in range(3):
            law = np.zeros((4, 3))
            law[a] = SHARE * wages
            law[a, b] += 1 - SHARE
            seen = rho * law.reshape(-1) + (1 - rho) / 12
            found += table[3 * a + b] * (np.diag(seen) - np.outer(seen, seen)) / (N * rho**2)
    return found


def test_the_covariance_is_that_of_a_slow_calculation(observed: Estimate) -> None:
    found = undone(observed, SHARE, SD)
    assert isinstance(found, CorrectedEstimate)
    table, step = slowly(observed.raw, SHARE), 1e-6
    assert table.min() > 0
    assert found.raw == pytest.approx(table, abs=1e-15)
    slopes = np.array(
        [
            (slowly(observed.raw + step * one, SHARE) - slowly(observed.raw - step * one, SHARE)) / (2 * step)
            for one in np.eye(12)
        ]
    ).T
    # Cells that sum to another number than 1 are no table: errors leave the sum alone.
    by_share = (slowly(observed.raw, SHARE + step) - slowly(observed.raw, SHARE - step)) / (2 * step)
    expected = slopes @ covariance_person_by_person(table, observed) @ slopes.T + SD**2 * np.outer(by_share, by_share)
    assert np.abs(found.covariance() - expected).max() < 1e-8 * np.abs(expected).max()
    assert found.se == pytest.approx(np.sqrt(np.diagonal(expected)), rel=1e-6)
    assert found.root_mse == pytest.approx(np.sqrt(np.trace(expected)), rel=1e-6)
    some = np.random.default_rng(1).normal(size=(3, 12))
    assert found.contrast_covariance(some) == pytest.approx(some @ expected @ some.T, rel=1e-6, abs=1e-12)


def test_intervals_are_near_those_of_the_normal_law(observed: Estimate) -> None:
    found = undone(observed, SHARE, SD)
    assert (found.low < found.raw).all()
    assert (found.raw < found.high).all()
    assert (found.high - found.low) / (2 * 1.959964 * found.se) == pytest.approx(np.ones(12), abs=0.02)


def test_the_share_of_the_uncertainty_grows_with_that_of_the_share(observed: Estimate) -> None:
    assert (undone(observed, SHARE, SD).se > undone(observed, SHARE).se).sum() >= 10
    assert undone(observed, SHARE).se.sum() > observed.se.sum()


def test_marginals_are_those_of_the_corrected_table(observed: Estimate) -> None:
    found = undone(observed, SHARE, SD)
    turned = found.marginal(["wage", "age"])
    assert turned.raw.reshape(3, 4).T.reshape(-1) == pytest.approx(found.raw, abs=1e-15)
    assert turned.se.reshape(3, 4).T.reshape(-1) == pytest.approx(found.se, rel=1e-9)
    ages = found.marginal(["age"])
    assert ages.raw == pytest.approx(observed.marginal(["age"]).raw, abs=1e-15)
    assert ages.se == pytest.approx(observed.marginal(["age"]).se, rel=1e-6)
    # Wages of people come by links: who got whose is drawn.
    assert (found.marginal(["wage"]).se > 1.01 * observed.marginal(["wage"]).se).all()


@pytest.mark.parametrize("errors", [None, LinkageErrors(of=LinkError(share=0.0))])
def test_without_wrong_links_nothing_is_made(observed: Estimate, errors: LinkageErrors | None) -> None:
    assert corrected(observed, errors, OWNERS) is observed
    assert to_records(corrected(observed, errors, OWNERS)) == to_records(observed)
    one_owner = dict.fromkeys(OWNERS, "registry")
    assert corrected(observed, LinkageErrors(of=LinkError(share=0.1)), one_owner) is observed


def test_a_range_has_the_hull_of_both_ends(observed: Estimate) -> None:
    found = undone(observed, SHARE, SD, least=0.01)
    assert isinstance(found, CorrectedEstimate)
    whole, least = found.ends
    assert np.array_equal(whole.raw, undone(observed, SHARE).raw)
    assert np.array_equal(least.raw, undone(observed, 0.01).raw)
    assert np.array_equal(found.low, np.minimum(whole.low, least.low))
    assert np.array_equal(found.high, np.maximum(whole.high, least.high))
    assert np.array_equal(found.raw, whole.raw)
    assert np.array_equal(found.se, whole.se)
    # As many links are wrong at either end.
    assert least.se.sum() > undone(observed, 0.01, SD).se.sum()
    with refuses(InvalidInputError, where="linkage error"):
        found.contrast_covariance(np.ones((1, 12)))
    with pytest.raises(InvalidInputError, match="range"):
        means(found, "wage", ["age"])


QUESTIONS = (
    Question(given=("age",)),
    Question(given=("age",), contrast=Contrast.RATIO),
    Question(totals=({"wage": ["2"]}, {"wage": ["0"]}), contrast=Contrast.DIFFERENCE),
    Question(mean="wage", given=("age",)),
    Question(sum="wage"),
    Question(variance="wage", given=("age",)),
    Question(quantile=0.5, of="wage", given=("age",)),
    Question(linear="wage ~ age"),
    Question(model="wage=2 ~ age"),
    Question(correlation=("age", "wage")),
    Question(survival=Ending(time="age", event="wage", categories=("2",))),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_every_answer_to_a_range_is_the_hull_of_both_ends(observed: Estimate, question: Question) -> None:
    found = answer(question, undone(observed, SHARE, least=0.0))
    table = undone(observed, SHARE, least=0.0)
    assert isinstance(table, CorrectedEstimate)
    ends = [answer(question, end) for end in table.ends]
    assert np.array_equal(found.low, np.minimum(*(end.low for end in ends)))
    assert np.array_equal(found.high, np.maximum(*(end.high for end in ends)))
    assert np.array_equal(found.estimate, ends[0].estimate)
    assert np.isfinite(found.estimate).all()
    assert any(remark.startswith("Corrected for wrong links: of the links with bank") for remark in found.remarks)


def test_answers_to_one_share_are_those_of_the_corrected_table(observed: Estimate) -> None:
    table = undone(observed, SHARE, SD)
    by_age, z = answer(Question(mean="wage", given=("age",)), table), 1.959964
    cells, numbers = table.raw.reshape(4, 3), np.arange(3)
    assert by_age.estimate == pytest.approx(cells @ numbers / cells.sum(axis=1), abs=1e-12)
    for age, (low, high) in enumerate(zip(by_age.low, by_age.high, strict=True)):
        mean, contrast = by_age.estimate[age], np.zeros((4, 3))
        contrast[age] = (numbers - mean) / cells[age].sum()
        error = np.sqrt(table.contrast_covariance(contrast.reshape(1, -1))[0, 0])
        assert (low, high) == pytest.approx((mean - z * error, mean + z * error), abs=0.05 * error)
    shares = conditional_shares(table, ["age"])
    assert shares.estimate == pytest.approx((cells / cells.sum(axis=1, keepdims=True)).reshape(-1), abs=1e-12)
    error = np.sqrt(
        table.contrast_covariance(np.r_[1 - shares.estimate[0], -shares.estimate[[0, 0]], np.zeros(9)][None])[0, 0]
    )
    assert shares.high[0] - shares.low[0] == pytest.approx(2 * z * error / cells[0].sum(), rel=0.02)
    several = totals(table, [{"wage": ["2"]}])
    assert several.high - several.low == pytest.approx(2 * z * N * table.marginal(["wage"]).se[2], rel=0.02)
    more = total_contrasts(table, Contrast.DIFFERENCE, [{"wage": ["2"]}, {"wage": ["0"]}])
    wages = table.marginal(["wage"]).covariance()
    error = np.sqrt(wages[0, 0] + wages[2, 2] - 2 * wages[0, 2])
    assert more.high - more.low == pytest.approx(2 * z * N * error, rel=1e-6)


def test_shares_of_two_groups_share_the_error_of_the_links(observed: Estimate) -> None:
    table = undone(observed, SHARE, 0.05)
    found = contrasts(table, Contrast.DIFFERENCE, ["age"])
    cells = table.raw.reshape(4, 3)
    shares, z = cells / cells.sum(axis=1, keepdims=True), 1.959964
    contrast = np.zeros((2, 4, 3))
    for place, age in enumerate((3, 0)):
        contrast[place, age] = ((np.arange(3) == 2) - shares[age, 2]) / cells[age].sum()
    errors = table.contrast_covariance(contrast.reshape(2, -1))
    together = np.sqrt(errors[0, 0] + errors[1, 1] - 2 * errors[0, 1])
    assert together > 1.1 * np.sqrt(errors[0, 0] + errors[1, 1])
    assert found.high[-1] - found.low[-1] == pytest.approx(2 * z * together, rel=0.03)


def test_intervals_of_cells_are_those_of_before_where_hardly_a_link_is_wrong() -> None:
    rng = np.random.default_rng(6)
    skewed = people(400, np.array([[0.9, 0.05, 0.01], [0.01, 0.01, 0.0], [0.0, 0.0, 0.01], [0.0, 0.0, 0.01]]))
    mechanism = GammaDiagonal.from_gamma(12, Fraction(60))
    kept = rng.binomial(skewed.reshape(-1), float(mechanism.retention))
    counts = kept + rng.multinomial(400 - kept.sum(), np.full(12, 1 / 12))
    table = Estimate(
        domain=DOMAIN, design=ReleaseDesign(population=900, sample=400, mechanism=mechanism), counts=counts
    )
    found = undone(table, 1e-9)
    assert found.low == pytest.approx(table.low, abs=2e-3)
    assert found.high == pytest.approx(table.high, abs=2e-3)
    # Not the interval of the normal law, which is off by more.
    assert np.abs(table.raw + 1.96 * table.se - table.high).max() > 4e-3


def test_rounded_numbers_add_what_rounding_adds_to_the_measured_table() -> None:
    rng = np.random.default_rng(7)
    grid = Domain(attributes=(AGE, Attribute(name="wage", categories=WAGE.categories, number="bank/wage")))
    table = released(relinked(people(5000), 0.1, rng), 100, rng, grid)
    found, contrasts = undone(table, 0.1, 0.01), rng.normal(size=(3, 12))
    moved = Correction(table.raw, (4, 3), [((1,), 0.1)]).transported(contrasts)
    added = rounding_variance(found, contrasts)
    assert added.tolist() == rounding_variance(table, moved).tolist()
    assert not np.allclose(added, rounding_variance(table, contrasts))
    exact = undone(released(people(5000), 100, rng), 0.1, 0.01)
    assert (rounding_variance(exact, contrasts) == 0).all()
    both = means(found, "wage", ["age"])
    without = found.contrast_covariance(by_group(4, np.arange(3.0)))
    assert np.diagonal(rounding_variance(found, by_group(4, np.arange(3.0)))).min() > 0.01 * np.diagonal(without).min()
    assert np.isfinite(both.high).all()


def test_links_that_limit_an_answer_are_named() -> None:
    rng = np.random.default_rng(4)
    table = released(relinked(people(100_000), 0.05, rng), 2000, rng)
    wide = answer(Question(linear="wage ~ age"), undone(table, 0.05, least=0.0))
    assert wide.remarks[-1].startswith("Links, not noise, limit the answer: 2 of 2 intervals are more than twice")
    narrow = answer(Question(linear="wage ~ age"), undone(table, 0.0001, least=0.0))
    assert not any("limit the answer" in remark for remark in narrow.remarks)


def test_moments_of_several_tables_take_the_same_ends() -> None:
    rng = np.random.default_rng(5)
    tables = [released(relinked(people(20_000), 0.05, rng), 200, rng) for _ in range(2)]
    ages = released(people(20_000).sum(axis=1), 200, rng, Domain(attributes=(AGE,)))
    question = Question(linear="wage ~ age")
    some = [undone(tables[0], 0.05, least=0.0), ages]
    found = answer_of_all(some, question)
    ends = [answer_of_all([undone(tables[0], share, 0.0), ages], question) for share in (0.05, 0.0)]
    assert found.low == pytest.approx(np.minimum(*(end.low for end in ends)), rel=0.05)
    compared = answer(Question(), undone(tables[0], 0.05, least=0.0), undone(tables[1], 0.05, least=0.0))
    assert len(compared.estimate) == 12


def test_a_table_too_large_is_refused_and_a_part_of_it_is_not() -> None:
    sizes = {"age": 100, "wage": 50}
    domain = domain_of(**{name: tuple(map(str, range(size))) for name, size in sizes.items()})
    counts = np.full(5000, 4)
    design = ReleaseDesign(population=20_000, sample=20_000, mechanism=GammaDiagonal.from_gamma(5000, Fraction(200)))
    large = Estimate(domain=domain, design=design, counts=counts)
    with pytest.raises(InvalidInputError, match="5,000 cells, and up to 4,096"):
        undone(large, 0.05)
    assert WAGE.name in sizes
    assert undone(large.marginal(["age"]), 0.05).se.shape == (100,)
