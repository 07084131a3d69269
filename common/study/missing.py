"""What n counts, and what links protect, in words: rules for missing values decide who is a respondent of releases."""

from collections.abc import Collection, Mapping

from veiltab.common.study.file import Study


def respondents_sentence(study: Study, names: Collection[str], left_out: Mapping[str, int]) -> str:
    """Say whom n counts, how many rows that left out, and which attributes have a category of missing values.

    Args:
        study: the study file of the release.
        left_out: curator -> rows that it left out; empty unless the study states them (docs/decisions/0015).
    """
    dropping = [rule.name for rule in study.attributes if rule.coding.missing is None]
    kept = [
        f'{rule.name} ("{rule.coding.missing}")'
        for rule in study.attributes
        if rule.name in names and rule.coding.missing is not None
    ]
    who = "who are in" if study.identity is None else "who are linked, by the study's keys, in"
    said = [f"n is the number of people {who} every curator's table"]
    if dropping:
        which = "each attribute of the study" if len(dropping) == len(study.attributes) else _joined(dropping, "and")
        said.append(f" and have a value in {which}, also where the release does not ask for it")
    said.append("." if study.identity is None else ". Some links may be wrong: --linkage-error undoes them.")
    if left_out:
        rows = [f"{count:,} at {curator}" for curator, count in sorted(left_out.items())]
        said.append(f" Rows left out for a missing value: {_joined(rows, 'and')}.")
    if kept:
        said.append(f" Missing values are a category in {_joined(kept, 'and')}.")
    return "".join(said)


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
        f"People were linked by {', '.join(names)} to the rows of {identity.hub}. Being present in the table"
        f" of {identity.hub} is not protected. A row of another curator that is added or removed changes one"
        " respondent; other identifiers in it change two, a group of two."
    )


def _joined(names: list[str], word: str) -> str:
    """Return names as "a, b and c"."""
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
