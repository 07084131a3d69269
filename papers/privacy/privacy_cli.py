"""`veiltab lab privacy`: what sampling, secret order and repetition are worth."""

from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from pathlib import Path

import click

from veiltab.common.command.cli import emit
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.rounding import (
    bound_text,
    exact_decimal,
    ln_above,
    parse_delta,
    parse_epsilon,
    spelled,
)
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import base_epsilon
from veiltab.common.privacy.calibration import calibrate as calibrated
from veiltab.common.privacy.cards.card import delta_warning
from veiltab.common.privacy.planning.noise_split import curators_part, parse_split, servers_part
from veiltab.common.privacy.profiles import GammaDiagonalProfile, Gaussian, GroupProfile
from veiltab.common.privacy.shuffle import LEAST_DELTA, OrderCertificate
from veiltab.common.schemes import SCHEMES, Relation, scheme_of
from veiltab.papers.command import PapersGroup
from veiltab.papers.privacy.amplification import amplify as amplified
from veiltab.papers.privacy.gain_cli import gain
from veiltab.papers.privacy.privacy_inputs_cli import read_fraction, read_releases, required
from veiltab.papers.privacy.profiles import Guaranteed, Laplace, Pure

population_option = click.option("--population", required=True, type=click.IntRange(min=1), help="Respondents, n.")
sample_option = click.option("--sample", required=True, type=click.IntRange(min=1), help="Sampled rows, m.")
cells_option = click.option("--cells", required=True, type=click.IntRange(min=2), help="Cells of the table, K.")
scheme_option = click.option("--scheme", type=click.Choice(list(SCHEMES)), default="wor", show_default=True)
split_option = click.option(
    "--noise-split", default="0", show_default=True, help="The curators' part of the noise; of a plan it is .5."
)
stage_option = click.option("--stage", type=click.IntRange(min=1), help="Rows b that stage one of a MUST scheme draws.")

_FLOOR = Context(prec=6, rounding=ROUND_FLOOR)


@click.group(cls=PapersGroup)
def privacy() -> None:
    """Account for privacy: every number is an upper bound, rounded up.

    Neighbouring tables differ in one respondent's row (substitution), except under Poisson sampling of other
    mechanisms, where one respondent is added or removed.

    Example: veiltab lab privacy amplify --scheme wor --population 1000 --sample 400 --epsilon 1
    """


@privacy.command(
    epilog="Example: veiltab lab privacy amplify --scheme must.ow --population 1000 --sample 400 --stage 500"
    " --mechanism laplace --epsilon 1 --ratio 0.25"
)
@scheme_option
@population_option
@sample_option
@stage_option
@click.option(
    "--mechanism",
    type=click.Choice(["pure", "laplace", "gaussian", "gamma-diagonal", "any"]),
    default="pure",
    show_default=True,
)
@click.option(
    "--epsilon", required=True, type=float, help="Base epsilon at which the mechanism's profile is read, nats."
)
@click.option("--ratio", type=float, help="Sensitivity over scale, for laplace and gaussian.")
@click.option("--gamma", type=float, help="Worst-case ratio, for gamma-diagonal.")
@click.option("--cells", type=click.IntRange(min=2), help="Cells, for gamma-diagonal.")
@click.option(
    "--guarantee",
    "guarantees",
    multiple=True,
    type=(float, float),
    metavar="EPSILON DELTA",
    help="What one copy of a respondent faces, for any mechanism; once for each point of its profile.",
)
@click.option(
    "--inverse", is_flag=True, help="Take --epsilon as the target after sampling, and compute the base epsilon."
)
def amplify(
    scheme: str,
    population: int,
    sample: int,
    stage: int | None,
    mechanism: str,
    epsilon: float,
    ratio: float | None,
    gamma: float | None,
    cells: int | None,
    guarantees: tuple[tuple[float, float], ...],
    inverse: bool,
) -> None:
    """Say what a base mechanism guarantees on a sample, and what a pair of tables attains.

    For poisson, --sample is the expected size: n times the probability with which each respondent is drawn.
    """
    # Scipy, which certify, gain and every --help do without.
    from veiltab.papers.privacy.attained import attained_by_sample

    law = scheme_of(scheme, population=population, sample=sample, stage=stage)
    if inverse:
        epsilon = base_epsilon(law, epsilon)
    profile: GroupProfile
    match mechanism:
        case "pure":
            profile = Pure(epsilon0=epsilon)
        case "laplace":
            profile = Laplace(ratio=required(ratio, "--ratio"))
        case "gaussian":
            profile = Gaussian(ratio=required(ratio, "--ratio"))
        case "gamma-diagonal":
            profile = GammaDiagonalProfile(gamma=required(gamma, "--gamma"), cells=int(required(cells, "--cells")))
        case "any":
            if not guarantees:
                raise InvalidInputError("this option is needed here", where="--guarantee")
            profile = Guaranteed(points=guarantees)
        case _:
            raise InvalidInputError(f"mechanism {mechanism!r} is not known", where="--mechanism")
    result = amplified(law, profile, epsilon)
    attained = attained_by_sample(law, profile, epsilon, result.delta)
    data = {
        "eta": result.eta,
        "epsilon": result.epsilon,
        "delta": result.delta,
        "base": {"epsilon": result.base_epsilon, "delta": result.base_delta},
        "attained": attained,
        "class": result.effect.value,
        "relation": result.relation.value,
    }
    emit(
        data,
        f"({bound_text(result.base_epsilon)}, {bound_text(result.base_delta)}) becomes ({bound_text(result.epsilon)},"
        f" {bound_text(result.delta)}):"
        f" {result.effect.value} amplification; a respondent is drawn with probability {result.eta:.6g}"
        f" ({result.relation.value}).{_pair_attains(attained, result.delta)}",
    )


@privacy.command(
    epilog="Example: veiltab lab privacy certify --population 45222 --sample 45222 --cells 24 --gamma 356.78"
    " --epsilon 0.5\n\nThe least noise: the same with --epsilon 0.5 --delta 1e-6, and no --gamma."
)
@population_option
@sample_option
@cells_option
@click.option("--gamma", help="Worst-case ratio of the mechanism, above 1; without it, that of the least noise.")
@click.option("--epsilon", help="Epsilon to keep, nats; with --gamma, ask for delta there.")
@click.option("--delta", help="Delta to keep; with --gamma, ask for epsilon there.")
@click.option(
    "--max-local-epsilon",
    help="Without --gamma: largest epsilon of a row against an adversary who knows the sample, ln gamma, nats.",
)
@split_option
def certify(
    population: int,
    sample: int,
    cells: int,
    gamma: str | None,
    epsilon: str | None,
    delta: str | None,
    max_local_epsilon: str | None,
    noise_split: str,
) -> None:
    """Say what a release in secret order guarantees: delta at an epsilon, or the reverse; or which noise keeps both."""
    if gamma is None:
        _calibrate((population, sample, cells), epsilon, delta, max_local_epsilon, noise_split)
        return
    if (epsilon is None) == (delta is None) or max_local_epsilon is not None:
        raise InvalidInputError("give either --epsilon or --delta beside --gamma", where="certify")
    certificate = OrderCertificate(population=population, sample=sample, cells=cells, gamma=read_fraction(gamma))
    if epsilon is not None:
        number = _number(epsilon, "--epsilon")
        guarantee = (number, certificate.delta(number))
    else:
        number = _number(delta or "", "--delta")
        guarantee = (certificate.epsilon(number), number)
    _emit_guarantee(certificate, noise_split, guarantee, {})


def _number(text: str, option: str) -> float:
    try:
        return float(text) + 0.0  # -0.0 reads as 0
    except ValueError:
        raise InvalidInputError(f"{text!r} is not a number", where=option) from None


def _calibrate(
    sizes: tuple[int, int, int], epsilon: str | None, delta: str | None, max_local_epsilon: str | None, noise_split: str
) -> None:
    """Find the least noise that keeps (epsilon, delta)."""
    if epsilon is None or delta is None:
        raise InvalidInputError("give --epsilon and --delta, or --gamma and one of them", where="certify")
    if max_local_epsilon is not None and parse_split(noise_split) > 0:
        raise InvalidInputError(
            "the cap is on the whole noise here, and a row faces the server's part alone",
            where="--max-local-epsilon, --noise-split",
            remedy="Give one of them; `veiltab plan` takes both.",
        )
    target = parse_epsilon(epsilon)
    population, sample, cells = sizes
    mechanism = calibrated(
        population=population,
        sample=sample,
        cells=cells,
        epsilon=target,
        delta=parse_delta(delta),
        max_local_epsilon=None if max_local_epsilon is None else parse_epsilon(max_local_epsilon),
    )
    certificate = OrderCertificate(population=population, sample=sample, cells=cells, gamma=mechanism.gamma)
    guarantee = (float(target), certificate.delta(float(target)))
    _emit_guarantee(certificate, noise_split, guarantee, {"replacement_probability": mechanism.replacement / 2**64})


@privacy.command(
    epilog="Example: veiltab lab privacy compose releases.json --delta 1e-6, with releases.json:"
    ' [{"population": 45222, "sample": 45222, "cells": 24, "gamma": 356.78, "count": 3}]'
)
@click.argument("path", metavar="[FILE.json]", required=False, type=click.Path(path_type=Path))
@click.option("--delta", type=float, help="Delta of the whole, for releases.")
@click.option("--mechanism", type=click.Choice(["gaussian", "laplace"]), help="Compose steps on subsamples instead.")
@scheme_option
@click.option("--population", type=click.IntRange(min=1))
@click.option("--sample", type=click.IntRange(min=1))
@stage_option
@click.option("--noise-multiplier", type=float, help="Scale of the noise over the clipping norm.")
@click.option("--steps", type=click.IntRange(min=1))
@click.option("--epsilon", type=float, help="Epsilon of the whole, for steps.")
def compose(
    path: Path | None,
    delta: float | None,
    mechanism: str | None,
    scheme: str,
    population: int | None,
    sample: int | None,
    stage: int | None,
    noise_multiplier: float | None,
    steps: int | None,
    epsilon: float | None,
) -> None:
    """Say what releases guarantee together, or many noisy steps on subsamples; and what a pair of tables attains.

    The guarantee is an upper bound; below what a pair attains, nothing can be guaranteed.

    A file lists release descriptions (population, sample, cells, gamma or replacement, scheme, stage), each with a
    count; every release is on a fresh sample (a repeated "sample_id" is refused). The sample of a Poisson
    release is the size that came out, not the one expected: with the expected size the statement would be false. Steps
    clip to norm 1: a substitution moves their sum by 2; a Poisson step is given by its expected size.
    """
    # As in amplify: the others do without scipy.
    from veiltab.papers.privacy.attained import attained_by_releases, attained_by_steps
    from veiltab.papers.privacy.composition import compose as composed
    from veiltab.papers.privacy.composition import subsampled_delta

    if mechanism is not None:
        law = scheme_of(
            scheme,
            population=int(required(population, "--population")),
            sample=int(required(sample, "--sample")),
            stage=stage,
        )
        multiplier, count = required(noise_multiplier, "--noise-multiplier"), int(required(steps, "--steps"))
        upper = subsampled_delta(
            law, mechanism=mechanism, noise_multiplier=multiplier, steps=count, epsilon=required(epsilon, "--epsilon")
        )
        moves = {Relation.SUBSTITUTION: 2, Relation.ADD_REMOVE: 1}[law.relation]
        attained = attained_by_steps(law, mechanism=mechanism, ratio=moves / multiplier, steps=count, delta=upper)
        steps_data = {"delta_upper": upper, "epsilon": epsilon, "attained": attained, "relation": law.relation.value}
        text = f"({epsilon:g}, {bound_text(upper)}) after {count} steps ({law.relation.value})."
        emit(steps_data, text + _pair_attains(attained, upper))
        return
    if path is None:
        raise InvalidInputError("name a file of releases, or --mechanism", where="compose")
    releases = read_releases(path)
    total = composed(releases, required(delta, "--delta"))
    together = attained_by_releases(releases, total.delta)
    data = {
        "epsilon": total.epsilon,
        "delta": total.delta,
        "attained": together,
        "pure_epsilon": total.pure_epsilon,
        **total.price.statements(),
    }
    text = (
        f"({bound_text(total.epsilon)}, {bound_text(total.delta)}) together; pure epsilon"
        f" {bound_text(total.pure_epsilon)}.\n{total.price.mu}-GDP and {bound_text(total.price.rho)}-zCDP, both but"
        f" for a probability of {bound_text(total.price.slack, 3)}."
    )
    emit(data, text + _pair_attains(together, total.delta))


def _pair_attains(epsilon: float | None, delta: float) -> str:
    """Say what a pair attains, or that it is not worked out here."""
    if epsilon is not None:
        low = spelled(_FLOOR.plus(exact_decimal(epsilon)))
        return f"\nA pair of tables attains epsilon {low} at delta {bound_text(delta)}: a guarantee is no smaller."
    return "\nWhat a pair of tables attains is not worked out for this."


def _emit_guarantee(
    certificate: OrderCertificate,
    noise_split: str,
    epsilon_delta: tuple[float, float],
    extra: dict[str, object],
) -> None:
    epsilon, delta = epsilon_delta
    stated = f"below {LEAST_DELTA:g}" if 0 < delta <= LEAST_DELTA else bound_text(delta)
    pure, local = ln_above(certificate.pure_ratio), _row_epsilon(certificate, parse_split(noise_split))
    warning = delta_warning(Decimal(delta), certificate.population)
    # A pure epsilon that is no larger makes the other guarantee redundant.
    both = f"({bound_text(epsilon)}, {stated}), and purely epsilon = {bound_text(pure)}; both hold"
    guarantee = both if epsilon < pure else f"purely epsilon = {bound_text(pure)}, which is not above {epsilon:.6g}"
    data = {
        "gamma": float(certificate.gamma),
        "epsilon": epsilon,
        "delta": delta,
        "pure_epsilon": pure,
        "local_epsilon": local,
        "warning": warning or None,
        **extra,
    }
    emit(
        data,
        f"gamma = {bound_text(float(certificate.gamma))}. Against the researcher: {guarantee}. Against an adversary who"
        f" knows the sample and the curators' coins: {bound_text(local)} a row.{warning and ' ' + warning}",
    )


def _row_epsilon(certificate: OrderCertificate, split: Decimal) -> Decimal:
    """Return ln gamma(r_s), nats, rounded up: what a row faces if the curators have their part of the noise."""
    if split == 0:
        return ln_above(certificate.gamma)
    least = GammaDiagonal.from_gamma(certificate.cells, certificate.gamma)
    return ln_above(replace(least, replacement=servers_part(least, curators_part(least, split))).gamma)


privacy.add_command(gain)
