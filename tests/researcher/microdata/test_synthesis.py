"""Microdata repeat by their seed, follow the model, say where they come from, and refuse what cannot be drawn."""

from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.researcher.microdata.made_linked import DOMAIN, PEOPLE, RELEASE_ID, measured, people, status, workload
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.privacy.card import Bound, EpsilonCard
from veiltab.researcher.microdata.combining import combine
from veiltab.researcher.microdata.comparison import distance, fractions_of, mean_distance
from veiltab.researcher.microdata.expectation import expected_error
from veiltab.researcher.microdata.provenance import WARNING
from veiltab.researcher.microdata.report import render
from veiltab.researcher.microdata.synthesis import (
    CHUNK,
    MOST_ROWS,
    Microdata,
    check_size,
    drawn_anew,
    synthesise,
)
from veiltab.researcher.presentation import microdata_report
from veiltab.researcher.table_result import fitted

TRUTH = people()
TABLES = measured(TRUTH, seed=1)


def microdata(*, rows: int = 500, copies: int = 1, seed: str = "s") -> Microdata:
    return synthesise(DOMAIN, status(), TABLES, rows=rows, copies=copies, seed=seed)


def all_rows(made: Microdata, copy: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.concatenate(list(made.chunks(copy))).astype(np.int64)


def test_the_same_seed_gives_the_same_rows_and_another_gives_others() -> None:
    rows = all_rows(microdata())
    assert rows.shape == (500, 4)
    assert np.array_equal(rows, all_rows(microdata()))
    assert not np.array_equal(rows, all_rows(microdata(seed="t")))


def test_microdata_are_shown_on_one_line() -> None:
    made = microdata(rows=3)
    assert repr(made) == f"Microdata(rows=3, copies=1, attributes={made.domain.names!r}, seed='s')"


def test_copies_have_models_of_their_own() -> None:
    made = microdata(copies=3)
    shares = [model.marginal(("age", "job")) for model in made.models]
    for one, other in combinations(shares, 2):
        assert distance(one, other) > 1e-4
    assert not np.array_equal(all_rows(made, 1), all_rows(made, 2))
    assert np.array_equal(all_rows(made, 2), all_rows(microdata(copies=3), 2))
    for copy in (0, 4):
        with pytest.raises(InvalidInputError, match="copies 1 to 3"):
            all_rows(made, copy)


def test_rows_come_in_chunks_of_limited_size() -> None:
    sizes = [len(rows) for rows in microdata(rows=2 * CHUNK + 5).chunks()]
    assert sizes == [CHUNK, CHUNK, 5]


def test_rows_are_near_the_truth_and_as_near_as_expected() -> None:
    made = microdata(rows=PEOPLE)
    rows = all_rows(made)
    actual = mean_distance(rows, TRUTH, DOMAIN.shape, 2)
    expected = expected_error(DOMAIN, TABLES, made.models[0], rows, bytes(32))
    assert expected.noise <= expected.pairs
    # One release and one play of its noise: within a factor of two of one another.
    assert actual / 2 < expected.pairs < 2 * actual
    independent = np.stack([np.random.default_rng(i).permutation(TRUTH[:, i]) for i in range(4)], axis=1)
    assert actual < mean_distance(independent, TRUTH, DOMAIN.shape, 2) / 3


def test_tables_drawn_anew_differ_from_the_model_by_the_noise_of_the_release() -> None:
    model = fitted(DOMAIN, TABLES)
    again = drawn_anew(DOMAIN, TABLES, model, bytes(32))
    assert [one.names for one in again] == [one.names for one in TABLES]
    excesses = []
    for one in again:
        known = one.measurement
        apart = known.values - model.marginal(one.names)  # noqa: PD011 - no data frame
        excesses.append(float(apart @ apart) * known.weight / apart.size)
    # About chi square over its degrees of freedom, 33 cells in all: four standard errors.
    assert abs(np.mean(excesses) - 1) < 4 * np.sqrt(2 / 33)


def test_the_files_say_where_the_rows_come_from(tmp_path: Path) -> None:
    made = microdata(copies=2)
    paths = made.write(tmp_path / "linked.parquet")
    assert [path.name for path in paths] == ["linked-1.parquet", "linked-2.parquet"]
    for copy, path in enumerate(paths, 1):
        frame = pd.read_parquet(path)
        assert len(frame) == 500
        said = frame.attrs
        assert said["warning"] == WARNING
        assert (said["release"], said["release_digest"]) == (RELEASE_ID, workload().digest().hex())
        assert (said["epsilon"], said["delta"]) == ("1", "0.000001")
        assert (said["copy"], said["copies"], said["rows"], said["seed"]) == (copy, 2, 500, "s")
        assert said["codebook"]["wage"] == ["low", "middle", "high"]
        assert {frozenset(pair) for pair in said["graph"]} <= {frozenset(one.names) for one in TABLES}
        pd.testing.assert_frame_equal(frame, made.frame(copy), check_dtype=False)


def test_an_attribute_outside_every_table_is_named() -> None:
    few = [one for one in TABLES if "wage" not in one.names]
    with pytest.raises(InvalidInputError, match="no table of the release has wage"):
        synthesise(DOMAIN, status(), few, rows=10, copies=1, seed="s")
    part = DOMAIN.subset(["age", "job", "town"])
    made = synthesise(part, status(), TABLES, rows=10, copies=1, seed="s")
    assert all_rows(made).shape == (10, 3)
    assert all("wage" not in names for names in made.provenance.tables)


def test_a_page_may_be_about_some_of_the_attributes() -> None:
    part = DOMAIN.subset(["age", "job", "town"])
    made = synthesise(part, status(), TABLES, rows=PEOPLE, copies=1, seed="s")
    study: Any = SimpleNamespace(title="A study", owner_of=lambda name: {"town": "bob"}.get(name, "alice"))
    report = microdata_report(
        study, made, EpsilonCard(bounds=(Bound(roles=("analyst",), epsilon=Decimal(1), note="rows"),))
    )
    assert [one.names for one in report.tables] == [("age", "job"), ("age", "town"), ("job", "town")]
    assert "wage" not in render(report)


@pytest.mark.parametrize(("rows", "copies"), [(0, 1), (-1, 1), (MOST_ROWS + 1, 1), (10**9, 1), (1, 0), (1, 101)])
def test_sizes_out_of_range_are_refused(rows: int, copies: int) -> None:
    with pytest.raises(InvalidInputError):
        check_size(rows, copies)


def test_a_release_without_result_is_refused() -> None:
    with pytest.raises(FailedReleaseError, match="no luck"):
        synthesise(DOMAIN, replace(status(), workload=None, failure="no luck"), TABLES, rows=1, copies=1, seed="s")


@pytest.mark.long
def test_combined_intervals_hold_the_truth() -> None:
    cells = [((0, 1), 0), ((1, 2), 4), ((2, 3), 1)]
    held = trials = 0
    for trial in range(90):
        made = synthesise(DOMAIN, status(), measured(TRUTH, seed=100 + trial), rows=100_000, copies=5, seed=str(trial))
        files = [all_rows(made, copy) for copy in range(1, 6)]
        for axes, cell in cells:
            shares = [float(fractions_of(rows, DOMAIN.shape, axes)[cell]) for rows in files]
            found = combine(shares, [share * (1 - share) / 100_000 for share in shares])
            held += found.low <= fractions_of(TRUTH, DOMAIN.shape, axes)[cell] <= found.high
            trials += 1
    # 270 intervals, three a release: five standard errors of the rate of releases.
    assert 0.90 <= held / trials <= 0.99
