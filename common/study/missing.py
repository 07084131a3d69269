"""What n counts, and what of a person's presence is protected, in words."""

from collections.abc import Collection, Mapping, Sequence

from veiltab.common.study.file import Study

WRONG_LINKS = "Some links may be wrong: --linkage-error undoes them."


def respondents_sentence(study: Study, names: Collection[str], left_out: Mapping[str, int]) -> str:
    """Say whom n counts, how many rows that left out, and which attributes have a category of missing values.

    Args:
        study: the study file of the release.
        left_out: curator -> rows that it left out; empty unless the study states them (docs/decisions/0015).
    """
    attributes = [
        f'{rule.name} ("{rule.coding.missing}")'
        for rule in study.attributes
        if rule.name in names and rule.coding.missing is not None
    ]
    links = "" if study.identity is None else f" {WRONG_LINKS}"
    sentences = [f"n is the number of {respondents(study, names)}.{links}"]
    if left_out:
        rows = [f"{count:,} at {curator}" for curator, count in sorted(left_out.items())]
        sentences.append(f" Rows left out for a missing value: {joined(rows)}.")
    lacking = [rule for rule in study.attributes if rule.name in names and rule.attribute.has_absent]
    if spokes := [*dict.fromkeys(" or ".join(rule.holders) for rule in lacking)]:
        sentences.append(f' Estimates are of those who are in the table of {joined(spokes)}, unless "absent" is shown.')
    if attributes:
        sentences.append(f" Missing values are a category in {joined(attributes)}.")
    return "".join(sentences)


def respondents(study: Study, names: Collection[str] | None = None) -> str:
    """Return whom releases of a study are about, such as "people in the table of alice".

    Args:
        names: the attributes to name of those without which nobody counts, as a release asks for them; None for all.
    """
    people = f"people in the table of {study.hub}"
    dropping = [rule.name for rule in study.attributes_of(study.hub) if rule.coding.missing is None]
    if not dropping:
        return people
    attributes = [name for name in dropping if names is None or name in names]
    others = len(dropping) - len(attributes)
    more = [f"{others} other attribute{'s' * (others > 1)} of it"] if others else []
    return f"{people} who have a value in {joined([*attributes, *more])}"


def presence_sentence(study: Study) -> str:
    """Say which neighbours a guarantee is about, who learns of whose presence, and that the hub's is not protected.

    Neighbours: tables that differ in one person's row in one spoke or several, changed, added or removed; the rows of
    the hub are the same (docs/linkage.md has them where rows are linked by an identity).
    """
    hub, spokes = study.hub, [curator.name for curator in study.curators if curator.name != study.hub]
    lacking, sentences = [name for name in spokes if study.may_lack(name)], []
    if complete := [name for name in spokes if name not in lacking]:
        sentences.append(f"That everybody in the table of {hub} is in that of {joined(complete)} is public.")
    if lacking:
        each = f"no curator but {lacking[0]}" if len(lacking) == 1 else "no other curator"
        sentences.append(
            f"Whether a person is in the table of {joined(lacking, 'or')}, and what stands there, is one row of n, and"
            f" {each} learns whether the person is in it."
        )
    each = spokes[0] if len(spokes) == 1 else f"Each of {joined(spokes)}"
    tests_names = study.alignment == "tokens" and study.identity is None
    tests = " and can test every name that it can think of" if tests_names else ""
    sentences.append(f"{each} learns which of its own people {hub} has{tests}.")
    sentences.append(f"That a person is in the table of {hub} is not protected.")
    return " ".join([*sentences, *_several_rows(study, spokes)])


def _several_rows(study: Study, spokes: Sequence[str]) -> list[str]:
    """Return when a person may lie in several rows, a group of which the guarantee is then that of."""
    count = len(spokes)
    if study.identity is None:
        exchanged = (
            f"If {study.hub} exchanges people, a person may lie in {count} rows, one for each of {joined(spokes)}."
        )
        return [exchanged] if count > 1 else []
    names = [name for name in study.identity.names if name != study.identity.number_beside]
    rows = "one row" if count == 1 else f"up to {count} rows, one for each of {joined(spokes)}"
    changes = f"a row of another curator that is changed, added or removed changes {rows}; other identifiers change"
    return [f"People are linked by {joined(names)}: {changes} {2 * count}."]


def joined(names: Sequence[str], word: str = "and") -> str:
    """Return names as "a, b and c"."""
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
