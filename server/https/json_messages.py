"""Rounds and reports as JSON, for nodes that report over HTTPS; docs/http-reports.md describes every field.

A report's payload is written in hexadecimal digits, as many for every value of a round: neither the length of a message
nor that of its encryption depends on what a node reports.
"""

import json
from typing import TYPE_CHECKING, Any

from veiltab.common.collection.oracles import Bits, Category, Hashed, Oracle, Report, Subset
from veiltab.common.collection.round import Round, RoundState
from veiltab.common.collection.tokens import token_of
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.web.bodies import parse_json

if TYPE_CHECKING:
    from veiltab.common.web.answering import RefusedError

_SYMBOL_BYTES = 4
_AROUND = 1024
"""Most bytes of a report beside its payload: braces, names, the token, the stratum, white space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReport:
    """A report as it came.

    Args:
        token: 16 bytes.
        stratum: name of the node's stratum.
        report: the payload, which the round's randomiser has yet to check.
    """

    token: bytes
    stratum: str
    report: Report


def most_bytes(randomiser: Oracle) -> int:
    """Return how long the JSON of a report may be, at most."""
    return _AROUND + 2 * (randomiser.report_bytes + _SYMBOL_BYTES)


def round_to_json(spec: Round, state: RoundState) -> bytes:
    """Return what a node needs to know of a round. Whole numbers that may exceed 2^53 are texts."""
    facts = json.loads(spec.to_json())
    facts["parameters"] = {name: str(value) for name, value in spec.parameters}
    return json.dumps({"round": facts, "state": state.value}).encode()


def report_from_json(body: bytes) -> JsonReport:
    """Read the body of a report; the randomiser then checks whether it fits the round.

    Raises:
        InvalidInputError: it is no such message; nothing of it is repeated.
    """
    message = parse_json(body, remedy="See docs/http-reports.md.")
    token, stratum, payload = _fields(message, "body", "token", "stratum", "report")
    if not isinstance(token, str) or not isinstance(stratum, str):
        raise InvalidInputError("the token or the stratum is not a text", where="body")
    return JsonReport(token=token_of(token), stratum=stratum, report=_payload(payload))


def refusal_to_json(refusal: "RefusedError") -> bytes:
    """Return a refusal as every command prints it with --json."""
    names = ("reason", "problem", "where", "remedy")
    return json.dumps({"error": {name: getattr(refusal, name) for name in names}}).encode()


def _payload(payload: object) -> Report:
    match payload:
        case {"category": symbol, **rest} if not rest:
            return Category(symbol=_symbol(symbol))
        case {"bits": bits, **rest} if not rest:
            return Bits(bits=_bytes(bits))
        case {"seed": seed, "symbol": symbol, **rest} if not rest:
            return Hashed(seed=_bytes(seed), symbol=_symbol(symbol))
        case {"subset": values, **rest} if not rest:
            return Subset(values=_bytes(values))
        case _:
            raise InvalidInputError(
                'the report has none of "category", "bits", "seed" with "symbol", and "subset"', where="report"
            )


def _symbol(text: object) -> int:
    data = _bytes(text)
    if len(data) != _SYMBOL_BYTES:
        raise InvalidInputError(
            f"the category or symbol does not have {2 * _SYMBOL_BYTES} hexadecimal digits", where="report"
        )
    return int.from_bytes(data)


def _bytes(text: object) -> bytes:
    # bytes.fromhex would also take white space and capital letters.
    if not isinstance(text, str) or len(text) % 2 or not set(text) <= set("0123456789abcdef"):
        raise InvalidInputError("the payload is not pairs of hexadecimal digits 0-9, a-f", where="report")
    return bytes.fromhex(text)


def _fields(message: object, where: str, *names: str) -> tuple[Any, ...]:
    if not isinstance(message, dict) or message.keys() != set(names):
        raise InvalidInputError(
            f"the fields are not just {', '.join(names)}", where=where, remedy="See docs/http-reports.md."
        )
    return tuple(message[name] for name in names)
