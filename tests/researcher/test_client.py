from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.conftest import spec_with
from tests.made_receipts import made_tests
from tests.researcher.made_status import made_status, result_of
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    UnavailableError,
)
from veiltab.common.release.messages.release_messages import receipt_to_proto, release_to_proto
from veiltab.common.release.modes import Sampling
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.study.file import Study
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.estimates.uncertainty import ReleaseDesign
from veiltab.researcher.status.release_status import ReleaseList, Status, release_status_from_proto
from veiltab.v1 import release_pb2, researcher_pb2

ID = "0" * 31 + "1"
NOW = 1_900_000_000
STATUS = made_status(release_id=ID, state=ReleaseState.UPLOADING, epsilon="0.1")


RECEIPTS = made_tests(spec_with(server_replacement=2**62, canaries=900)).all_receipts()


class Service:
    """What a client's release asks, answered from memory."""

    def __init__(self, study: Study, *statuses: Status) -> None:
        self.study = study
        self._statuses = list(statuses)
        self.offered: list[float] = []
        self.counts = np.array([100, 50, 150, 100], "<i8")

    check_study = Client.check_study

    def status(self, name: str, *, seconds: float = 0.0) -> Status:
        assert name == ID
        self.offered.append(seconds)
        return self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]

    def histogram(self, name: str) -> bytes:
        assert name == ID
        return self.counts.tobytes()


def ready(spec: TableSpec, **changes: Any) -> Status:  # noqa: ANN401 - any field of a status
    """Return the status of a release that is ready and granted whole, unless changed."""
    known: dict[str, Any] = {"state": ReleaseState.READY, "spec": release_of(spec), "granted": ("sex", "salary")}
    return replace(STATUS, **known | changes)


def release(service: Service) -> Release:
    return Release(cast("Client", service), ID, continued=False)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.client.client.time.sleep", lambda _: None)


@pytest.mark.parametrize("with_counts", [True, False])
def test_a_status_is_read_whole(*, with_counts: bool) -> None:
    answer = researcher_pb2.GetResultResponse(
        summary=researcher_pb2.ReleaseSummary(
            release_id=ID,
            label="wages",
            state=release_pb2.RELEASE_STATE_READY,
            study_digest=STATUS.study_digest,
            attributes=["sex", "salary"],
            epsilon="0.1",
            purpose="wage\x1bgap",
            delta="0.000001",
            created=NOW,
        ),
        parties=[
            researcher_pb2.PartyStatus(
                party="server cloud", state=release_pb2.RELEASE_STATE_UPLOADING, waiting_for="waits for salary"
            ),
            researcher_pb2.PartyStatus(
                party="curator bob", state=release_pb2.RELEASE_STATE_REQUESTED, waiting_for="a person decides"
            ),
            researcher_pb2.PartyStatus(party="curator alice", state=release_pb2.RELEASE_STATE_CHARGED),
        ],
        failure="why",
        spec=release_to_proto(release_of(spec_with())),
        granted=["sex"],
        seconds={"fetch": 0.5},
        bytes={"a -> b": 7},
        left_out={"alice": 3, "bob": 0},
        receipts=[receipt_to_proto(receipt, with_counts=with_counts) for receipt in RECEIPTS],
    )
    status = release_status_from_proto(answer)
    assert status == replace(
        STATUS,
        state=ReleaseState.READY,
        failure="why",
        parties={
            "server cloud": (ReleaseState.UPLOADING, "waits for salary"),
            "curator bob": (ReleaseState.REQUESTED, "a person decides"),
            "curator alice": (ReleaseState.CHARGED, ""),
        },
        spec=release_of(spec_with()),
        granted=("sex",),
        seconds={"fetch": 0.5},
        bytes={"a -> b": 7},
        left_out={"alice": 3, "bob": 0},
        receipts=tuple(result_of(receipt, with_counts=with_counts) for receipt in RECEIPTS),
        purpose="wage gap",
        delta="0.000001",
        created=NOW,
    )
    assert (status.waiting_for, status.waits) == ("", {})
    waiting = replace(status, state=ReleaseState.REQUESTED)
    assert waiting.waiting_for == "curator bob: a person decides; server cloud: waits for salary"
    answer.ClearField("spec")
    assert release_status_from_proto(answer).spec is None


def test_counts_that_came_with_the_status_are_not_fetched(study: Study) -> None:
    service = Service(study, ready(spec_with()))
    fetched = release(service).measurements()[0].counts
    service = Service(study, ready(spec_with(), counts=service.counts.tobytes()))
    service.counts = np.zeros(4, "<i8")
    assert release(service).measurements()[0].counts.tolist() == fetched.tolist()


@pytest.mark.parametrize("is_owner", [False, True])
@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_researcher_that_waits_asks_for_the_counts(seconds: float, *, is_owner: bool) -> None:
    asked: list[researcher_pb2.GetResultRequest] = []

    def answer(_: object, message: researcher_pb2.GetResultRequest, __: float) -> researcher_pb2.GetResultResponse:
        asked.append(message)
        summary = researcher_pb2.ReleaseSummary(release_id=ID, state=release_pb2.RELEASE_STATE_READY)
        return researcher_pb2.GetResultResponse(summary=summary, counts=b"12345678")

    service = SimpleNamespace(stub=SimpleNamespace(GetResult=None))
    client = SimpleNamespace(is_owner=is_owner, ask=answer, service=service)
    assert Client.status(cast("Client", client), ID, seconds=seconds).counts == b"12345678"
    assert [message.with_counts for message in asked] == [is_owner and seconds > 0]


def test_waiting_shows_every_status_until_the_release_is_ready(study: Study) -> None:
    steps = [replace(STATUS, state=state) for state in (ReleaseState.REQUESTED, ReleaseState.UPLOADING)]
    steps.append(replace(STATUS, state=ReleaseState.READY))
    watched: list[Status] = []
    assert release(Service(study, *steps)).wait(watch=watched.append) == steps[-1]
    assert watched == steps


@pytest.mark.parametrize(
    ("state", "label", "kind", "said"),
    [
        (ReleaseState.DENIED, "", DeniedError, "why"),
        (ReleaseState.EXPIRED, "", FailedReleaseError, "why"),
        (
            ReleaseState.FAILED,
            "wages",
            FailedReleaseError,
            "why. It keeps the label 'wages': ask again with another one.",
        ),
    ],
)
def test_waiting_ends_with_the_reason(
    study: Study, state: ReleaseState, label: str, kind: type[Exception], said: str
) -> None:
    ended = replace(STATUS, state=state, label=label, failure="why")
    with pytest.raises(kind) as failed:
        release(Service(study, STATUS, ended)).wait()
    assert str(failed.value) == f"release {ID}: {said}"


def test_waiting_in_vain_says_for_whom(study: Study) -> None:
    with pytest.raises(UnavailableError, match=r"not ready after 0 s; every party is at work.*The release goes on"):
        release(Service(study, STATUS)).wait(timeout=0)
    held = replace(STATUS, parties={"curator bob": (ReleaseState.REQUESTED, "a person decides")})
    with pytest.raises(UnavailableError, match="curator bob: a person decides"):
        release(Service(study, held)).wait(timeout=0)


def test_an_estimate_inverts_what_ran(study: Study) -> None:
    spec = spec_with(epsilon=Decimal(2))
    service = Service(study, ready(spec))
    estimate = release(service).estimate(confidence=0.9)
    r = 1 - float(spec.mechanism.retention)
    expected = (service.counts / 400 - r / 4) / (1 - r)
    assert np.allclose(estimate.raw, expected, rtol=1e-12)
    assert (estimate.domain.names, estimate.confidence) == (("sex", "salary"), 0.9)
    assert (estimate.design.population, estimate.design.sample) == (1000, 400)
    frame = release(service).frame()
    assert list(frame["sex"]) == ["f", "f", "m", "m"]


def test_of_a_sample_of_the_server_s_the_rows_of_data_are_a_smaller_sample(study: Study) -> None:
    spec = spec_with(epsilon=Decimal(2), sampling=Sampling.SERVER, canaries=70)
    service = Service(study, ready(spec))
    service.counts = np.array([90, 50, 150, 80], "<i8")
    estimate = release(service).estimate()
    r = 1 - float(spec.mechanism.retention)
    assert np.allclose(estimate.raw, (service.counts / 370 - r / 4) / (1 - r), rtol=1e-12)
    assert (estimate.design.population, estimate.design.sample) == (1000, 370)
    assert estimate.design.terms == ReleaseDesign(population=1000, sample=370, mechanism=spec.mechanism).terms
    assert len(release(service).rows()) == 370


@pytest.mark.parametrize(
    ("sampling", "counts"),
    [
        ("seed", [0, 0, 0, 399]),
        ("seed", [0, 0, 0, 401]),
        ("seed", [-1, 101, 150, 150]),
        ("seed", [2**62, 2**62, 2**62, 2**62 + 400]),
        ("server", [0, 0, 0, 329]),
        ("server", [0, 0, 0, 401]),
    ],
)
def test_counts_that_cannot_be_those_of_the_sample_are_refused(study: Study, sampling: str, counts: list[int]) -> None:
    spec = spec_with(sampling=Sampling(sampling), canaries=70)
    service = Service(study, ready(spec))
    service.counts = np.array(counts, "<i8")
    for use in (release(service).estimate, release(service).rows):
        with pytest.raises(IntegrityError, match="not the m rows of the release"):
            use()


def test_a_part_that_is_granted_is_inverted_alone(study: Study) -> None:
    spec = spec_with(epsilon=Decimal(2))
    service = Service(study, ready(spec, granted=("salary",)))
    service.counts = np.array([250, 150], "<i8")
    estimate = release(service).estimate()
    r = 1 - float(spec.mechanism.retention)
    assert estimate.design.cells == 2
    assert np.allclose(estimate.raw, (service.counts / 400 - r / 2) / (1 - r), rtol=1e-12)


def test_an_attribute_that_is_not_in_the_release_is_named_and_so_are_those_that_are(study: Study) -> None:
    with pytest.raises(InvalidInputError, match=r"age is not in the release") as refused:
        release(Service(study, ready(spec_with()))).estimate(["age", "sex"])
    assert refused.value.remedy == "It has sex, salary."


def test_without_a_result_there_is_no_estimate(study: Study) -> None:
    with pytest.raises(NotReadyError, match="the release is uploading"):
        release(Service(study, STATUS)).estimate()
    with pytest.raises(FailedReleaseError, match="why"):
        release(Service(study, replace(STATUS, state=ReleaseState.FAILED, failure="why"))).estimate()


def test_rows_carry_the_names_of_their_categories(study: Study) -> None:
    asked = release(Service(study, ready(spec_with())))
    frame = asked.rows()
    assert list(frame.columns) == ["sex", "salary"]
    assert list(frame["sex"].cat.categories) == ["f", "m"]
    assert frame["sex"].cat.ordered
    assert frame.attrs == {"study_digest": STATUS.study_digest}
    counted = {("f", "low"): 100, ("f", "high"): 50, ("m", "low"): 150, ("m", "high"): 100}
    assert frame.value_counts().to_dict() == counted
    # Nobody needs the order, so nobody has it: each call draws another.
    again = asked.rows()
    assert again.value_counts().to_dict() == counted
    assert not again.equals(frame)


def test_releases_are_shown_as_a_table() -> None:
    listed = ReleaseList((replace(STATUS, label="<wages>", delta="0.000001"), replace(STATUS, label="x")))
    lines = repr(listed).split("\n")
    assert [line.split()[0] for line in lines] == ["release", STATUS.release_id, STATUS.release_id]
    assert len({line.index(word) for line, word in zip(lines, ("label", "<wages>", "x  "), strict=True)}) == 1
    assert listed._repr_html_().count("<tr>") == 3
    assert "&lt;wages&gt;" in listed._repr_html_()
    assert repr(ReleaseList()).split() == ["release", "label", "state", "attributes", "epsilon", "delta"]
