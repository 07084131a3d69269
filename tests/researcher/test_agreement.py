"""What the server or a curator says of another release, or of one that was not asked for, is refused."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import refuses, request_with, spec_with
from tests.researcher.made_workload import COLUMNS, request_for_pairs, workload_with
from veiltab.common.errors import FailedReleaseError, NotReadyError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.file import Study
from veiltab.researcher.parties.agreement import agreed_spec, agreed_table, agreed_tables

OTHER = "0" * 31 + "2"


def by_everyone(spec: TableSpec) -> dict[str, TableSpec]:
    """Return what the curators say if all say the same."""
    return {"alice": spec, "bob": spec}


def test_what_all_state_alike_is_taken(study: Study) -> None:
    spec = spec_with()
    for request in (request_with(), request_with(sample=400), request_with(partial=True)):
        assert agreed_spec(request, study, spec, by_everyone(spec)) == spec
    poisson = spec_with(scheme="poisson")
    request = request_with(scheme="poisson", sample=380)
    assert agreed_spec(request, study, poisson, by_everyone(poisson)) == poisson
    part = spec_with(columns=spec_with().columns[:1])
    assert agreed_spec(request_with(partial=True), study, part, by_everyone(part)) == part


@pytest.mark.parametrize("planned", [(), ("alice",), ("bob",)])
def test_nothing_is_taken_before_every_curator_with_columns_in_it_has_planned(
    study: Study, planned: tuple[str, ...]
) -> None:
    for published in (spec_with(), spec_with(release_id=OTHER)):
        said = {name: spec_with() for name in planned}
        with pytest.raises(NotReadyError, match="has not planned the release yet"):
            agreed_spec(request_with(), study, published, said)


def test_another_release_is_refused_whoever_speaks_of_it(study: Study) -> None:
    asked, older = spec_with(), spec_with(release_id=OTHER)
    with refuses(FailedReleaseError, where="server cloud"):
        agreed_spec(request_with(), study, older, by_everyone(asked))
    with refuses(FailedReleaseError, where="server cloud"):
        agreed_spec(request_with(), study, older, by_everyone(older))
    for name in ("alice", "bob"):
        with pytest.raises(FailedReleaseError, match=f"curator {name}: the server published another release than was"):
            agreed_spec(request_with(), study, asked, by_everyone(asked) | {name: older})


CHANGES: dict[str, dict[str, Any]] = {
    "researcher": {"researcher": "rita"},
    "epsilon": {"epsilon": Decimal("0.2")},
    "delta": {"delta": Decimal("1e-6")},
    "scheme": {"scheme": "wr"},
    "sampling": {"sampling": Sampling.INDICES},
    "pad": {"pad": Pad.OTP},
    "deadline": {"deadline": 2_000_000_001},
    "sample": {"sample": 399},
    "canaries": {"canaries": 9},
    "stage": {"scheme": "must.ow", "stage": 500},
    "study file": {"study_digest": "ab" * 32},
    "an attribute's owner": {"columns": (("sex", "bob", 2), ("salary", "bob", 2))},
    "an attribute's size": {"columns": (("sex", "alice", 3), ("salary", "bob", 2))},
    "order of columns": {"columns": (("salary", "bob", 2), ("sex", "alice", 2))},
    "a column more": {"columns": (("sex", "alice", 2), ("age", "alice", 3), ("salary", "bob", 2))},
    "another column": {"columns": (("sex", "alice", 2), ("age", "alice", 3))},
    "a column fewer": {"columns": (("sex", "alice", 2),)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_not_asked_for_is_refused_even_if_all_agree(study: Study, change: str) -> None:
    fields = dict(CHANGES[change])
    if "columns" in fields:
        fields["columns"] = tuple(Column(attribute=a, owner=o, size=s) for a, o, s in fields["columns"])
    spec = spec_with(**fields)
    said = "columns" if "columns" in CHANGES[change] else change
    with pytest.raises(FailedReleaseError, match=f"another release than was asked for: .*{said}"):
        agreed_spec(request_with(sample=400, canaries=0), study, spec, by_everyone(spec))


def test_the_plan_may_choose_the_canaries(study: Study) -> None:
    spec = spec_with(canaries=9)
    for request in (request_with(), request_with(canaries=9)):
        assert agreed_spec(request, study, spec, by_everyone(spec)) == spec


def test_every_field_of_a_request_that_a_spec_repeats_is_compared() -> None:
    repeated = set(type(spec_with()).__dataclass_fields__) & set(type(request_with()).__dataclass_fields__)
    assert repeated - {"release_id"} <= set(CHANGES)


def test_a_part_is_taken_only_if_the_request_goes_on_without_the_rest(study: Study) -> None:
    more = Column(attribute="age", owner="alice", size=3)
    spec = replace(spec_with(), columns=(spec_with().columns[0], more))
    with pytest.raises(FailedReleaseError, match="asked for: columns"):
        agreed_spec(request_with(partial=True), study, spec, by_everyone(spec))


def planned_by_all(**changes: Any) -> dict[str, ReleaseSpec]:  # noqa: ANN401 - any field of a workload
    """Return what the curators say if all say the same."""
    return dict.fromkeys(("alice", "bob"), workload_with(**changes))


def test_a_workload_that_all_planned_as_it_was_asked_for_is_taken(study: Study) -> None:
    for request in (request_for_pairs(), request_for_pairs(canaries=None), request_for_pairs(sample=1000)):
        assert agreed_tables(request, study, planned_by_all()) == workload_with()


@pytest.mark.parametrize("missing", ["alice", "bob"])
def test_no_workload_is_taken_before_every_curator_has_planned(study: Study, missing: str) -> None:
    planned = planned_by_all()
    del planned[missing]
    with pytest.raises(NotReadyError, match=f"curator {missing}: has not planned"):
        agreed_tables(request_for_pairs(), study, planned)


def test_curators_that_planned_other_tables_are_found(study: Study) -> None:
    planned = planned_by_all() | {"bob": workload_with(sample=999)}
    with pytest.raises(FailedReleaseError, match="curator bob: it planned another release than curator alice"):
        agreed_tables(request_for_pairs(), study, planned)


WORKLOAD_CHANGES: dict[str, dict[str, Any]] = {
    "researcher": {"researcher": "rita"},
    "epsilon": {"epsilon": Decimal("0.2")},
    "delta": {"delta": Decimal("1e-7")},
    "sampling": {"sampling": Sampling.INDICES},
    "pad": {"pad": Pad.OTP},
    "deadline": {"deadline": 2_000_000_001},
    "sample": {"sample": 999},
    "study file": {"study_digest": "ab" * 32},
    "columns": {"columns": tuple(replace(column, owner="bob") for column in COLUMNS)},
    "tables": {"tables": workload_with().tables[:2], "repeated": workload_with().tables[:2]},
    "repeats": {"repeats": 3},
    "canaries": {"tables": tuple(replace(plan, canaries=0) for plan in workload_with().tables)},
    "another release": {"release_id": OTHER},
}


@pytest.mark.parametrize("change", WORKLOAD_CHANGES)
def test_a_workload_that_was_not_asked_for_is_refused_even_if_all_agree(study: Study, change: str) -> None:
    with pytest.raises(FailedReleaseError, match=change):
        agreed_tables(request_for_pairs(sample=1000), study, planned_by_all(**WORKLOAD_CHANGES[change]))


def test_every_field_that_a_workload_repeats_of_a_request_is_compared() -> None:
    repeated = set(ReleaseSpec.__dataclass_fields__) & set(type(request_for_pairs()).__dataclass_fields__)
    assert repeated - {"release_id", "scheme", "stage"} <= set(WORKLOAD_CHANGES)  # "wor" is the only scheme of tables


def test_of_a_partial_workload_the_tables_with_what_is_denied_are_left_out(study: Study) -> None:
    plan = workload_with().tables[0]
    rest = {"columns": COLUMNS[:2], "tables": (plan,), "repeated": (plan,), "repeats": 1}
    taken = agreed_tables(request_for_pairs(partial=True), study, planned_by_all(**rest))
    assert taken.attributes(0) == ("sex", "age")
    with pytest.raises(FailedReleaseError, match="asked for: columns"):
        agreed_tables(request_for_pairs(), study, planned_by_all(**rest))


def test_a_table_is_the_one_of_its_workload(study: Study) -> None:
    first = workload_with().table(0)
    assert agreed_table(first, study, first, by_everyone(first)) == first
    # All of its columns are alice's, and bob has agreed to the workload.
    assert agreed_table(first, study, first, {"alice": first}) == first
    with refuses(NotReadyError, where="curator alice"):
        agreed_table(first, study, first, {"bob": first})
    weaker = replace(first, server_replacement=1)
    with refuses(FailedReleaseError, where="release spec"):
        agreed_table(first, study, weaker, by_everyone(weaker))
    with refuses(FailedReleaseError, where="curator alice"):
        agreed_table(first, study, weaker, by_everyone(first))
    with refuses(FailedReleaseError, where="server cloud"):
        agreed_table(first, study, workload_with().table(1), by_everyone(first))
