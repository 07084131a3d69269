"""What a server refuses of a release that a curator announces; pure but for the clock."""

import time

from veiltab.common.core.block_order import MAX_ROWS
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.floors import Floors
from veiltab.common.release.spec import release_of
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.study.file import Study
from veiltab.server.records.session import check_owner

_SECONDS_A_DAY = 86_400
_LONGEST_DAYS = 370
"""Longest deadline; curators accept 366 days, and their clocks may differ from the server's."""


def check_spec(spec: TableSpec, curator: str, study: Study) -> None:
    """Refuse a release that is none of the study's.

    Raises:
        InvalidInputError: another study file, other columns, too many cells or rows, less than the study's floors, or
            too late a deadline.
        DeniedError: the curator has no columns in it.
    """
    if spec.study_digest != study.digest:
        raise InvalidInputError(
            "the release is of another study file than the server's",
            where="study file",
            remedy="Give every party the same bytes.",
        )
    for column in spec.columns:
        rule = next((rule for rule in study.attributes if rule.name == column.attribute), None)
        if rule is None or (rule.holders, rule.attribute.size) != (column.holders, column.size):
            raise InvalidInputError("a column is not as the study says", where=f"attribute {column.attribute}")
    if spec.cells > study.maximum_cells:
        raise InvalidInputError(f"the study allows {study.maximum_cells} cells", where="cells")
    Floors.of(study).check(release_of(spec))
    check_owner(spec, curator)
    if spec.researcher not in {researcher.name for researcher in study.researchers}:
        raise InvalidInputError("the study has no such researcher", where="researcher")
    if spec.uploaded_rows > MAX_ROWS:
        raise InvalidInputError(f"the release has more than {MAX_ROWS} rows", where="population")
    if spec.deadline > time.time() + _LONGEST_DAYS * _SECONDS_A_DAY:
        raise InvalidInputError(
            f"the deadline lies more than {_LONGEST_DAYS} days ahead",
            where="deadline",
            remedy="Compare the parties' clocks, or ask for an earlier deadline.",
        )
