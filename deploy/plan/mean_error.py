"""Which error a mean of numbers will have: foreseen from their mean and standard deviation, as somebody states them.

With c = x - theta on the k points of a group that a share q of the respondents is in, T c = 0, and to first order

    MSE = [ C sum c^2 + L q (sd^2 + r) - B (sum c)^2 ] / q^2 + r / (q n),

C, L, B being the constant, linear and background terms of Cov(T_hat) at the table of group and number, and r the mean
variance that rounding adds to one number: (x - g_i) (g_(i+1) - x), over numbers of a normal distribution.
"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import Plan
from veiltab.researcher.estimates.uncertainty import ReleaseDesign
from veiltab.researcher.numbers.points import numbers_of

_EXAMPLE = "Write --advanced spread=hours=40,12 for numbers with mean 40 and standard deviation 12."
_QUANTILES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanError:
    """The foreseen error of a mean.

    Args:
        given: the attribute of the groups, which are taken to be equal; "" for all respondents.
        root_mse: root-mean-square error, in the unit of the numbers.
    """

    attribute: str
    given: str
    root_mse: float

    def __str__(self) -> str:
        groups = f" in each of equal groups of {self.given}" if self.given else ""
        return f"Expected root-mean-square error of the mean of {self.attribute}{groups}: {self.root_mse:.3g}."


def mean_errors(plan: Plan, domain: Domain, spreads: Sequence[str]) -> tuple[MeanError, ...]:
    """Foresee the error of means, of all respondents and by each other attribute.

    Args:
        spreads: "attribute=mean,deviation" for each.

    Raises:
        InvalidInputError: a text that does not parse, an attribute that is not there or has no numbers, or a mean
            outside its numbers.
    """
    errors = []
    for text in spreads:
        attribute, mean, deviation = _parsed(text, domain)
        groups = [other for other in domain.attributes if other is not attribute and not other.number]
        for size, given in ((1, ""), *((other.size, other.name) for other in groups)):
            error = _root_mse(plan, attribute, mean, deviation, size)
            errors.append(MeanError(attribute=attribute.name, given=given, root_mse=error))
    return tuple(errors)


def _root_mse(plan: Plan, attribute: Attribute, mean: float, deviation: float, groups: int) -> float:
    numbers = numbers_of(attribute)
    points = numbers[~np.isnan(numbers)]
    design = ReleaseDesign(
        population=plan.population,
        sample=plan.sample,
        mechanism=plan.mechanism.marginal(groups * attribute.size),
        scheme=plan.scheme,
    )
    terms = design.terms
    constant, linear, background = (float(one) for one in (terms.constant, terms.linear, terms.background))
    added = _rounding(attribute, points, mean, deviation)
    c, share = points - mean, 1 / groups
    noise = constant * float(c @ c) + linear * share * (deviation**2 + added) - background * float(c.sum()) ** 2
    return float(np.sqrt(noise / share**2 + added / (share * plan.population)))


def _rounding(attribute: Attribute, points: np.typing.NDArray[np.float64], mean: float, deviation: float) -> float:
    """Return the mean variance that rounding adds to one number."""
    if not attribute.number:
        return 0.0
    law = NormalDist(mean, max(deviation, 1e-12))
    x = np.clip([law.inv_cdf((place + 0.5) / _QUANTILES) for place in range(_QUANTILES)], points[0], points[-1])
    below = np.clip(np.searchsorted(points, x, "right") - 1, 0, len(points) - 2)
    return float(((x - points[below]) * (points[below + 1] - x)).mean())


def _parsed(text: str, domain: Domain) -> tuple[Attribute, float, float]:
    name, _, rest = text.partition("=")
    try:
        mean, deviation = map(float, rest.split(","))
    except ValueError:
        raise InvalidInputError(f"{text!r} is not a spread", where="--advanced spread", remedy=_EXAMPLE) from None
    (attribute,) = domain.subset([name]).attributes
    numbers = numbers_of(attribute)
    if not (np.nanmin(numbers) <= mean <= np.nanmax(numbers) and 0 <= deviation < np.inf):
        raise InvalidInputError(
            f"the mean of {name} lies outside its numbers, or the deviation is negative",
            where="--advanced spread",
            remedy=_EXAMPLE,
        )
    return attribute, mean, deviation
