"""A model is fitted to pairs whose wrong links were undone, and played again with wrong links in it."""

import numpy as np
import pytest

from tests.researcher.analysis.test_release_tables import linked_release
from tests.researcher.microdata.made_linked import DOMAIN, measured, people, status
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.estimates.table_result import TableResult, fitted
from veiltab.researcher.linkage_errors.corrected import CorrectedEstimate
from veiltab.researcher.linkage_errors.inversion import Correction, mixed
from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors, LinkError
from veiltab.researcher.linkage_errors.linked_result import LinkedResult, linked_results
from veiltab.researcher.microdata.comparison import fractions_of
from veiltab.researcher.microdata.redrawing import drawn_anew
from veiltab.researcher.microdata.synthesis import synthesise
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.model.row_drawing import Rows

OWNERS = {"age": "alice", "job": "alice", "wage": "bob", "town": "bob"}
SIZES = dict(zip(DOMAIN.names, DOMAIN.shape, strict=True))
ACROSS = {("age", "wage"), ("age", "town"), ("job", "wage"), ("job", "town")}
SHARE = 0.3


def linked(rows: Rows, seed: int) -> Rows:
    """Return rows of which a share has the wage and the town of another person."""
    rng, found = np.random.default_rng(seed), rows.copy()
    wrong = np.flatnonzero(rng.random(len(rows)) < SHARE)
    found[wrong, 2:] = rows[rng.integers(0, len(rows), len(wrong)), 2:]
    return found


@pytest.fixture(scope="module")
def tables() -> tuple[TableResult, ...]:
    """Every pair as it was released, wrong links among them."""
    return measured(linked(people(), 7), seed=1)


@pytest.fixture(scope="module")
def model(tables: tuple[TableResult, ...]) -> Model:
    return fitted(DOMAIN, undone(tables))


def undone(tables: tuple[TableResult, ...], sd: float = 0.0) -> tuple[TableResult, ...]:
    return linked_results(tables, LinkageErrors(of=LinkError(share=SHARE, sd=sd)), OWNERS, SIZES)


def test_pairs_across_curators_are_corrected_and_others_stay(tables: tuple[TableResult, ...]) -> None:
    for before, after in zip(tables, undone(tables), strict=True):
        if before.names not in ACROSS:
            assert after is before
            continue
        one, other = before.measurement, after.measurement
        shape = tuple(SIZES[name] for name in before.names)
        assert other.values.tolist() == Correction(one.values, shape, [((1,), SHARE)]).table.tolist()
        assert other.weight == pytest.approx(one.weight * (1 - SHARE) ** 2)
        assert other.names == one.names
        assert after.counts is before.counts


def test_the_model_is_nearer_to_the_people(tables: tuple[TableResult, ...], model: Model) -> None:
    plain, truth = fitted(DOMAIN, tables), people()

    def distance(one: Model) -> float:
        return sum(
            float(np.abs(one.marginal(names) - fractions_of(truth, DOMAIN.shape, axes)).sum())
            for names in sorted(ACROSS)
            for axes in [tuple(map(DOMAIN.names.index, names))]
        )

    assert distance(model) < 0.8 * distance(plain)


def test_what_is_played_again_is_unbiased_about_the_model(tables: tuple[TableResult, ...], model: Model) -> None:
    found, kept = undone(tables), ("job", "wage")
    place = next(number for number, table in enumerate(tables) if table.names == kept)
    truth = model.marginal(kept)
    again = [drawn_anew(model.domain, found, model, bytes([key] * 32))[place] for key in range(40)]
    errors = np.array([one.measurement.values - truth for one in again])
    spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0)) < 4 * spread).all()
    assert isinstance(again[0], LinkedResult)
    without = [drawn_anew(model.domain, tables, model, bytes([key] * 32))[place] for key in range(40)]
    corrected = np.array([Correction(one.measurement.values, (3, 3), [((1,), SHARE)]).table - truth for one in without])
    # Played without wrong links, what is undone is too much.
    assert (np.abs(corrected.mean(axis=0)) > 4 * spread).any()


def test_one_play_has_one_share_of_wrong_links_in_all_tables(tables: tuple[TableResult, ...], model: Model) -> None:
    def shares(key: bytes, sd: float) -> list[float]:
        found = []
        for table in undone(tables, sd):
            if isinstance(table, LinkedResult):
                truth = model.marginal(table.names)
                none = mixed(truth, table.shape, [((1,), 0.5)]) - truth
                found.append(0.5 * float(none @ (table.with_links(truth, key) - truth)) / float(none @ none))
        return found

    assert shares(bytes(32), 0.0) == pytest.approx([SHARE] * 4, abs=1e-12)
    drawn = [shares(bytes([key] * 32), 0.02) for key in range(30)]
    for some in drawn:
        assert some == pytest.approx([some[0]] * 4, abs=1e-12)
    assert np.std([some[0] for some in drawn]) == pytest.approx(0.02, rel=0.4)


def test_microdata_say_what_was_undone_and_nothing_else_changes(tables: tuple[TableResult, ...]) -> None:
    plain = synthesise(DOMAIN, status(), tables, rows=50, seed="s")
    assert "links" not in plain.provenance.facts(DOMAIN)
    made = synthesise(DOMAIN, status(), undone(tables, 0.01), rows=50, replicates=2, seed="s")
    said = made.provenance.facts(DOMAIN)["links"]
    assert said == "Corrected for wrong links: of the links with bob a share of 0.3, standard deviation 0.01."
    weights = made.weights()
    assert weights is not None
    assert np.isfinite(weights).all()


def test_a_model_takes_one_share(tables: tuple[TableResult, ...]) -> None:
    errors = LinkageErrors(of=LinkError(share=SHARE, least=0.0))
    with pytest.raises(InvalidInputError, match=r"a range, 0 to 0\.3, and a model has one"):
        linked_results(tables, errors, OWNERS, SIZES)


def test_a_release_corrects_what_it_measured_and_what_it_models(study: Study) -> None:
    release = linked_release(study)
    measured_table = release.table(["sex", "salary"], linkage_error="0.1")
    assert measured_table.raw.tolist() != release.table(["sex", "salary"]).raw.tolist()
    assert release.estimate(["sex", "salary"], linkage_error="none").raw.tolist() == (
        release.estimate(["sex", "salary"]).raw.tolist()
    )
    (plain, *_), (found, *_) = release.measured(), release.measured(linkage_error="0.1:0.01")
    assert (found.terms, found.domain) == (None, plain.domain)
    modelled = release.table(["sex", "age"], linkage_error="0.1")
    assert isinstance(modelled, ModelledTable)
    assert modelled.raw.tolist() != release.table(["sex", "age"]).raw.tolist()
    remarks = conditional_shares(modelled, ["sex"]).remarks
    assert remarks == ("Corrected for wrong links: of the links with bob a share of 0.1.",)
    with pytest.raises(InvalidInputError, match="by ids, so that no links were estimated"):
        release.ask("mean of age", linkage_error="estimated")


def test_shares_by_category_are_undone_in_the_whole_table_that_is_then_summed(study: Study) -> None:
    release = linked_release(study)
    sexes = study.domain(["sex"]).attributes[0].categories
    of = {sex: LinkError(share=share) for sex, share in zip(sexes, (0.05, 0.2), strict=True)}
    links = LinkageErrors(of=LinkError(share=0.2, by="sex", of=of))
    observed = release.estimate(["sex", "salary"]).raw.reshape(2, -1)
    right = np.array([[0.95], [0.8]])
    salaries = (observed / right).sum(axis=0) / (observed / right).sum()
    slowly = (observed - (1 - right) * observed.sum(axis=1, keepdims=True) * salaries) / right
    whole = release.table(["sex", "salary"], linkage_error=links)
    assert whole.raw == pytest.approx(slowly.reshape(-1), abs=1e-15)
    alone = release.estimate(["salary"], linkage_error=links)
    assert alone.raw == pytest.approx(salaries, abs=1e-15)
    sums = np.tile(np.eye(len(salaries)), 2)
    assert isinstance(whole, CorrectedEstimate)
    assert alone.covariance() == pytest.approx(whole.contrast_covariance(sums), rel=1e-9, abs=1e-18)
    with pytest.raises(InvalidInputError, match="and not in a model"):
        release.synthesise(rows=10, linkage_error=links)
