"""What may be meant by a name that is not known: the nearest one, and all that are."""

from collections.abc import Iterable
from difflib import get_close_matches


def known_names(what: str, known: Iterable[str], name: str = "") -> str:
    """Return the names that are known, the nearest one first: "Did you mean 'sex'? Attributes: sex, age.".

    Args:
        what: the names are, such as "Attributes".
        known: the names.
        name: what was given.
    """
    names = list(known)
    near = get_close_matches(name.lower(), names, 1)
    return (f"Did you mean {near[0]!r}? " if near else "") + f"{what}: {', '.join(names) or 'none'}."
