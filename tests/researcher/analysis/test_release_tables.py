"""Tables of a release of several: measured ones pooled, others from the model and marked."""

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from tests.researcher.analysis.simulated import simulated_counts
from tests.researcher.made_status import made_status
from tests.researcher.made_workload import workload_with
from veiltab.common.core.domain import ABSENT
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.release.spec import TablePlan
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.deploy.cli import veiltab
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.result import NO_INTERVAL
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.client.released_tables import ReleasedTables
from veiltab.researcher.estimates.people_present import PresentEstimate
from veiltab.researcher.estimates.pooling import PooledEstimate
from veiltab.researcher.estimates.table_result import design_of
from veiltab.researcher.status.release_status import Status, TableStatus

NAMES = ("sex", "age", "salary")
# Sex and age are independent given the salary, so that the two pairs say everything.
SEX, AGE = np.array([[0.7, 0.2], [0.3, 0.8]]), np.array([[0.5, 0.1], [0.3, 0.3], [0.2, 0.6]])
TABLE = np.rint(200_000 * np.einsum("sc,ac,c->sac", SEX, AGE, np.array([0.6, 0.4]))).astype(np.int64)
PLANS = tuple(
    TablePlan(columns=columns, server_replacement=2**62, curator_replacement=2**62, canaries=0)
    for columns in ((0, 2), (1, 2))
)


def linked_status(study: Study, table: NDArray[np.int64] = TABLE) -> Status:
    workload = workload_with(
        release_id="a" * 32,
        study_digest=study.digest,
        columns=tuple(
            Column(attribute=name, owner=study.owner_of(name), size=size)
            for name, size in zip(NAMES, table.shape, strict=True)
        ),
        population=int(table.sum()),
        sample=int(table.sum()),
        tables=PLANS,
        repeated=PLANS,
        repeats=1,
    )
    tables = tuple(
        TableStatus(
            number=number,
            phase=1 + number // 2,
            release_id=workload.table_id(number),
            state=ReleaseState.READY,
            attributes=attributes,
        )
        for number, attributes in ((0, ("sex", "salary")), (1, ("age", "salary")), (2, ("sex", "salary")))
    )
    return made_status(
        release_id="a" * 32,
        label="<b>linked</b>",
        study_digest=study.digest,
        attributes=NAMES,
        granted=NAMES,
        tables=tables,
        spec=workload,
    )


@pytest.fixture
def linked(study: Study) -> Release:
    return linked_release(study)


def linked_release(study: Study, people: NDArray[np.int64] = TABLE) -> Release:
    """Return a ready release of two pairs, one of which ran twice."""
    status, rng = linked_status(study, people), np.random.default_rng(101)
    histograms = {}
    for table in status.tables:
        spec = status.spec_of(table)
        summed = people.sum(axis=tuple(axis for axis, name in enumerate(NAMES) if name not in table.attributes))
        design = design_of(spec, summed.size, counted=spec.sample)
        histograms[table.release_id] = simulated_counts(summed, design, 1, rng)[0].astype("<i8").tobytes()
    client = SimpleNamespace(
        study=study, status=lambda _: status, histogram=histograms.__getitem__, check_study=lambda *_: None
    )
    return Release(cast("Client", client), "a" * 32, continued=False)


def estimated(release: Release, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Result:
    """Return what `veiltab researcher estimate` prints of a release."""
    client = SimpleNamespace(release=lambda _: release, study=release._client.study)
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(client))
    start = ["researcher", "estimate", "study.toml", "--identity", "pki", "--release", "linked"]
    return CliRunner().invoke(veiltab, [*start, *words], catch_exceptions=False)


def test_a_table_that_was_measured_is_pooled_and_another_is_modelled(linked: Release) -> None:
    measured = linked.table(["salary", "sex"], confidence=0.9)
    assert isinstance(measured, PooledEstimate)
    assert (len(measured.parts), measured.confidence) == (2, 0.9)
    np.testing.assert_allclose(measured.raw, TABLE.sum(axis=1).T.reshape(-1) / TABLE.sum(), atol=0.02)
    modelled = linked.table(["age", "sex"])
    assert isinstance(modelled, ModelledTable)
    truth = TABLE.sum(axis=2).T / TABLE.sum()
    np.testing.assert_allclose(modelled.raw, truth.reshape(-1), atol=0.01)
    found = conditional_shares(modelled, ["sex"])
    assert set(found.notes) == {NO_INTERVAL}
    np.testing.assert_allclose(found.estimate, (truth / truth.sum(axis=0)).T.reshape(-1), atol=0.02)
    assert linked.table(["salary"]).marginal(["salary"]).domain.names == ("salary",)


@pytest.mark.parametrize(
    ("question", "is_measured"),
    [
        ("total of salary=high & sex=f", True),
        ("total of salary=high, sex=f", True),
        ("logistic salary=high ~ sex", True),
        ("loglinear sex * age", False),
    ],
)
def test_a_question_names_the_table_that_it_is_about(
    linked: Release, monkeypatch: pytest.MonkeyPatch, question: str, *, is_measured: bool
) -> None:
    found = json.loads(estimated(linked, [question, "--json"], monkeypatch).stdout)
    assert found["measured"] is is_measured


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("sex,salary", "Measured by 2 tables of the release, pooled"),
        ("age,salary", "Measured by one table of the release, which ran once."),
        ("sex,age", "From a model of all tables of the release"),
    ],
)
def test_a_person_reads_where_a_table_comes_from(
    linked: Release, monkeypatch: pytest.MonkeyPatch, attributes: str, said: str
) -> None:
    first, second = attributes.split(",")
    for question in (attributes, f"share of {second} given {first}"):
        shown = estimated(linked, [question], monkeypatch).stdout
        assert f"n = {TABLE.sum():,}. {said}" in shown


@pytest.mark.parametrize("state", [ReleaseState.READY, ReleaseState.FAILED, ReleaseState.UPLOADING])
def test_a_status_shows_its_tables_and_waits_only_until_the_end(
    study: Study, monkeypatch: pytest.MonkeyPatch, state: ReleaseState
) -> None:
    waits = {"curator alice": (ReleaseState.UPLOADING, "0 of 2 tables are ready")}
    shown = replace(linked_status(study), state=state, parties=waits)
    client = SimpleNamespace(status=lambda _: shown, study=study)
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: nullcontext(client))
    words = ["researcher", "status", "study.toml", "--identity", "pki", "--release", "linked"]
    text = CliRunner().invoke(veiltab, words, catch_exceptions=False).stdout
    assert "n = 200000, m = 200000, 2 tables, up to 1 of them a second time" in text
    assert (f"n is the number of people in the table of {study.hub}" in text) is (state is ReleaseState.READY)
    assert ("0 of 2 tables are ready" in text) is (state is ReleaseState.UPLOADING)
    plain = json.loads(CliRunner().invoke(veiltab, [*words, "--json"], catch_exceptions=False).stdout)
    reason = "0 of 2 tables are ready" if state is ReleaseState.UPLOADING else ""
    assert plain["parties"] == {"curator alice": {"state": "uploading", "waiting_for": reason}}


def test_without_a_question_a_release_of_several_tables_has_none(
    linked: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match=r"release of 3 tables.*in the question.*release\.table"):
        estimated(linked, [], monkeypatch)


def test_the_model_is_fitted_once(linked: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    first = linked.table(["age", "sex"])
    monkeypatch.setattr("veiltab.researcher.estimates.table_result.fitted", None)
    np.testing.assert_array_equal(linked.table(["sex", "age"]).marginal(["age", "sex"]).raw, first.raw)


def test_an_attribute_outside_the_study_is_refused(linked: Release) -> None:
    with pytest.raises(InvalidInputError, match="no attribute 'height'"):
        linked.table(["height"])


def test_a_release_is_shown_by_its_id_without_a_question(linked: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked._client, "status", None)
    assert repr(linked) == f"Release('{'a' * 32}')"


def test_a_notebook_shows_a_release_with_its_texts_escaped(linked: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = linked._repr_html_()
    assert "&lt;b&gt;linked&lt;/b&gt;" in shown
    assert "<b>" not in shown
    assert ">3<" in shown
    assert linked.plot(["sex"]).svg.startswith("<svg")

    monkeypatch.setattr(linked._client, "status", Mock(side_effect=UnavailableError("the service does not answer")))
    assert "the service does not answer" in linked._repr_html_()


@pytest.fixture
def lacking(study_bytes: bytes) -> Release:
    """Return the release where bob lacks people of alice: half of the women, and a quarter of the men."""
    people = np.zeros((2, 3, 3), np.int64)
    people[..., :2] = TABLE * np.array([1, 3])[:, None, None] // np.array([2, 4])[:, None, None]
    people[..., 2] = TABLE.sum(axis=2) - people.sum(axis=2)
    return linked_release(study_from_bytes(study_bytes.replace(b"complete = true\n", b""), "study.toml"), people)


def test_tables_and_models_are_of_the_people_whom_each_curator_has(lacking: Release) -> None:
    present = TABLE * np.array([1 / 2, 3 / 4])[:, None, None]
    measured = lacking.table(["salary", "sex"])
    np.testing.assert_allclose(measured.raw, present.sum(axis=1).T.reshape(-1) / present.sum(), atol=0.02)
    assert ABSENT not in lacking.domain().attributes[2].categories
    # Every table with sex has an attribute of bob, so that sex alone is of those whom bob has.
    np.testing.assert_allclose(lacking.table(["sex"]).raw, present.sum(axis=(1, 2)) / present.sum(), atol=0.01)
    modelled = lacking.table(["age", "sex"])
    assert isinstance(modelled, ModelledTable)
    # Of these alice has everybody.
    np.testing.assert_allclose(modelled.raw, TABLE.sum(axis=2).T.reshape(-1) / TABLE.sum(), atol=0.02)
    of_three = lacking.table(["age", "salary", "sex"])
    assert isinstance(of_three, ModelledTable)
    assert of_three.domain.shape == (3, 2, 2)
    assert of_three.present == pytest.approx(present.sum() / TABLE.sum(), abs=0.02)


def test_absent_is_shown_where_it_is_asked_for(lacking: Release) -> None:
    lost = TABLE.sum(axis=(1, 2)) * [1 / 2, 1 / 4] / TABLE.sum()
    shown = lacking.table(["sex", "salary"], absent="shown")
    np.testing.assert_allclose(shown.raw.reshape(2, 3)[:, 2], lost, atol=0.02)
    assert lacking.ask("share of salary by sex", absent="shown").labels["salary"].count(ABSENT) == 2
    assert ABSENT not in lacking.ask("share of salary by sex").labels["salary"]
    with pytest.raises(InvalidInputError, match="absent = 'counted' is not known"):
        lacking.table(["sex"], absent="counted")
    with pytest.raises(InvalidInputError, match="wrong links are undone among the people who have one"):
        lacking.table(["sex", "salary"], absent="shown", linkage_error="0.02")
    with pytest.raises(InvalidInputError, match="not undone in a model of people who may be absent"):
        lacking.table(["sex", "age"], linkage_error="0.02")


def test_moments_of_several_tables_are_of_the_same_people(lacking: Release) -> None:
    tables = lacking.measured(about=["age", "sex"])
    assert [one.domain.names for one in tables] == [("sex",), ("age",)]
    assert not any(isinstance(one, PresentEstimate) for one in tables)
    tables = lacking.measured(about=["salary", "sex"])
    assert [one.domain.shape for one in tables] == [(2, 2), (3, 2)]
    assert all(isinstance(one, PresentEstimate) for one in tables)


def test_an_attribute_that_stands_in_no_table_with_those_that_say_who_is_absent_is_refused(
    lacking: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = {"salary": "bob", "age": "carol"}
    of = lambda _, names: {owners[name] for name in names if name in owners}  # noqa: E731 - one line
    monkeypatch.setattr(ReleasedTables, "_spokes", of)
    with pytest.raises(InvalidInputError, match="no table has sex and attributes of bob and carol, which say who is"):
        lacking.measured(about=["age", "sex", "salary"])


def test_the_command_says_whom_an_answer_is_about(lacking: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = estimated(lacking, ["sex, salary"], monkeypatch).stdout
    assert "n = 200,000 rows of alice; about " in left_out
    assert ABSENT not in left_out.split("Expected root")[0]
    shown = estimated(lacking, ["sex, salary", "--absent", "shown"], monkeypatch).stdout
    assert shown.split("Expected root")[0].count(ABSENT) == 2
    assert "about " not in shown
