"""A release at one curator as it is recorded, what the others say of theirs, and the steps that it takes."""

import hashlib
import json
from collections.abc import Mapping
from enum import Enum, auto

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec

KEYS_LAST = 30 * 86_400
"""Seconds that keys are given out after a release's result, where no decision says until when; then they are erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantDecision:
    """This curator's decision about one attribute of its own: approved, held or denied.

    Args:
        expires: Unix seconds until which its key is given out; None for KEYS_LAST after the result.
        decided_by: "policy" or "person".
        time: Unix seconds.
        person: the person whose word was the last; empty for the policy.
        rule: number of the policy's rule that matched, from 1; None if none did.
        rule_text: that rule in a line, as it was then.
    """

    attribute: str
    verdict: str
    expires: int | None
    decided_by: str
    time: int = 0
    person: str = ""
    reason: str = ""
    rule: int | None = None
    rule_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One person's approval of one attribute.

    Args:
        time: Unix seconds.
        reason: why; may be empty.
        expires: Unix seconds until which the key may be given out, if this person said so.
        request_digest: of the request that the person saw.
    """

    attribute: str
    person: str
    time: int
    reason: str
    expires: int | None
    request_digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorRelease:
    """One release as this curator has recorded it, or one of the several tables of one, which runs as a release.

    Args:
        spec: the table that runs under this id, once it is planned; None of a release of several tables.
        planned: what is planned of the release that was asked for; None of one of its several tables.
        choice: numbers of the tables that run a second time, once they are chosen.
        part_of: id of the release that this is a table of; empty if it was asked for.
    """

    request: ReleaseRequest
    state: ReleaseState
    waiting_for: str
    failure: str
    spec: TableSpec | None
    sample_check: bytes
    seconds: dict[str, float]
    bytes_uploaded: int
    created: int
    since: int
    study_digest: str
    planned: ReleaseSpec | None = None
    choice: tuple[int, ...] | None = None
    part_of: str = ""

    @property
    def request_digest(self) -> bytes:
        """SHA-256 of the request and of the digest of the study file that it is asked under."""
        return hashlib.sha256(f"{self.study_digest} {self.request.to_json()}".encode()).digest()

    @property
    def several(self) -> ReleaseSpec | None:
        """What is planned, if it has several tables."""
        return self.planned if self.planned is not None and self.planned.several else None

    @property
    def digest(self) -> bytes:
        """SHA-256 of the spec of what runs; empty before it is planned."""
        runs = self.spec or self.planned
        return b"" if runs is None else runs.digest()

    @property
    def planned_spec(self) -> TableSpec:
        """The table that runs under this id.

        Raises:
            InvalidInputError: several tables run.
            IntegrityError: nothing is planned.
        """
        if self.several is not None:
            raise InvalidInputError("this is known of each table by itself", where=f"release {self.request.release_id}")
        if self.spec is None:
            raise IntegrityError("a planned release has no spec", where=f"release {self.request.release_id}")
        return self.spec

    @property
    def planned_release(self) -> ReleaseSpec:
        """What is planned of a release that was asked for.

        Raises:
            IntegrityError: nothing is.
        """
        if self.planned is None:
            raise IntegrityError("a planned release has no spec", where=f"release {self.request.release_id}")
        return self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One curator's progress with a release, as its peers see it.

    `considered` says that its policy has considered the request, and that its budget holds it: what is left to decide
    waits for a person. `tested` says that the server has passed its test, or that it has no
    columns to test. `commitment` is the one to its share of the release's coin, empty where it shows none.
    `publication` is the digest of what the server stated to it, empty where nothing is recorded. `request_digest` is
    that of the request that it received. `checkpoint` is what it signed of its ledger with the charge, empty before.
    `uploaded` says that it has sent its columns, or has none. `changes` is its list of changed canaries if it is short.
    """

    curator: str
    state: ReleaseState
    considered: bool
    decided: bool
    granted: frozenset[str]
    denied: frozenset[str]
    spec_digest: bytes
    reserved: bool
    charged: bool
    sample_check: bytes
    tested: bool
    failure: str
    commitment: bytes = b""
    publication: bytes = b""
    request_digest: bytes = b""
    checkpoint: bytes = b""
    uploaded: bool = False
    changes: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """How far this curator is with what it does alone: its own attributes, its ledger, and its test of the server.

    Args:
        is_considered: whether its policy has considered the request, and its budget holds it.
        waiting_attributes: attributes that wait for a person.
        denied: attributes that its policy or a person denied.
        refusal: why the budget does not hold the release any more while it waits for a person; else empty.
        is_reserved: whether its ledger keeps the release's epsilon.
        is_charged: whether its ledger is charged.
        is_published: whether the server has said what it published, and that is recorded.
        is_tested: whether the server has passed its test, or it has no columns to test.
        publication: digest of what the server stated that it published; empty before it is recorded.
        is_present: whether this process has looked at the release before now.
        withheld: curators that have this one's share of the coin, and never opened theirs.
        owing: curators whose part of the coin is missing here.
    """

    curator: str
    is_considered: bool = True
    waiting_attributes: tuple[str, ...] = ()
    denied: frozenset[str] = frozenset()
    refusal: str = ""
    is_reserved: bool = False
    is_charged: bool = False
    is_published: bool = False
    is_tested: bool = False
    publication: bytes = b""
    is_present: bool = False
    withheld: frozenset[str] = frozenset()
    owing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDigests:
    """What was published of a column: SHA-256 of all of it, and of the symbols of its canaries in order of places."""

    published: bytes
    canaries: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationDigests:
    """What a server states that it published: attribute -> SHA-256 of a salt and its column; the same of the places.

    The digest of the sampled places is empty unless the server samples.
    """

    columns: Mapping[str, bytes]
    places: bytes = b""

    def digest(self) -> bytes:
        """Return the SHA-256 of all of them, which curators compare."""
        stated = [[name, digest.hex()] for name, digest in sorted(self.columns.items())]
        return hashlib.sha256(json.dumps(["veiltab publication 1", stated, self.places.hex()]).encode()).digest()


class Step(Enum):
    """A curator's next step for a release; each step is durable before the next."""

    DECIDE = auto()
    """Apply the policy to one's own attributes."""
    APPROVE = auto()
    """Record that nothing is left to decide here."""
    PLAN = auto()
    """Agree on the columns, and plan the release."""
    RESERVE = auto()
    """Keep the release's epsilon for it."""
    CHARGE = auto()
    """Announce the release to the server, and charge its epsilon; a table of several is charged with them."""
    OPEN_TABLES = auto()
    """Record each table of a release of several as a release."""
    DRAW = auto()
    """Toss the seed with the others, draw the sample, and record its keyed check."""
    ENCRYPT = auto()
    """Encrypt the sampled columns."""
    UPLOAD = auto()
    """Send the encrypted columns to the server."""
    TEST = auto()
    """Record what the server published, and test its noise on the canaries."""
    FINISH = auto()
    """Let one's keys leave."""

    @property
    def leads_to(self) -> ReleaseState:  # noqa: PLR0911 - one for each state
        """State of the release once the step is taken."""
        match self:
            case Step.DECIDE:
                return ReleaseState.REQUESTED
            case Step.APPROVE:
                return ReleaseState.APPROVED
            case Step.PLAN | Step.RESERVE:
                return ReleaseState.PLANNED
            case Step.CHARGE | Step.DRAW:
                return ReleaseState.CHARGED
            case Step.ENCRYPT | Step.OPEN_TABLES:
                return ReleaseState.UPLOADING
            case Step.UPLOAD | Step.TEST:
                return ReleaseState.PERTURBING
            case Step.FINISH:
                return ReleaseState.READY


@dataclass(frozen=True, slots=True)
class Wait:
    """No step is possible now; the reason names the party or event to wait for, `curators` all that are behind."""

    reason: str
    curators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """The release is over here.

    If it was charged, `by` names the parties that it is counted against, as in "curator bob" or "server cloud", and
    `claimed_by` the curators that say that the server failed.
    """

    state: ReleaseState
    reason: str
    by: frozenset[str] = frozenset()
    claimed_by: frozenset[str] = frozenset()
