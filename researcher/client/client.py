"""A researcher's releases from Python: notebooks, scripts, and the command line.

client = Client("study.toml", identity="pki/researcher-rosa", name="rosa")
release = client.request(["education", "salary"], epsilon=1, purpose="wage gap")
release.wait()
release.estimate().marginal(["salary"])
release.frame()

An analyst reads the same with an identity of its own:

Client("study.toml", identity="pki/analyst-ana", name="ana").release("wages").frame()
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Self, overload

import grpc

from veiltab.common.command.options import load_party
from veiltab.common.command.parties import desk_of, serving_parties
from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.rounding import Parameter, parse_delta, parse_epsilon
from veiltab.common.errors import (
    DeniedError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.extras import importing
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT, parse_split
from veiltab.common.release.messages.release_messages import request_to_proto
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState, not_ready
from veiltab.common.release.tables import Workload, asked_tables
from veiltab.common.rpc.blocking import BlockingChannel
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.peer import Peer, Request, Response
from veiltab.common.study.differences import study_differences
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.missing import respondents_sentence
from veiltab.common.web.document import facts
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.drawing.style import Picture
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.estimates.pooling import pooled
from veiltab.researcher.estimates.table import labelled, to_frame
from veiltab.researcher.estimates.table_result import TableResult, fitted, table_result
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.model.rows import rows_of_counts
from veiltab.researcher.status.access_log import Access, access_from_proto
from veiltab.researcher.status.release_status import ReleaseList, Status, TableStatus, release_status_from_proto
from veiltab.v1 import researcher_pb2, researcher_pb2_grpc

if TYPE_CHECKING:
    import pandas as pd

    from veiltab.researcher.microdata.synthesis import Microdata


_WAIT_SECONDS = 1.0
"""Seconds that the service may wait with an answer; `watch` is shown one so often."""

_LOOK_AGAIN_SECONDS = 0.1
_MANY_TABLES_SECONDS = 0.5
"""Seconds between looks at a release of several tables, each of which tells of all of them."""


class Client:
    """A connection to a researcher's service, of the researcher itself or of one of its analysts.

    Args:
        study: path of the study file.
        identity: folder of the own certificate and key.
        name: the researcher's or the analyst's name in the study; an analyst reads, and starts no release.
        timeout: seconds that the service may take to answer.
    """

    def __init__(self, study: str | Path, *, identity: str | Path, name: str, timeout: float = 10.0) -> None:
        self.study, own = load_party(Path(study), Path(identity), Role.RESEARCHER, Role.ANALYST, name=name)
        self._asker, self._desk = own.party, desk_of(self.study, own.party)
        endpoint = serving_parties(self.study)[self._desk]
        self._timeout = timeout
        self._link = BlockingChannel(lambda: connect(own, self._desk, endpoint))
        self._service = Peer(self._desk, self._link.channel, researcher_pb2_grpc.ResearcherServiceStub, endpoint)

    @property
    def party(self) -> Party:
        """Who asks: the researcher, or one of its analysts."""
        return self._asker

    @property
    def is_owner(self) -> bool:
        """Whether it is the researcher, who alone may start releases."""
        return self._asker == self._desk

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def request(  # noqa: PLR0913 - one argument a choice
        self,
        attributes: Sequence[str] = (),
        *,
        epsilon: Parameter,
        tables: Sequence[Sequence[str]] = (),
        workload: Workload | str | None = None,
        repeats: int = 0,
        purpose: str = "",
        label: str = "",
        partial: bool = False,
        sampling: Sampling | None = None,
        pad: Pad | None = None,
        sample: int | None = None,
        delta: Parameter | None = None,
        max_local_epsilon: Parameter | None = None,
        scheme: str = "wor",
        stage: int | None = None,
        noise_split: Parameter | None = None,
        max_pair_epsilon: Parameter | None = None,
        canaries: int | None = None,
        lifetime_seconds: int = 86_400,
    ) -> "Release":
        """Ask the curators for a release, or continue the unfinished one that asks for the same.

        Args:
            attributes: names from the study, of one table or of a workload; of a workload by default all.
            epsilon: in nats, as a text or a number; a float counts as Python shows it, so 0.5 is "0.5". Pure unless
                there is a delta. Of all tables together.
            tables: the attributes of each table, instead of `attributes`.
            workload: "pairs", every pair of the attributes; or "linked", every pair once and those that show the
                strongest dependences again.
            repeats: so many of `tables` may run a second time, chosen after the first results.
            purpose: for the persons who decide.
            label: your own name for the release; the same label is the same release.
            partial: go on with what is granted when some attributes are denied.
            sampling: how the curators come to the same sample; the study's default if not given.
            pad: where the pads come from; the study's default if not given.
            sample: rows to sample; the planner's choice if not given.
            delta: to keep with epsilon, likewise; far more accurate than a pure epsilon.
            max_local_epsilon: most that ln gamma may be, likewise.
            scheme: how rows are sampled: a name in SCHEMES.
            stage: rows after stage one of a MUST scheme.
            noise_split: the curators' part of the noise, 0 to below 1; the study's default if not given. The rest is
                the server's. It changes what pairs of parties face, and no error.
            max_pair_epsilon: most epsilon against the server with the desk, and against analysts with curators; None
                for no cap.
            canaries: rows that test the server; the study's default if not given, or as many as the test needs.
            lifetime_seconds: until an unfinished release is abandoned.

        Raises:
            DeniedError: an analyst asks.
            VeiltabError: the request is not valid, or the service does not answer.
        """
        self._check_owner("start a release")
        names, several = asked_tables(self.study, attributes, tables, workload, repeats)
        asked = ReleaseRequest(
            release_id=secrets.token_hex(16),
            researcher=self._desk.name,
            attributes=names,
            tables=several.tables,
            repeats=several.repeats,
            epsilon=parse_epsilon(epsilon),
            purpose=purpose,
            deadline=int(time.time()) + lifetime_seconds,
            partial=partial,
            sampling=sampling or Sampling(self.study.sampling),
            pad=pad or Pad(self.study.pad),
            sample=sample,
            delta=None if delta is None else parse_delta(delta),
            max_local_epsilon=None
            if max_local_epsilon is None
            else parse_epsilon(max_local_epsilon, what="max_local_epsilon"),
            scheme=scheme,
            stage=stage,
            noise_split=self._split(noise_split),
            max_pair_epsilon=None
            if max_pair_epsilon is None
            else parse_epsilon(max_pair_epsilon, what="max_pair_epsilon"),
            canaries=self.study.canaries if canaries is None else canaries,
        )
        message = researcher_pb2.StartReleaseRequest(
            request=request_to_proto(asked), label=label or None, study_digest=self.study.digest
        )
        try:
            answer = self._ask(self._service.stub.StartRelease, message)
        except InvalidInputError:
            self.check_study("", str(self._desk))
            raise
        return Release(self, answer.release_id, continued=answer.continued)

    def release(self, name: str) -> "Release":
        """Return a release by its label, its id, or the beginning of its id."""
        return Release(self, self.status(name).release_id, continued=True)

    def releases(self) -> ReleaseList:
        """Return all releases, oldest first, without their details; shown as a table."""
        message = researcher_pb2.ListReleasesRequest()
        answer = self._ask(self._service.stub.ListReleases, message)
        return ReleaseList(
            release_status_from_proto(researcher_pb2.GetResultResponse(summary=one)) for one in answer.releases
        )

    def status(self, name: str, *, seconds: float = 0.0) -> Status:
        """Return how a release stands, named as for `release`.

        Args:
            name: of the release.
            seconds: how long the service may wait with its answer for the release to be over.
        """
        # A researcher that waits reads the counts next; an analyst asks for them alone, as that is recorded.
        with_counts = seconds > 0 and self.is_owner
        message = researcher_pb2.GetResultRequest(
            release=name, wait_milliseconds=int(1000 * seconds), with_counts=with_counts
        )
        return release_status_from_proto(self._ask(self._service.stub.GetResult, message, seconds))

    def accesses(self) -> tuple[Access, ...]:
        """Return which analyst asked for what, oldest first.

        Raises:
            DeniedError: an analyst asks.
        """
        self._check_owner("read who asked for what")
        found: list[Access] = []
        while True:
            message = researcher_pb2.ListAccessesRequest(after=found[-1].number if found else 0)
            part = self._ask(self._service.stub.ListAccesses, message).accesses
            if not part:
                return tuple(found)
            found.extend(map(access_from_proto, part))

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
        data = self._link.wait(self._service.fetch(self._service.stub.FetchStudy, request))
        if digest and hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError("the study file that the service keeps is damaged", where=str(self._desk))
        return data

    def certificate(self, release_id: str) -> str:
        """Return the certificate of a release, as a file's text.

        Raises:
            DeniedError: an analyst asks; it holds counts that would tell of the curators' rows.
        """
        self._check_owner("have the certificate, which holds the counts of the tests")
        request = researcher_pb2.FetchCertificateRequest(release_id=release_id)
        return self._link.wait(self._service.fetch(self._service.stub.FetchCertificate, request)).decode()

    def histogram(self, release_id: str) -> bytes:
        """Return the counts of the noisy rows of a table as they travel."""
        request = researcher_pb2.FetchHistogramRequest(release_id=release_id)
        return self._link.wait(self._service.fetch(self._service.stub.FetchHistogram, request))

    def _split(self, asked: Parameter | None) -> Decimal:
        """Return the curators' part of the noise: as asked, else as the study says."""
        if asked is not None:
            return parse_split(asked)
        return DEFAULT_SPLIT if self.study.noise_split is None else self.study.noise_split

    def _check_owner(self, act: str) -> None:
        """Refuse an analyst what its researcher alone may do; the service would refuse it too."""
        if not self.is_owner:
            raise DeniedError(f"only {self._desk} may {act}", where=str(self._asker), remedy=f"Ask {self._desk.name}.")

    def _ask(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], message: Request, seconds: float = 0.0
    ) -> Response:
        return self._link.wait(self._service.ask(method, message, within=self._timeout + seconds))


class Release:
    """One release of a client's."""

    def __init__(self, client: Client, release_id: str, *, continued: bool) -> None:
        self.id = release_id
        self.continued = continued
        self._client = client
        self._ready: Status | None = None
        self._fitted: Model | None = None

    def status(self) -> Status:
        """Return how the release stands."""
        return self._client.status(self.id)

    def certificate(self) -> str:
        """Return the release certificate: who vouches for it, signed; `veiltab verify` checks it offline.

        Raises:
            DeniedError: an analyst asks.
            NotReadyError: the release is not ready.
            UnavailableError: a party that has not signed yet does not answer.
        """
        return self._client.certificate(self.id)

    def wait(self, timeout: float = 600.0, watch: Callable[[Status], None] | None = None) -> Status:
        """Wait until the release is ready.

        Args:
            timeout: seconds to wait; the release itself goes on after them.
            watch: shown every status on the way.

        Raises:
            DeniedError: a curator said no.
            FailedReleaseError: it ended without a result.
            UnavailableError: it is not ready in time; says who is waited for.
        """
        end = time.monotonic() + timeout
        # Who watches is shown at once how the release stands.
        seconds = min(_WAIT_SECONDS, timeout) if watch is None else 0.0
        while True:
            began = time.monotonic()
            status = self._client.status(self.id, seconds=seconds)
            if watch is not None:
                watch(status)
            if status.state is ReleaseState.READY:
                self._ready = status
                return status
            if status.state.unsuccessful:
                raise self._not_ready(status)
            if time.monotonic() >= end:
                raise UnavailableError(
                    f"not ready after {timeout:g} s; {status.waiting_for or 'every party is at work'}",
                    where=f"release {self.id}",
                    remedy="The release goes on; run the same command again to keep waiting for it.",
                )
            if seconds:
                # A service that lets nobody wait answers at once.
                pause = _MANY_TABLES_SECONDS if status.tables else _LOOK_AGAIN_SECONDS
                time.sleep(max(0.0, began + pause - time.monotonic()))
            seconds = min(_WAIT_SECONDS, max(0.0, end - time.monotonic()))

    def respondents(self) -> str:
        """Say whom n counts under the study's rules for missing values, and which attributes have a category of them.

        Raises:
            InvalidInputError: the release was asked for under another study file than the client's.
        """
        status = self.status()
        self._client.check_study(status.study_digest, f"release {self.id}")
        return respondents_sentence(self._client.study, status.granted, status.left_out)

    def domain(self) -> Domain:
        """Return the attributes that have a result, with the study's categories.

        Raises:
            NotReadyError: the release is not ready.
            InvalidInputError: the release was asked for under another study file than the client's.
        """
        return self._client.study.domain(self._ready_status().measured_attributes)

    def tables(self) -> tuple[TableStatus, ...]:
        """Return the tables of the release that are under way or over, by number; of one table, itself as number 0."""
        return self.status().all_tables

    def tables_of(self, attributes: Sequence[str] | None = None) -> tuple[TableStatus, ...]:
        """Return the tables that are ready, or those of exactly some attributes: two if the table ran twice.

        Raises:
            NotReadyError: the release is not ready.
            NotFoundError: there is no table of these attributes.
        """
        ready = self._ready_status().ready_tables
        if attributes is None:
            return ready
        wanted = self._client.study.domain(attributes).names
        having = tuple(one for one in ready if one.attributes == wanted)
        if not having:
            raise NotFoundError(
                f"no table of the release has exactly {', '.join(wanted)}",
                where=f"release {self.id}",
                remedy="`veiltab researcher status --json` lists its tables.",
            )
        return having

    def measurements(self) -> tuple[TableResult, ...]:
        """Return every table as it was measured, by number; one that ran twice is there twice.

        Raises:
            NotReadyError, FailedReleaseError: there is no result.
            InvalidInputError: the release was asked for under another study file than the client's.
        """
        status = self._ready_status()
        return self._results(status, status.ready_tables)

    @overload
    def estimate(self, attributes: None = None, *, confidence: float = 0.95) -> Estimate: ...

    @overload
    def estimate(self, attributes: Sequence[str] | None, *, confidence: float = 0.95) -> TableEstimate: ...

    def estimate(self, attributes: Sequence[str] | None = None, *, confidence: float = 0.95) -> TableEstimate:
        """Return an estimated joint distribution.

        Args:
            attributes: of the table, which is pooled of all tables that have them; by default all that were granted,
                for a release of one table.
            confidence: probability that one cell's interval holds its true fraction.

        Raises:
            NotReadyError, FailedReleaseError: there is no result.
            InvalidInputError: an attribute is not in the release, no table has all of these attributes, several have
                and none is named, or the release was asked for under another study file than the client's.
        """
        if attributes is None:
            status = self._known_status()
            if status.tables:
                raise InvalidInputError(
                    f"this is a release of {len(status.tables)} tables",
                    where=f"release {self.id}",
                    remedy="Name the attributes of one, with --attributes, or in Python release.table([...]).",
                )
            (result,) = self._results(status, status.ready_tables)
            return self._estimate(status, result, confidence)
        return self._pooled(self._ready_status(), attributes, confidence)

    def _pooled(self, status: Status, attributes: Sequence[str], confidence: float) -> TableEstimate:
        """Return the table of some attributes, pooled of all tables that have them."""
        wanted = self._client.study.domain(attributes).names
        released = status.measured_attributes
        absent = [name for name in wanted if name not in released]
        if absent:
            raise InvalidInputError(
                f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not in the release",
                where=f"release {self.id}",
                remedy=f"It has {', '.join(released)}.",
            )
        having = [one for one in status.ready_tables if set(one.attributes).issuperset(wanted)]
        if not having:
            raise InvalidInputError(
                f"no table of the release has all of {', '.join(wanted)}",
                where=f"release {self.id}",
                remedy="Ask for a table of them, or estimate it from the model of the release.",
            )
        return pooled([self._estimate(status, one, confidence) for one in self._results(status, having)], attributes)

    def table(self, attributes: Sequence[str], *, confidence: float = 0.95) -> Table:
        """Return a table to analyse: as it was measured, or, if no table of the release has it, from a model of all.

        Analyses mark what comes from the model, and give no interval for it.

        Args:
            attributes: of the table.
            confidence: as for `estimate`.

        Raises:
            NotReadyError, FailedReleaseError: there is no result.
            InvalidInputError: an attribute is in no table of the release, or the release was asked for under another
                study file.
        """
        status = self._ready_status()
        if not status.needs_model(self._client.study.domain(attributes).names):
            return self._pooled(status, attributes, confidence)
        model = self._model(status)
        return ModelledTable(
            domain=model.domain.subset(attributes),
            raw=model.marginal(attributes),
            population=status.spec_of(status.ready_tables[0]).population,
            confidence=confidence,
            study_digest=status.study_digest,
        )

    def plot(self, attributes: Sequence[str] | None = None, *, confidence: float = 0.95) -> Picture:
        """Draw the estimates with their intervals; as `estimate` does. `save` writes the picture."""
        return self.estimate(attributes, confidence=confidence).plot()

    def __repr__(self) -> str:
        """Return the id alone: nothing is asked of the service."""
        return f"Release({self.id!r})"

    def _repr_html_(self) -> str:
        try:
            status = self.status()
        except VeiltabError as error:
            return facts([("release", self.id), ("status", str(error))])
        return facts(
            [
                ("release", status.label or self.id),
                ("state", status.state.value),
                ("attributes", ", ".join(status.attributes)),
                ("epsilon", status.epsilon),
                *([("tables", str(len(status.tables)))] if status.tables else []),
                *([("failure", status.failure)] if status.failure else []),
                *([("waits for", status.waiting_for)] if status.waiting_for else []),
            ]
        )

    def frame(self, attributes: Sequence[str] | None = None, *, confidence: float = 0.95) -> "pd.DataFrame":
        """Return the estimates as a DataFrame, one row a cell; as `estimate` does."""
        return to_frame(self.estimate(attributes, confidence=confidence))

    def rows(self) -> "pd.DataFrame":
        """Return the noisy rows as a DataFrame, one column an attribute, in an order of their own at each call.

        Every row is a sampled respondent's with the retention probability, else uniform noise; estimates must invert
        that, as `estimate` does. The rows are drawn here from the counts, in a random order from the operating
        system: the released rows came in a random order too, so given the counts both have the same law, and the order
        of either says nothing.

        Raises:
            As `estimate` does.
        """
        with importing("researcher", "a data frame"):
            import pandas as pd  # noqa: PLC0415 - an optional package

        found = self.estimate()
        columns = {}
        rows = rows_of_counts(found.counts, found.domain.shape, secrets.token_bytes(32))
        for attribute, symbols in zip(found.domain.attributes, rows, strict=True):
            columns[attribute.name] = labelled(symbols, attribute)
        frame = pd.DataFrame(columns)
        frame.attrs["study_digest"] = found.study_digest
        return frame

    def synthesise(  # noqa: PLR0913 - one argument a choice
        self,
        *,
        rows: int | None = None,
        replicates: int = 0,
        copies: int = 0,
        seed: str | int | None = None,
        attributes: Sequence[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Microdata":
        """Return microdata: rows drawn from a model of all tables, with the study's categories.

        release.synthesise().frame()
        release.synthesise(replicates=20, seed="census").write("linked.parquet")

        Args:
            rows: of the file; as many as there are respondents if not given. For intervals, ten times as many.
            replicates: weights for intervals (`veiltab.with_replicates`), by so many replays of the release: 20.
            copies: the same as files for packages that combine files, an even number.
            seed: the same seed gives the same rows; a random one if not given.
            attributes: of the rows; all that were asked for if not given.
            progress: told how many of how many replays are done; may raise, and so end the work.

        Raises:
            NotReadyError, FailedReleaseError: there is no result.
            InvalidInputError: an attribute that no table has, numbers out of range, or the release was asked for under
                another study file.
        """
        from veiltab.researcher.microdata.synthesis import check_size, no_progress, synthesise  # noqa: PLC0415 - slow to load

        check_size(1 if rows is None else rows, replicates, copies)
        status = self._ready_status()
        tables = self._results(status, status.ready_tables)
        return synthesise(
            self._client.study.domain(status.attributes if attributes is None else attributes),
            status,
            tables,
            rows=tables[0].design.population if rows is None else rows,
            replicates=replicates,
            copies=copies,
            seed=secrets.token_hex(8) if seed is None else str(seed),
            progress=progress or no_progress,
        )

    def _ready_status(self) -> Status:
        """Return the status of a release that is ready, under the client's study file.

        Raises:
            NotReadyError, DeniedError, FailedReleaseError: it is not.
            InvalidInputError: it was asked for under another study file.
        """
        status = self._known_status()
        if status.state is not ReleaseState.READY:
            raise self._not_ready(status)
        return status

    def _not_ready(self, status: Status) -> VeiltabError:
        reason = status.failure or status.progress
        return not_ready(status.state, reason, where=f"release {self.id}", remedy=status.advice)

    def _known_status(self) -> Status:
        """Return the status of a release under the client's study file; InvalidInputError if that is another one.

        That of a release which was waited for is known: no result of it changes any more.
        """
        status = self._ready or self.status()
        self._client.check_study(status.study_digest, f"release {self.id}")
        return status

    def _results(self, status: Status, tables: Sequence[TableStatus]) -> tuple[TableResult, ...]:
        histograms = [status.counts or self._client.histogram(table.release_id) for table in tables]
        return tuple(
            table_result(table.number, table.attributes, status.spec_of(table), histogram)
            for table, histogram in zip(tables, histograms, strict=True)
        )

    def _model(self, status: Status) -> Model:
        """Return the model of all tables of the release, which is fitted once."""
        if self._fitted is None:
            results = self._results(status, status.ready_tables)
            domain = self._client.study.domain({name for result in results for name in result.names})
            self._fitted = fitted(domain, results)
        return self._fitted

    def _estimate(self, status: Status, result: TableResult, confidence: float) -> Estimate:
        return Estimate(
            domain=self._client.study.domain(result.names),
            design=result.design,
            counts=result.counts,
            confidence=confidence,
            study_digest=status.study_digest,
        )
