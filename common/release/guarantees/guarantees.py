"""The guarantees of a release's spec. The spec itself is plain data: reading one computes none of them.

A party checks a spec once, when it plans or receives it, and computes the card when it shows it.
"""

from decimal import Decimal
from functools import lru_cache

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import EpsilonCard, card_of
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.release.receipts.canary_plan import shown_by_canaries
from veiltab.common.release.spec import ReleaseSpec

_ROUNDING = 1 + 1e-10
"""What another version's delta may be lower by: a certificate is enlarged by 1e-9, its errors are below 3e-10."""


def check_keeps_what_was_asked(spec: ReleaseSpec) -> None:
    """Refuse a spec whose mechanism does not keep the requested epsilon, or epsilon and delta.

    That of a table keeps it together with the other tables alone; see `workload_guarantees`.

    Raises:
        InvalidInputError: it does not.
    """
    if not spec.part_of and not _keeps_what_was_asked(spec):
        raise InvalidInputError("the replacement probability is too small for the epsilon", where="replacement")


def guaranteed_epsilon(spec: ReleaseSpec) -> Decimal:
    """Return the pure epsilon of the mechanism that runs (nats, upper bound; never above a pure epsilon asked for)."""
    bound, is_kept = _pure(spec.description, spec.epsilon)
    return min(bound, spec.epsilon) if spec.delta is None and is_kept else bound


def epsilon_card(spec: ReleaseSpec) -> EpsilonCard:
    """Return who faces which epsilon."""
    return card_of(
        two_sided_release(spec),
        delta=spec.delta,
        pure=guaranteed_epsilon(spec),
        one_time=spec.pad.is_one_time,
        shown=shown_by_canaries(spec),
    )


def two_sided_release(spec: ReleaseSpec) -> TwoSidedRelease:
    """Return the release of a spec with the noise of either side, for the bounds of coalitions."""
    return TwoSidedRelease(
        scheme=spec.description.scheme, noise=spec.mechanism, is_sampled_by_server=spec.sampling.is_by_server
    )


def release_facts(spec: ReleaseSpec) -> dict[str, object]:
    """Return the figures of a release and its epsilon card, as plain data for JSON."""
    return {
        "n": spec.population,
        "m": spec.sample,
        "cells": spec.cells,
        "gamma": spec.mechanism.gamma,
        "replacement_probability": float(1 - spec.mechanism.retention),
        "server_replacement_probability": spec.server_replacement / 2**64,
        "curator_replacement_probability": spec.curator_replacement / 2**64,
        "canaries": spec.canaries,
        "canaries_show_noise_below": float(shown_by_canaries(spec)),
        "delta": spec.delta,
        "scheme": spec.scheme,
        "sampling": spec.sampling.value,
        "pad": spec.pad.value,
        "card": [bound.as_dict() for bound in epsilon_card(spec).bounds],
    }


def _keeps_what_was_asked(spec: ReleaseSpec) -> bool:
    if spec.delta is None:
        return guaranteed_epsilon(spec) <= spec.epsilon
    return _certified(spec.description, spec.epsilon, spec.delta)


@lru_cache(maxsize=256)
def _pure(release: ReleaseDescription, epsilon: Decimal) -> tuple[Decimal, bool]:
    """Return the bound of the pure epsilon, and whether a given one is kept; the bound is rounded up, perhaps past."""
    return release.pure_epsilon, release.scheme.is_within(epsilon, release.gamma)


@lru_cache(maxsize=256)
def _certified(release: ReleaseDescription, epsilon: Decimal, delta: Decimal) -> bool:
    return release.delta(float(epsilon)) <= float(delta) * _ROUNDING
