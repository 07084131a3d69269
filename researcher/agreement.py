"""What a researcher's service takes for the release that it asked for, whatever its peers say; pure."""

from collections.abc import Iterable, Mapping

from veiltab.common.errors import FailedReleaseError, NotReadyError
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import Column, ReleaseSpec
from veiltab.common.schemes import SizeLaw, scheme_class
from veiltab.common.study.file import Study


def agreed_spec(
    request: ReleaseRequest, study: Study, published: ReleaseSpec, planned: Mapping[str, ReleaseSpec]
) -> ReleaseSpec:
    """Return the spec of a release once its server and every curator state the same, and it is what was asked for.

    Args:
        request: what was asked for.
        study: the study file under which it was.
        published: what the server says that it published.
        planned: curator -> what it says that it planned, of those that say so.

    Raises:
        NotReadyError: a curator has not planned the release yet.
        FailedReleaseError: the server or a curator speaks of another release, or of none that was asked for.
    """
    for curator in study.curators:
        if curator.name not in planned:
            raise NotReadyError("has not planned the release yet", where=f"curator {curator.name}")
    if published.release_id != request.release_id:
        raise FailedReleaseError("it answered about another release", where=f"server {study.server.name}")
    for name, other in planned.items():
        if other.digest() != published.digest():
            raise FailedReleaseError("the server published another release than was planned", where=f"curator {name}")
    if differing := [*_unlike_request(published, request), *_unlike_study(published, study, request)]:
        raise FailedReleaseError(
            f"the curators planned another release than was asked for: {', '.join(differing)}", where="release spec"
        )
    return published


def _unlike_request(spec: ReleaseSpec, request: ReleaseRequest) -> Iterable[str]:
    """Yield what a spec states otherwise than the request."""
    for name in ("researcher", "epsilon", "delta", "scheme", "sampling", "pad", "deadline", "stage"):
        if getattr(spec, name) != getattr(request, name):
            yield name
    size_is_asked = scheme_class(request.scheme).size_law is SizeLaw.FIXED and request.sample is not None
    if size_is_asked and spec.sample != request.sample:
        yield "sample"
    if request.canaries is not None and spec.canaries != request.canaries:
        yield "canaries"


def _unlike_study(spec: ReleaseSpec, study: Study, request: ReleaseRequest) -> Iterable[str]:
    """Yield what a spec states otherwise than the study file."""
    if spec.study_digest != study.digest:
        yield "study file"
    asked = tuple(
        Column(attribute=rule.name, owner=rule.owner, size=rule.attribute.size)
        for rule in study.attributes
        if rule.name in request.attributes
    )
    is_part = tuple(column for column in asked if column in spec.columns) == spec.columns
    if not is_part or (spec.columns != asked and not request.partial):
        yield "columns"
