"""One node as a Python class, for a device's own program; it also works inside a running event loop, as in a notebook.

node = Node("study.toml", identity="pki/node-fleet", state="state")
node.report(round_id, value="42", token="0f3c...")
"""

import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from veiltab.common.collection.round import EVERYONE, RoundState
from veiltab.common.collection.round_messages import report_to_proto
from veiltab.common.collection.tokens import token_of
from veiltab.common.command.parties import load_party
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import ClosedRoundError, InvalidInputError
from veiltab.common.rpc.blocking import BlockingChannel
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.rpc.proxy import AnyProxy
from veiltab.common.storage.files import OwnedFolder
from veiltab.node.answers.decision import check_round, decide, symbol_of
from veiltab.node.answers.journal import Journal, ReportDecision, State
from veiltab.node.answers.sending import fetch_round, hand_in, server_of
from veiltab.v1 import collection_pb2, collection_pb2_grpc

if TYPE_CHECKING:
    # The generated module has this name for type checkers only.
    from veiltab.v1.collection_pb2_grpc import CollectionServiceAsyncStub as Stub

_SELF = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A node's answer to a round.

    Args:
        state: State.COUNTED, or State.SILENT if the coin said not to report.
        before: whether an earlier call gave the answer; the value and token of this one were not used then.
    """

    state: State
    before: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One call of `report`: its round, value, token and stratum, and when it gives up."""

    round_id: str
    value: str
    token: bytes
    stratum: str
    end: float

    @property
    def seconds_left(self) -> float:
        """Seconds until the call gives up."""
        return self.end - time.monotonic()


class Node:
    """A node: one value a round, randomised here, reported with the round's probability or not at all.

    Args:
        study: path of the study file.
        identity: folder of the nodes' certificate and key.
        state: folder where this node remembers its answers; one node, one folder.
        proxy: an HTTP proxy to call through, "http://HOST:PORT"; or a ProxyOption, which names a user too.

    Raises:
        VeiltabError: the study has no nodes, or the files do not belong together.
    """

    def __init__(self, study: str | Path, *, identity: str | Path, state: str | Path, proxy: AnyProxy = None) -> None:
        self._study, self._identity = load_party(Path(study), Path(identity), Role.NODE, name=None, proxy=proxy)
        self._state = Path(state)

    def report(
        self, round_id: str, *, value: str | int, token: str, stratum: str | None = None, within: float = 60.0
    ) -> State:
        """Answer a round, or repeat the earlier answer.

        The first call tosses the node's coin and randomises the value. Every later call repeats that outcome, whatever
        value it is given.

        Args:
            value: the raw value, as the study's question codes it; an integer stands for its decimal digits.
            token: the node's one-time token, 32 hexadecimal digits.
            stratum: the node's public group, if the study has strata.
            within: seconds to keep trying.

        Returns:
            State.COUNTED, or State.SILENT if the coin said not to report.

        Raises:
            InvalidInputError: a value outside the domain or of another type, a malformed token, or an unknown stratum.
            ClosedRoundError: the round is closed.
            BudgetExceededError: with this node's other rounds the round would exceed the study's budget.
            DeniedError: the token does not belong to this round.
            SpentTokenError: another report has spent the token.
            UnavailableError: no answer in time; the next call submits the same report.
        """
        return self.answer(round_id, value=value, token=token, stratum=stratum, within=within).state

    def answer(
        self, round_id: str, *, value: str | int, token: str, stratum: str | None = None, within: float = 60.0
    ) -> Answer:
        """Answer a round as `report` does, and also return whether this folder had answered it before.

        Args:
            value: as in `report`.
            token: as in `report`.
            stratum: as in `report`.
            within: seconds to keep trying.

        Raises:
            VeiltabError: as in `report`.
        """
        attempt = _Attempt(
            round_id=round_id,
            value=_raw(value),
            token=token_of(_text(token)),
            stratum=stratum or EVERYONE,
            end=time.monotonic() + within,
        )
        with ExitStack() as stack:
            folder = OwnedFolder(self._state, f"{self._identity.party.uri} (one node)")
            stack.callback(folder.release)
            journal = stack.enter_context(closing(Journal(folder.path)))
            decision = journal.decisions(round_id).get(_SELF)
            if decision is not None and decision.state in {State.SILENT, State.COUNTED}:
                return Answer(state=decision.state, before=True)
            to_server = partial(connect, self._identity, server_of(self._study), self._study.server.endpoint)
            link = stack.enter_context(closing(BlockingChannel(to_server)))
            return Answer(state=self._report(link, journal, attempt, decision), before=False)

    def _report(
        self, link: BlockingChannel, journal: Journal, attempt: _Attempt, earlier: ReportDecision | None
    ) -> State:
        stub = collection_pb2_grpc.CollectionServiceStub(link.channel)
        decision = self._decide(link, stub, journal, attempt) if earlier is None else earlier
        request = collection_pb2.ReportRequest.FromString(decision.request)
        match decision.state:
            case State.SILENT | State.COUNTED:
                return decision.state
            case State.REFUSED:
                # The report was not counted, so it may be submitted with another token.
                request.token = attempt.token
                journal.give_token(attempt.round_id, _SELF, request.SerializeToString())
            case State.WAITING:
                pass
            case _:
                assert_never(decision.state)
        tried = earlier is not None and earlier.state is State.WAITING
        outcome = link.wait(hand_in(stub, self._study, request, tried=tried, within=attempt.seconds_left))
        if outcome.state is not State.WAITING:
            journal.finish(attempt.round_id, [_SELF], outcome.state)
        if outcome.error is not None:
            raise outcome.error
        return outcome.state

    def _decide(self, link: BlockingChannel, stub: "Stub", journal: Journal, attempt: _Attempt) -> ReportDecision:
        """Decide, and record the decision before anybody else can know it."""
        authority = self._identity.authority
        answer = link.wait(fetch_round(stub, self._study, authority, attempt.round_id, attempt.seconds_left))
        spec, state, signed = answer
        group = check_round(spec, self._study, attempt.stratum)
        symbol = symbol_of(self._study, spec.question, attempt.value)
        if state is not RoundState.OPEN:
            raise ClosedRoundError(
                "the round is closed", where=f"round {attempt.round_id}", remedy="It takes no more reports."
            )
        journal.begin(spec, b"", self._study, signed)
        report = decide(spec, group, symbol)
        if report is None:
            decision = ReportDecision(node=_SELF, state=State.SILENT, request=b"", size=0)
        else:
            request = report_to_proto(spec.round_id, attempt.token, group.name, report).SerializeToString()
            decision = ReportDecision(node=_SELF, state=State.WAITING, request=request, size=len(request))
        journal.decide(spec.round_id, [decision])
        return decision


def _raw(value: object) -> str:
    """Return a value as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidInputError("the value is neither a text nor a number", where="value")
    return value


def _text(token: object) -> str:
    if not isinstance(token, str):
        raise InvalidInputError("the token is not a text", where="token", remedy="Give its 32 hexadecimal digits.")
    return token
