"""The oracles by name."""

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal

from veiltab.common.collection.oracles.krr import KaryRandomisedResponse
from veiltab.common.collection.oracles.olh import OptimisedLocalHashing
from veiltab.common.collection.oracles.oracle import Oracle
from veiltab.common.collection.oracles.oue import OptimisedUnaryEncoding
from veiltab.common.collection.oracles.ss import SubsetSelection
from veiltab.common.errors import InvalidInputError

_CLASSES: tuple[type[Oracle], ...] = (
    KaryRandomisedResponse,
    OptimisedUnaryEncoding,
    OptimisedLocalHashing,
    SubsetSelection,
)
_BY_NAME: Mapping[str, type[Oracle]] = {oracle.name: oracle for oracle in _CLASSES}

ORACLE_NAMES = tuple(_BY_NAME)
"""krr, oue, olh, ss."""


def oracle_of(name: str, size: int, parameters: Mapping[str, int]) -> Oracle:
    """Return the oracle that name, size and parameters describe.

    Args:
        name: one of ORACLE_NAMES.
        size: number of values d.

    Raises:
        InvalidInputError: an unknown name, parameters of another oracle, or a value out of range.
    """
    oracle_class = _class_of(name)
    expected = {field.name for field in fields(oracle_class)} - {"size"}
    if set(parameters) != expected:
        raise InvalidInputError(f"oracle {name} takes the parameters {', '.join(sorted(expected))}", where="oracle")
    if not all(type(value) is int for value in (size, *parameters.values())):
        raise InvalidInputError("a parameter of the oracle is not a whole number", where="oracle")
    return oracle_class(**{"size": size, **parameters})


def oracle_for(name: str, size: int, epsilon: Decimal) -> Oracle:
    """Return the most accurate oracle of a kind that keeps epsilon.

    Args:
        name: one of ORACLE_NAMES.
        size: number of values d, 2 to 65536.
        epsilon: nats, 1e-12 to 100.

    Raises:
        InvalidInputError: an unknown name, or a value out of range.
    """
    return _class_of(name).from_epsilon(size, epsilon)


def _class_of(name: str) -> type[Oracle]:
    if name not in _BY_NAME:
        raise InvalidInputError(
            f"there is no oracle {name[:20]!r}", where="oracle", remedy=f"Take one of {', '.join(ORACLE_NAMES)}."
        )
    return _BY_NAME[name]
