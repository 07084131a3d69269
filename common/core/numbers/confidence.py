"""How often an interval holds the truth: the usual confidence, and the normal quantile of another."""

from statistics import NormalDist

from veiltab.common.errors import InvalidInputError

CONFIDENCE = 0.95
"""Of an interval, if nobody says another: a probability."""


def squared_quantile(confidence: float) -> float:
    """Return z^2, z being the quantile of the standard normal distribution at (1 + confidence)/2.

    Raises:
        InvalidInputError: a confidence outside (0, 1).
    """
    if not 0.0 < confidence < 1.0:
        raise InvalidInputError(f"the confidence is {confidence}, not between 0 and 1", remedy="0.95 is customary.")
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0) ** 2
