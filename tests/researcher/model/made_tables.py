"""Distributions over a few attributes, and tables of them, exact or noisy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.researcher.model.measurement import Measurement

Floats = NDArray[np.float64]


def log_linear(shape: Sequence[int], cliques: Sequence[Sequence[int]], *, seed: int, strength: float = 1.0) -> Floats:
    """Return a joint table that is a product of random factors, one a clique."""
    generator = np.random.default_rng(seed)
    logarithm = np.zeros(shape)
    for clique in cliques:
        within = [size if axis in clique else 1 for axis, size in enumerate(shape)]
        logarithm = logarithm + strength * generator.normal(size=within)
    joint: Floats = np.exp(logarithm)
    joint /= joint.sum()
    return joint


def margin(joint: Floats, axes: Sequence[int]) -> Floats:
    """Return the table of some attributes of a joint table, in the order of `axes`, by brute force."""
    summed: Floats = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))
    order: list[int] = np.argsort(np.argsort(axes)).tolist()
    return summed.transpose(order)


def measured(
    domain: Domain, joint: Floats, names: str, *, weight: float = 1e12, generator: np.random.Generator | None = None
) -> Measurement:
    """Return a table of the attributes with these one-letter names: exact, or with Gaussian noise."""
    values = margin(joint, [domain.names.index(name) for name in names]).reshape(-1)
    if generator is not None:
        noise = generator.normal(size=values.size) / weight**0.5
        values = values + noise - noise.mean()
    return Measurement(names=tuple(names), values=values, weight=weight)


def total_variation(one: Floats, other: Floats) -> float:
    """Return half the L1 distance."""
    return float(np.abs(one.reshape(-1) - other.reshape(-1)).sum()) / 2
