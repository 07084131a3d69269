"""Values by stratum on the command line: one value for all, or name=value for each."""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from veiltab.common.collection.round import LEAST_RATE
from veiltab.common.errors import InvalidInputError

T = TypeVar("T")


def by_stratum(text: str, strata: Sequence[str], read: Callable[[str], T], option: str) -> dict[str, T]:
    """Return a value for each stratum.

    Args:
        text: one value for all of them, or name=value,name=value for each.
        read: parses the text of a value; raises ValueError or ArithmeticError if it cannot.

    Raises:
        InvalidInputError: a value that cannot be read, a stratum that is unknown, named twice or left out.
    """
    if "=" not in text:
        return dict.fromkeys(strata, _read(text, read, option))
    values: dict[str, T] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in strata or name in values:
            raise InvalidInputError(
                f"{name[:60]!r} is not a stratum, or comes twice", where=option, remedy=f"Strata: {', '.join(strata)}."
            )
        values[name] = _read(value, read, option)
    missing = [name for name in strata if name not in values]
    if missing:
        raise InvalidInputError(
            f"stratum {missing[0]} has none", where=option, remedy="Write name=value for every stratum."
        )
    return values


def rate_of(text: str) -> Decimal:
    """Return a probability of reporting.

    Raises:
        InvalidInputError: it is not a number above 0 and at most 1.
    """
    try:
        rate = Decimal(text)
    except InvalidOperation:
        rate = Decimal("NaN")
    if not (rate.is_finite() and LEAST_RATE <= rate <= 1):
        raise InvalidInputError(
            "the rate must be above 0 and at most 1",
            where="--rate",
            remedy="It is the probability with which a node reports.",
        )
    return rate


def _read(text: str, read: Callable[[str], T], option: str) -> T:
    try:
        return read(text.strip())
    except (ValueError, ArithmeticError):
        raise InvalidInputError(f"{text.strip()[:40]!r} is not a number of this kind", where=option) from None
