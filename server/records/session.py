"""One release at the server, as a pure state machine: which columns may come, when it is complete, what may leave.

Invariants: the spec is fixed by the first announcement; a column comes from its owner only; perturbation begins once,
when every column is complete; nothing unperturbed is ever served; a release that ended never moves again.
"""

from collections.abc import Mapping

from veiltab.common.dataclass import dataclass, field, replace
from veiltab.common.errors import ConflictError, DeniedError, IntegrityError, NotReadyError
from veiltab.common.release.state import ReleaseState, ended_without_result
from veiltab.common.release.table_spec import Column, TableSpec


class OtherKeyError(ConflictError):
    """Another key of the canaries' places came first.

    Args:
        sender: the curator that sent it.
    """

    def __init__(self, key: bytes, sender: str, release_id: str) -> None:
        super().__init__(
            f"curator {sender} sent another key of the canaries' places before",
            where=f"release {release_id}",
            remedy="One of the curators asks for rows that are not canaries; the release cannot go on.",
        )
        self.key = key
        self.sender = sender


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The state of one release; every step returns a new one or raises.

    Args:
        state: uploading, perturbing, ready, expired or failed.
        complete: names of the parts of columns that are here whole.
        failure: why it failed; empty otherwise.
        announced_by: the first curator that announced it.
        publication: fence under which it was published; 0 before, and where one process has the state to itself.
        noise_digest: of the secret of its noise.
        perturbation_seconds: how long the perturbation took; 0 before.
        salt: of the published columns' digests, 32 bytes, for the researcher alone; empty while none are kept. From a
            plain digest a curator, which knows the ciphertext, could test guesses of the few rows that were replaced.
        digests: attribute -> SHA-256 of the salt and its published column; empty while none is kept.
        places_key: key of the canaries' places, and the curator that sent it; empty before.
    """

    spec: TableSpec
    state: ReleaseState = ReleaseState.UPLOADING
    complete: frozenset[str] = field(default=frozenset())
    failure: str = ""
    announced_by: str = ""
    publication: int = 0
    noise_digest: bytes = b""
    perturbation_seconds: float = 0.0
    salt: bytes = b""
    digests: Mapping[str, bytes] = field(default_factory=dict)
    places_key: bytes = b""
    places_key_from: str = ""

    def check_same(self, spec: TableSpec) -> None:
        """Refuse another spec under the same release id."""
        if spec.digest() != self.spec.digest():
            raise ConflictError(
                "another spec is announced under this release id",
                where=f"curator {self.announced_by}, release {self.spec.release_id}",
                remedy="The curators do not agree; the release cannot go on.",
            )

    def check_same_noise(self, stated: bytes) -> None:
        """Refuse columns that are for another noise than this release has here."""
        if stated != self.noise_digest:
            raise ConflictError(
                "the columns are for another noise than the release has here",
                where=f"release {self.spec.release_id}",
                remedy="The server's state was perhaps restored from an old backup; ask for a new release.",
            )

    def column_of(self, attribute: str, curator: str) -> Column:
        """Return a column that a curator may upload.

        Raises:
            DeniedError: the column is another curator's.
        """
        column = self.spec.column(attribute)
        if curator not in column.holders:
            raise DeniedError("this column is another curator's", where=f"attribute {attribute}")
        return column

    def check_open(self) -> None:
        """Refuse bytes for a release that no longer takes any."""
        if self.state.unsuccessful:
            raise ended_without_result(self.state, self.failure, where=f"release {self.spec.release_id}")
        if self.state is not ReleaseState.UPLOADING:
            raise ConflictError("the release takes no more data", where=f"release {self.spec.release_id}")

    def with_complete(self, part: str) -> "Session":
        """Return the session with one more complete part of a column; perturbation begins with the last."""
        self.check_open()
        complete = self.complete | {part}
        done = complete == set(self.spec.parts)
        return replace(self, complete=complete, state=ReleaseState.PERTURBING if done else self.state)

    def published(self, fence: int = 0, seconds: float = 0.0, salt: bytes = b"") -> "Session":
        """Return the session as published under a fence; only one that is being perturbed can be."""
        if self.state is not ReleaseState.PERTURBING:
            raise IntegrityError("the release was published before", where=f"release {self.spec.release_id}")
        return replace(self, state=ReleaseState.READY, publication=fence, perturbation_seconds=seconds, salt=salt)

    def ended(self, state: ReleaseState, failure: str) -> "Session":
        """Return the session as expired or failed; one that ended before stays as it is."""
        return self if self.state.unsuccessful else replace(self, state=state, failure=failure, salt=b"")

    def check_readable(self, researcher: str) -> None:
        """Refuse to serve what is not published, or to anyone but the researcher it is for.

        Raises:
            DeniedError, FailedReleaseError, NotReadyError
        """
        if researcher != self.spec.researcher:
            raise DeniedError("this release is for another researcher", where=f"release {self.spec.release_id}")
        self._check_published()

    def check_testable(self, curator: str) -> None:
        """Refuse to show canaries of what is not published, or to a curator without columns in it.

        Raises:
            DeniedError, FailedReleaseError, NotReadyError
        """
        check_owner(self.spec, curator)
        self._check_published()

    def _check_published(self) -> None:
        if self.state.unsuccessful:
            raise ended_without_result(self.state, self.failure, where=f"release {self.spec.release_id}")
        if self.state is not ReleaseState.READY:
            raise NotReadyError("the release is not published yet", where=f"release {self.spec.release_id}")

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Names of the parts of columns that are not complete."""
        return tuple(part for part in self.spec.parts if part not in self.complete)


def check_owner(spec: TableSpec, curator: str) -> None:
    """Refuse a curator without columns in a release.

    Raises:
        DeniedError: it has none.
    """
    if not spec.columns_of(curator):
        raise DeniedError("no column of this release is the caller's", where=f"curator {curator}")
