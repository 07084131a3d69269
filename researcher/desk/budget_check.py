"""Requests that no budget can ever hold, as the study file alone shows: refused before any person looks at them."""

from veiltab.common.errors import BudgetExceededError
from veiltab.common.privacy.cards.words import delta_text
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.study.file import Study


def check_fits_budget(request: ReleaseRequest, study: Study) -> None:
    """Refuse a request for more than a whole budget.

    Where the budget has a delta, a pure release may take less than its epsilon, and so may one of a smaller delta: what
    they take shows only once n is known, and the curators refuse them then. A cap makes a release smaller than its
    epsilon says.

    Args:
        request: what is asked for.
        study: the study file.

    Raises:
        BudgetExceededError: it asks for more than a curator may ever spend.
    """
    is_capped = request.max_local_epsilon is not None or request.max_pair_epsilon is not None
    if is_capped or request.epsilon <= study.budget_epsilon:
        return
    if study.budget_delta is None:
        budget = f"{study.budget_epsilon}"
    elif request.delta is not None and request.delta >= study.budget_delta:
        budget = f"{study.budget_epsilon} at delta {delta_text(study.budget_delta)}"
    else:
        return
    raise BudgetExceededError(
        f"epsilon {request.epsilon} is above the study's whole budget of {budget}, so no curator can ever grant it",
        where=f"study {study.id}",
        remedy="Ask for a smaller epsilon; `veiltab plan` says which error it gives.",
    )
