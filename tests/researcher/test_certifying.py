"""A release's certificate is made once, whoever asks for it meanwhile."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.common.rpc.test_release_certificate import DIGESTS, PEM, SPEC, resigned
from tests.conftest import spec_with
from tests.researcher.desks import rosas_driver
from tests.worlds.parties import ALICE, BOB, CLOUD
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.statement import published_columns
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.rpc.parties.signing import SignedText, signed_to_proto
from veiltab.common.study.file import Study
from veiltab.researcher.desk import certifying
from veiltab.researcher.desk.certificates import _statements
from veiltab.researcher.desk.certifying import certify
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import Publication
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1 import curator_pb2
from veiltab.v1.release_pb2 import SignedStatement

ID = "0" * 31 + "1"


WRONG: dict[str, tuple[Party, dict[str, Any], str]] = {
    "about another release": (BOB, {"spec_digest": "0" * 64}, "curator bob"),
    "about other columns": (
        CLOUD,
        {"published": published_columns(SPEC, DIGESTS | {"sex": bytes([7]) * 32})},
        "published columns",
    ),
    "without a ledger": (ALICE, {"ledger": None}, "curator alice"),
}


def certified(study: Study, stated: Callable[[Party], SignedText]) -> ReleaseCertificate:
    async def ask(party: Party, _: str) -> SignedText:
        return stated(party)

    return asyncio.run(certify(release_of(SPEC), (), study, PEM, ask))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_desk_hands_out_no_certificate_that_does_not_hold(study: Study, wrong: str) -> None:
    liar, changes, where = WRONG[wrong]
    with pytest.raises(IntegrityError, match="the release cannot be certified") as caught:
        certified(study, lambda party: resigned(party, **(changes if party == liar else {})))
    assert caught.value.where == where


def test_a_desk_checks_every_signature(study: Study) -> None:
    assert certified(study, resigned).statements
    forged = resigned(ALICE, signed_at=1).signature
    with pytest.raises(IntegrityError, match="does not fit what it signed"):
        certified(study, lambda party: replace(resigned(party), signature=forged))
    with pytest.raises(IntegrityError, match="states more than once"):
        certified(study, lambda party: resigned(ALICE if party == BOB else party))


class Making:
    """Stands in for the making of certificates, which takes as long as it is told."""

    def __init__(self) -> None:
        self.begun = 0
        self.has_begun = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.error: Exception | None = None

    async def certify(self, *_: object) -> Any:  # noqa: ANN401 - a certificate, of which its text is written
        self.begun += 1
        self.has_begun.set()
        await self.goes_on.wait()
        if self.error:
            raise self.error
        return SimpleNamespace(to_text=lambda: "certificate", signed_texts=tuple)


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Making:
    made = Making()
    monkeypatch.setattr(certifying, "certify", made.certify)
    return made


@pytest.fixture
def driver(tmp_path: Path, study: Study) -> Iterator[ResearcherDriver]:
    store = ResearcherStore(tmp_path, study)
    made = rosas_driver(study, store)
    made._parties = cast("Any", SimpleNamespace(ask_statement=None))
    made.store.files.certificate(ID).parent.mkdir(parents=True, exist_ok=True)
    yield made
    store.close()


def ready(driver: ResearcherDriver) -> ResearcherRelease:
    spec = spec_with(release_id=ID)
    made = SimpleNamespace(
        request=SimpleNamespace(release_id=ID),
        state=ReleaseState.READY,
        spec=spec,
        planned=release_of(spec),
        study_digest=driver.study.digest,
        part_of="",
    )
    return cast("ResearcherRelease", made)


async def test_who_asks_at_once_has_one_certificate(driver: ResearcherDriver, making: Making) -> None:
    askers = [asyncio.create_task(driver.certificate(ready(driver))) for _ in range(3)]
    await making.has_begun.wait()
    askers[0].cancel()  # the first one leaves, and what it began goes on
    await asyncio.sleep(0)
    making.goes_on.set()
    for asker in askers[1:]:
        assert (await asker).read_text() == "certificate"
    await driver.certificate(ready(driver))
    assert making.begun == 1


def test_a_party_that_has_stated_what_it_knows_is_not_asked_until_that_did_not_do(
    driver: ResearcherDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated, asked = SignedText(text="stated", signature="", certificate=""), list[tuple[str, SignedText]]()
    answered = replace(stated, text="answered")

    async def ask_statement(*_: object) -> SignedText:
        return answered

    async def certify(*arguments: Any) -> None:  # noqa: ANN401 - as certify
        for party in (ALICE, BOB):
            asked.append((party.name, await arguments[4](party, ID)))
        raise IntegrityError("does not fit")

    monkeypatch.setattr(certifying, "certify", certify)
    driver._parties = cast("Any", SimpleNamespace(ask_statement=ask_statement))
    driver._certificates._stated[ID] = {BOB.uri: stated}
    for _ in range(2):
        with pytest.raises(IntegrityError):
            asyncio.run(driver.certificate(ready(driver)))
    assert asked == [("alice", answered), ("bob", stated), ("alice", answered), ("bob", answered)]


def test_a_statement_that_is_none_leaves_its_party_to_be_asked(driver: ResearcherDriver) -> None:
    right = signed_to_proto(SignedText(text="stated", signature="ab", certificate=""))
    answers = {
        "alice": curator_pb2.GetProposalResponse(statement=right),
        "bob": curator_pb2.GetProposalResponse(statement=SignedStatement(certificate=b"\xff")),
        "carol": curator_pb2.GetProposalResponse(statement=SignedStatement(text="x" * 2**18)),
        "dora": curator_pb2.GetProposalResponse(),
    }
    published = Publication(spec=spec_with(release_id=ID), salt=b"", columns={}, statement=None)
    assert [uri for uri, _ in _statements(driver.study, published, answers)] == ["veiltab://survey/curator/alice"]


def test_a_party_that_states_amiss_is_named() -> None:
    answered = SimpleNamespace(statement=SignedStatement(certificate=b"\xff"))

    async def ask(*_: object) -> SimpleNamespace:
        return answered

    asked = SimpleNamespace(stub=SimpleNamespace(GetCuratorStatement=None, GetServerStatement=None), ask=ask)
    links = object.__new__(PartyLinks)
    links.curators, links._server = {"bob": cast("Any", asked)}, cast("Any", asked)
    for party in (BOB, CLOUD):
        with pytest.raises(InvalidInputError, match=f"{party.role.value} {party.name}: this is not a PEM certificate"):
            asyncio.run(links.ask_statement(party, ID))


async def test_a_certificate_that_failed_is_made_again_when_somebody_asks(
    driver: ResearcherDriver, making: Making, caplog: pytest.LogCaptureFixture
) -> None:
    making.error = IntegrityError("does not fit")
    left = asyncio.create_task(driver.certificate(ready(driver)))
    await making.has_begun.wait()
    left.cancel()
    making.goes_on.set()
    await asyncio.sleep(0.01)
    with pytest.raises(IntegrityError, match="does not fit"):
        await driver.certificate(ready(driver))
    making.error = None
    assert (await driver.certificate(ready(driver))).exists()
    assert making.begun == 3
    assert not [record for record in caplog.records if "never retrieved" in record.getMessage()]


def test_one_table_of_several_has_no_certificate_of_its_own(driver: ResearcherDriver) -> None:
    table = ready(driver)
    table.part_of = "f" * 32  # type: ignore[misc]  # a namespace
    with pytest.raises(InvalidInputError, match="the certificate is that of all of them") as caught:
        asyncio.run(driver.certificate(table))
    assert caught.value.remedy == f"Ask for the certificate of {'f' * 32}."
