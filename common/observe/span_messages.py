"""A party's status on the wire."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from veiltab.common.core.texts.message_fields import text_from_proto, words_from_proto
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.status import Activity, Budget, Observation
from veiltab.common.rpc.parties.identity import Party
from veiltab.v1 import status_pb2

_MOST, _LONGEST = 500, 500
"""Most entries of a message and most characters of a text in it; it must stay below 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyStatus:
    """A party's answer to the status RPC.

    Args:
        started: Unix seconds at which it was started.
        certificate_ends: Unix seconds after which its certificate is not valid.
        observation: what it does and waits for.
    """

    party: Party
    version: str
    started: int
    certificate_ends: int
    observation: Observation


def status_to_proto(status: PartyStatus) -> status_pb2.GetStatusResponse:
    """Encode a status; keep the newest entries of a long list and the beginning of a long text."""
    observation = status.observation
    return status_pb2.GetStatusResponse(
        party=status.party.uri,
        version=status.version,
        started=status.started,
        certificate_ends=status.certificate_ends,
        work=[
            status_pb2.Work(
                kind=work.kind,
                id=work.id or None,
                about=work.about[:_LONGEST],
                state=work.state,
                waiting_for=work.waiting_for[:_LONGEST],
                since=work.since or None,
                n=work.n,
                matched=work.matched,
            )
            for work in observation.work[-_MOST:]
        ],
        counts=[
            status_pb2.WorkCount(kind=kind, state=state, number=number)
            for (kind, state), number in sorted(observation.counts.items())
        ],
        budgets=[
            status_pb2.BudgetLeft(
                protects=budget.protects,
                epsilon=f"{budget.epsilon:f}",
                left=f"{budget.left:f}",
                delta=None if budget.delta is None else f"{budget.delta:f}",
                left_delta=None if budget.left_delta is None else f"{budget.left_delta:f}",
            )
            for budget in observation.budgets
        ],
        queues=observation.queues,
    )


def status_from_proto(answer: status_pb2.GetStatusResponse) -> PartyStatus:
    """Decode a status.

    Raises:
        InvalidInputError: it is none.
    """
    work = tuple(
        Activity(
            kind=words_from_proto(w.kind),
            id=words_from_proto(w.id),
            about=words_from_proto(w.about),
            state=words_from_proto(w.state),
            waiting_for=words_from_proto(w.waiting_for),
            since=w.since,
            n=w.n if w.HasField("n") else None,
            matched=w.matched if w.HasField("matched") else None,
        )
        for w in answer.work
    )
    return PartyStatus(
        party=Party.from_uri(answer.party),
        version=words_from_proto(answer.version),
        started=answer.started,
        certificate_ends=answer.certificate_ends,
        observation=Observation(
            work=work,
            counts={
                (words_from_proto(count.kind), words_from_proto(count.state)): count.number for count in answer.counts
            },
            queues={words_from_proto(name): number for name, number in answer.queues.items()},
            budgets=tuple(_budget(budget) for budget in answer.budgets),
        ),
    )


def _budget(budget: status_pb2.BudgetLeft) -> Budget:
    try:
        return Budget(
            protects=words_from_proto(budget.protects),
            epsilon=Decimal(text_from_proto(budget.epsilon, "epsilon")),
            left=Decimal(text_from_proto(budget.left, "left")),
            delta=Decimal(text_from_proto(budget.delta, "delta")) if budget.HasField("delta") else None,
            left_delta=Decimal(text_from_proto(budget.left_delta, "delta")) if budget.HasField("left_delta") else None,
        )
    except InvalidOperation:
        raise InvalidInputError("the budget is not a number", where="status") from None
