"""One node from Python, for embedding in a device's own program; it may be called where a loop runs, as in a notebook.

node = Node("study.toml", identity="pki/node-fleet", state="state")
node.report(round_id, value="42", token="0f3c...")
"""

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import grpc

from veiltab.common.collection.round import EVERYONE, RoundState
from veiltab.common.collection.tokens import token_of
from veiltab.common.collection.wire import report_to_proto
from veiltab.common.command.options import load_party
from veiltab.common.errors import ClosedRoundError, InvalidInputError
from veiltab.common.rpc.blocking import BlockingChannel
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.identity import Role
from veiltab.common.storage.files import OwnedFolder
from veiltab.node.decision import check_nodes, check_round, decide, symbol_of
from veiltab.node.journal import Journal, ReportDecision, State
from veiltab.node.sending import fetch_round, hand_in, server_of
from veiltab.v1 import collection_pb2, collection_pb2_grpc

if TYPE_CHECKING:
    # The generated module has this name for type checkers only.
    from veiltab.v1.collection_pb2_grpc import CollectionServiceAsyncStub as Stub

_SELF = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How a node's answer stands.

    Args:
        state: State.COUNTED, or State.SILENT if the coin said not to report.
        before: whether it stood so before the call, whose value and token were not used then.
    """

    state: State
    before: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What a caller wants to answer: to which round, which value, with which token, of which stratum, until when."""

    round_id: str
    value: str
    token: bytes
    stratum: str
    end: float

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.monotonic()


class Node:
    """A node: one value a round, randomised here, reported with the round's probability or not at all.

    Args:
        study: path of the study file.
        identity: folder of the nodes' certificate and key.
        state: folder where this node remembers its answers; one node, one folder.

    Raises:
        VeiltabError: the study has no nodes, or the files do not belong together.
    """

    def __init__(self, study: str | Path, *, identity: str | Path, state: str | Path) -> None:
        self._study, self._identity = load_party(Path(study), Path(identity), Role.NODE, None)
        self._state = Path(state)

    def report(
        self, round_id: str, *, value: str | int, token: str, stratum: str | None = None, within: float = 60.0
    ) -> State:
        """Answer a round, or repeat the answer that was given before.

        The first call tosses the node's coin and randomises the value; every later call repeats what came out, whatever
        the value then is.

        Args:
            round_id: the round.
            value: the raw value, as the study's question codes it; an integer stands for its decimal digits.
            token: the node's one-time token, 32 hexadecimal digits.
            stratum: the node's public group, if the study has strata.
            within: seconds to keep trying.

        Returns:
            State.COUNTED, or State.SILENT if the coin said not to report.

        Raises:
            InvalidInputError: a value outside the domain or of another type, a token or stratum that cannot be.
            ClosedRoundError: the round is closed.
            BudgetExceededError: with the other rounds of this node it would cost more than the study allows.
            DeniedError: a token that is not of this round.
            SpentTokenError: a token that another report has spent.
            UnavailableError: no answer in time; call again, and the same report is handed in.
        """
        return self.answer(round_id, value=value, token=token, stratum=stratum, within=within).state

    def answer(
        self, round_id: str, *, value: str | int, token: str, stratum: str | None = None, within: float = 60.0
    ) -> Answered:
        """Answer a round as `report` does, and say too whether this folder had answered it before.

        Args:
            round_id: the round.
            value: as in `report`.
            token: as in `report`.
            stratum: as in `report`.
            within: seconds to keep trying.

        Raises:
            VeiltabError: as in `report`.
        """
        wanted = _Wanted(
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
            known = journal.decisions(round_id).get(_SELF)
            if known is not None and known.state in {State.SILENT, State.COUNTED}:
                return Answered(state=known.state, before=True)
            link = stack.enter_context(closing(BlockingChannel(self._connect)))
            return Answered(state=self._report(link, journal, wanted, known), before=False)

    def _connect(self) -> grpc.aio.Channel:
        return connect(self._identity, server_of(self._study), self._study.server.endpoint)

    def _report(self, link: BlockingChannel, journal: Journal, wanted: _Wanted, known: ReportDecision | None) -> State:
        stub = collection_pb2_grpc.CollectionServiceStub(link.channel)
        decision = self._decide(link, stub, journal, wanted) if known is None else known
        request = collection_pb2.ReportRequest.FromString(decision.request)
        match decision.state:
            case State.SILENT | State.COUNTED:
                return decision.state
            case State.REFUSED:
                # It was not counted: the same report may have another token.
                request.token = wanted.token
                journal.give_token(wanted.round_id, _SELF, request.SerializeToString())
            case State.WAITING:
                pass
            case _:
                assert_never(decision.state)
        tried = known is not None and known.state is State.WAITING
        outcome = link.wait(hand_in(stub, self._study, request, tried=tried, within=wanted.left))
        if outcome.state is not State.WAITING:
            journal.finish(wanted.round_id, [_SELF], outcome.state)
        if outcome.error is not None:
            raise outcome.error
        return outcome.state

    def _decide(self, link: BlockingChannel, stub: "Stub", journal: Journal, wanted: _Wanted) -> ReportDecision:
        """Decide, and remember it before anybody else can know."""
        spec, state = link.wait(fetch_round(stub, self._study, wanted.round_id, wanted.left))
        group = check_round(spec, self._study, wanted.stratum)
        symbol = symbol_of(self._study, spec.question, wanted.value)
        if state is not RoundState.OPEN:
            raise ClosedRoundError(
                "the round is closed", where=f"round {wanted.round_id}", remedy="Nothing more is taken."
            )
        journal.begin(spec, b"", check_nodes(self._study).budget_epsilon)
        report = decide(spec, group, symbol)
        if report is None:
            decision = ReportDecision(node=_SELF, state=State.SILENT, request=b"", size=0)
        else:
            request = report_to_proto(spec.round_id, wanted.token, group.name, report).SerializeToString()
            decision = ReportDecision(node=_SELF, state=State.WAITING, request=request, size=len(request))
        journal.decide(spec.round_id, [decision])
        return decision


def _raw(value: object) -> str:
    """Return a value as a file would have it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidInputError("a value is a text or an integer", where="value")
    return value


def _text(token: object) -> str:
    if not isinstance(token, str):
        raise InvalidInputError("a token is a text", where="token", remedy="Give its 32 hexadecimal digits.")
    return token
