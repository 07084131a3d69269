"""A researcher's service in memory, with a release of one table, one of several, one that waits and one that failed."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np

from tests.conftest import STUDY, spec_with
from tests.made_receipts import made_tests
from tests.researcher.made_status import made_status, result_of
from tests.researcher.made_workload import PAIRS, workload_with
from veiltab.common.errors import NotFoundError
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.status.release_status import Status, TableStatus

SCRIPT = "<script>alert(1)</script>"
WAGES, LINKED, WAITING, FAILED, STRANGE = (f"{number:032x}" for number in range(1, 6))
CHARGED_STUDY = STUDY.replace(b"epsilon = 1\n", b"epsilon = 2\ndelta = 1e-6\n")
N = 20_000
COUNTS = {
    WAGES: (7000, 3000, 4000, 6000),
    f"{100:032x}": (100, 200, 100, 200, 300, 100),
    f"{101:032x}": (300, 200, 100, 400),
    f"{102:032x}": (100, 200, 100, 200, 300, 100),
}
"""Noisy rows in the cells of each table."""


@cache
@cache
def statuses(study: Study) -> tuple[Status, ...]:
    """Return the releases, oldest first."""
    plan = plan_release(population=N, cells=4, epsilon=Decimal("0.5"), delta=Decimal("1e-6"))
    spec = spec_with(
        study_digest=study.digest,
        population=N,
        sample=N,
        epsilon=Decimal("0.5"),
        delta=Decimal("1e-6"),
        server_replacement=plan.mechanism.server_replacement,
        curator_replacement=plan.mechanism.curator_replacement,
    )
    workload = workload_with(study_digest=study.digest, repeated=(), repeats=0)
    known = {"study_digest": study.digest, "created": 1_900_000_000, "purpose": "the wage gap"}
    return (
        made_status(
            release_id=WAGES,
            spec=release_of(spec),
            granted=("sex", "salary"),
            epsilon="0.5",
            delta="0.000001",
            seconds={"total": 12.5},
            receipts=tuple(
                map(result_of, made_tests(spec_with(server_replacement=2**62, canaries=900)).all_receipts())
            ),
            **known,
        ),
        made_status(
            release_id=LINKED,
            label="linked",
            attributes=("sex", "age", "salary"),
            spec=workload,
            delta="0.000001",
            tables=tuple(
                TableStatus(
                    number=number, phase=1, release_id=f"{100 + number:032x}", state=ReleaseState.READY, attributes=pair
                )
                for number, pair in enumerate(PAIRS)
            ),
            **known,
        ),
        made_status(
            release_id=WAITING,
            label="",
            state=ReleaseState.REQUESTED,
            parties={"curator bob": (ReleaseState.REQUESTED, "a person decides")},
            **known | {"purpose": SCRIPT},
        ),
        made_status(
            release_id=FAILED, label=SCRIPT, state=ReleaseState.DENIED, failure="curator bob denied salary", **known
        ),
        made_status(
            release_id=STRANGE,
            label="old",
            spec=release_of(spec),
            granted=("sex",),
            **known | {"study_digest": "f" * 64},
        ),
    )


@dataclass
class MadeClient:
    """A client whose service is in memory."""

    study: Study = field(default_factory=lambda: study_from_bytes(CHARGED_STUDY, "study.toml"))
    role: Role = Role.RESEARCHER
    releases_known: tuple[Status, ...] = ()
    counts: Mapping[str, Sequence[int]] = field(default_factory=lambda: COUNTS)
    asked: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    check_study = Client.check_study

    def __post_init__(self) -> None:
        self.releases_known = self.releases_known or statuses(self.study)
        self.party = Party(study="survey", role=self.role, name="rosa" if self.role is Role.RESEARCHER else "ana")

    @property
    def is_owner(self) -> bool:
        return self.role is Role.RESEARCHER

    def releases(self) -> tuple[Status, ...]:
        self.calls.append("releases")
        return self.releases_known

    def release(self, name: str) -> Release:
        return Release(self, self.status(name).release_id, continued=True)  # type: ignore[arg-type]

    def status(self, name: str, *, seconds: float = 0.0) -> Status:
        del seconds
        self.calls.append("status")
        for one in self.releases_known:
            if name in {one.release_id, one.label}:
                return one
        raise NotFoundError("there is no such release", where="release", remedy="List them.")

    def histogram(self, release_id: str) -> bytes:
        self.calls.append("histogram")
        return np.array(self.counts[release_id], "<i8").tobytes()

    def certificate(self, release_id: str) -> str:
        self.calls.append("certificate")
        return f"certificate of {release_id}"

    def study_file(self, digest: str) -> bytes:
        self.calls.append("study_file")
        if digest not in {"", hashlib.sha256(CHARGED_STUDY).hexdigest()}:
            raise NotFoundError("the service never had this study file", where="study")
        return CHARGED_STUDY

    def request(self, attributes: tuple[str, ...] = (), **choices: Any) -> Release:  # noqa: ANN401 - as the client's
        self.calls.append("request")
        self.asked.append({"attributes": attributes} | choices)
        return Release(self, WAITING, continued=False)  # type: ignore[arg-type]
