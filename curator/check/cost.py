"""What aligning a table would cost a curator, by tokens and privately: seconds, measured on some ids, and bytes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.process.cores import cores
from veiltab.curator.alignment.intersection import sorted_order
from veiltab.curator.alignment.private.masking import MAX_IDS, ids_of
from veiltab.curator.alignment.private.ristretto import (
    ELEMENT_BYTES,
    are_elements,
    fresh_scalar,
    fresh_seed,
    hashed,
    masked,
    weighted_sum,
)
from veiltab.curator.peers.ring import Flow, FlowKind, flows
from veiltab.curator.table.table_rows import TableRows
from veiltab.curator.table.tokens import TOKEN_LENGTH, tokens

_TOKENS_TRIED = 2**16
_ELEMENTS_TRIED = 2**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentCost:
    """What one way to align costs one curator, if the tables of all others are as large as its own.

    Args:
        alignment: "tokens" or "psi".
        seconds: of computation on this machine, all cores; None if the table is too large.
    """

    alignment: str
    rows: int
    seconds: float | None
    bytes_sent: int
    bytes_received: int

    def as_text(self) -> str:
        """Return a line for people."""
        if self.seconds is None:
            return f'alignment = "{self.alignment}": at most {MAX_IDS:,} respondents'
        seconds = f"about {self.seconds:.1f} s" if self.seconds >= 0.1 else "less than 0.1 s"
        return (
            f'alignment = "{self.alignment}": {seconds} of computation here,'
            f" {self.bytes_sent / 1e6:,.1f} MB sent, {self.bytes_received / 1e6:,.1f} MB received"
        )


def token_cost(respondents: TableRows, curators: int) -> AlignmentCost:
    """Return the cost of tokens among so many curators."""
    tried = respondents.ids(0, _TOKENS_TRIED)
    seconds = _seconds(lambda: sorted_order(tokens(tried, bytes(KEY_BYTES)))) * len(respondents) / len(tried)
    size = TOKEN_LENGTH * len(respondents) * (curators - 1)
    return AlignmentCost(
        alignment="tokens", rows=len(respondents), seconds=seconds, bytes_sent=size, bytes_received=size
    )


def private_cost(respondents: TableRows, name: str, curators: Sequence[str]) -> AlignmentCost:
    """Return the cost of private alignment to one of the curators, who are given in study order."""
    made, rows = flows(curators), len(respondents)
    own = [flow for flow in made if flow.producer == name]
    fetched = [flow for flow in made if name in flow.receivers]
    masks = sum(flow.kind in {FlowKind.QUERY, FlowKind.SET} for flow in own) + (name == curators[0])
    finals = {flow.owner: flow for flow in made if flow.kind is FlowKind.SET}
    checks = sum(flow in fetched for flow in finals.values())
    sums = 2 * (name == curators[0])
    return AlignmentCost(
        alignment="psi",
        rows=rows,
        seconds=_private_seconds(respondents, masks, checks, sums) if rows <= MAX_IDS else None,
        bytes_sent=rows * sum(_width(flow) * len(flow.receivers) for flow in own),
        bytes_received=rows * sum(map(_width, fetched)),
    )


def _private_seconds(respondents: TableRows, masks: int, checks: int, sums: int) -> float:
    texts, scalar, seed = ids_of(respondents.ids(0, _ELEMENTS_TRIED)), fresh_scalar(), fresh_seed()
    elements = hashed(texts)
    pairs = b"".join(2 * elements[start : start + ELEMENT_BYTES] for start in range(0, len(elements), ELEMENT_BYTES))
    seconds = (
        _seconds(lambda: hashed(texts))
        + masks * _seconds(lambda: masked(elements, scalar))
        + checks * _seconds(lambda: are_elements(elements))
        + sums * _seconds(lambda: weighted_sum(pairs, seed))
    )
    return seconds * len(respondents) / len(texts) / cores()


def _width(flow: Flow) -> int:
    return TOKEN_LENGTH if flow.kind is FlowKind.RESPONDENTS else ELEMENT_BYTES


def _seconds(compute: Callable[[], object]) -> float:
    began = time.perf_counter()
    compute()
    return time.perf_counter() - began
