"""What a researcher's service takes for the release that it asked for, whatever its peers say; pure."""

from collections.abc import Container, Iterable, Mapping

from veiltab.common.errors import FailedReleaseError, NotReadyError
from veiltab.common.release.floors import Floors
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec, release_of
from veiltab.common.release.table_spec import TableSpec, requested_columns
from veiltab.common.schemes import SizeLaw, scheme_class
from veiltab.common.study.file import Study


def agreed_spec(
    request: ReleaseRequest, study: Study, published: TableSpec, planned: Mapping[str, TableSpec]
) -> TableSpec:
    """Return the spec of a release of one table once server and curators state the same, and it is what was asked for.

    Args:
        study: the study file under which it was.
        published: what the server says that it published.
        planned: curator -> what it says that it planned, of those that say so.

    Raises:
        NotReadyError: a curator with columns in it has not planned the release yet.
        FailedReleaseError: the server or a curator speaks of another release, or of none that was asked for.
    """
    _check_published(published, request.release_id, study, planned)
    _check_asked_for(release_of(published), request, study)
    return published


def agreed_tables(request: ReleaseRequest, study: Study, planned: Mapping[str, ReleaseSpec]) -> ReleaseSpec:
    """Return the spec of a release of several tables once every curator states the same, and it is what was asked for.

    Args:
        study: the study file under which it was.
        planned: curator -> what it says that it planned, of those that say so.

    Raises:
        NotReadyError: a curator has not planned the release yet.
        FailedReleaseError: a curator speaks of another release, or of none that was asked for.
    """
    _check_all_planned([curator.name for curator in study.curators], planned)
    (first, release), *others = planned.items()
    for name, other in others:
        if other.digest() != release.digest():
            raise FailedReleaseError(f"it planned another release than curator {first}", where=f"curator {name}")
    if release.release_id != request.release_id:
        raise FailedReleaseError("it answered about another release", where=f"curator {first}")
    _check_asked_for(release, request, study)
    return release


def agreed_table(table: TableSpec, study: Study, published: TableSpec, planned: Mapping[str, TableSpec]) -> TableSpec:
    """Return the spec of a table once its server and its curators state that of its release.

    Args:
        table: as its release describes it.
        published: what the server says that it published.
        planned: curator -> what it says that it planned, of those that say so.

    Raises:
        NotReadyError, FailedReleaseError: as `agreed_spec`.
    """
    _check_published(published, table.release_id, study, planned)
    if published.digest() != table.digest():
        raise FailedReleaseError(
            "the curators planned another table than was agreed before the charge", where="release spec"
        )
    return published


def _check_published(published: TableSpec, release_id: str, study: Study, planned: Mapping[str, TableSpec]) -> None:
    """Refuse a publication that is of another release, or not the one that its curators planned."""
    _check_all_planned(published.owners, planned)
    if published.release_id != release_id:
        raise FailedReleaseError("it answered about another release", where=f"server {study.server.name}")
    for name, other in planned.items():
        if other.digest() != published.digest():
            raise FailedReleaseError("the server published another release than was planned", where=f"curator {name}")


def _check_all_planned(curators: Iterable[str], planned: Container[str]) -> None:
    for curator in curators:
        if curator not in planned:
            raise NotReadyError("has not planned the release yet", where=f"curator {curator}")


def _check_asked_for(release: ReleaseSpec, request: ReleaseRequest, study: Study) -> None:
    differing = [*_unlike_request(release, request), *_unlike_tables(release, request)]
    differing += _unlike_study(release, study, request)
    for table in release.each_table():
        Floors.of(study).check(release_of(table))
    if differing:
        raise FailedReleaseError(
            f"the curators planned another release than was asked for: {', '.join(differing)}", where="release spec"
        )


def _unlike_request(spec: ReleaseSpec, request: ReleaseRequest) -> Iterable[str]:
    """Yield what a spec states otherwise than the request."""
    for name in ("researcher", "epsilon", "delta", "scheme", "stage", "sampling", "pad", "deadline"):
        if getattr(spec, name) != getattr(request, name):
            yield name
    size_is_asked = scheme_class(request.scheme).size_law is SizeLaw.FIXED and request.sample is not None
    if size_is_asked and spec.sample != request.sample:
        yield "sample"


def _unlike_tables(release: ReleaseSpec, request: ReleaseRequest) -> Iterable[str]:
    """Yield what the tables of a release are otherwise than the request, but for those that a denial leaves out."""
    names = tuple(column.attribute for column in release.columns)
    tables = [table for table in request.tables if set(names).issuperset(table)] if request.tables else [names]
    planned = [release.attributes(number) for number in range(len(release.tables))]
    if release.several != bool(request.tables) or planned != tables:
        yield "tables"
    if release.repeats != min(request.repeats, len(tables)):
        yield "repeats"
    plans = (*release.tables, *release.repeated)
    if request.canaries is not None and any(plan.canaries != request.canaries for plan in plans):
        yield "canaries"


def _unlike_study(spec: ReleaseSpec, study: Study, request: ReleaseRequest) -> Iterable[str]:
    """Yield what a spec states otherwise than the study file."""
    if spec.study_digest != study.digest:
        yield "study file"
    columns = requested_columns(request, study)
    is_part = tuple(column for column in columns if column in spec.columns) == spec.columns
    if not is_part or (spec.columns != columns and not request.partial):
        yield "columns"
