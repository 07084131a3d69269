"""The plain facts of one release, for any accountant.

Relation: substitution of one respondent's row, n public. A Poisson sample is described by its actual size: given its
size it is a sample without replacement, and its size says nothing under substitution.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.rounding import ln_above
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import sampled_delta
from veiltab.common.privacy.profiles import LARGEST_BASE, GammaDiagonalProfile
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.common.schemes import Relation, Scheme, scheme_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDescription:
    """One release through the gamma-diagonal mechanism, as one adversary sees it.

    Args:
        scheme: how rows were sampled.
        cells: K.
        gamma: of the mechanism that ran, exact, at least 1.
        presence: probability that a row says anything, by coins that the adversary sees, in (0, 1]; below 1 for a
            simple random sample of everyone alone.
    """

    scheme: Scheme
    cells: int
    gamma: Fraction
    presence: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.cells < 2:
            raise InvalidInputError("there must be at least 2 cells", where="cells")
        if self.gamma < 1:
            raise InvalidInputError("gamma must be at least 1", where="gamma")
        is_everyone = self.scheme.is_simple_random and self.scheme.sample == self.scheme.population
        if not 0 < self.presence <= 1 or (self.presence < 1 and not is_everyone):
            raise InvalidInputError(
                "the presence is not above 0 and at most 1, or below 1 although not everyone is sampled",
                where="presence",
            )

    @property
    def local_epsilon(self) -> Decimal:
        """Return ln gamma (nats, rounded up): the loss of a row against an adversary who knows the sample."""
        return ln_above(self.gamma)

    @property
    def pure_epsilon(self) -> Decimal:
        """Return the pure epsilon against the researcher (nats, rounded up).

        Each scheme knows its own; see its class.
        """
        return self.scheme.pure_epsilon(self.gamma)

    @property
    def order_certificate(self) -> OrderCertificate | None:
        """Return the certificate of the secret order; None if the scheme has none."""
        if not self.scheme.is_simple_random:
            return None
        return OrderCertificate(
            population=self.scheme.population,
            sample=self.scheme.sample,
            cells=self.cells,
            gamma=self.gamma,
            presence=self.presence,
        )

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon (nats, at least 0): the least of the proved bounds.

        Raises:
            InvalidInputError: for this scheme only the pure epsilon is proved under substitution.
        """
        if epsilon >= float(self.pure_epsilon):
            return 0.0
        if (certificate := self.order_certificate) is not None:
            return certificate.delta(epsilon)
        if self.scheme.relation is not Relation.SUBSTITUTION:
            raise InvalidInputError("no delta is known under substitution", where=f"scheme {self.scheme.name}")
        profile = GammaDiagonalProfile(gamma=float(self.gamma), cells=self.cells)
        return sampled_delta(self.scheme, profile, min(epsilon, LARGEST_BASE) * (1 - 1e-13))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for a ledger or a file."""
        return {
            "mechanism": "gamma-diagonal",
            "relation": Relation.SUBSTITUTION.value,
            "scheme": self.scheme.name,
            **self.scheme.sizes(),
            "cells": self.cells,
            "gamma": f"{self.gamma.numerator}/{self.gamma.denominator}",
            **({} if self.presence == 1 else {"presence": f"{self.presence.numerator}/{self.presence.denominator}"}),
        }


def description_of(fields: Mapping[str, Any], where: str = "release") -> ReleaseDescription:
    """Read a description: its gamma as a number, a fraction, or by `replacement`, the 64-bit r64.

    Raises:
        InvalidInputError: a key is missing or out of range; a mechanism, scheme or relation that is not known here.
    """
    if fields.get("mechanism", "gamma-diagonal") != "gamma-diagonal":
        raise InvalidInputError("the mechanism is not gamma-diagonal; no other one is composed here", where=where)
    if fields.get("relation", Relation.SUBSTITUTION.value) != Relation.SUBSTITUTION.value:
        raise InvalidInputError("the relation is not substitution; relations are not mixed", where=where)
    cells = _whole(fields, "cells", where)
    scheme = scheme_of(
        str(fields.get("scheme", "wor")),
        population=_whole(fields, "population", where),
        sample=_whole(fields, "sample", where),
        stage=_whole(fields, "stage", where) if "stage" in fields else None,
    )
    if "replacement" in fields:
        gamma = GammaDiagonal(cells=cells, replacement=_whole(fields, "replacement", where)).gamma
    else:
        gamma = _fraction(fields, "gamma", where)
    presence = _fraction(fields, "presence", where) if "presence" in fields else Fraction(1)
    return ReleaseDescription(scheme=scheme, cells=cells, gamma=gamma, presence=presence)


def _whole(fields: Mapping[str, Any], key: str, where: str) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInputError(f"{key} must be a whole number from 1", where=where)
    return value


def _fraction(fields: Mapping[str, Any], key: str, where: str) -> Fraction:
    try:
        return Fraction(str(fields.get(key)))
    except (ValueError, ZeroDivisionError):
        raise InvalidInputError(f"{key} must be a number", where=where) from None
