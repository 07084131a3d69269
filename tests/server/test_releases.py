""""""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from tests.conftest import refuses
from tests.power import FailingPower, PowerFailure
from tests.server.publishing import perturb, published_by, spec_ahead
from tests.server.sent_columns import (  # noqa: F401 - fixtures
    DATA,
    ID,
    OWNERS,
    Make,
    announced,
    pieces,
    releases_fixture,
    run,
    send,
    settled,
    started,
    whole,
)
from veiltab.common.errors import (
    ConflictError,
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    TransferError,
    VeiltabError,
)
from veiltab.common.release.messages.release_messages import spec_to_proto
from veiltab.common.release.messages.witness import NONE_SEEN
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.statuses import every
from veiltab.common.storage.database import Database
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.server.party.service import IngestServicer
from veiltab.server.records.store import ServerStore
from veiltab.server.release.receiving import Receiver, Whole
from veiltab.server.release.releases import Releases
from veiltab.v1 import ingest_pb2

LEDGER = (1, bytes(32))


async def send_whole(releases: Releases, spec: TableSpec, curator: str, columns: Whole) -> None:
    """Announce a release and send whole columns together."""
    session, _ = releases.open_release(spec, curator)
    await releases.upload_whole(spec, (curator, LEDGER), columns, session.noise_digest)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"study_digest": "0" * 64}, "another study file"),
        ({"columns": (Column(attribute="sex", owner="bob", size=2),)}, "not as the study says"),
        ({"columns": (Column(attribute="sex", owner="alice", size=3),)}, "not as the study says"),
        ({"columns": (Column(attribute="height", owner="alice", size=2),)}, "not as the study says"),
    ],
)
def test_a_release_that_is_not_of_the_study_is_refused(
    releases: Releases, store: ServerStore, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        releases.open_release(spec_ahead(**changes), "alice")
    assert store.sessions() == ()


def test_too_many_cells_are_refused(store: ServerStore, study: Study) -> None:
    with pytest.raises(InvalidInputError, match="the study allows 3 cells"):
        Releases(replace(study, maximum_cells=3), store).open_release(spec_ahead(), "alice")


async def test_whole_columns_are_taken_of_a_release_that_was_announced(releases: Releases) -> None:
    spec = spec_ahead()
    for attribute, curator in OWNERS.items():
        for _ in range(2):  # the same again changes nothing
            await send_whole(releases, spec, curator, whole(attribute))
    await settled(releases)
    assert set(releases.publication_of(ID, "alice").digests) == set(DATA)
    await send_whole(releases, spec, "bob", whole("salary"))
    with refuses(ConflictError, where="attribute salary"):
        await send_whole(releases, spec, "bob", whole("salary", bytes(400)))


@pytest.mark.parametrize(
    ("column", "refusal"),
    [
        (whole("sex", bytes(399)), InvalidInputError("the column has 400 bytes, and 399 came")),
        (whole("sex", bytes(401)), InvalidInputError("the column has 400 bytes, and 401 came")),
        (whole("salary"), DeniedError("this column is another curator's")),
        ({"sex": (bytes(400), bytes(32))}, TransferError("the column does not have its digest")),
        (whole("sex", bytes([2] * 400)), IntegrityError("400 of 400 symbols lie outside an alphabet of 2 categories")),
    ],
)
def test_a_whole_column_is_refused_that_is_none(
    releases: Releases, store: ServerStore, column: dict[str, tuple[bytes, bytes]], refusal: VeiltabError
) -> None:
    spec = spec_ahead()
    with pytest.raises(type(refusal), match=re.escape(refusal.problem)):
        run(send_whole(releases, spec, "alice", column))
    assert not store.session(ID).complete
    ends = not isinstance(refusal, InvalidInputError | DeniedError | TransferError)
    assert store.session(ID).state is (ReleaseState.FAILED if ends else ReleaseState.UPLOADING)
    if ends:
        with pytest.raises(FailedReleaseError):
            run(send_whole(releases, spec, "alice", whole("sex")))


async def test_the_whole_takes_the_place_of_a_part_that_a_failing_power_damaged(
    releases: Releases, store: ServerStore
) -> None:
    spec = spec_ahead()
    await send(releases, spec, "sex", stop=100)
    (part,) = store.folder(ID).ciphertext.iterdir()
    part.write_bytes(bytes(1 - symbol for symbol in DATA["sex"][:100]))
    await send_whole(releases, spec, "alice", whole("sex"))
    assert store.complete_files(ID)["sex"][0].read_bytes() == DATA["sex"]
    assert releases.open_release(spec, "alice")[1] == {"sex": 400}
    assert store.session(ID).complete == {"sex"}


async def test_columns_that_come_together_lie_in_one_file(store: ServerStore) -> None:
    sizes = {"sex": 2, "age": 300, "eye": 3}
    columns = tuple(Column(attribute=name, owner="alice", size=size) for name, size in sizes.items())
    spec = spec_ahead(columns=columns, server_replacement=1)
    data = {"sex": bytes([0, 1] * 200), "age": bytes([9, 1, 8, 0] * 200), "eye": bytes([2, 0, 1, 2] * 100)}
    parts = {name: (column, sha256(column).digest()) for name, column in data.items()}
    await Receiver(store, lambda _: None).take_whole(store.open_session(spec), ("alice", LEDGER), parts)
    assert len(list(store.folder(ID).ciphertext.iterdir())) == 1
    perturb(store, spec)
    assert published_by(store, ID) == data


def outlives(folder: Path, study: Study, at: int, seed: int) -> bool:
    """Let the power fail before a step of a release, and go on; return whether there was such a step.

    A curator deletes what the server has said to hold whole, and the digests that it has stated are stated again.
    """
    spec, held, stated, noises = spec_ahead(), set[str](), dict[str, bytes](), set[bytes]()

    async def work(releases: Releases) -> None:
        noises.add(releases.open_release(spec, "alice")[0].noise_digest)
        for attribute in set(DATA) - held:
            if attribute == "sex":
                await send_whole(releases, spec, "alice", whole(attribute))
            else:
                await send(releases, spec, attribute, stop=100)
                assert (await send(releases, spec, attribute))[1]
            held.add(attribute)
        await settled(releases)
        stated.update(releases.publication_of(ID, "alice").digests)

    store = ServerStore(folder / "first")
    with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure, VeiltabError):
        power = FailingPower(watching, folder / "first", cast("Database", store.connection), at=at, seed=seed)
        run(work(Releases(study, store, retention_days=1)))
    power.close()
    store.close()
    if power.left is None:
        return False
    power.restore(folder / "later")
    before = dict(stated)
    with closing(ServerStore(folder / "later")) as store:
        again = Releases(study, store, retention_days=1)
        noises.add(again.open_release(spec, "alice")[0].noise_digest)
        assert len(noises) == 1, "curators send columns for the noise that was stated first"
        run(resumed(again, work))
        session = again.publication_of(ID, "alice")
        assert before in ({}, session.digests)
        salted = {name: session.salt + data for name, data in published_by(store, ID).items()}
        assert session.digests == {name: sha256(data).digest() for name, data in salted.items()}
        again._sweep(int(time.time()))
        assert not store.folder(ID).ciphertext.exists()
    return True


async def resumed(releases: Releases, work: Callable[[Releases], Coroutine[Any, Any, None]]) -> None:
    """Let a service that has been started go on with what is complete, and do some work until it has published."""
    taking_up = asyncio.create_task(every(1, releases._take_up, logging.getLogger(), "not taken up"))
    async with asyncio.timeout(20):
        while releases._store.session(ID).state is not ReleaseState.READY:
            with suppress(TransferError):
                await work(releases)
            await asyncio.sleep(0.01)
    taking_up.cancel()


@pytest.mark.parametrize("at", [5, 6, 10, 16])
def test_a_release_outlives_a_power_that_fails(tmp_path: Path, study: Study, at: int) -> None:
    assert outlives(tmp_path, study, at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_a_release_outlives_a_power_that_fails_at_any_step(tmp_path: Path, study: Study, seed: int) -> None:
    at = 0
    while outlives(tmp_path / str(at), study, at, 1000 * seed + at):
        at += 1
    assert at > 16


def test_a_column_is_named_once_in_a_message(releases: Releases) -> None:
    twice = [ingest_pb2.WholeColumn(attribute="sex")] * 2
    request = ingest_pb2.UploadColumnsRequest(spec=spec_to_proto(spec_ahead()), columns=twice)
    with pytest.raises(InvalidInputError, match="an attribute is named twice"):
        run(IngestServicer(releases).UploadColumns(request, cast("Any", None)))


async def test_an_upload_may_stop_and_go_on(releases: Releases) -> None:
    spec = spec_ahead()
    assert await send(releases, spec, "sex", stop=100) == (100, False)
    assert releases.open_release(spec, "alice")[1] == {"sex": 100}
    assert await send(releases, spec, "sex") == (400, True)
    assert releases.open_release(spec, "alice")[1] == {"sex": 400}
    # The same column again is fine; other bytes are not.
    assert await send(releases, spec, "sex") == (400, True)
    with refuses(ConflictError, where="attribute sex"):
        await send(releases, spec, "sex", bytes([1] * 400))


async def test_a_column_of_another_spec_or_curator_is_refused(releases: Releases) -> None:
    spec = spec_ahead()
    good = announced(releases.open_release(spec, "alice")[0], "sex", DATA["sex"])
    with refuses(InvalidInputError, where="release 00000000000000000000000000000001"):
        await releases.upload(replace(good, spec_digest=bytes(32)), pieces(DATA["sex"]))
    with refuses(DeniedError, where="attribute sex"):
        await releases.upload(replace(good, curator="bob"), pieces(DATA["sex"]))
    with refuses(InvalidInputError, where="attribute"):
        await releases.upload(replace(good, attribute="age"), pieces(DATA["sex"]))
    with refuses(ConflictError, where="release 00000000000000000000000000000001"):
        await releases.upload(replace(good, noise_digest=bytes(32)), pieces(DATA["sex"]))
    with refuses(ConflictError, where="release 00000000000000000000000000000001"):
        await releases.upload_whole(spec, ("alice", LEDGER), whole("sex"), bytes(32))
    assert not releases._store.folder(ID).ciphertext.exists()


async def test_a_symbol_outside_its_alphabet_fails_the_release(releases: Releases, store: ServerStore) -> None:
    spec = spec_ahead()
    await send(releases, spec, "salary")
    with pytest.raises(IntegrityError, match="1 of 400 symbols lie outside"):
        await send(releases, spec, "sex", bytes([2, *bytes(399)]))
    session = store.session(ID)
    assert session.state is ReleaseState.FAILED
    assert session.failure == "attribute sex: 1 of 400 symbols lie outside an alphabet of 2 categories"
    assert not store.folder(ID).ciphertext.exists()
    with pytest.raises(FailedReleaseError, match="symbols lie outside"):
        await send(releases, spec, "sex")


async def test_a_damaged_column_may_be_sent_again(releases: Releases, store: ServerStore) -> None:
    spec = spec_ahead()
    header = announced(releases.open_release(spec, "alice")[0], "sex", DATA["sex"])
    with pytest.raises(IntegrityError, match="does not have its digest"):
        await releases.upload(header, pieces(bytes([1] * 400)))
    assert store.session(ID).state is ReleaseState.UPLOADING
    assert await send(releases, spec, "sex") == (400, True)


def test_an_upload_whose_file_is_gone_is_refused_while_nothing_explains_it(
    releases: Releases, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("veiltab.server.sharing.folders.ReleaseFolder.begin_column", Mock(side_effect=FileNotFoundError))
        with pytest.raises(FileNotFoundError):
            run(send(releases, spec_ahead(), "sex"))
    assert store.session(ID).state is ReleaseState.UPLOADING
    assert run(send(releases, spec_ahead(), "sex")) == (400, True)


@pytest.mark.parametrize("database", [""], ids=["sqlite"])
async def test_no_statement_goes_through_all_releases_that_ever_were(releases: Releases, store: ServerStore) -> None:
    asked, database = list[str](), cast("Database", store.connection)
    database.set_trace_callback(asked.append)
    for attribute, curator in OWNERS.items():
        await send_whole(releases, spec_ahead(), curator, whole(attribute))
    await settled(releases)
    for curator in OWNERS.values():
        await releases.canaries_of(ID, curator, bytes(32))
    database.set_trace_callback(None)
    plans = [database.execute(f"EXPLAIN QUERY PLAN {text}") for text in asked if text.count(" ") > 1]
    assert not [step["detail"] for plan in plans for step in plan if step["detail"].startswith("SCAN")]
    assert {releases.witness(curator, NONE_SEEN) for curator in OWNERS.values()} == {LEDGER}


def test_a_ledger_is_remembered_if_it_has_no_more_entries_than_releases(study_bytes: bytes, store: ServerStore) -> None:
    study = study_from_bytes(study_bytes, "study.toml")
    releases = Releases(study, store)
    releases.open_release(spec_ahead(study_digest=study.digest), "alice")
    for length in (1, 2):
        releases.witness("alice", (length, bytes(32)))
    assert releases.witness("alice", (1, bytes(32))) == (1, bytes(32))


async def test_the_parts_of_a_column_come_from_its_holders_and_are_added_up(store: ServerStore, study: Study) -> None:
    bob = replace(study.curator("bob"), complete=False)
    carol = replace(bob, name="carol", endpoint="localhost:7403")
    *others, salary = study.attributes
    held = replace(
        study, curators=(study.curator("alice"), bob, carol), attributes=(*others, replace(salary, others=("carol",)))
    )
    column = Column(attribute="salary", owner="bob", others=("carol",), size=3)
    spec, releases = spec_ahead(columns=(column,), server_replacement=1), Releases(held, store)
    with pytest.raises(InvalidInputError, match="not as the study says"):
        releases.open_release(spec_ahead(columns=(replace(column, others=None),)), "bob")
    with refuses(DeniedError, where="curator alice"):
        releases.open_release(spec, "alice")
    parts = {"bob": bytes([0, 1, 2, 2] * 100), "carol": bytes([2, 2, 1, 2] * 100)}
    await send_whole(releases, spec, "carol", whole("salary", parts["carol"]))
    session = store.session(ID)
    assert set(session.complete) == {"salary+carol"}
    assert session.waiting_for == ("salary",)
    with refuses(ConflictError, where="attribute salary+carol"):
        await send_whole(releases, spec, "carol", whole("salary", parts["bob"]))
    await send_whole(releases, spec, "bob", whole("salary", parts["bob"]))
    await settled(releases)
    # Who has nobody sends the last symbol, 2, which adds nothing.
    assert published_by(store, ID)["salary"] == bytes([0, 1, 1, 2] * 100)
    assert set(store.session(ID).digests) == {"salary"}
