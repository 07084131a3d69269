"""A connection to a researcher's service, and what may be asked there of any release."""

import hashlib
from pathlib import Path
from typing import Self

import grpc

from veiltab.common.command.parties import desk_of, load_party, serving_parties
from veiltab.common.errors import DeniedError, IntegrityError, InvalidInputError, NotFoundError
from veiltab.common.rpc.blocking import BlockingChannel
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.peer import Peer, Request, Response
from veiltab.common.rpc.proxy import AnyProxy
from veiltab.common.study.file import study_from_bytes
from veiltab.researcher.status.access_log import Access, access_from_proto
from veiltab.researcher.status.release_status import Status, release_status_from_proto
from veiltab.v1 import researcher_pb2, researcher_pb2_grpc


class Connection:
    """A connection to a researcher's service, of the researcher itself or of one of its analysts.

    Args:
        study: path of the study file.
        identity: folder of the own certificate and key.
        name: the researcher's or the analyst's name in the study, if it is to be checked.
        timeout: seconds that the service may take to answer.
        proxy: an HTTP proxy to call through, "http://HOST:PORT"; or a ProxyOption, which names a user too.
    """

    def __init__(
        self,
        study: str | Path,
        *,
        identity: str | Path,
        name: str | None = None,
        timeout: float = 30.0,
        proxy: AnyProxy = None,
    ) -> None:
        roles = (Role.RESEARCHER, Role.ANALYST)
        self.study, own = load_party(Path(study), Path(identity), *roles, name=name, proxy=proxy)
        self._asker, self.desk = own.party, desk_of(self.study, own.party)
        endpoint = serving_parties(self.study)[self.desk]
        self._timeout = timeout
        self._link = BlockingChannel(lambda: connect(own, self.desk, endpoint))
        self.service = Peer(self.desk, self._link.channel, researcher_pb2_grpc.ResearcherServiceStub, endpoint)

    @property
    def party(self) -> Party:
        """Who asks: the researcher, or one of its analysts."""
        return self._asker

    @property
    def is_owner(self) -> bool:
        """Whether it is the researcher, who alone may start releases."""
        return self._asker == self.desk

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def status(self, name: str, *, seconds: float = 0.0) -> Status:
        """Return how a release stands, named as for `release`.

        Args:
            seconds: how long the service may wait with its answer for the release to be over.
        """
        # A researcher that waits reads the counts next; an analyst asks for them alone, as that is recorded.
        with_counts = seconds > 0 and self.is_owner
        message = researcher_pb2.GetResultRequest(
            release=name, wait_milliseconds=int(1000 * seconds), with_counts=with_counts
        )
        return release_status_from_proto(self.ask(self.service.stub.GetResult, message, seconds))

    def accesses(self) -> tuple[Access, ...]:
        """Return which analyst asked for what, oldest first.

        Raises:
            DeniedError: an analyst asks.
        """
        self.check_owner("read who asked for what")
        entries: list[Access] = []
        while True:
            message = researcher_pb2.ListAccessesRequest(after=entries[-1].number if entries else 0)
            part = self.ask(self.service.stub.ListAccesses, message).accesses
            if not part:
                return tuple(entries)
            entries.extend(map(access_from_proto, part))

    def check_study(self, digest: str, where: str) -> None:
        """Refuse another study file than this client's, and name what differs: its labels may be other ones.

        Args:
            digest: of the other study file; "" for the one that the service runs with.
            where: who or what has it.

        Raises:
            InvalidInputError: it differs.
        """
        if digest == self.study.digest:
            return
        from veiltab.common.study.differences import study_differences  # noqa: PLC0415 - not where both have one study

        try:
            difference = study_differences(self.study, study_from_bytes(self.study_file(digest), where))
        except NotFoundError:
            difference = f"has not the SHA-256 {digest}"
        if difference:
            raise InvalidInputError(
                f"has another study file; the one here {difference}",
                where=where,
                remedy="Give the study file that it has; the service keeps those of its releases in its state folder,"
                " as studies/SHA-256.toml.",
            )

    def study_file(self, digest: str) -> bytes:
        """Return the bytes of a study file that the service runs with ("") or ran with.

        Raises:
            NotFoundError: it never did.
            IntegrityError: the bytes have another digest.
        """
        request = researcher_pb2.FetchStudyRequest(study_digest=digest)
        data = self._link.wait(self.service.fetch(self.service.stub.FetchStudy, request))
        if digest and hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError("the study file that the service keeps is damaged", where=str(self.desk))
        return data

    def certificate(self, release_id: str) -> str:
        """Return the certificate of a release, as a file's text.

        Raises:
            DeniedError: an analyst asks; it holds counts that would tell of the curators' rows.
        """
        self.check_owner("have the certificate, which holds the counts of the tests")
        request = researcher_pb2.FetchCertificateRequest(release_id=release_id)
        return self._link.wait(self.service.fetch(self.service.stub.FetchCertificate, request)).decode()

    def histogram(self, release_id: str) -> bytes:
        """Return the counts of the noisy rows of a table as they travel."""
        request = researcher_pb2.FetchHistogramRequest(release_id=release_id)
        return self._link.wait(self.service.fetch(self.service.stub.FetchHistogram, request))

    def check_owner(self, act: str) -> None:
        """Refuse an analyst what its researcher alone may do; the service would refuse it too."""
        if not self.is_owner:
            raise DeniedError(f"only {self.desk} may {act}", where=str(self._asker), remedy=f"Ask {self.desk.name}.")

    def ask(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], message: Request, seconds: float = 0.0
    ) -> Response:
        """Return the service's answer to a message.

        Args:
            seconds: how long the service may wait with its answer.
        """
        return self._link.wait(self.service.ask(method, message, within=self._timeout + seconds))
