"""What a server does for the nodes of a study: it answers RPCs, takes reports over HTTPS, counts, and shows both.

A server whose study has no nodes does not load this.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager, nullcontext
from decimal import ROUND_FLOOR, Context, Decimal
from functools import partial, reduce
from pathlib import Path

from veiltab.common.collection.round import Round, RoundState
from veiltab.common.dataclass import dataclass
from veiltab.common.observe.status import SHOWN, Activity, Budget, Observation
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.server import Registration
from veiltab.common.study.file import Study
from veiltab.common.web.http_options import HttpOptions
from veiltab.server.https.port import reports_taken
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_service import CollectionServicer
from veiltab.server.rounds.rounds_store import CollectionStore
from veiltab.v1.collection_pb2_grpc import add_CollectionServiceServicer_to_server

_DOWN = Context(prec=100, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class Collecting:
    """The server's part in rounds.

    Args:
        taking: takes reports over HTTPS while it is entered.
    """

    study: Study
    store: CollectionStore
    rounds: RoundKeeper
    taking: AbstractAsyncContextManager[None]

    @property
    def registration(self) -> Registration:
        """Registers the RPCs."""
        return partial(add_CollectionServiceServicer_to_server, CollectionServicer(self.rounds))

    async def run(self) -> None:
        """Count reports until cancelled; those that were taken are answered first."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.rounds.run())
            async with self.taking:
                await asyncio.Event().wait()

    def observe(self) -> Observation:
        """Return the rounds that are open and the last that closed, and the remainder of a node's budget."""
        specs = self.store.rounds()
        standing = [self.store.status(spec.round_id) for spec in specs]
        states = Counter(status.state for status in standing)
        closed = [status for status in standing if status.state is RoundState.CLOSED]
        hidden = {status.round.round_id for status in closed[:-SHOWN]}
        return Observation(
            work=tuple(
                _round(status.round, status.state, sum(status.reports), status.closed)
                for status in standing
                if status.round.round_id not in hidden
            ),
            counts={("round", state.value): states[state] for state in RoundState},
            queues={"reports": self.rounds.waiting},
            budgets=() if self.study.nodes is None else (_budget(self.study.nodes.budget_epsilon, specs),),
        )


@contextmanager
def collecting(
    study: Study,
    identity: Identity,
    state: tuple[Path, str],
    *,
    retention_days: int,
    http: tuple[HttpOptions, Path] | None,
) -> Iterator[Collecting]:
    """Open the state of rounds for a block.

    Args:
        state: the server's folder, and the URL of the PostgreSQL that several processes share, or "".
        retention_days: how long a closed round can be fetched.
        http: where reports come over HTTPS, and the folder of the server's certificate; None without.
    """
    folder, database = state
    with closing(CollectionStore(folder, database)) as store:
        rounds = RoundKeeper(study, store, retention_days=retention_days)
        taking = nullcontext() if http is None else reports_taken(*http, rounds, identity, shared=bool(database))
        yield Collecting(study, store, rounds, taking)


def _round(spec: Round, state: RoundState, reports: int, closed: int) -> Activity:
    return Activity(
        kind="round",
        id=spec.round_id,
        about=f"{spec.question} at epsilon {spec.epsilon} for {spec.researcher}; {reports} reports counted",
        state=state.value,
        waiting_for="reports, until it is closed" if state is RoundState.OPEN else "",
        since=closed,
    )


def _budget(epsilon: Decimal, rounds: tuple[Round, ...]) -> Budget:
    """Return the remainder of a node's budget over all rounds."""
    return Budget(protects="nodes", epsilon=epsilon, left=reduce(_DOWN.subtract, (r.epsilon for r in rounds), epsilon))
