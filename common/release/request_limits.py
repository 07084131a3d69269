"""What a study allows of a request, as its file alone shows: the researcher's service and every curator check it."""

from typing import TYPE_CHECKING

from veiltab.common.core.block_order import MAX_ROWS
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.request import ReleaseRequest

if TYPE_CHECKING:
    from veiltab.common.study.file import Study


def check_limits(request: ReleaseRequest, study: "Study") -> None:
    """Refuse a request that no curator of this study could fulfil.

    Raises:
        InvalidInputError: unknown attributes or not in study order, too many tables, cells or rows, or too little noise
            of the curators.
    """
    domain = study.domain(request.attributes)
    if request.tables:
        _check_tables(request, study)
    elif domain.cells > study.maximum_cells:
        raise InvalidInputError(
            f"the table has {domain.cells} cells; the study allows {study.maximum_cells}",
            where="attributes",
            remedy="Ask for fewer attributes.",
        )
    if request.noise_split < study.minimum_noise_split:
        raise InvalidInputError(
            f"the curators' part of the noise is {request.noise_split}; the study asks for {study.minimum_noise_split}",
            where="noise split",
            remedy=f"Ask with a noise split of {study.minimum_noise_split} or more.",
        )
    check_draws(request, MAX_ROWS)


def check_draws(request: ReleaseRequest, most: int) -> None:
    """Refuse a request that draws more rows.

    Raises:
        InvalidInputError: it does, for its sample or its first stage.
    """
    for name, rows in (("sample", request.sample), ("stage", request.stage)):
        if rows is not None and rows > most:
            raise InvalidInputError(f"at most {most} rows can be drawn, not {rows}", where=name)


def _check_tables(request: ReleaseRequest, study: "Study") -> None:
    if len(request.tables) > study.maximum_tables:
        raise InvalidInputError(
            f"{len(request.tables)} tables are asked for; the study allows {study.maximum_tables}",
            where="tables",
            remedy="Ask for fewer tables, or for several releases.",
        )
    if study.domain(request.attributes).names != request.attributes:
        raise InvalidInputError("the attributes are not in study order", where="attributes")
    for table in request.tables:
        cells = study.domain(table).cells
        if cells > study.maximum_cells:
            raise InvalidInputError(
                f"the table {', '.join(table)} has {cells} cells; the study allows {study.maximum_cells}",
                where="tables",
                remedy="Ask without this table.",
            )
