"""Microdata repeat by their seed, follow the model, say where they come from, and refuse what cannot be drawn."""

import json
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.researcher.microdata.made_linked import DOMAIN, PEOPLE, RELEASE_ID, measured, people, status, workload
from veiltab.common.core.domain import ABSENT, Domain
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.privacy.cards.card import Bound, EpsilonCard
from veiltab.researcher.estimates.table_result import fitted
from veiltab.researcher.microdata import synthesis
from veiltab.researcher.microdata.comparison import distance, fractions_of, mean_distance
from veiltab.researcher.microdata.expectation import expected_error
from veiltab.researcher.microdata.files import provenance_path
from veiltab.researcher.microdata.provenance import ABSENT_ROWS, WARNING
from veiltab.researcher.microdata.redrawing import drawn_anew
from veiltab.researcher.microdata.replicate_intervals import with_replicates
from veiltab.researcher.microdata.synthesis import MOST_ROWS, MOST_WEIGHTS, Microdata, check_size, synthesise
from veiltab.researcher.model import fitting
from veiltab.researcher.model.raking import cells_of
from veiltab.researcher.report.microdata_page import render
from veiltab.researcher.report.presentation import microdata_report

TRUTH = people()
TABLES = measured(TRUTH, seed=1)


@cache
def microdata(*, rows: int = 500, replicates: int = 0, copies: int = 0, seed: str = "s") -> Microdata:
    return synthesise(DOMAIN, status(), TABLES, rows=rows, replicates=replicates, copies=copies, seed=seed)


def all_rows(made: Microdata) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return made.rows().astype(np.int64)


def test_the_same_seed_gives_the_same_rows_and_another_gives_others() -> None:
    rows = all_rows(microdata())
    assert rows.shape == (500, 4)
    assert np.array_equal(rows, all_rows(microdata.__wrapped__()))
    assert not np.array_equal(rows, all_rows(microdata(seed="t")))


def test_microdata_are_shown_on_one_line() -> None:
    made = microdata(rows=3)
    assert repr(made) == f"Microdata(rows=3, replicates=0, attributes={made.domain.names!r}, seed='s')"
    assert "replicates=2, as copies" in repr(microdata(rows=3, copies=2))


def test_weights_change_the_pairs_by_what_was_played_and_repeat_by_their_seed() -> None:
    made = microdata(rows=20_000, replicates=4)
    weights, rows = made.weights(), all_rows(made)
    assert weights is not None
    assert np.array_equal(rows, all_rows(microdata(rows=20_000))), "the rows are those without weights"
    again = microdata.__wrapped__(rows=20_000, replicates=4).weights()
    assert again is not None
    assert np.array_equal(weights, again)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.mean(axis=0), 1, rtol=1e-4)
    sides = []
    for replicate, errors in enumerate(made.errors):
        changes, wanted = list[float](), list[float]()
        for axes, error in errors.items():
            cells = cells_of(rows, DOMAIN.shape, axes)
            weighted = np.bincount(cells, weights[:, replicate], error.size) / len(rows)
            changes.extend(weighted - fractions_of(rows, DOMAIN.shape, axes))
            wanted.extend(error)
        sides.append(np.sign(np.dot(changes, wanted)))
        assert np.corrcoef(changes, sides[-1] * np.array(wanted))[0, 1] > 0.7
    assert sum(sides) == 0


def test_copies_are_drawn_by_the_weights() -> None:
    made, weighted = microdata(rows=20_000, copies=4), microdata(rows=20_000, replicates=4)
    weights, rows = weighted.weights(), all_rows(weighted)
    assert weights is not None
    assert made.weights() is None
    for number in (1, 4):
        copy = made.copy(number)
        assert len(copy) == 20_000
        for axes in combinations(range(4), 2):
            cells = cells_of(rows, DOMAIN.shape, axes)
            wanted = np.bincount(cells, weights[:, number - 1]) / len(rows)
            assert distance(fractions_of(copy, DOMAIN.shape, axes), wanted) < 2e-3
    for number in (0, 5):
        with pytest.raises(InvalidInputError, match="copies 1 to 4"):
            made.copy(number)


def test_rows_come_in_chunks_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "CHUNK", 1000)
    assert [len(rows) for rows in microdata(rows=2005).chunks()] == [1000, 1000, 5]


def test_rows_are_near_the_truth_and_as_near_as_expected() -> None:
    made = microdata(rows=PEOPLE)
    rows = all_rows(made)
    actual = mean_distance(rows, TRUTH, DOMAIN.shape, 2)
    expected = expected_error(TABLES, made.model, rows, bytes(32))
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


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_file_says_where_the_rows_come_from_and_how_to_read_its_weights(tmp_path: Path, suffix: str) -> None:
    made = microdata(replicates=2)
    (path,) = made.write(tmp_path / f"linked{suffix}")
    frame = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path)
    assert list(frame.columns) == [*DOMAIN.names, "weight", "replicate_1", "replicate_2"]
    assert (len(frame), set(frame["weight"])) == (500, {1.0})
    said = frame.attrs if suffix == ".parquet" else json.loads(provenance_path(path).read_text("utf-8"))
    assert said["warning"] == WARNING
    assert (said["release"], said["release_digest"]) == (RELEASE_ID, workload().digest().hex())
    assert (said["epsilon"], said["delta"]) == ("1", "0.000001")
    assert (said["rows"], said["seed"]) == (500, "s")
    assert said["codebook"]["wage"] == ["low", "middle", "high"]
    assert {frozenset(pair) for pair in said["graph"]} <= {frozenset(one.names) for one in TABLES}
    design = said["replicates"]
    assert (design["columns"], design["degrees"], design["scale"]) == (["replicate_1", "replicate_2"], 2, 0.5)
    assert 'repweights = "^replicate_[0-9]+$"' in design["R"]
    assert "brrweight(replicate_*) vce(brr) mse dof(2)" in design["Stata"]
    assert "repweights replicate_1-replicate_2 / df=2" in design["SAS"]
    np.testing.assert_allclose(frame["replicate_2"], made.frame()["replicate_2"], rtol=1e-6)
    if suffix == ".parquet":
        pd.testing.assert_frame_equal(frame, made.frame(), check_dtype=False)


def test_pairs_without_room_in_the_graph_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (microdata(replicates=2).provenance.unjoined, microdata(replicates=2).provenance.remark) == (0, "")
    monkeypatch.setattr(fitting, "MOST_CELLS", 1)
    made = microdata.__wrapped__(replicates=2)
    assert made.provenance.unjoined == 3
    assert made.provenance.remark.startswith("3 pairs of attributes have no room in the graph")
    found = with_replicates(made.frame(), lambda _, weights: weights.mean())
    assert str(found).endswith("intervals of what depends on them may be too short.")
    assert microdata().provenance.remark == ""


def test_copies_are_numbered_files_without_weights(tmp_path: Path) -> None:
    made = microdata(copies=2)
    paths = made.write(tmp_path / "linked.parquet")
    assert [path.name for path in paths] == ["linked-1.parquet", "linked-2.parquet"]
    for copy, path in enumerate(paths, 1):
        frame = pd.read_parquet(path)
        assert tuple(frame.columns) == DOMAIN.names
        assert (frame.attrs["copy"], frame.attrs["copies"]) == (copy, 2)
        pd.testing.assert_frame_equal(frame, made.frame(copy), check_dtype=False)


def test_work_is_told_of_and_may_be_ended() -> None:
    told = list[tuple[int, int]]()
    synthesise(DOMAIN, status(), TABLES, rows=10, replicates=3, seed="s", progress=lambda *parts: told.append(parts))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]

    def stop(_done: int, _whole: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        synthesise(DOMAIN, status(), TABLES, rows=10, replicates=3, seed="s", progress=stop)


def test_an_attribute_outside_every_table_is_named() -> None:
    few = [one for one in TABLES if "wage" not in one.names]
    with pytest.raises(InvalidInputError, match="no table of the release has wage"):
        synthesise(DOMAIN, status(), few, rows=10, seed="s")
    part = DOMAIN.subset(["age", "job", "town"])
    made = synthesise(part, status(), TABLES, rows=10, seed="s")
    assert all_rows(made).shape == (10, 3)
    assert all("wage" not in names for names in made.provenance.tables)


def test_a_page_may_be_about_some_of_the_attributes() -> None:
    part = DOMAIN.subset(["age", "job", "town"])
    made = synthesise(part, status(), TABLES, rows=PEOPLE, seed="s")
    study: Any = SimpleNamespace(
        title="A study",
        hub="alice",
        curators=(SimpleNamespace(name="alice"), SimpleNamespace(name="bob")),
        may_lack=lambda name: name == "bob",
        alignment="oblivious",
        attributes=tuple(
            SimpleNamespace(name=name, held_by="bob" if name == "town" else "alice") for name in part.names
        ),
        identity=None,
    )
    report = microdata_report(
        study, made, EpsilonCard(bounds=(Bound(roles=("analyst",), epsilon=Decimal(1), note="rows"),))
    )
    assert [one.names for one in report.tables] == [("age", "job"), ("age", "town"), ("job", "town")]
    assert "wage" not in render(report)
    assert "no curator but bob learns whether the person is in it" in render(report)


def test_processes_play_what_one_process_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = microdata(replicates=3).errors
    monkeypatch.setattr(synthesis, "LARGE", 0)
    for one, other in zip(alone, microdata.__wrapped__(replicates=3).errors, strict=True):
        for axes, errors in one.items():
            np.testing.assert_allclose(other[axes], errors, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "replicates", "copies"),
    [
        (0, 0, 0),
        (-1, 0, 0),
        (MOST_ROWS + 1, 0, 0),
        (1, -1, 0),
        (1, 101, 0),
        (1, 0, 3),
        (1, 0, 102),
        (1, 0, -2),
        (MOST_WEIGHTS // 20 + 1, 20, 0),
    ],
)
def test_sizes_out_of_range_are_refused(rows: int, replicates: int, copies: int) -> None:
    with pytest.raises(InvalidInputError):
        check_size(rows, replicates, copies)
    check_size(MOST_WEIGHTS // 20, 20, 0)


def test_a_release_without_result_is_refused() -> None:
    with pytest.raises(FailedReleaseError, match="no luck"):
        synthesise(DOMAIN, replace(status(), spec=None, failure="no luck"), TABLES, rows=1, seed="s")


@pytest.mark.long
def test_intervals_hold_the_truth() -> None:
    cells = [((0, 1), 0), ((1, 2), 4), ((2, 3), 1)]
    held = list[bool]()
    for trial in range(60):
        made = synthesise(DOMAIN, status(), measured(TRUTH, seed=100 + trial), rows=40_000, replicates=8, seed="s")

        def shares(frame: pd.DataFrame, weights: np.ndarray[Any, Any]) -> list[float]:
            rows = np.stack([frame[name].cat.codes for name in DOMAIN.names], axis=1)
            return [float(weights @ (cells_of(rows, DOMAIN.shape, a) == cell)) / weights.sum() for a, cell in cells]

        table = with_replicates(made.frame(), shares).table
        true = np.array([fractions_of(TRUTH, DOMAIN.shape, axes)[cell] for axes, cell in cells])
        held.extend((table["low"] <= true) & (true <= table["high"]))
    # 180 intervals, three a release.
    assert np.mean(held) >= 0.90


def test_rows_of_people_who_are_absent_are_in_the_file_and_said_to_be() -> None:
    age, job, *others = DOMAIN.attributes
    lacking = Domain(
        attributes=(age, job, *(replace(one, categories=(*one.categories[:-1], ABSENT)) for one in others))
    )
    made = synthesise(lacking, status(), TABLES, rows=PEOPLE, seed="s")
    share = float((made.frame()["town"] == ABSENT).mean())
    assert share == pytest.approx(float((TRUTH[:, 3] == 1).mean()), abs=0.05)
    assert made.provenance.coarse == (ABSENT_ROWS,)
    assert microdata().provenance.coarse == ()
