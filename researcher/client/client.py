"""A researcher's releases from Python: notebooks, scripts, and the command line.

client = Client("study.toml", identity="pki/researcher-rosa")
release = client.request(["education", "salary"], epsilon=1, purpose="wage gap")
release.wait()
release.estimate().marginal(["salary"])
release.frame()

An analyst reads the same with an identity of its own:

Client("study.toml", identity="pki/analyst-ana").release("wages").frame()
"""

import secrets
import time
from collections.abc import Sequence
from decimal import Decimal

from veiltab.common.core.numbers.rounding import Parameter, parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT, parse_split
from veiltab.common.release.messages.release_messages import request_to_proto
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.tables import Prospect, Workload, asked_tables
from veiltab.researcher.client.connection import Connection
from veiltab.researcher.client.release import Release
from veiltab.researcher.status.release_status import ReleaseList, release_status_from_proto
from veiltab.v1 import researcher_pb2


class Client(Connection):
    """A connection to a researcher's service that starts releases and finds them.

    Args:
        study: path of the study file.
        identity: folder of the own certificate and key.
        name: the researcher's or the analyst's name in the study; an analyst reads, and starts no release.
        timeout: seconds that the service may take to answer.
        proxy: an HTTP proxy to call through, "http://HOST:PORT"; or a ProxyOption, which names a user too.
    """

    def __repr__(self) -> str:
        return f"<Client of {self.party} in the study {self.study.title!r}>"

    def request(  # noqa: PLR0913 - one argument a choice
        self,
        attributes: Sequence[str] = (),
        *,
        epsilon: Parameter,
        tables: Sequence[Sequence[str]] = (),
        workload: Workload | str | None = None,
        population: int | None = None,
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
    ) -> Release:
        """Ask the curators for a release, or continue the unfinished one that asks for the same.

        Args:
            attributes: names from the study, of one table or of a workload; of a workload by default all.
            epsilon: in nats, as a text or a number; a float counts as Python shows it, so 0.5 is "0.5". Pure unless
                there is a delta. Of all tables together.
            tables: the attributes of each table, instead of `attributes`.
            workload: "pairs", every pair of the attributes; or "linked", every pair once and those that show the
                strongest dependences again, or every triple where the noise will be small.
            population: respondents that there will be at least, for that choice; the study's fewest if not given.
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
        self.check_owner("start a release")
        prospect = Prospect(
            rows=sample or population,
            epsilon=parse_epsilon(epsilon),
            delta=None if delta is None else parse_delta(delta),
        )
        names, several = asked_tables(self.study, attributes, tables, workload, repeats, prospect)
        request = ReleaseRequest(
            release_id=secrets.token_hex(16),
            researcher=self.desk.name,
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
            delta=prospect.delta,
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
            request=request_to_proto(request), label=label or None, study_digest=self.study.digest
        )
        try:
            answer = self.ask(self.service.stub.StartRelease, message)
        except InvalidInputError:
            self.check_study("", str(self.desk))
            raise
        return Release(self, answer.release_id, continued=answer.continued)

    def release(self, name: str) -> Release:
        """Return a release by its label, its id, or the beginning of its id."""
        return Release(self, self.status(name).release_id, continued=True)

    def releases(self) -> ReleaseList:
        """Return all releases, oldest first, without their details; shown as a table."""
        message = researcher_pb2.ListReleasesRequest()
        answer = self.ask(self.service.stub.ListReleases, message)
        return ReleaseList(
            release_status_from_proto(researcher_pb2.GetResultResponse(summary=one)) for one in answer.releases
        )

    def _split(self, parameter: Parameter | None) -> Decimal:
        """Return the curators' part of the noise: as asked, else as the study says."""
        if parameter is not None:
            return parse_split(parameter)
        return DEFAULT_SPLIT if self.study.noise_split is None else self.study.noise_split
