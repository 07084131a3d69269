"""A party with another study file is refused by what differs, before a release and after it, also over old state.

The service and its client are those that run; only the network between them is left out.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.common.study.other import CHANGES, FULL
from tests.conftest import STUDY, refuses, request_with, spec_with
from tests.researcher.desks import client_of, finish, rosas_driver
from tests.worlds.parties import ROSA
from veiltab.common.errors import ConflictError, InvalidInputError, NotReadyError
from veiltab.common.release.messages.release_messages import request_to_proto
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.desk.service import ResearcherServicer
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1 import researcher_pb2

RIGHT = study_from_bytes(FULL, "study.toml")
SOME = [*CHANGES][::18]
"""What differs is found by one function, whose own test has every change."""

OTHERS = {name: study_from_bytes(FULL.replace(*CHANGES[name][:2]), name) for name in SOME}
WORDS = {name: words for name, (_, _, words) in CHANGES.items()}
some_changes = pytest.mark.parametrize("change", SOME)


@dataclass(kw_only=True)
class Service:
    """A researcher's service on a state folder."""

    driver: ResearcherDriver

    @property
    def servicer(self) -> Any:  # noqa: ANN401 - its methods are called by name
        return ResearcherServicer(self.driver)

    def client(self, study: Study) -> Client:
        return client_of(self.servicer, study)

    def release(self, study: Study, name: str = "wages") -> Release:
        """Return a release as a client with some study file reads it."""
        return self.client(study).release(name)


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Study], Service]]:
    """Return what starts the service with a study file on the same old state."""
    monkeypatch.setattr("veiltab.researcher.desk.service.caller", lambda _: ROSA)
    stores: list[ResearcherStore] = []

    def start(study: Study) -> Service:
        for store in stores:
            store.close()
        stores.append(ResearcherStore(tmp_path, study))
        return Service(driver=rosas_driver(study, stores[-1]))

    yield start
    stores[-1].close()


def finished(service: Service) -> None:
    """Ask for a release, which becomes ready."""
    release = asked(service.client(RIGHT))
    finish(service.driver.store, spec_with(release_id=release.id, study_digest=RIGHT.digest))


def asked(client: Client, label: str = "wages") -> Release:
    return client.request(["sex", "salary"], epsilon="0.1", label=label)


@some_changes
def test_a_client_with_another_file_may_not_ask(serve: Callable[[Study], Service], change: str) -> None:
    service = serve(RIGHT)
    with pytest.raises(InvalidInputError, match="has another study file; the one here") as caught:
        asked(service.client(OTHERS[change]))
    assert WORDS[change] in caught.value.problem
    assert service.driver.store.releases() == ()


@some_changes
def test_a_client_with_another_file_may_not_read_a_result(serve: Callable[[Study], Service], change: str) -> None:
    service = serve(RIGHT)
    finished(service)
    other = service.release(OTHERS[change])
    for read in (other.estimate, other.frame, other.rows):
        with pytest.raises(InvalidInputError, match="has another study file; the one here") as caught:
            read()
        assert WORDS[change] in caught.value.problem
        assert "studies/" in caught.value.remedy
    labels = service.release(RIGHT).estimate()
    assert labels.study_digest == labels.marginal(["salary"]).study_digest == RIGHT.digest
    assert labels.domain.codebook == {"sex": ["f", "m"], "salary": ["low", "high"]}


@some_changes
def test_a_service_that_was_restarted_with_another_file_keeps_its_results(
    serve: Callable[[Study], Service], change: str
) -> None:
    service = serve(RIGHT)
    finished(service)
    before = service.release(RIGHT).frame()
    service = serve(OTHERS[change])
    after = service.release(RIGHT).frame()
    assert after.equals(before)
    assert after.attrs["study_digest"] == RIGHT.digest
    with pytest.raises(InvalidInputError, match="has another study file") as caught:
        service.release(OTHERS[change]).estimate()
    assert WORDS[change] in caught.value.problem


@some_changes
def test_a_service_that_was_restarted_with_another_file_lets_its_unfinished_releases_wait(
    serve: Callable[[Study], Service], change: str
) -> None:
    release_id = asked(serve(RIGHT).client(RIGHT)).id
    service = serve(OTHERS[change])
    nobody = cast("PartyLinks", SimpleNamespace(curators={}))
    with refuses(NotReadyError, where="researcher rosa") as caught:
        asyncio.run(service.driver._advance(service.driver.store.release(release_id), nobody))
    assert WORDS[change] in caught.value.problem
    assert WORDS[change] in service.release(OTHERS[change]).status().waiting_for
    assert f"studies/{RIGHT.digest}.toml" in caught.value.remedy
    with pytest.raises(ConflictError, match="a release of this label was asked for under another study file"):
        asked(service.client(OTHERS[change]))
    assert asked(service.client(OTHERS[change]), label="").id != release_id
    assert asked(serve(RIGHT).client(RIGHT)).id == release_id


def test_a_file_that_the_service_never_had_is_not_given_out(serve: Callable[[Study], Service], tmp_path: Path) -> None:
    service = serve(RIGHT)
    assert service.client(RIGHT).study_file("") == service.client(RIGHT).study_file(RIGHT.digest) == FULL
    (tmp_path / "secret.toml").write_bytes(b"secret")
    for digest in ("0" * 64, "../secret", "../researcher.sqlite", "*", "."):
        with pytest.raises(Exception, match="never ran with such a study file"):
            service.client(RIGHT).study_file(digest)


def test_a_release_whose_study_file_is_lost_is_refused_all_the_same(
    serve: Callable[[Study], Service], tmp_path: Path
) -> None:
    service = serve(RIGHT)
    finished(service)
    (tmp_path / "studies" / f"{RIGHT.digest}.toml").unlink()
    service = serve(study_from_bytes(STUDY, "study.toml"))
    with pytest.raises(InvalidInputError, match=f"has not the SHA-256 {RIGHT.digest}"):
        service.release(service.driver.study).estimate()


def test_a_label_is_a_line_that_a_terminal_can_show(serve: Callable[[Study], Service]) -> None:
    service = serve(RIGHT)
    for label in ("\x1b[2J", "two\nlines", "l" * 10_000):
        request = researcher_pb2.StartReleaseRequest(
            request=request_to_proto(request_with()), label=label, study_digest=RIGHT.digest
        )
        with refuses(InvalidInputError, where="label"):
            asyncio.run(service.servicer.StartRelease(request, None))
    assert service.driver.store.releases() == ()
