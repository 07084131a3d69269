"""Who masks whose ids in a private alignment, in what order, and who may fetch the result; the same at every curator.

The curator that the study lists first is the querier. Its masked ids, the query, visit every other curator in turn,
each multiplies them by its scalar, and they come home in the order in which they left. The ids of each other curator
visit the rest of the others, never the querier, and are sorted at each stop; so the sets of all others end under the
product of the others' scalars, and nobody can say which element is whose. Each of the others keeps what all these sets
share and gives that to the querier, who multiplies it by its own scalar, finds its own ids in it, and names the common
respondents.

With two curators that is plain Diffie-Hellman private set intersection. docs/private-alignment.md says who learns what.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

PART_BYTES = 16
"""Length of a curator's random part of a session's name."""

MOST_SESSIONS = 3
"""Sessions that one peer may begin, over all alignments, until a person allows more."""


class FlowKind(Enum):
    """What travels."""

    QUERY = "query"
    SET = "set"
    COMMON = "common"
    RESPONDENTS = "respondents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One column of elements, or of tokens, as one curator makes it.

    Args:
        owner: the curator whose ids it began with.
        source: who has made what it is made from; the producer itself where it is made from the producer's own ids.
        receivers: who may fetch it.
    """

    kind: FlowKind
    owner: str
    producer: str
    source: str
    receivers: frozenset[str]

    @property
    def file_name(self) -> str:
        """Name of its file at the producer."""
        return f"{self.kind.value}-{self.owner}.bin"

    @property
    def received_name(self) -> str:
        """Name of its file at a receiver."""
        return f"from-{self.producer}-{self.file_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a curator takes part in an alignment, as it says to the others.

    Args:
        part: its random part of the session's name.
        finished: the session that it has finished; empty if there is none.
        failed: the session that it knows to have failed; empty if there is none.
        suspects: who may have changed the query in that session, as the querier found.
        received: SHA-256 of the query in that session as it came to this curator; empty at the querier.
        passed_on: SHA-256 of the query as this curator passed it on.
    """

    part: bytes
    finished: str = ""
    failed: str = ""
    suspects: tuple[str, ...] = ()
    received: bytes = b""
    passed_on: bytes = b""


def flows(curators: Sequence[str]) -> tuple[Flow, ...]:
    """Return all flows among two or more curators, given in study order; each follows the one that it is made from."""
    first, *others = curators
    masked = [*_visits(FlowKind.QUERY, (first, *others), frozenset((first,)))]
    for place in range(len(others)):
        stops = (*others[place:], *others[:place])
        masked += _visits(FlowKind.SET, stops, frozenset(others) - {stops[-1]})
    common = [
        Flow(kind=FlowKind.COMMON, owner=name, producer=name, source=name, receivers=frozenset((first,)))
        for name in others
    ]
    last = Flow(kind=FlowKind.RESPONDENTS, owner=first, producer=first, source=first, receivers=frozenset(others))
    return (*(flow for _, flow in sorted(masked, key=lambda stop: stop[0])), *common, last)


def _visits(kind: FlowKind, stops: Sequence[str], at_last: frozenset[str]) -> list[tuple[int, Flow]]:
    """Return (number of stops before, flow) for every stop of one curator's ids; `at_last` may fetch the last flow."""
    return [
        (
            place,
            Flow(
                kind=kind,
                owner=stops[0],
                producer=producer,
                source=stops[max(place - 1, 0)],
                receivers=frozenset((stops[place + 1],)) if place + 1 < len(stops) else at_last,
            ),
        )
        for place, producer in enumerate(stops)
    ]
