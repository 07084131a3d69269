"""The numbers of a study file: limits and budgets that protect nobody, or that no study meets, are refused."""

from typing import TYPE_CHECKING

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.members import check_epsilon_budget

if TYPE_CHECKING:
    from veiltab.common.study.file import Study

MAX_CELLS = 2**22
"""Largest number of cells that a study may allow a table."""

MAX_RESPONDENTS = 10**9
"""Largest number of respondents that a study may allow a table: its tokens take 16 GB of each other curator's disk."""

MAX_TABLES = 2000
"""Largest number of tables that a study may allow a release."""


def _check_fewest(study: "Study") -> None:
    if not 1 <= study.minimum_population <= 10**12:
        raise InvalidInputError("minimum_population is not at least 1", remedy="100 is a usual value.")
    if not 0 <= study.minimum_noise_split < 1:
        raise InvalidInputError("minimum_noise_split is not from 0 to below 1", remedy="0.25 leaves requests a choice.")
    if any(most is not None and most <= 0 for most in (study.maximum_pair_epsilon, study.maximum_row_epsilon)):
        raise InvalidInputError("maximum_pair_epsilon or maximum_row_epsilon is not above 0", remedy="Leave it out.")


def check_numbers(study: "Study") -> None:
    """Refuse limits and budgets that protect nobody or cannot be met."""
    _check_fewest(study)
    if not 2 <= study.maximum_cells <= MAX_CELLS:
        raise InvalidInputError(f"maximum_cells is not between 2 and {MAX_CELLS}", remedy="100000 is a usual value.")
    if not 1 <= study.maximum_tables <= MAX_TABLES:
        raise InvalidInputError(f"maximum_tables is not between 1 and {MAX_TABLES}", remedy="1000 is a usual value.")
    if not 1 <= study.maximum_respondents <= MAX_RESPONDENTS:
        raise InvalidInputError(
            f"maximum_respondents is not between 1 and {MAX_RESPONDENTS}",
            remedy="Give somewhat more than the largest table has.",
        )
    if study.curators:
        check_epsilon_budget(study.budget_epsilon)
    if study.noise_split is not None and not 0 <= study.noise_split < 1:
        raise InvalidInputError("noise_split is not from 0 to below 1", remedy="0.5 is a usual value.")
    if study.canaries is not None and study.canaries < 0:
        raise InvalidInputError("canaries is below 0", remedy="Without it, the plan of a release chooses them.")
    if study.budget_delta is not None and not 0 < study.budget_delta < 1:
        raise InvalidInputError("the budget's delta is not between 0 and 1", remedy="1e-6 is usual.")
    if study.month_share is not None and not 0 < study.month_share <= 1:
        raise InvalidInputError("month_share is no part of the budget above 0", remedy="0.1 lasts ten months at least.")
