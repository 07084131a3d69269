"""Solves an increasing condition from the allowed side: the answer is allowed, whatever the rounding."""

from collections.abc import Callable
from math import inf

_CLOSE = 1e-7


def largest_allowed(low: float, guess: float, top: float, excess: Callable[[float], float]) -> float:
    """Return the largest x in [low, top] with excess(x) <= 0, or a point just below it.

    Args:
        low: assumed to be allowed.
        top: largest x of interest; returned if it is allowed.
        excess: rises with x; may be minus infinity. The returned x was evaluated and is allowed, or is `low`.
    """
    x, step = min(max(guess, low), top), 0.5
    value = excess(x)
    if value <= 0:
        below, at = value, x
        while (above := excess(x := min(at + step, top))) <= 0:
            if x == top:
                return top
            at, below, step = x, above, step * 2
        return _close_in(at, below, x, above, excess)
    above, at = value, x
    while at > low and (below := excess(x := max(at - step, low))) > 0:
        if x == low:
            return low
        at, above, step = x, below, step * 2
    return _close_in(x, below, at, above, excess) if at > low else low


def _close_in(low: float, below: float, high: float, above: float, excess: Callable[[float], float]) -> float:
    lower, upper, is_low_new = below, above, False
    while below < -_CLOSE and high - low > _CLOSE * max(abs(low), 1e-3):
        # The secant, halving the value at an end that stays twice (Illinois); bisection while one end is at
        # minus infinity.
        x = (low * upper - high * lower) / (upper - lower) if lower > -inf else (low + high) / 2
        value = excess(x)
        if value <= 0:
            upper = upper / 2 if is_low_new else upper
            low, below, lower, is_low_new = x, value, value, True
        else:
            lower = lower if is_low_new else lower / 2
            high, upper, is_low_new = x, value, False
    return low
