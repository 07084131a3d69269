"""What n counts, and what links protect, in words: rules for missing values decide who is a respondent of releases."""

from collections.abc import Collection, Mapping, Sequence

from veiltab.common.study.file import Study


def respondents_sentence(study: Study, names: Collection[str], left_out: Mapping[str, int]) -> str:
    """Say whom n counts, how many rows that left out, and which attributes have a category of missing values.

    Args:
        study: the study file of the release.
        left_out: curator -> rows that it left out; empty unless the study states them (docs/decisions/0015).
    """
    kept = [
        f'{rule.name} ("{rule.coding.missing}")'
        for rule in study.attributes
        if rule.name in names and rule.coding.missing is not None
    ]
    links = "" if study.identity is None else " Some links may be wrong: --linkage-error undoes them."
    said = [f"n is the number of {respondents(study, names)}.{links}"]
    if left_out:
        rows = [f"{count:,} at {curator}" for curator, count in sorted(left_out.items())]
        said.append(f" Rows left out for a missing value: {joined(rows)}.")
    if kept:
        said.append(f" Missing values are a category in {joined(kept)}.")
    return "".join(said)


def respondents(study: Study, names: Collection[str] | None = None) -> str:
    """Return whom releases of a study are about, such as "people in the table of alice".

    Args:
        names: the attributes to name of those without which nobody counts, as a release asks for them; None for all.
    """
    people = f"people in the table of {study.hub}"
    dropping = [rule.name for rule in study.attributes_of(study.hub) if rule.coding.missing is None]
    if not dropping:
        return people
    asked = [name for name in dropping if names is None or name in names]
    others = len(dropping) - len(asked)
    more = [f"{others} other attribute{'s' * (others > 1)} of it"] if others else []
    return f"{people} who have a value in {joined([*asked, *more])}"


def links_sentence(study: Study) -> str | None:
    """Say which neighbours a guarantee is about where rows are linked by an identity; None in a study with ids.

    Neighbours: a row of a spoke added or removed, identifiers included, changes at most one linked row; other
    identifiers of a row change two (docs/linkage.md, hub rule). Nothing is said of rows of the hub.
    """
    identity = study.identity
    if identity is None:
        return None
    names = [name for name in identity.names if name != identity.number_beside]
    return (
        f"People were linked by {joined(names)} to the rows of {identity.hub}. Being present in the table of"
        f" {identity.hub} is not protected. Adding or removing a row of another curator changes one respondent;"
        " changing its identifiers changes two, a group of two."
    )


def joined(names: Sequence[str]) -> str:
    """Return names as "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
