"""The certificate of a release of several tables: nothing in it can be left out, doubled or exchanged."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.common.rpc.test_release_certificate import NOW, PEM, identity
from tests.conftest import refuses
from tests.made_receipts import made_tests
from tests.researcher.made_workload import workload_with
from tests.worlds.parties import ALICE, BOB, CLOUD
from veiltab.common.core.mechanism import UNIT
from veiltab.common.errors import IntegrityError
from veiltab.common.release.guarantees import release_card
from veiltab.common.release.spec import ReleaseSpec, TablePlan, release_of
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.release_certificate import CertifiedTable, ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import statement_of, verified
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement, published_columns
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.signing import SignedText, signed
from veiltab.common.study.file import Study
from veiltab.deploy.cli import veiltab

ALL = (0, 1, 2, 3, 4, 5)
RAN = (0, 1, 2, 4)
"""Numbers of the tables that have a result: all three, and the second of them a second time."""

PLANS = tuple(
    TablePlan(columns=places, server_replacement=UNIT // 2, curator_replacement=0, canaries=2400)
    for places in ((0, 1), (0, 2), (1, 2))
)
PARTIES = (ALICE, BOB, CLOUD)
LEDGER = LedgerHead(length=3, digest="ab" * 32)


@cache
def workload() -> ReleaseSpec:
    return workload_with(tables=PLANS, repeated=PLANS, repeats=2, epsilon=Decimal(20))


@cache
def signed_by(party: Party, statement: Statement) -> SignedText:
    return signed(identity(party), statement.to_json(), NOW)


def about_table(party: Party, spec: TableSpec, **changes: Any) -> SignedText:  # noqa: ANN401 - any field of a statement
    has_columns = party.role is Role.SERVER or bool(spec.columns_of(party.name))
    digests = {column.attribute: bytes([place]) * 32 for place, column in enumerate(spec.columns)}
    stated = Statement(
        party=party.uri,
        spec_digest=spec.digest().hex(),
        published=published_columns(spec, digests) if has_columns else (),
        signed_at=int(NOW.timestamp()),
        ledger=LEDGER if party.role is Role.CURATOR else None,
        receipts=made_tests(spec).receipts(party.name) if party.role is Role.CURATOR and has_columns else (),
    )
    return signed_by(party, replace(stated, **changes))


def listed(party: Party, tables: tuple[int, ...] = RAN, **changes: Any) -> SignedText:  # noqa: ANN401 - any field of a statement
    digest = workload().digest().hex()
    at = int(NOW.timestamp())
    stated = Statement(party=party.uri, spec_digest=digest, published=(), signed_at=at, ledger=LEDGER, tables=tables)
    return signed_by(party, replace(stated, **changes))


def certificate(lists: dict[Party, SignedText] | None = None, ran: tuple[int, ...] = RAN) -> ReleaseCertificate:
    return ReleaseCertificate.of(
        workload(),
        PEM,
        {party.uri: one for party, one in ({party: listed(party) for party in (ALICE, BOB)} | (lists or {})).items()},
        {number: {party.uri: about_table(party, workload().table(number)) for party in PARTIES} for number in ran},
    )


def failures(one: ReleaseCertificate, study: Study) -> list[str]:
    found = verified(ReleaseCertificate.from_text(one.to_text()), study, PEM)
    return [f"{line.what}: {line.detail}" for line in found if not line.holds]


def test_an_honest_one_holds_and_says_that_no_table_is_missing(study: Study) -> None:
    one = certificate()
    found = {line.what: line for line in verified(one, study, PEM)}
    assert all(line.holds for line in found.values())
    said = "none is missing of the 4 that every curator states: 3 of 3 planned, 1 of at most 2 a second time"
    assert found["tables"].detail == said
    assert "at delta 1e-6 was asked for and is kept. analyst: " in found["privacy"].detail
    assert (
        "curator alice, curator bob, server cloud, who state the same columns" in found["table 1 (sex, salary)"].detail
    )
    assert "accept the sums over 4 tables" in found["tests of all tables"].detail
    assert one.spec.release_id not in {spec.release_id for spec in one.specs()}
    assert len(one.signed_texts()) == 2 + 4 * 3


def test_the_command_has_one_line_for_all_tables_that_hold(study_bytes: bytes, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(study_bytes)
    (tmp_path / "one").write_text(certificate().to_text())
    command = ["verify", str(tmp_path / "one"), "--study", str(tmp_path / "study.toml")]
    short = CliRunner().invoke(veiltab, command).output
    assert short.count("\n") == 11
    assert "ok           each table: 4 of 4 tables hold. Of the one that is tested least: the server is tested" in short
    assert f"analyst: {release_card(workload()).bounds[0].limit}. desk: " in short


def without(number: int) -> Callable[[ReleaseCertificate], ReleaseCertificate]:
    return lambda one: replace(one, tables=tuple(table for table in one.tables if table.number != number))


def exchanged(one: ReleaseCertificate) -> ReleaseCertificate:
    first, second, *rest = one.tables
    tables = (replace(first, statements=second.statements), replace(second, statements=first.statements), *rest)
    return replace(one, tables=tables)


def forged(one: ReleaseCertificate, **changes: Any) -> ReleaseCertificate:  # noqa: ANN401 - any field of a workload
    """Return a certificate of another description, with the statements of the honest one."""
    return ReleaseCertificate.of(
        replace(workload(), **changes),
        PEM,
        {statement_of(text).party: text for text in one.statements},
        {table.number: {statement_of(text).party: text for text in table.statements} for table in one.tables},
    )


UNKNOWN = CertifiedTable(number=99, statements=())
CHANGES: dict[str, tuple[Callable[[ReleaseCertificate], ReleaseCertificate], str]] = {
    **{f"table {number} is missing": (without(number), f"missing from the file: table {number}") for number in RAN},
    "no table": (lambda one: replace(one, tables=()), "missing from the file: table 0, 1, 2, 4"),
    "a table twice": (lambda one: replace(one, tables=(*one.tables, one.tables[-1])), "stands twice"),
    "another order": (lambda one: replace(one, tables=one.tables[::-1]), "not in its place"),
    "two exchanged": (exchanged, "the statement is about another release"),
    "a number of no table": (
        lambda one: replace(one, tables=(*one.tables, UNKNOWN)),
        "table 99: the release has no such table",
    ),
    "a table that nobody lists": (lambda _: certificate(ran=(0, 1, 2, 3, 4)), "in no curator's list: table 3"),
    "a signature is missing": (
        lambda one: replace(
            one, tables=(replace(one.tables[0], statements=one.tables[0].statements[1:]), *one.tables[1:])
        ),
        "table 0 (sex, age): curator alice: its signature is missing",
    ),
    "no list of a curator": (lambda one: replace(one, statements=one.statements[1:]), "curator alice: its signature"),
    "no list at all": (lambda one: replace(one, statements=()), "no curator states which tables there are"),
    "lists that differ": (lambda _: certificate({BOB: listed(BOB, (0, 1, 2))}), "the curators state different tables"),
    "more repeats than planned": (
        lambda _: certificate({party: listed(party, ALL) for party in (ALICE, BOB)}, ALL),
        "more tables ran a second time",
    ),
    "a list with columns": (
        lambda _: certificate(
            {BOB: listed(BOB, published=published_columns(workload().table(0), {"sex": bytes(32), "age": bytes(32)}))}
        ),
        "of all tables a curator states which",
    ),
    "a smaller epsilon": (lambda one: forged(one, epsilon=Decimal(19)), "the statement is about another release"),
    "too small an epsilon": (lambda one: forged(one, epsilon=Decimal("0.5")), "the noise is too small"),
    "another card": (
        lambda one: replace(one, card=(replace(one.card[0], faces="nothing"), *one.card[1:])),
        "another card",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_named(study: Study, change: str) -> None:
    altered, said = CHANGES[change]
    assert any(said in line for line in failures(altered(certificate()), study))


def test_the_statements_of_one_table_are_no_certificate(study: Study) -> None:
    spec = workload().table(0)
    one = ReleaseCertificate.of(release_of(spec), PEM, {party.uri: about_table(party, spec) for party in PARTIES})
    assert any("about another release" in line for line in failures(one, study))


def test_a_certificate_is_of_one_description() -> None:
    whole = certificate()
    table = certificate().tables[0]
    for wrong in (
        replace(whole, spec=release_of(workload().table(0))),
        replace(whole, spec=release_of(workload().table(0)), tables=(table,)),
    ):
        with refuses(IntegrityError, where="certificate"):
            ReleaseCertificate.from_text(wrong.to_text())


def test_a_server_that_leaves_out_a_little_noise_in_each_table_is_seen_in_the_sums(study: Study) -> None:
    def short(party: Party, spec: TableSpec) -> SignedText:
        if party.role is Role.SERVER:
            return about_table(party, spec)
        has_columns = bool(spec.columns_of(party.name))
        receipts = made_tests(spec, share=0.87).receipts(party.name) if has_columns else ()
        return about_table(party, spec, receipts=receipts)

    numbers = (0, 1, 2, 3, 4)
    one = ReleaseCertificate.of(
        workload(),
        PEM,
        {party.uri: listed(party, numbers) for party in (ALICE, BOB)},
        {number: {party.uri: short(party, workload().table(number)) for party in PARTIES} for number in numbers},
    )
    assert [line.split(":")[0] for line in failures(one, study)] == ["tests of all tables"]
