"""A node's token as text: alone, or as a whole line of the token file."""

import csv

from veiltab.common.collection.round import EVERYONE
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLine:
    """The fields of a line.

    Args:
        token: its last field; not yet checked to be a token.
        stratum: the node's group; None if the line names none, or everyone.
    """

    token: str
    stratum: str | None


def token_line(text: str, round_id: str) -> TokenLine:
    """Read `token`, `stratum,token` or `round,stratum,token`.

    Args:
        round_id: the round that the token is for.

    Raises:
        InvalidInputError: any other text, or a line of another round; the message does not repeat the line.
    """
    try:
        rows = list(csv.reader(text.strip().splitlines()))
    except csv.Error:
        rows = []
    if len(rows) != 1 or len(rows[0]) > _MOST or rows[0][-1].strip() == "token":
        raise InvalidInputError(
            "this is not one token",
            where="token",
            remedy="Give one line below the header as `veiltab collect enrol` wrote it, or its end.",
        )
    fields = [field.strip() for field in rows[0]]
    if len(fields) == _MOST and fields[0] != round_id:
        raise InvalidInputError(
            "this token is of another round", where=f"round {round_id}", remedy="Give a line of this round."
        )
    stratum = fields[-2] if len(fields) > 1 else ""
    return TokenLine(token=fields[-1], stratum=stratum if stratum not in {"", EVERYONE} else None)
