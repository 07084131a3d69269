"""Tests of requests for several tables, and of their specs."""

import hashlib
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import request_with, spec_with
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.release.guarantees import release_pure_epsilon
from veiltab.common.release.messages.release_messages import (
    release_from_proto,
    release_to_proto,
    spec_from_proto,
    spec_to_proto,
)
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.spec import ReleaseSpec, TablePlan, release_of, table_id
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.v1 import release_pb2

PAIR = TablePlan(columns=(0, 1), server_replacement=2**63, curator_replacement=2**62, canaries=8)
OTHER_PAIR = TablePlan(columns=(1, 2), server_replacement=2**63 + 1, curator_replacement=2**61, canaries=9)
WORKLOAD = ReleaseSpec(
    release_id="a" * 32,
    study_digest="0" * 64,
    researcher="rosa",
    columns=tuple(
        Column(attribute=name, owner=owner, size=size)
        for name, owner, size in (("age", "alice", 3), ("sex", "alice", 2), ("wage", "bob", 4))
    ),
    population=1000,
    sample=900,
    epsilon=Decimal("0.5"),
    delta=Decimal("1e-6"),
    scheme="wor",
    stage=None,
    several=True,
    sampling=Sampling.SEED,
    pad=Pad.CHACHA20,
    alignment="1" * 32,
    deadline=2_000_000_000,
    tables=(PAIR, OTHER_PAIR),
    repeated=(replace(PAIR, canaries=4), replace(OTHER_PAIR, canaries=5)),
    repeats=1,
)
OTHER: dict[str, object] = {
    "release_id": "b" * 32,
    "study_digest": "1" * 64,
    "researcher": "rita",
    "columns": tuple(replace(column, owner="carol") for column in WORKLOAD.columns),
    "population": 1001,
    "sample": 901,
    "epsilon": Decimal("0.6"),
    "delta": Decimal("1e-7"),
    "scheme": "wor",
    "sampling": Sampling.SERVER,
    "pad": Pad.OTP,
    "alignment": "2" * 32,
    "deadline": 2_000_000_001,
    "tables": (PAIR, replace(OTHER_PAIR, server_replacement=2**64)),
    "repeated": (PAIR, OTHER_PAIR),
    "repeats": 2,
}


def test_a_table_is_a_release_of_its_own_with_the_guarantee_of_all() -> None:
    table = WORKLOAD.table(1)
    assert table.release_id == table_id("a" * 32, 1) == WORKLOAD.table_id(1)
    assert table.release_id == hashlib.sha256(b"veiltab table" + bytes.fromhex("a" * 32) + b"\0\0\0\1").hexdigest()[:32]
    assert [column.attribute for column in table.columns] == ["sex", "wage"]
    assert (table.part_of, table.epsilon, table.delta) == ("a" * 32, Decimal("0.5"), Decimal("1e-6"))
    assert (table.server_replacement, table.curator_replacement, table.canaries) == (2**63 + 1, 2**61, 9)
    assert (table.population, table.sample, table.cells) == (1000, 900, 8)


def test_a_table_that_runs_again_has_another_id_and_its_own_noise() -> None:
    again = WORKLOAD.table(WORKLOAD.again(0))
    assert (again.columns, again.canaries) == (WORKLOAD.table(0).columns, 4)
    assert len({WORKLOAD.table_id(number) for number in range(4)}) == 4
    assert WORKLOAD.attributes(3) == WORKLOAD.attributes(1) == ("sex", "wage")
    for number in (-1, 4):
        with pytest.raises(NotFoundError, match=f"no table {number}"):
            WORKLOAD.table(number)


def test_pure_epsilons_of_tables_and_of_what_runs_again_add_up() -> None:
    alone = [table.description.pure_epsilon for table in WORKLOAD.each_table()]
    assert release_pure_epsilon(WORKLOAD) == sum(alone) + max(alone)


def test_every_field_of_a_workload_travels_is_read_back_and_is_in_its_digest() -> None:
    assert set(OTHER) == {field.name for field in fields(ReleaseSpec)} - {"stage", "several"}
    others = [replace(WORKLOAD, **{name: value}) for name, value in OTHER.items()]  # type: ignore[arg-type]
    assert len({each.digest() for each in (*others, WORKLOAD)}) == len(OTHER)  # "wor" is the only scheme
    ones = (release_of(spec_with()), release_of(spec_with(scheme="must.ow", stage=500, server_replacement=2**64)))
    assert all(one.only_table == one.table(0) and release_of(one.table(0)) == one for one in ones)
    for each in (*others, *ones, replace(WORKLOAD, repeated=(), repeats=0)):
        received = release_pb2.ReleaseSpec.FromString(release_to_proto(each).SerializeToString())
        assert release_from_proto(received) == each
        assert ReleaseSpec.from_json(each.to_json()) == each


def test_a_table_travels_with_the_release_that_it_is_part_of() -> None:
    spec = spec_with(part_of="e" * 32)
    received = release_pb2.TableSpec.FromString(spec_to_proto(spec).SerializeToString())
    assert spec_from_proto(received) == spec
    assert TableSpec.from_json(spec.to_json()) == spec


ALONE, WHOLE = {"several": False, "repeated": (), "repeats": 0}, replace(PAIR, columns=(0, 1, 2))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tables": ()}, "the release has no table, or more than"),
        (ALONE | {"tables": (PAIR,)}, "in a release of one"),
        (ALONE | {"tables": (WHOLE, PAIR)}, "in a release of one"),
        (ALONE | {"tables": (WHOLE,), "repeated": (WHOLE,)}, "in a release of one"),
        ({"tables": (PAIR, PAIR)}, "listed twice"),
        ({"tables": (PAIR, replace(OTHER_PAIR, columns=(1, 3)))}, "in order, each once"),
        ({"tables": (PAIR, replace(OTHER_PAIR, columns=(2, 1)))}, "in order, each once"),
        ({"tables": (PAIR, replace(OTHER_PAIR, columns=())), "repeated": (), "repeats": 0}, "cells"),
        ({"tables": (PAIR, replace(OTHER_PAIR, server_replacement=0))}, "replacement"),
        ({"repeated": (replace(PAIR, server_replacement=0), OTHER_PAIR)}, "replacement"),
        ({"repeated": (OTHER_PAIR, PAIR)}, "are not the tables"),
        ({"repeated": ()}, "more tables"),
        ({"repeats": 3}, "more tables"),
        ({"sample": 1001}, "sample"),
    ],
)
def test_a_malformed_workload_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        replace(WORKLOAD, **changes)


def test_a_workload_with_too_many_columns_or_tables_is_refused_before_it_is_read() -> None:
    columns = release_to_proto(WORKLOAD)
    columns.columns.extend([columns.columns[0]] * 62)
    tables = release_to_proto(WORKLOAD)
    tables.tables.extend([tables.tables[0]] * 2000)
    for message, problem in ((columns, "64 columns"), (tables, "2000 tables")):
        with pytest.raises(InvalidInputError, match=problem):
            release_from_proto(message)


PAIRS = {"attributes": ("age", "sex", "wage"), "delta": Decimal("1e-6"), "tables": (("age", "sex"), ("sex", "wage"))}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"attributes": ("sex",), "tables": (("sex",),)}, "fewer than two tables, or two attributes"),
        ({"tables": (("age", "sex", "wage"),)}, "fewer than two tables, or two attributes"),
        ({"tables": (("age", "sex"), ("age", "sex"))}, "listed twice"),
        ({"tables": (("age", "sex"), ("wage", "sex"))}, "in their order, each once"),
        ({"tables": (("age", "sex"), ("sex", "pay"))}, "in their order, each once"),
        ({"tables": (("age", "sex"), ())}, "in their order, each once"),
        ({"tables": (("age", "sex"), ("sex",))}, "in no table"),
        ({"repeats": 3}, "more tables are to be repeated"),
        ({"repeats": -1}, "more tables are to be repeated"),
        ({"tables": (), "repeats": 1}, "repeats were asked"),
        ({"delta": None}, "no delta"),
        ({"scheme": "poisson"}, "without replacement"),
        ({"max_local_epsilon": Decimal(1)}, "with a cap"),
        ({"max_pair_epsilon": Decimal(1)}, "with a cap"),
    ],
)
def test_a_malformed_request_for_tables_is_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        request_with(**PAIRS | changes)
