"""The kinds of flows of a private alignment as they travel."""

from veiltab.common.errors import InvalidInputError
from veiltab.curator.peers.ring import FlowKind
from veiltab.v1 import curator_peer_pb2

_KINDS = {
    FlowKind.QUERY: curator_peer_pb2.FLOW_KIND_QUERY,
    FlowKind.SET: curator_peer_pb2.FLOW_KIND_SET,
    FlowKind.COMMON: curator_peer_pb2.FLOW_KIND_COMMON,
    FlowKind.RESPONDENTS: curator_peer_pb2.FLOW_KIND_RESPONDENTS,
}
_NUMBERS = {number: kind for kind, number in _KINDS.items()}


def flow_kind_to_proto(kind: FlowKind) -> curator_peer_pb2.FlowKind:
    """Return the number of a kind."""
    return _KINDS[kind]


def flow_kind_from_proto(number: curator_peer_pb2.FlowKind) -> FlowKind:
    """Return the kind of a number.

    Raises:
        InvalidInputError: there is no such kind.
    """
    if number not in _NUMBERS:
        raise InvalidInputError("there is no such flow", where="FetchFlow")
    return _NUMBERS[number]
