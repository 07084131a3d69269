"""Estimates among the people whom a spoke has: no bias, honest intervals, and what is said of n."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.common.study.other import FULL
from tests.researcher.analysis.simulated import design_for, exact, releases_of
from veiltab.common.core.domain import ABSENT
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.missing import respondents_sentence
from veiltab.researcher.analysis.comparisons import compare
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.estimates.people_present import PresentEstimate, among_present, present_sentence, spokes_of
from veiltab.researcher.estimates.pooling import pooled
from veiltab.researcher.linkage_errors.corrected import corrected
from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors, LinkError
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.questions import question as questions
from veiltab.researcher.questions.sentence import parse_question

Counts = NDArray[np.int64]

N = 50_000
STUDY = study_from_bytes(FULL.replace(b"complete = true\n", b"").replace(b"[1, 12]", b"[1, 4]"), "study.toml")
NAMES = ("sex", "hours", "salary")
DOMAIN = STUDY.domain(NAMES)
PRESENT = DOMAIN.without_absent
MATCHED = (1.0, 0.9, 0.5, 0.1)
RATES = {"f": 1.3, "m": 0.7}
"""How presence goes with sex: the present are no random half of the hub."""

OWNERS = {name: STUDY.owner_of(name) for name in NAMES}
WRONG = LinkageErrors(of=LinkError(share=0.1, sd=0.0, least=None))

QUESTIONS = (
    "sex, hours, salary",
    "share of salary by sex",
    "sex",
    "mean of hours by sex",
    "difference of mean of hours by sex",
    "variance of hours",
    "linear hours ~ sex + salary",
    "ratio of share of salary by sex",
    "odds ratio of logistic salary ~ sex",
    "total of sex=f, salary=high & hours=4",
    "sum of hours by sex",
    "loglinear sex * salary",
    "survival hours:salary=high by sex",
)
COX = "ratio of survival hours:salary=high ~ sex"
"""Where few are present its intervals hold somewhat more often."""


@cache
def people(matched: float) -> Counts:
    """Return a table of N rows of the hub, shape of DOMAIN: whoever is absent is so in both attributes of the spoke."""
    hours = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    high = np.array([0.2, 0.3, 0.5, 0.6])
    shares = np.zeros(DOMAIN.shape)
    for sex, rate in enumerate(RATES.values()):
        share = matched if matched == 1 else matched * rate if matched <= 0.5 else 1 - (1 - matched) * (2 - rate)
        shares[sex, :4, 0], shares[sex, :4, 1] = (share / 2 * hours[sex] * one for one in (1 - high, high))
        shares[sex, 4, 2] = 0.5 - share / 2
    table = np.floor(shares * N).astype(np.int64)
    table[0, 0, 0] += N - table.sum()
    return table


def releases(matched: float, runs: int, seed: int = 7, kept: float = 0.5) -> list[Estimate]:
    return releases_of(people(matched), DOMAIN, N, kept, runs, np.random.default_rng(seed))


def asked(question: str, table: TableEstimate) -> Analysis:
    read = parse_question(question, table.domain)
    part = table.marginal(read.attributes) if read.attributes else table
    return questions.answer_of_all([table], read) if read.is_of_all_tables else questions.answer(read, part)


def truth_of(matched: float) -> TableEstimate:
    """Return the table of those who are present, as if nobody else were in the hub."""
    table = people(matched)[:, :4, :2]
    return replace(exact(table, PRESENT), study_digest=STUDY.digest)


def coverage(question: str, matched: float, runs: int) -> NDArray[np.float64]:
    """Return how often each row's interval held the truth; a row that cannot be said counts as held."""
    true = asked(question, truth_of(matched)).estimate
    inside = []
    for released in releases(matched, runs):
        found = asked(question, among_present(released, STUDY))
        inside.append(np.isnan(found.low) | ((found.low <= true) & (true <= found.high)))
    share: NDArray[np.float64] = np.mean(inside, axis=0)
    return share


@pytest.mark.parametrize("question", [*QUESTIONS, COX])
def test_intervals_hold_the_truth_of_those_who_are_present(question: str) -> None:
    covered = coverage(question, 0.5, 200)
    assert 0.905 <= covered.mean() <= 0.985, covered


@pytest.mark.long
@pytest.mark.parametrize("matched", MATCHED)
@pytest.mark.parametrize("question", QUESTIONS)
def test_intervals_hold_the_truth_at_every_matched_share(question: str, matched: float) -> None:
    covered = coverage(question, matched, 2000)
    assert 0.94 <= covered.mean() <= 0.96, covered
    assert covered.min() > 0.91, covered


def test_the_table_is_unbiased_and_its_error_as_foreseen() -> None:
    found = [among_present(one, STUDY) for one in releases(0.5, 400)]
    true = truth_of(0.5).raw
    errors = np.array([one.raw for one in found]) - true
    spread = np.array([one.se for one in found]).mean(axis=0)
    assert np.abs(errors.mean(axis=0) / spread * np.sqrt(400)).max() < 4
    assert np.allclose(errors.std(axis=0) / spread, 1, atol=0.15)
    expected = np.mean([one.root_mse for one in found])
    assert np.isclose(np.sqrt((errors**2).sum(axis=1).mean()), expected, rtol=0.1)
    assert np.allclose(np.sqrt(np.diagonal(found[0].covariance())), found[0].se)


def test_a_marginal_is_of_the_same_people() -> None:
    (released,) = releases(0.5, 1)
    found = among_present(released, STUDY)
    by_sex = found.marginal(["sex"])
    assert np.allclose(by_sex.raw, found.raw.reshape(2, -1).sum(axis=1))
    assert np.allclose(by_sex.covariance(), found.contrast_covariance(np.repeat(np.eye(2), 8, axis=1)))
    assert np.isclose(by_sex.design.people, found.design.people)
    # Whoever is absent is mostly a man: among all rows of the hub the shares are others.
    assert by_sex.raw[0] - released.marginal(["sex"]).raw[0] > 0.1


def test_the_covariance_is_that_of_the_released_table_by_the_derivative() -> None:
    table = people(0.5)
    design = design_for(table, N // 2, 0.5)
    expected = N // 2 * (0.5 * table.reshape(-1) / N + 0.5 / DOMAIN.cells)
    counts = np.floor(expected).astype(np.int64)
    counts[np.argsort(counts - expected)[: N // 2 - counts.sum()]] += 1
    found = among_present(Estimate(domain=DOMAIN, design=design, counts=counts), STUDY).marginal(["hours", "sex"])
    assert isinstance(found, PresentEstimate)
    by_derivative = found.observed.contrast_covariance(found.transported(np.eye(8)))
    assert np.allclose(found.covariance(), by_derivative, rtol=0, atol=1e-3 * by_derivative.max())


def test_totals_and_rows_are_those_of_the_released_table() -> None:
    (released,) = releases(0.5, 1)
    found = among_present(released, STUDY)
    one = asked("total of salary=high & hours=4", found)
    other = asked("total of salary=high & hours=4", released)
    assert np.allclose([one.estimate, one.low, one.high], [other.estimate, other.low, other.high])
    cells = [sex * 15 + hours * 3 + salary for sex in range(2) for hours in range(4) for salary in range(2)]
    for of_present, of_all in zip(found.rows, released.rows, strict=True):
        assert np.allclose(of_present, of_all[cells], rtol=1e-3)


def test_everything_says_what_n_is_and_how_many_are_present() -> None:
    (released,) = releases(0.5, 1)
    found = among_present(released, STUDY)
    (said,) = found.remarks
    assert "about 10 of them" in present_sentence("alice", ("bob",), 10, 13.3), "an unbiased number may be above n"
    about = f"about {found.design.people:,.0f} of them are in the table of bob, and this is about these."
    assert said.startswith(f"n = 50,000 rows of alice; {about}")
    assert said in str(found)
    assert said in asked("share of salary by sex", found).remarks
    assert said in asked("linear hours ~ sex", found).remarks
    independence = parse_question("independence of sex and salary", PRESENT)
    assert said in str(questions.test_of(independence, found.marginal(["sex", "salary"]), 0.05))
    assert "salary, absent" not in str(asked("share of salary by sex", found))


def test_a_model_of_several_tables_says_once_whom_it_is_about() -> None:
    found = linear([among_present(one, STUDY) for one in releases(0.5, 2)], "hours ~ sex")
    assert sum(remark.startswith("n = 50,000 rows of alice") for remark in found.remarks) == 1


def test_shown_it_is_a_category_whose_numbers_are_missing() -> None:
    (released,) = releases(0.5, 1, kept=0.999)
    by_sex = asked("share of salary by sex", released)
    assert by_sex.labels["salary"].count(ABSENT) == 2
    assert np.allclose(by_sex.estimate[2::3], people(0.5)[:, 4, 2] / people(0.5).sum(axis=(1, 2)), atol=0.01)
    shown, left_out = (asked("mean of hours by sex", table) for table in (released, among_present(released, STUDY)))
    assert np.allclose(shown.estimate, left_out.estimate, atol=0.01)
    with pytest.raises(InvalidInputError, match="some respondents miss hours"):
        asked("linear hours ~ sex", released)


def test_numbers_that_were_rounded_have_honest_intervals() -> None:
    grid = b'kind = "number"\ngrid = [0, 10, 30]'
    study = study_from_bytes(FULL.replace(b"complete = true\n", b"").replace(b"integers = [1, 12]", grid), "study.toml")
    rng, points, n = np.random.default_rng(4), np.array([0.0, 10.0, 30.0]), 20_000
    sex = rng.random(n) < 0.5
    numbers = np.where(sex, rng.gamma(2, 5, n), rng.gamma(3, 4, n)).clip(0, 30)
    here = rng.random(n) < np.where(sex, 0.7, 0.3)
    by_sex = [numbers[here & (sex == one)] for one in (False, True)]
    below = np.clip(np.searchsorted(points, numbers, "right") - 1, 0, 1)
    way = (numbers - points[below]) / (points[below + 1] - points[below])
    true = {"mean": [one.mean() for one in by_sex], "sum": [one.sum() for one in by_sex]}
    inside: dict[str, list[bool]] = {what: [] for what in true}
    for _ in range(200):
        symbols = np.where(here, below + (rng.random(n) < way), 3)
        table = np.bincount(4 * sex + symbols, minlength=8).reshape(2, 4)
        (released,) = releases_of(table, study.domain(("sex", "hours")), n, 0.9, 1, rng)
        for what, numbers_of in true.items():
            found = asked(f"{what} of hours by sex", among_present(released, study))
            inside[what] += ((found.low <= numbers_of) & (numbers_of <= found.high)).tolist()
    # What rounding adds is bounded and not known, so that intervals hold somewhat more often.
    assert all(0.94 <= np.mean(held) <= 0.995 for held in inside.values())


def test_two_releases_are_compared_among_those_present() -> None:
    pairs = zip(releases(0.5, 100, seed=1), releases(0.5, 100, seed=2), strict=True)
    inside = []
    for first, second in pairs:
        one, other = (among_present(table, STUDY).marginal(["sex", "salary"]) for table in (first, second))
        found = compare(one, other, Contrast.DIFFERENCE, ["sex"])
        inside.append((found.low <= 0) & (found.high >= 0))
    assert 0.88 <= np.mean(inside) <= 1


def test_runs_are_pooled_before_those_who_are_absent_are_left_out() -> None:
    runs = list(releases(0.5, 2))
    both, one = (among_present(some, STUDY) for some in (pooled(runs), runs[0]))
    assert isinstance(both, PresentEstimate)
    assert np.allclose(both.se, one.se / np.sqrt(2), rtol=0.05)


def test_a_model_has_no_interval_and_the_same_people() -> None:
    shares = people(0.5).reshape(-1) / N
    model = ModelledTable(domain=DOMAIN, raw=shares, population=N).among_present(STUDY)
    assert np.allclose(model.raw, truth_of(0.5).raw)
    assert np.isclose(model.people, people(0.5)[:, :4, :2].sum())
    assert "are in the table of bob" in model.remarks[0]
    assert np.isclose(model.marginal(["sex"]).people, model.people)


def test_independence_among_those_present_is_rejected_as_often_as_it_says() -> None:
    table = people(0.5).copy()
    present = table[:, :4, :2]
    both = np.outer(present.sum(axis=(1, 2)), present.sum(axis=0))
    table[:, :4, :2] = (both / present.sum()).reshape(present.shape)
    table[0, 0, 0] += N - table.sum()
    released = releases_of(table, DOMAIN, N, 0.5, 400, np.random.default_rng(3))
    read = parse_question("independence of sex and salary, hours", PRESENT)
    found = [questions.test_of(read, among_present(one, STUDY), 0.05).dependent for one in released]
    assert 0.02 <= np.mean(found) <= 0.085


def test_nobody_present_is_refused() -> None:
    table = np.zeros(DOMAIN.shape, np.int64)
    table[:, 4, 2] = N // 2
    (released,) = releases_of(table, DOMAIN, N, 0.05, 1, np.random.default_rng(5))
    with pytest.raises(InvalidInputError, match="does not tell whether anybody of alice is in the table of bob"):
        among_present(released, STUDY)


def test_a_table_of_complete_curators_is_itself() -> None:
    table = exact(people(1.0)[:, :4, :2], PRESENT)
    assert among_present(table, STUDY) is table


@pytest.mark.parametrize("question", ["sex, hours, salary", "share of salary by sex", "mean of hours by sex"])
def test_wrong_links_of_those_who_are_present_are_undone(question: str) -> None:
    rng, table = np.random.default_rng(9), people(0.5)
    present = table[:, :4, :2].reshape(2, 8)
    true = asked(question, truth_of(0.5)).estimate
    inside = []
    for _ in range(150):
        linked = table.copy()
        wrong = rng.binomial(present, 0.1)
        others = rng.multinomial(wrong.sum(axis=1), present.sum(axis=0) / present.sum())
        linked[:, :4, :2] = (present - wrong + others).reshape(2, 4, 2)
        (released,) = releases_of(linked, DOMAIN, N, 0.5, 1, rng)
        found = asked(question, corrected(among_present(released, STUDY), WRONG, OWNERS))
        inside.append((found.low <= true) & (true <= found.high))
    assert 0.92 <= np.mean(inside) <= 0.985


def test_totals_where_links_are_undone_are_refused() -> None:
    (released,) = releases(0.5, 1)
    found = corrected(among_present(released, STUDY), WRONG, OWNERS)
    with pytest.raises(InvalidInputError, match="not corrected for wrong links where people may be absent"):
        asked("total of salary=high", found)
    assert "are in the table of bob" in found.remarks[0]


def test_holders_of_one_column_are_named_together() -> None:
    carol = b'[[curator]]\nname = "carol"\nendpoint = "localhost:7403"\nid_columns = ["id"]\n[[researcher]]'
    owned, held = b'owner = "bob"\ncolumn = "pay"', b'holders = ["bob", "carol"]\nseveral = "apart"\ncolumn = "pay"'
    text = FULL.replace(b"complete = true\n", b"").replace(b"[[researcher]]", carol, 1).replace(owned, held)
    study = study_from_bytes(text, "study.toml")
    assert spokes_of(study.domain(["sex", "salary"]), study) == ("bob or carol",)
    assert spokes_of(study.domain(["sex", "age"]), study) == ()
    said = respondents_sentence(study, ["sex", "hours", "salary"], {})
    assert "who are in the table of bob and bob or carol, unless" in said
