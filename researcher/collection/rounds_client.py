"""A researcher's rounds from Python: notebooks, scripts, and the command line.

rounds = Rounds("study.toml", identity="pki/researcher-rosa", name="rosa")
spec = rounds.open("age", epsilon="2", rates={"everyone": "0.5"}, populations={"everyone": 2000})
rounds.enrol(spec.round_id, "everyone", tokens := [new_token() for _ in range(2000)])
rounds.close_round(spec.round_id)
rounds.tally(spec.round_id)
"""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Self

import grpc
import numpy as np

from veiltab.common.collection.oracles import oracle_for
from veiltab.common.collection.round import EVERYONE, Round, RoundStatus, Stratum
from veiltab.common.collection.round_messages import round_from_proto, round_to_proto, state_from_proto
from veiltab.common.collection.tokens import token_digest
from veiltab.common.command.parties import load_party
from veiltab.common.core.numbers.rounding import Parameter, parse_epsilon
from veiltab.common.core.texts.id_prefix import whole_id
from veiltab.common.core.texts.message_fields import text_from_proto, whole_from_proto
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.blocking import BlockingChannel
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Party, Role, utc_now
from veiltab.common.rpc.parties.signing import signed, signed_to_proto
from veiltab.common.rpc.peer import Peer, Request, Response
from veiltab.common.study.file import Study
from veiltab.researcher.frequency.tally import Tally
from veiltab.v1 import collection_pb2, collection_pb2_grpc

_DIGESTS_A_CALL = 2_000
_ROUND_ID = re.compile(r"[0-9a-f]{32}")


class Rounds:
    """A researcher's connection to the server.

    Args:
        study: path of the study file.
        identity: folder of the researcher's certificate and key.
        name: the researcher's name in the study, if it is to be checked.
        timeout: seconds that the server may take to answer.
    """

    def __init__(
        self, study: str | Path, *, identity: str | Path, name: str | None = None, timeout: float = 30.0
    ) -> None:
        self.study, self._own = load_party(Path(study), Path(identity), Role.RESEARCHER, name=name)
        party = Party(study=self.study.id, role=Role.SERVER, name=self.study.server.name)
        self._timeout = timeout
        self._link = BlockingChannel(lambda: connect(self._own, party, self.study.server.endpoint))
        endpoint = self.study.server.endpoint
        self._server = Peer(party, self._link.channel, collection_pb2_grpc.CollectionServiceStub, endpoint)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def __enter__(self) -> Self:
        """Return the rounds."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def open(  # noqa: PLR0913 - one argument a choice
        self,
        question: str,
        *,
        epsilon: Parameter,
        rates: Mapping[str, str],
        populations: Mapping[str, int],
        oracle: str = "krr",
        lifetime_seconds: int = 86_400,
    ) -> Round:
        """Open a round.

        Args:
            question: name of a question of the study.
            epsilon: largest epsilon of one report, nats, as a text or a number.
            rates: probability of reporting by stratum, as text; {"everyone": ...} in a study without strata.
            oracle: one of ORACLE_NAMES.
            lifetime_seconds: until the round closes by itself.

        Raises:
            InvalidInputError: a value out of range.
            BudgetExceededError: epsilon exceeds the study's budget of a node.
            VeiltabError: the server's refusal.
        """
        parsed = parse_epsilon(epsilon)
        size = self.study.question(question).attribute.size
        spec = Round(
            round_id=secrets.token_hex(16),
            study_digest=self.study.digest,
            researcher=self._own.party.name,
            question=question,
            size=size,
            epsilon=parsed,
            oracle=oracle,
            parameters=tuple(sorted(oracle_for(oracle, size, parsed).parameters.items())),
            strata=self._strata(rates, populations),
            deadline=int(time.time()) + lifetime_seconds,
        )
        one = signed_to_proto(signed(self._own, spec.to_json(), utc_now()))
        request = collection_pb2.OpenRoundRequest(round=round_to_proto(spec), signed=one)
        self._ask(self._server.stub.OpenRound, request)
        return spec

    @property
    def strata(self) -> tuple[str, ...]:
        """Names of the nodes' strata; EVERYONE alone in a study without strata."""
        return (self.study.nodes.strata if self.study.nodes else ()) or (EVERYONE,)

    @property
    def only_question(self) -> str:
        """The name of the study's question, if it has one only."""
        names = [question.name for question in self.study.questions]
        if len(names) != 1:
            raise InvalidInputError(
                f"the study has {len(names)} questions", where="--question", remedy=f"Name one of: {', '.join(names)}."
            )
        return names[0]

    def _strata(self, rates: Mapping[str, str], populations: Mapping[str, int]) -> tuple[Stratum, ...]:
        names, listing = self.strata, ", ".join(self.strata)
        for what, values in (("rate", rates), ("population", populations)):
            missing = [name for name in names if name not in values]
            unknown = [name for name in values if name not in names]
            if unknown:
                raise InvalidInputError(f"no stratum {unknown[0][:60]!r}", where=what, remedy=f"Strata: {listing}.")
            if missing:
                raise InvalidInputError(
                    f"stratum {missing[0]} has no {what}", where=what, remedy=f"Give one for each of: {listing}."
                )
        return tuple(Stratum(name=name, population=populations[name], rate=_rate(rates[name], name)) for name in names)

    def enrol(self, round_id: str, stratum: str, tokens: Sequence[bytes]) -> None:
        """Enrol one-time tokens of new_token() in a stratum; the server gets only their digests.

        Store the tokens before you enrol them; enrolling them again changes nothing.
        """
        self.status(round_id)
        for start in range(0, len(tokens), _DIGESTS_A_CALL):
            batch = tokens[start : start + _DIGESTS_A_CALL]
            request = collection_pb2.EnrolTokensRequest(
                round_id=round_id,
                stratum=stratum,
                digests=b"".join(sorted(token_digest(round_id, token) for token in batch)),
            )
            self._ask(self._server.stub.EnrolTokens, request)

    def status(self, round_id: str) -> RoundStatus:
        """Return a round's status.

        Raises:
            InvalidInputError, IntegrityError: see `round_status_from_proto`.
        """
        request = collection_pb2.GetRoundStatusRequest(round_id=round_id)
        return round_status_from_proto(self._ask(self._server.stub.GetRoundStatus, request), round_id, self.study)

    def rounds(self) -> Sequence[str]:
        """Return the ids of this researcher's rounds, oldest first."""
        request = collection_pb2.ListRoundsRequest()
        answer = self._ask(self._server.stub.ListRounds, request)
        return [text_from_proto(round_id, "round") for round_id in answer.round_ids]

    def whole_id(self, name: str) -> str:
        """Return the id of a round of this researcher, of which a person gives all or the beginning.

        Raises:
            NotFoundError: no round has such an id.
            InvalidInputError: several have.
        """
        if _ROUND_ID.fullmatch(name):
            return name
        remedy = "`veiltab collect status` lists your rounds."
        return whole_id(name, self.rounds(), kinds=["round"], where="--round", remedy=remedy)

    def close_round(self, round_id: str) -> tuple[int, bool]:
        """Close a round for good; return when (Unix seconds), and whether it was closed before."""
        request = collection_pb2.CloseRoundRequest(round_id=round_id)
        answer = self._ask(self._server.stub.CloseRound, request)
        return answer.closed, answer.already

    def tally(self, round_id: str) -> Tally:
        """Return the tally of a closed round; see `result`."""
        return self.result(round_id)[1]

    def result(self, round_id: str) -> tuple[RoundStatus, Tally]:
        """Return the status of a closed round, and its counts.

        Raises:
            NotReadyError: it is still open.
            ClosedRoundError: the server no longer keeps it.
        """
        request = collection_pb2.FetchCountsRequest(round_id=round_id)
        data = self._link.wait(self._server.fetch(self._server.stub.FetchCounts, request))
        status = self.status(round_id)
        labels = self.study.question(status.round.question).attribute.categories
        return status, tally_of(status, np.frombuffer(data, "<i8"), labels)

    def _ask(self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        return self._link.wait(self._server.ask(method, request, within=self._timeout))


def round_status_from_proto(answer: collection_pb2.GetRoundStatusResponse, round_id: str, study: Study) -> RoundStatus:
    """Decode the status of the round that was asked about.

    Raises:
        InvalidInputError: the round is of another study file, so its values may have other names.
        IntegrityError: the server described another round, or one that the study cannot have.
    """
    spec = round_from_proto(answer.round)
    where = f"round {round_id[:32]}"
    if spec.round_id != round_id:
        raise IntegrityError("the server described another round", where=where)
    if spec.study_digest != study.digest:
        raise InvalidInputError(
            "the round is of another study file than this one",
            where=where,
            remedy="Give the study file that it was opened with.",
        )
    sizes = (spec.size, len(answer.enrolled), len(answer.reports))
    if sizes != (study.question(spec.question).attribute.size, len(spec.strata), len(spec.strata)):
        raise IntegrityError("the server described a round that the study cannot have", where=where)
    return RoundStatus(
        round=spec,
        state=state_from_proto(answer.state),
        closed=whole_from_proto(answer.closed, where),
        enrolled=tuple(answer.enrolled),
        reports=tuple(answer.reports),
    )


def tally_of(
    status: RoundStatus, counts: "np.ndarray[tuple[int], np.dtype[np.int64]]", labels: tuple[str, ...]
) -> Tally:
    """Return the tally of a closed round, ready for estimation.

    Raises:
        InvalidInputError: counts of another shape.
    """
    spec = status.round
    if counts.size != len(spec.strata) * spec.size:
        raise InvalidInputError("the counts are not those of this round", where=f"round {spec.round_id}")
    return Tally(
        counts=counts.reshape(len(spec.strata), spec.size).astype(np.int64),
        reports=np.array(status.reports, np.int64),
        populations=tuple(stratum.population for stratum in spec.strata),
        rates=tuple(stratum.probability for stratum in spec.strata),
        p=spec.randomiser.p,
        q=spec.randomiser.q,
        labels=labels,
        strata=tuple(stratum.name for stratum in spec.strata),
    )


def _rate(text: str, stratum: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InvalidInputError("the rate is not a number", where=f"stratum {stratum}") from None
