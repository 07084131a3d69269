"""Whether fewer respondents are common to all tables than a study expects, which often means ids that do not match."""

from veiltab.common.study.file import Study
from veiltab.common.study.forms import rows_of, sentence


def drafted_rows(study: Study) -> int:
    """Return the rows of the smallest table, as the drafts had them; 0 if no draft is known."""
    return min((rows_of(forms) for curator in study.curators for _, forms in curator.forms[:1]), default=0)


def few_common(study: Study, n: int, rows_here: int = 0) -> str:
    """Return a warning if the common respondents are a small share of the smallest table; "" if not.

    Args:
        n: common respondents.
        rows_here: of one's own table; 0 if that is not known. Those of other tables are as their drafts had them.
    """
    smallest = min(filter(None, (drafted_rows(study), rows_here)), default=n)
    if n >= study.minimum_share * smallest:
        return ""
    written = [
        f"{curator.name}: {name} as {sentence(forms)}" for curator in study.curators for name, forms in curator.forms
    ]
    return (
        f"{n:,} common respondents are less than {study.minimum_share} of the smallest table, which has {smallest:,}"
        f" rows (minimum_share of the study). Compare how those are named who are in all tables"
        + (f": {'; '.join(written)}" if written else " (`veiltab curator check` shows it)")
    )
