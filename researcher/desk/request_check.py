"""What a desk refuses of a request at once, as the study file alone shows, before any person looks at it."""

from veiltab.common.errors import BudgetExceededError, NotReadyError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.request_limits import check_limits
from veiltab.common.study.file import Study, load_study
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.researcher.records.store import ResearcherStore


def check_asked(request: ReleaseRequest, study: Study) -> None:
    """Refuse a request that the study does not allow, or that no budget can ever hold.

    Raises:
        InvalidInputError: as `check_limits`.
        BudgetExceededError: as `check_fits_budget`.
    """
    check_limits(request, study)
    check_fits_budget(request, study)


def check_fits_budget(request: ReleaseRequest, study: Study) -> None:
    """Refuse a request for more than a whole budget.

    Where the budget has a delta, a pure release may take less than its epsilon, and so may one of a smaller delta: what
    they take shows only once n is known, and the curators refuse them then. A cap makes a release smaller than its
    epsilon says.

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


def check_asked_under(release: ResearcherRelease, study: Study, store: ResearcherStore, own: str) -> None:
    """Refuse to go on with a release under another study file than it was asked for.

    Args:
        study: the study file here now.
        store: keeps those that were here.
        own: role and name of the service.

    Raises:
        NotReadyError: says how the two differ.
    """
    if release.study_digest == study.digest:
        return
    from veiltab.common.study.differences import study_differences  # noqa: PLC0415 - not where both have one study

    path = store.files.study_file(release.study_digest)
    raise NotReadyError(
        "the release was asked for under another study file; the one here"
        f" {study_differences(study, load_study(path))}",
        where=own,
        remedy=f"Start the service with studies/{path.name} of its state folder.",
    )
