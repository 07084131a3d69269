"""What may be meant by a name that is not known: the nearest one, and all that are."""

from collections.abc import Iterable
from difflib import get_close_matches


def known_names(kind: str, every: Iterable[str], name: str = "") -> str:
    """Return the names that are known, the nearest one first: "Did you mean 'sex'? Attributes: sex, age.".

    Args:
        kind: the names are, such as "Attributes".
    """
    names = list(every)
    return f"{nearest(names, name)}{kind}: {', '.join(names) or 'none'}."


def nearest(names: Iterable[str], name: str) -> str:
    """Return "Did you mean 'sex'? " for the known name that is nearest; nothing if none is near."""
    near = get_close_matches(name.lower(), list(names), 1)
    return f"Did you mean {near[0]!r}? " if near else ""
