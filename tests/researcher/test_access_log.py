"""What a desk records of its analysts, before it answers them."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from tests.conftest import STUDY, request_with, spec_with
from tests.researcher.desks import client_of, finish, rosas_driver
from tests.worlds.parties import ANA, ROSA
from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError, NotReadyError, UnavailableError
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.study.file import study_from_bytes
from veiltab.researcher.cli import researcher
from veiltab.researcher.client.client import Client
from veiltab.researcher.desk.service import ResearcherServicer
from veiltab.researcher.records.store import ResearcherStore
from veiltab.researcher.status.access_log import Access, AccessLog, Subject, access_from_proto, access_to_proto
from veiltab.v1 import researcher_pb2

ID = "0" * 31 + "1"
MIDNIGHT = 20_000 * 86_400
STUDY_OF_ANA = study_from_bytes(STUDY + b'[[analyst]]\nname = "ana"\nresearcher = "rosa"\n', "study.toml")


class Desk:
    """A researcher's service over a state folder, asked by one party after another."""

    def __init__(self, store: ResearcherStore) -> None:
        self.store = store
        self.servicer: Any = ResearcherServicer(rosas_driver(STUDY_OF_ANA, store))
        self.log = AccessLog(store.connection)

    def ask(self, rpc: str, **fields: Any) -> Any:  # noqa: ANN401 - any message
        """Call an RPC; return its answer, or all bytes of its stream."""
        call = getattr(self.servicer, rpc)(getattr(researcher_pb2, f"{rpc}Request")(**fields), None)
        if not rpc.startswith("Fetch"):
            return asyncio.run(call)

        async def fetched() -> bytes:
            return b"".join([piece.chunk.data async for piece in call])

        return asyncio.run(fetched())

    def recorded(self) -> list[tuple[str, Subject, str, int]]:
        return [(a.analyst, a.subject, a.release_id, a.times) for a in self.log.after(0, 100)]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Rosa's desk with a release that is ready, asked by ana."""
    monkeypatch.setattr("veiltab.researcher.desk.service.caller", lambda _: ANA)
    with closing(ResearcherStore(tmp_path, STUDY_OF_ANA)) as store:
        store.start(request_with(release_id=ID), "wages", 1)
        finish(store, spec_with(release_id=ID, study_digest=STUDY_OF_ANA.digest))
        yield Desk(store)


def test_whatever_an_analyst_gets_is_recorded(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk.ask("ListReleases")
    desk.ask("GetResult", release="wages")
    assert len(desk.ask("FetchHistogram", release_id=ID)) == 32
    assert desk.ask("FetchHistogram", release_id="wages") == desk.ask("FetchHistogram", release_id=ID)
    assert desk.ask("GetResult", release=ID, with_counts=True).counts == desk.store.files.histogram(ID).read_bytes()
    assert desk.ask("FetchStudy") == STUDY_OF_ANA.source
    assert desk.recorded() == [
        ("ana", Subject.RELEASES, "", 1),
        ("ana", Subject.STATUS, ID, 2),
        ("ana", Subject.COUNTS, ID, 4),
        ("ana", Subject.STUDY_FILE, "", 1),
    ]
    said = [(record.getMessage(), getattr(record, "release", None)) for record in caplog.records]
    assert ("analyst ana asked for: counts", ID) in said
    assert len(said) == 8


def test_every_rpc_that_analysts_may_call_is_recorded(desk: Desk) -> None:
    desk.store.files.certificate(ID).write_text("signed", "utf-8")
    for method in researcher_pb2.DESCRIPTOR.services_by_name["ResearcherService"].methods:
        options: Any = method.GetOptions()
        analysts = any("ROLE_ANALYST" in line for line in str(options).splitlines())
        before = sum(times for *_, times in desk.recorded())
        if method.name != "StartRelease":
            names = {field.name for field in method.input_type.fields} & {"release", "release_id"}
            desk.ask(method.name, **dict.fromkeys(names, ID))
        assert sum(times for *_, times in desk.recorded()) == before + analysts, method.name


def test_what_the_researcher_reads_of_its_own_is_not_recorded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.desk.service.caller", lambda _: ROSA)
    desk.ask("GetResult", release="wages")
    desk.ask("FetchHistogram", release_id=ID)
    assert desk.recorded() == []


def test_what_is_refused_is_not_recorded_as_given(desk: Desk) -> None:
    desk.store.start(request_with(release_id="f" * 32), "later", 2)
    with pytest.raises(NotReadyError):
        desk.ask("FetchHistogram", release_id="later")
    for name in ("../researcher.sqlite", "x" * 10_000):
        with pytest.raises(NotFoundError):
            desk.ask("GetResult", release=name)
        with pytest.raises(NotFoundError):
            desk.ask("FetchHistogram", release_id=name)
    assert desk.recorded() == []
    assert not desk.ask("GetResult", release="later", with_counts=True).counts
    assert desk.recorded() == [("ana", Subject.STATUS, "f" * 32, 1)]


def test_nothing_is_given_that_cannot_be_recorded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AccessLog, "record", Mock(side_effect=UnavailableError("the disk is full")))
    with pytest.raises(UnavailableError):
        desk.ask("GetResult", release=ID)
    with pytest.raises(UnavailableError):
        desk.ask("FetchHistogram", release_id=ID)


def test_questions_about_one_thing_share_an_entry_a_day(desk: Desk) -> None:
    now = MIDNIGHT - 2
    log = AccessLog(desk.store.connection, clock=lambda: now)
    for now in (MIDNIGHT - 2, MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 5):  # noqa: B007 - the clock reads it
        log.record("ana", Subject.COUNTS, ID)
    first, second = log.after(0, 100)
    entry = {"analyst": "ana", "subject": Subject.COUNTS, "release_id": ID, "times": 2}
    assert first == Access(number=first.number, first=MIDNIGHT - 2, last=MIDNIGHT - 1, **entry)  # type: ignore[arg-type]
    assert second == Access(number=second.number, first=MIDNIGHT, last=MIDNIGHT + 5, **entry)  # type: ignore[arg-type]
    assert log.after(first.number, 100) == (second,)
    assert log.after(0, 1) == (first,)


def test_the_record_outlives_the_process(desk: Desk, tmp_path: Path) -> None:
    desk.ask("FetchHistogram", release_id=ID)
    desk.store.close()
    with closing(ResearcherStore(tmp_path, STUDY_OF_ANA)) as again:
        assert Desk(again).recorded() == [("ana", Subject.COUNTS, ID, 1)]


@pytest.mark.parametrize("subject", Subject)
def test_an_entry_travels(subject: Subject) -> None:
    entry = Access(number=7, analyst="ana", subject=subject, release_id=ID, times=3, first=1, last=2)
    assert access_from_proto(access_to_proto(entry)) == entry


def test_an_entry_of_another_subject_is_refused() -> None:
    for number in (researcher_pb2.SUBJECT_UNSPECIFIED, 99):
        with pytest.raises(InvalidInputError, match="is not known here"):
            access_from_proto(researcher_pb2.Access(number=1, analyst="ana", subject=cast("Any", number)))


def asking(desk: Desk, asker: Party, monkeypatch: pytest.MonkeyPatch) -> Client:
    client = client_of(desk.servicer, STUDY_OF_ANA, asker)
    monkeypatch.setattr("veiltab.researcher.client.client.Client", lambda *_, **__: client)
    monkeypatch.setattr("veiltab.researcher.desk.service.caller", lambda _: asker)
    return client


def test_a_long_record_is_read_in_parts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.desk.service._PAGE", 2)
    client = asking(desk, ROSA, monkeypatch)
    assert client.accesses() == ()
    for number in range(5):
        desk.log.record(f"ana-{number}", Subject.COUNTS, ID)
    assert [access.analyst for access in client.accesses()] == [f"ana-{number}" for number in range(5)]


def test_the_command_shows_who_asked_for_what(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asking(desk, ROSA, monkeypatch)
    words = ["status", "study.toml", "--identity", "pki", "--accesses"]
    nothing = CliRunner().invoke(researcher, words, standalone_mode=False)
    assert "No analyst has asked for anything." in nothing.output
    log = AccessLog(desk.store.connection, clock=lambda: MIDNIGHT)
    log.record("ana", Subject.RELEASES, "")
    log.record("ana", Subject.COUNTS, ID)
    shown = CliRunner().invoke(researcher, words, standalone_mode=False).output.splitlines()
    assert shown == [
        "2024-10-04 00:00:00 to 00:00:00 UTC  ana  1x list of releases",
        f"2024-10-04 00:00:00 to 00:00:00 UTC  ana  1x counts  {ID}  wages",
    ]


def test_an_analyst_is_told_who_may_do_what_it_may_not(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    client = asking(desk, ANA, monkeypatch)
    with pytest.raises(DeniedError, match=r"analyst ana: only researcher rosa may start a release\. Ask rosa"):
        client.request(["sex"], epsilon="0.1")
    with pytest.raises(DeniedError, match="analyst ana: only researcher rosa may read who asked for what"):
        client.accesses()
