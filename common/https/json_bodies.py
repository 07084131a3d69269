"""JSON that clients send: a name that comes twice is refused, for readers disagree which of its values counts."""

import json

from veiltab.common.errors import InvalidInputError


def decoded(body: bytes, remedy: str = "") -> object:
    """Return the value of a JSON body.

    Args:
        remedy: what to do if it cannot be read.

    Raises:
        InvalidInputError: it is no JSON, or has a name twice; nothing of it is repeated.
    """
    try:
        found: object = _DECODER.decode(body.decode())
    except (ValueError, RecursionError):
        raise InvalidInputError("the body is no JSON, or has a name twice", where="body", remedy=remedy) from None
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
