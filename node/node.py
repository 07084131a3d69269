"""One node from Python, for embedding in a device's own program.

node = Node("study.toml", identity="pki/node-fleet", state="state")
node.report(round_id, value="42", token="0f3c...")
"""

import asyncio
from pathlib import Path

from common.collection.round import EVERYONE, RoundState
from common.collection.tokens import token_of
from common.errors import ClosedRoundError, UnavailableError, VeiltabError
from common.files import OwnedFolder
from common.identity import Role
from common.party_options import load_party
from common.rpc.channel import connect
from common.wire.collection import report_to_proto
from node.decision import check_round, decide, symbol_of
from node.journal import Decision, Journal, State
from node.sending import fetch_round, hand_in, server_of
from veiltab.v1 import collection_pb2, collection_pb2_grpc

_SELF = 0


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
        self, round_id: str, *, value: str, token: str, stratum: str | None = None, within: float = 60.0
    ) -> State:
        """Answer a round, or repeat the answer that was given before.

        The first call tosses the node's coin and randomises the value; every later call repeats what came out, whatever
        the value then is.

        Args:
            round_id: the round.
            value: the raw value, as the study's question codes it.
            token: the node's one-time token, 32 hexadecimal digits.
            stratum: the node's public group, if the study has strata.
            within: seconds to keep trying.

        Returns:
            State.COUNTED, or State.SILENT if the coin said not to report.

        Raises:
            InvalidInputError: a value outside the domain, a token or stratum that cannot be.
            ClosedRoundError: the round is closed.
            DeniedError: a token that is not of this round.
            SpentTokenError: a token that another report has spent.
            UnavailableError: no answer in time; call again, and the same report is handed in.
        """
        secret = token_of(token)
        folder = OwnedFolder(self._state, f"{self._identity.party.uri} (one node)")
        journal = Journal(folder.path)
        try:
            return asyncio.run(self._report(journal, round_id, value, secret, stratum, within))
        finally:
            journal.close()
            folder.release()

    async def _report(  # noqa: PLR0913, PLR0917 - those of report, and the journal
        self, journal: Journal, round_id: str, value: str, token: bytes, stratum: str | None, within: float
    ) -> State:
        known = journal.decisions(round_id).get(_SELF)
        channel = connect(self._identity, server_of(self._study), self._study.server.endpoint)
        stub = collection_pb2_grpc.CollectionServiceStub(channel)
        try:
            if known is None:
                decision = await self._decide(stub, round_id, value, token, stratum)
                journal.decide(round_id, [decision])
            else:
                decision = known
            if decision.state in {State.SILENT, State.COUNTED}:
                return decision.state
            request = collection_pb2.ReportRequest.FromString(decision.request)
            # A report that was refused was not counted: the same report may have another token.
            request.token = token if decision.state is State.REFUSED else request.token
            tried = known is not None and decision.state is State.WAITING
            try:
                await hand_in(stub, self._study, request, tried=tried, within=within)
            except UnavailableError:
                raise
            except VeiltabError:
                journal.finish(round_id, [_SELF], State.REFUSED)
                raise
            journal.finish(round_id, [_SELF], State.COUNTED)
        finally:
            await channel.close()
        return State.COUNTED

    async def _decide(
        self,
        stub: "collection_pb2_grpc.CollectionServiceAsyncStub",
        round_id: str,
        value: str,
        token: bytes,
        stratum: str | None,
    ) -> Decision:
        spec, state = await fetch_round(stub, self._study, round_id)
        group = check_round(spec, self._study, stratum or EVERYONE)
        symbol = symbol_of(self._study, spec.question, value)
        if state is not RoundState.OPEN:
            raise ClosedRoundError("the round is closed", where=f"round {round_id}", remedy="Nothing more is taken.")
        report = decide(spec, group, symbol)
        if report is None:
            return Decision(node=_SELF, state=State.SILENT, request=b"", size=0)
        request = report_to_proto(round_id, token, group.name, report).SerializeToString(deterministic=True)
        return Decision(node=_SELF, state=State.WAITING, request=request, size=len(request))
