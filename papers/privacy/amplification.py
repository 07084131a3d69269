"""What sampling makes of (epsilon, delta) of any base mechanism with a group profile.

Neighbouring relation: that of the scheme; see veiltab.common.schemes.
"""

from enum import Enum
from math import expm1, log1p

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import MultiplicityLaw, amplified_delta
from veiltab.common.privacy.profiles import GammaDiagonalProfile, GroupProfile
from veiltab.common.schemes import Relation


class Effect(Enum):
    """The effect of sampling on (epsilon, delta) of a base mechanism (MUST, Definition 5)."""

    STRONG = "strong"
    TYPE_I_WEAK = "type-I weak"
    TYPE_II_WEAK = "type-II weak"
    DILUTION = "dilution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """A point of the aligned privacy profile: (epsilon, delta) of the base, and of the base on a sample.

    Args:
        eta: P(a respondent is drawn at least once).
        base_epsilon: epsilon of the base mechanism, nats.
        base_delta: its delta for one copy.
        epsilon: epsilon on the sample, nats, an upper bound.
        delta: delta on the sample, an upper bound.
    """

    eta: float
    base_epsilon: float
    base_delta: float
    epsilon: float
    delta: float
    relation: Relation

    @property
    def effect(self) -> Effect:
        """The parameters that the sampling improves."""
        smaller_epsilon, smaller_delta = self.epsilon <= self.base_epsilon, self.delta <= self.base_delta
        if smaller_epsilon:
            return Effect.STRONG if smaller_delta else Effect.TYPE_I_WEAK
        return Effect.TYPE_II_WEAK if smaller_delta else Effect.DILUTION


def amplify(scheme: MultiplicityLaw, profile: GroupProfile, epsilon: float) -> Amplified:
    """Return the guarantee of a base mechanism on a sample.

    epsilon' = ln(1 + eta (e^epsilon - 1)),    delta' = sum_j P(a respondent is drawn j times) delta_j(epsilon)

    Args:
        scheme: the sampling scheme; its relation is that of the result.
        epsilon: the base epsilon at which its profile is read, nats.

    Returns:
        Upper bounds; tight for sampling without replacement and Poisson.

    Raises:
        InvalidInputError: epsilon is not a number from 0 to 700, or the mechanism releases a row for each sampled one,
            whose profile is one of substitution, and the scheme's relation adds or removes a respondent.

    Source: Balle, Barthe, Gaboardi 2018, Theorems 8 to 10; MUST, Theorem 5. Smith's lemma is the Poisson case, Theorem
    1 of Hu, Drechsler, Kim that without replacement.
    """
    if scheme.relation is Relation.ADD_REMOVE and isinstance(profile, GammaDiagonalProfile):
        raise InvalidInputError(
            "the mechanism releases a row for each sampled one, so adding a respondent shows in their number",
            where="--scheme",
            remedy="Take wor, and as --sample the size that came out: that is the guarantee under substitution.",
        )
    delta = amplified_delta(scheme, profile, epsilon)
    return Amplified(
        eta=scheme.eta,
        base_epsilon=epsilon,
        base_delta=profile.delta(epsilon, 1),
        epsilon=min(epsilon, log1p(scheme.eta * expm1(epsilon)) * (1 + 1e-14)),
        delta=delta,
        relation=scheme.relation,
    )
