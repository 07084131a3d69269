"""What a curator concludes about a release from its own and the others' facts; pure.

The steps, each of which may be repeated: decide, agree on what is granted, plan and compare, reserve, charge, draw the
sample and compare, encrypt, upload. Nothing is charged unless every curator has reserved the same spec; no seed exists
before every curator has charged; no byte leaves before every curator has drawn the same sample.
"""

import hashlib
from collections.abc import Iterable
from typing import assert_never

from veiltab.common.errors import DeniedError, FailedReleaseError, IntegrityError, InvalidInputError
from veiltab.common.privacy.planning import Plan, plan_release
from veiltab.common.release.guarantees import check_keeps_what_was_asked
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import Column, ReleaseSpec, spec_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.schemes import SizeLaw, poisson_size, scheme_class
from veiltab.common.study.file import Study
from veiltab.curator.coordination import Progress, all_have


def check_request(request: ReleaseRequest, study: Study, now: int) -> None:
    """Refuse a request that no curator of this study could fulfil.

    Raises:
        InvalidInputError: unknown attributes, too many cells, a deadline that is over or too far away.
    """
    domain = study.domain(request.attributes)
    if domain.cells > study.maximum_cells:
        raise InvalidInputError(
            f"the table has {domain.cells} cells; the study allows {study.maximum_cells}",
            where="attributes",
            remedy="Ask for fewer attributes.",
        )
    if not now < request.deadline <= now + 366 * 86_400:
        raise InvalidInputError("the deadline must lie ahead, at most a year", where="deadline")


def check_peers_alive(progress: tuple[Progress, ...]) -> None:
    """Raise DeniedError if another curator denied the release, FailedReleaseError if it ended there otherwise."""
    for peer in progress:
        if peer.state.unsuccessful:
            kind = DeniedError if peer.state is ReleaseState.DENIED else FailedReleaseError
            raise kind(peer.failure or f"the release is {peer.state.value}", where=f"curator {peer.curator}")


def agreed_columns(
    request: ReleaseRequest, study: Study, granted: frozenset[str], denied: frozenset[str]
) -> tuple[Column, ...]:
    """Return the columns to release, in study order, from everyone's decisions.

    Raises:
        DeniedError: an attribute is denied and the request does not go on without it, or nothing is granted.
    """
    refused = [name for name in request.attributes if name in denied]
    if refused and not (request.partial and granted):
        owners = sorted({study.owner_of(name) for name in refused})
        raise DeniedError(
            f"denied: {', '.join(refused)} (by {', '.join(owners)})",
            where="attributes",
            remedy="Ask without them, or ask with --partial to have the rest." if granted else "",
        )
    return tuple(
        Column(attribute=rule.name, owner=rule.owner, size=rule.attribute.size)
        for rule in study.attributes
        if rule.name in request.attributes and rule.name in granted
    )


def planned_spec(
    request: ReleaseRequest, columns: tuple[Column, ...], study: Study, *, population: int, alignment: str
) -> ReleaseSpec:
    """Plan the release; every curator computes the same.

    Raises:
        InvalidInputError: too few common respondents, or a sample larger than the population.
    """
    if population < study.minimum_population:
        raise InvalidInputError(
            f"the curators share fewer respondents than the {study.minimum_population} that the study asks for",
            where="population",
        )
    cells = 1
    for column in columns:
        cells *= column.size
    plan = foreseen_plan(request, population=population, cells=cells)
    spec = spec_of(request, columns, plan, study_digest=study.digest, alignment=alignment)
    check_keeps_what_was_asked(spec)
    return spec


def foreseen_plan(request: ReleaseRequest, *, population: int, cells: int) -> Plan:
    """Plan what a request asks for, before or after it is granted.

    A Poisson sample's size is drawn here, from the release id: it is public, and given it the sample is one without
    replacement.
    """
    match scheme_class(request.scheme).size_law:
        case SizeLaw.FIXED:
            size = request.sample
        case SizeLaw.BINOMIAL:
            expected = request.sample
            if expected is None:
                expected = plan_release(population=population, cells=cells, epsilon=request.epsilon).sample
            coin = hashlib.sha256(b"veiltab poisson size" + bytes.fromhex(request.release_id)).digest()
            size = poisson_size(population, expected, coin)
        case law:
            assert_never(law)
    return plan_release(
        population=population,
        cells=cells,
        epsilon=request.epsilon,
        delta=request.delta,
        max_local_epsilon=request.max_local_epsilon,
        sample=size,
        scheme=request.scheme,
        stage=request.stage,
    )


def check_same_spec(spec: ReleaseSpec, progress: tuple[Progress, ...]) -> None:
    """Refuse to go on unless every curator planned exactly this spec and reserved for it.

    Raises:
        NotReadyError: one has not planned or reserved yet.
        IntegrityError: one planned something else; nothing was charged.
    """
    for peer in progress:
        if peer.spec_digest and peer.spec_digest != spec.digest():
            raise IntegrityError(
                "planned another release from the same request",
                where=f"curator {peer.curator}",
                remedy="Compare study files, table versions and veiltab versions. Nothing was charged.",
            )
    all_have(progress, lambda peer: bool(peer.spec_digest), "has not planned the release yet")
    all_have(progress, lambda peer: peer.reserved or peer.charged, "has not reserved the budget yet")


def check_same_sample(check: bytes, progress: tuple[Progress, ...]) -> None:
    """Refuse to encrypt unless every curator drew the same rows in the same order.

    Raises:
        NotReadyError: one has not drawn yet.
        IntegrityError: one drew another sample.
    """
    all_have(progress, lambda peer: bool(peer.sample_check), "has not drawn the sample yet")
    for peer in progress:
        if peer.sample_check != check:
            raise IntegrityError("drew another sample", where=f"curator {peer.curator}", remedy="No data was sent.")


def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return everything that is in any of the sets."""
    return frozenset().union(*sets)
