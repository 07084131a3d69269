"""A party's status on the wire."""

from decimal import Decimal, InvalidOperation

from veiltab.common.core.texts.message_fields import text_from_proto, words_from_proto
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import asdict, dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.status import Activity, Budget, Observation
from veiltab.common.rpc.parties.identity import Party
from veiltab.v1 import status_pb2

_MOST, _LONGEST = 500, 500
"""Most entries of a message and most characters of a text in it; it must stay below 1 MiB."""


_TEXTS = ("kind", "id", "about", "state", "waiting_for")


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
                **asdict(replace(work, about=work.about[:_LONGEST], waiting_for=work.waiting_for[:_LONGEST]))
            )
            for work in observation.work[-_MOST:]
        ],
        counts=[
            status_pb2.WorkCount(kind=kind, state=state, number=number)
            for (kind, state), number in sorted(observation.counts.items())
        ],
        budgets=[
            status_pb2.BudgetLeft(
                **{name: f"{one:f}" if isinstance(one, Decimal) else one for name, one in asdict(budget).items()}
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
    activities = tuple(
        Activity(
            **{name: words_from_proto(text) for name, text in same_fields(w, _TEXTS).items()},
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
            work=activities,
            counts={
                (words_from_proto(count.kind), words_from_proto(count.state)): count.number for count in answer.counts
            },
            queues={words_from_proto(name): number for name, number in answer.queues.items()},
            budgets=tuple(_budget(budget) for budget in answer.budgets),
        ),
    )


def _budget(budget: status_pb2.BudgetLeft) -> Budget:
    names = ("epsilon", "left", *(name for name in ("delta", "left_delta") if getattr(budget, name)))
    try:
        numbers = {name: Decimal(text_from_proto(getattr(budget, name), name)) for name in names}
    except InvalidOperation:
        raise InvalidInputError("the budget is not a number", where="status") from None
    return Budget(protects=words_from_proto(budget.protects), **numbers)
