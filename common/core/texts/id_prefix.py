"""Ids of releases and rounds as people type them: whole, or so much of them as no other id begins with."""

from collections.abc import Iterable, Sequence

from veiltab.common.errors import InvalidInputError, NotFoundError

_MOST_LISTED = 10


def whole_id(prefix: str, ids: Iterable[str], *, kinds: Sequence[str], where: str, remedy: str) -> str:
    """Return the id that a person means by a prefix of it.

    Args:
        prefix: what was typed; an id that is there is a prefix of itself alone.
        ids: those that may be meant.
        kinds: of things that have them, such as "release".
        where: to say in a refusal, such as "--release".
        remedy: what to do if there is no such id.

    Raises:
        NotFoundError: no id begins with it.
        InvalidInputError: several do; it lists them.
    """
    matches = sorted({one for one in ids if prefix and one.startswith(prefix)})
    if not matches:
        raise NotFoundError(f"no such {' or '.join(kinds)}", where=where, remedy=remedy)
    if prefix in matches or len(matches) == 1:
        return matches[0]  # a whole id comes before those that begin with it
    more = f" and {len(matches) - _MOST_LISTED} more" if len(matches) > _MOST_LISTED else ""
    raise InvalidInputError(
        f"{len(matches)} {' or '.join(f'{kind}s' for kind in kinds)} have this prefix",
        where=where,
        remedy=f"Give more of the id: {', '.join(matches[:_MOST_LISTED])}{more}.",
    )
